"""Base facts: what has arrived, what is still alive, what the views may see.

A fact of a lifted stream is a row with a time, the largest timestamp it arrived with; inserting it again refreshes
it, and deleting it needs no exact timestamp. A fact of a window of size W is alive while its time is after event
time - W. With a slide, what the views see of the stream changes only when event time passes a multiple of the slide.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from whorl.analysis.program import Relation
from whorl.model.delta import Change
from whorl.model.report import InputCounts
from whorl.model.values import Row


@dataclass(slots=True)
class BaseRelation:
    """The facts of one base relation: row -> (time, arrival)."""

    relation: Relation
    facts: dict[Row, tuple[int | None, int]] = field(default_factory=dict)
    arrivals: int = 0
    visible: frozenset[Row] = frozenset()
    boundary: int | None = None

    def copy(self) -> BaseRelation:
        """Return a copy to try an epoch on."""
        return BaseRelation(self.relation, dict(self.facts), self.arrivals, self.visible, self.boundary)

    def apply(self, changes: Sequence[Change], now: int | None) -> InputCounts:
        """Take the changes of an epoch, at event time ``now``, and let facts expire."""
        counts = InputCounts()
        if now is not None and self.relation.ttl is not None:
            # Facts that arrived before event time was known count from its first value.
            self.facts = {row: (now if time is None else time, n) for row, (time, n) in self.facts.items()}
        for change in changes:
            row, time = self._split(change.row, now)
            if change.weight > 0:
                self._insert(row, time, now, counts)
            elif self.facts.pop(row, None) is None:
                counts.absent += 1
            else:
                counts.deleted += 1
        self._settle(now, counts)
        return counts

    def _split(self, row: Row, now: int | None) -> tuple[Row, int | None]:
        if not self.relation.timed:
            return row, now if self.relation.ttl is not None else None
        time = row[0]
        assert isinstance(time, int), "check_row has seen the timestamp"
        return (row[1:] if self.relation.lifted else row), time

    def _insert(self, row: Row, time: int | None, now: int | None, counts: InputCounts) -> None:
        if not self._alive(time, now):
            counts.late += 1
            return
        keys = [i for i, column in enumerate(self.relation.columns) if column.key]
        if keys:
            same = [old for old in self.facts if old != row and all(old[i] == row[i] for i in keys)]
            for old in same:
                del self.facts[old]
                counts.deleted += 1
        self.arrivals += 1
        if row in self.facts:
            counts.refreshed += 1
            old_time = self.facts[row][0]
            if time is not None and old_time is not None:
                time = max(time, old_time)
        else:
            counts.inserted += 1
        self.facts[row] = (time, self.arrivals)

    def _size(self) -> int | None:
        window = self.relation.window
        if window is not None and not window.counted:
            return window.size
        return self.relation.ttl

    def _edge(self, now: int | None) -> int | None:
        """Return the event time that the views stand at: the last multiple of the slide."""
        window = self.relation.window
        if now is None or window is None or window.slide is None or window.counted:
            return now
        return now - now % window.slide

    def _alive(self, time: int | None, now: int | None) -> bool:
        size, edge = self._size(), self._edge(now)
        return size is None or time is None or edge is None or time > edge - size

    def _settle(self, now: int | None, counts: InputCounts) -> None:
        window = self.relation.window
        if window is not None and window.slide is not None:
            position = self.arrivals if window.counted else now
            reached = None if position is None else position // window.slide
            passed = 0 if window.counted and self.boundary is None else self.boundary
            if reached == passed and reached is not None:
                return
            self.boundary = reached
        dead = [row for row, (time, _arrival) in self.facts.items() if not self._alive(time, now)]
        if window is not None and window.counted:
            newest = sorted(self.facts, key=lambda row: self.facts[row][1], reverse=True)
            dead = newest[window.size :]
        for row in dead:
            del self.facts[row]
        counts.expired += len(dead)
        self.visible = frozenset(self.facts)
