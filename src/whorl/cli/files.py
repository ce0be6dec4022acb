"""Files that the command line names: programs, deltas, Python functions."""

from __future__ import annotations

from whorl.connectors.programs import load_functions, read_source

__all__ = ["load_functions", "read_source"]
