"""What a partition remembers: stored relations with their indexes, and the dictionary of values."""
