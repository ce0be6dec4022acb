"""Benchmarks: Whorl beside what people can install, measured in one run on one machine."""
