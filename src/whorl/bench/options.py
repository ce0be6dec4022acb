"""How much of a benchmark is run."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """How much to run."""

    runs: int = 5
    seed: int = 1
    quick: bool = False
    full: bool = False  # whether the contestants on demand take part
    seconds: float | None = None  # the most that one measurement may take, in place of the case's own
    data: str | None = None  # a folder with real networks
