"""Limits: where evaluation stops when a program may not end."""

from __future__ import annotations

from dataclasses import dataclass

MAX_DEPTH = 250  # terms are compared and printed by recursion, which ends not much deeper


@dataclass(frozen=True, slots=True)
class Limits:
    """The most that one epoch may use before it is refused, with nothing emitted and the state as before."""

    rounds: int = 10_000
    tuples: int = 5_000_000
    depth: int = 200
