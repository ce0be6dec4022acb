"""Schemas: the columns of a relation, and how long its facts live."""

from __future__ import annotations

from dataclasses import dataclass

from whorl.model.types import Type


@dataclass(frozen=True, slots=True)
class Column:
    """One attribute of a relation."""

    name: str
    type: Type
    key: bool = False

    def __str__(self) -> str:
        return f"{self.name}: {self.type}" + (" KEY" if self.key else "")


@dataclass(frozen=True, slots=True)
class Window:
    """How long the facts of a stream live.

    Of a time window, `size` and `slide` are seconds of event time; of a counted one, numbers of facts. Without a
    slide every epoch brings the stream up to date.
    """

    size: int
    slide: int | None = None
    counted: bool = False

    def __post_init__(self) -> None:
        assert self.size > 0, "the parser checks the size"
        assert self.slide is None or self.slide > 0, "the parser checks the slide"

    def __str__(self) -> str:
        size = f"COUNT {self.size}" if self.counted else f"{self.size}"
        return f"WINDOW({size}, {self.slide})" if self.slide is not None else f"WINDOW({size})"
