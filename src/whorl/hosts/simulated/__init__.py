"""Partitions as nodes of a simulated network."""
