"""What a golden case claims, epoch by epoch: the base facts that its input leaves alive, and its views.

Nothing here uses the engine but the reader of delta notation. Values become plain Python: a list is a tuple, a term a
tuple that starts with its name, a float is rounded where arithmetic may differ in the last digits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from whorl.diagnostics.source import Source
from whorl.model.values import LIST, Term
from whorl.syntax.deltas import parse_deltas

Rows = set[tuple[Any, ...]]  # rows of plain values: a foreign border, since the checks calculate with them freely


@dataclass(frozen=True)
class Stream:
    """How long facts live: `size` time units, seen anew at each multiple of `slide`. A `carried` time is no column."""

    size: float = float("inf")
    slide: int | None = None
    carried: bool = True


@dataclass
class _Alive:
    """The facts of one relation with their times, and those of them that the views may see."""

    stream: Stream | None
    times: dict[tuple[Any, ...], int] = field(default_factory=dict)
    seen: Rows = field(default_factory=set)
    slot: int | None = None

    def change(self, row: tuple[Any, ...], weight: int, now: int) -> None:
        time = row[0] if self.stream else 0
        key = row[1:] if self.stream and self.stream.carried else row
        if weight < 0:
            self.times.pop(key, None)
        elif not self._dead(time, now):
            self.times[key] = max(time, self.times.get(key, time))

    def _dead(self, time: int, now: int) -> bool:
        if self.stream is None:
            return False
        edge = now // self.stream.slide * self.stream.slide if self.stream.slide else now
        return time <= edge - self.stream.size

    def look(self, now: int) -> Rows:
        """Return what the views see at a time."""
        slot = now // self.stream.slide if self.stream and self.stream.slide else None
        if slot is None or slot != self.slot:
            self.slot = slot
            self.times = {row: time for row, time in self.times.items() if not self._dead(time, now)}
            self.seen = set(self.times)
        return set(self.seen)


def replay(folder: Path, streams: Mapping[str, Stream]) -> Iterator[tuple[dict[str, Rows], dict[str, Rows]]]:
    """Yield the facts alive and the views shown after each epoch that a case prints."""
    views = replay_views(folder)
    relations = {name: _Alive(stream) for name, stream in streams.items()}
    now = 0
    for epoch, shown in zip(_epochs(folder / "input.deltas"), views, strict=False):
        stamps = [c.row[0] for c in epoch.changes if c.relation in streams and c.weight > 0]
        now = epoch.time if epoch.time is not None else max([now, *stamps])
        for change in epoch.changes:
            relation = relations.setdefault(change.relation, _Alive(None))
            relation.change(plain_row(change.row), change.weight, now)
        yield {name: relation.look(now) for name, relation in relations.items()}, shown


def replay_views(folder: Path) -> list[dict[str, Rows]]:
    """Add up the changes of each view; a row may only appear while absent, and vanish while present."""
    views: dict[str, set[tuple[tuple[Any, ...], tuple[type, ...]]]] = {}  # 1, 1.0 and True are three values
    after: list[dict[str, Rows]] = []
    for epoch in _epochs(folder / "expected.deltas"):
        for change in epoch.changes:
            row, rows = plain_row(change.row), views.setdefault(change.relation, set())
            typed = row, tuple(map(type, row))
            assert (typed in rows) is (change.weight < 0), f"epoch {epoch.number}: {change.relation}{row}"
            (rows.add if change.weight > 0 else rows.remove)(typed)
        after.append({name: {row for row, _types in rows} for name, rows in views.items() if rows})
    return after


def _epochs(path: Path) -> Any:
    return parse_deltas(Source(path.name, path.read_text(encoding="utf-8")))


def plain_row(row: tuple[Any, ...]) -> tuple[Any, ...]:
    """Turn the values of a row into plain Python."""
    return tuple(_plain(value) for value in row)


def _plain(value: Any) -> Any:
    if isinstance(value, Term):
        inner = tuple(_plain(arg) for arg in value.args)
        return inner if value.name == LIST else (value.name, *inner)
    if isinstance(value, tuple):
        return tuple(_plain(item) for item in value)
    return round(value, 9) if isinstance(value, float) else value
