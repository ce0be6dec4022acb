"""Labels that are more than a number: Boolean functions over facts."""
