"""Random changes for a generated program: inserts, deletes, refreshes, deletes of absent rows, steps of time."""

from __future__ import annotations

from dataclasses import dataclass, field

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from tests.generators.programs import programs
from tests.generators.schema import PLAIN, BaseRelation, GeneratedProgram, Shape
from whorl.model.delta import Change, Epoch
from whorl.model.values import Row

_OPERATIONS = ("insert", "insert", "insert", "delete", "delete", "delete", "refresh", "miss")
_LATENESS = st.sampled_from((0, 0, 0, 1, 2, 4))
_QUIET = st.sampled_from((False, False, False, False, True))  # an epoch in which only time may pass


@dataclass
class _Feed:
    """What a stream has sent so far."""

    draw: st.DrawFn
    program: GeneratedProgram
    now: int = 0
    sent: dict[str, list[Row]] = field(default_factory=dict)

    def epoch(self, number: int, most: int) -> Epoch:
        quiet = number > 1 and self.draw(_QUIET)
        time = None
        if self.program.timed:
            self.now += self.draw(st.integers(0, 4))
            time = self.now if quiet or self.draw(st.booleans()) else None
        changes: list[Change] = []
        if number == 1:
            # Enough rows for joins to meet: as many for each relation as later epochs change in all.
            counts = [(relation, self.draw(st.integers(0, most))) for relation in self.program.base]
            changes = [self.change("insert", relation, time) for relation, count in counts for _ in range(count)]
        elif not quiet and self.program.base:
            kinds = self.draw(st.lists(st.sampled_from(_OPERATIONS), max_size=most))
            changes = [self.change(kind, self.draw(st.sampled_from(self.program.base)), time) for kind in kinds]
        return Epoch(number, tuple(changes), time)

    def change(self, kind: str, relation: BaseRelation, time: int | None) -> Change:
        sent = self.sent.setdefault(relation.name, [])
        if kind in ("delete", "refresh") and sent:
            row = self.draw(st.sampled_from(sent))
        else:
            row = self.draw(st.sampled_from(relation.rows))
        if kind == "delete" and row in sent:
            sent.remove(row)
        elif kind in ("insert", "refresh") and row not in sent:
            sent.append(row)
        weight = 1 if kind in ("insert", "refresh") else -1
        return Change(relation.name, self.stamp(relation, time) + row, weight)

    def stamp(self, relation: BaseRelation, time: int | None) -> Row:
        if not relation.stream:
            return ()
        stamp = max(self.now - self.draw(_LATENESS), 0)
        if time is None:
            self.now = max(self.now, stamp)
        return (stamp,)


@st.composite
def streams(
    draw: st.DrawFn, program: GeneratedProgram, max_epochs: int = 5, max_changes: int = 12
) -> tuple[Epoch, ...]:
    """Return epochs of changes to the base relations of a program; the first one only inserts."""
    feed = _Feed(draw, program)
    count = draw(st.integers(min(2, max_epochs), max_epochs))
    return tuple(feed.epoch(number, max_changes) for number in range(1, count + 1))


@st.composite
def cases(draw: st.DrawFn, shape: Shape = PLAIN) -> tuple[GeneratedProgram, tuple[Epoch, ...]]:
    """Return a program together with changes for it."""
    program = draw(programs(shape))
    return program, draw(streams(program))


def insert_streams(program: GeneratedProgram) -> SearchStrategy[tuple[Change, ...]]:
    """Return inserts in any order, without timestamps that expire."""
    feeds = [st.sampled_from([Change(relation.name, row, 1) for row in relation.rows]) for relation in program.base]
    return st.lists(st.one_of(feeds), max_size=12).map(tuple)
