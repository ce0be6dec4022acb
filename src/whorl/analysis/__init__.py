"""Syntax tree in, checked program out; `passes.py` lists the passes in their order."""
