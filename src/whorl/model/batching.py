"""How long eager labels gather alternatives of rows that other partitions know already, before they are sent."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Batching:
    """Bounds on what waits in a partition for each channel: so many rows, so many seconds. None is no bound.

    Without any, alternatives are sent only when what was told becomes false.
    """

    rows: int | None = 1_000
    seconds: float | None = 1.0
