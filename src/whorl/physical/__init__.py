"""Logical plan in, physical plan out: strategies with their reasons, and an order for every entry of a rule."""
