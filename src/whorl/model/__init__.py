"""Values, types, schemas, deltas: the words that every other layer uses. Imports nothing of the project."""
