"""How long eager labels gather alternatives of rows that other partitions know already, before they are sent."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Batching:
    """Bounds on what waits in a partition for each channel: so many rows, so many seconds. None is no bound.

    Without any, alternatives are sent only when what was told becomes false. In one process no time passes while there
    is anything else to do.
    """

    rows: int | None = 1_000
    seconds: float | None = 0.1

    def __post_init__(self) -> None:
        assert self.rows is None or self.rows >= 1, "a row that waits for nothing is sent"
        assert self.seconds is None or self.seconds >= 0, "nothing is sent before it is there"

    def __str__(self) -> str:
        bounds = [] if self.rows is None else [f"{self.rows} of them wait"]
        bounds += [] if self.seconds is None else [f"they have waited {self.seconds:g} s"]
        return "when " + " or ".join([*bounds, "what was told is lost"])
