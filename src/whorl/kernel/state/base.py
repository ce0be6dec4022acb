"""Base facts as they arrive: times, windows, keys, and what of them the views may see.

The same meaning as `whorl.oracle.base`, kept up by the change: facts wait for their expiry in a queue of times, and
only what is due is looked at.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from whorl.analysis.program import Relation
from whorl.kernel.arrays import facts as fact_arrays
from whorl.kernel.arrays import rowset
from whorl.kernel.arrays.facts import NEVER
from whorl.kernel.state.distinct import distinct
from whorl.kernel.state.keys import Keys
from whorl.kernel.state.queue import DeathQueue
from whorl.kernel.state.relation import Ints, Mask, Moves, StoredRelation, with_room
from whorl.model.report import InputCounts
from whorl.model.values import Row

_NO_TIMES = np.empty(0, np.int64)
_PARTS = 4  # that are gone through one by one; to put more together costs less


@dataclass(frozen=True, slots=True)
class Facts:
    """What is known of the rows of a base relation, by number; the queues that wait for them follow from it.

    `arrived` is the order in which they came, for windows that count them.
    """

    present: Mask
    times: Ints
    arrived: Ints
    arrivals: int
    boundary: int | None


@dataclass(frozen=True, slots=True)
class FactRows:
    """Facts that leave their partition: rows of plain values, which of them views see, and what is known of them."""

    rows: list[Row]
    shown: Mask
    facts: Facts

    def take(self, wanted: Mask) -> FactRows:
        """Return some of the facts."""
        rows = [row for row, keep in zip(self.rows, wanted.tolist(), strict=True) if keep]
        known = self.facts
        some = replace(known, present=known.present[wanted], times=known.times[wanted], arrived=known.arrived[wanted])
        return FactRows(rows, self.shown[wanted], some)


def join_facts(parts: Sequence[FactRows]) -> FactRows:
    """Return the facts of several partitions as one."""
    known = [part.facts for part in parts]
    joined = Facts(
        np.concatenate([each.present for each in known]),
        np.concatenate([each.times for each in known]),
        np.concatenate([each.arrived for each in known]),
        max(each.arrivals for each in known),
        known[0].boundary,
    )
    rows = [row for part in parts for row in part.rows]
    return FactRows(rows, np.concatenate([part.shown for part in parts]), joined)


class BaseFacts:
    """The facts of one base relation, beside the stored rows that views see."""

    def __init__(self, relation: Relation, stored: StoredRelation) -> None:
        self.relation = relation
        self.stored = stored
        stored.expect_new()
        if self._lasts is not None:
            stored.keep_labels()
            stored.dying = True
        columns = tuple(i for i, column in enumerate(relation.columns) if column.key)
        self._keys = Keys(stored, columns) if columns else None
        self.clear()

    def clear(self) -> None:
        """Forget all facts."""
        self._known = 0  # rows of which something is known
        self._old = 0  # rows of which something was known before this epoch
        self._present = np.zeros(32, np.bool_)
        self._times = np.zeros(32, np.int64)
        self._arrived = np.zeros(32, np.int64)
        if self._keys is not None:
            self._keys.clear()
        self._arrivals = 0
        self._alive = 0
        self._boundary: int | None = None
        self._dirty: list[Ints] = []
        self._queue = DeathQueue()
        self._line: deque[tuple[int, int]] = deque()  # (arrival, row) of a counted window
        self._untimed: list[Ints] = []
        self._undo: list[Callable[[], None]] = []

    def time_of(self, number: int) -> int | None:
        """Return the time of a fact that views see, None if it has none."""
        time = int(self._times[number]) if number < self._known else NEVER
        return None if time == NEVER else time

    def is_present(self, number: int) -> bool:
        """Whether a fact has arrived and not gone; views may see it only later."""
        return number < self._known and bool(self._present[number])

    @property
    def relation(self) -> Relation:
        """What the program says of the facts."""
        return self._relation

    @relation.setter
    def relation(self, relation: Relation) -> None:
        window = relation.window
        self._relation = relation
        self._counted = window is not None and window.counted
        self._lasts = relation.ttl if window is None or window.counted else window.size
        self._slide = 1 if window is None or window.slide is None else window.slide

    def save(self) -> Facts:
        """Return what is known of the stored rows."""
        self._reserve()
        count = self.stored.count
        return Facts(self._present[:count], self._times[:count], self._arrived[:count], self._arrivals, self._boundary)

    def load(self, facts: Facts) -> None:
        """Go on from facts about the stored rows, which are alive as views see them."""
        self.clear()
        self._reserve()
        count = self.stored.count
        self._present[:count], self._times[:count], self._arrived[:count] = facts.present, facts.times, facts.arrived
        self._arrivals, self._boundary = facts.arrivals, facts.boundary
        hidden = np.flatnonzero(self._present[:count] != self.stored.is_alive(np.arange(count)))
        self._dirty = [hidden] if len(hidden) else []
        if self.stored.dying:  # what was refreshed since views last looked is still to be shown
            shown = self.stored.alive()
            self._dirty.append(shown[self._deaths(shown) != self.stored.labels[shown]])
        present = np.flatnonzero(self._present[:count])
        if self._keys is not None:
            self._keys.start_anew(present)
        if self._counted:
            self._alive = len(present)
            line = present[np.argsort(self._arrived[present])]
            self._line.extend(zip(self._arrived[line].tolist(), line.tolist(), strict=True))
        if self._lasts is not None:
            timed = self._times[present] != NEVER
            self._wait(present[timed])
            self._untimed = [present[~timed]] if not timed.all() else []

    def keep(self) -> None:
        """Close an epoch that succeeded."""
        self._undo = []

    def wasted(self) -> Mask | None:
        """Tell which stored rows nobody needs any more, None if they are not many."""
        if not self.stored.wasteful(self.stored.living):
            return None
        self._reserve()
        count = self.stored.count
        wasted: Mask = ~(self._present[:count] | self.stored.is_alive(slice(count)))
        return wasted if self.stored.wasteful(count - int(wasted.sum())) else None

    def drop(self, wasted: Mask) -> Moves:
        """Forget stored rows that nobody needs; the others get new numbers. Return these, -1 for those forgotten."""
        keep, moved = ~wasted, self.stored.drop(wasted)
        count = self._known = self.stored.count
        for facts in (self._present, self._times, self._arrived):
            facts[:count] = facts[: len(keep)][keep]
        self._present[count : len(keep)] = False
        if len(self._present) > self.stored.room:  # much was given back
            self._lengthen()
        self._queue.renumbered(moved)
        self._dirty = [part[: rowset.renumber(part, moved)] for part in self._dirty]
        self._untimed = [part[: rowset.renumber(part, moved)] for part in self._untimed]
        if self._keys is not None:
            self._keys.start_anew(np.flatnonzero(self._present[:count]))
        line = ((arrival, int(moved[number])) for arrival, number in self._line)
        self._line = deque((a, number) for a, number in line if number >= 0 and self._arrived[number] == a)
        return moved

    def roll_back(self) -> None:
        """Undo what the epoch did, last things first."""
        while self._undo:
            self._undo.pop()()

    def _remember(self, numbers: Ints) -> None:
        """Note how facts are now, to be able to undo."""
        before = (self._present[numbers], self._times[numbers], self._arrived[numbers])
        self._undo.append(partial(self._restore, numbers, *before))

    def _restore(self, numbers: Ints, present: Mask | Ints, times: Ints, arrived: Ints) -> None:
        self._present[numbers], self._times[numbers], self._arrived[numbers] = present, times, arrived

    def _send_back(self, touched: Ints, known: Ints, before: Ints) -> None:
        """Let facts not have arrived; of some of them something was known."""
        self._present[touched] = False
        self._restore(known, before[:, 0], before[:, 1], before[:, 2])

    def _put_back(self, numbers: Ints) -> None:
        """Let facts be present again that have just gone; whatever else is known of them stays when they go."""
        self._present[numbers] = True

    def _remember_rest(self) -> None:
        """Note what an epoch changes beside the facts themselves."""
        rest = (self._arrivals, self._alive, self._boundary, list(self._dirty), list(self._untimed))
        self._old = self._known

        def restore() -> None:
            self._arrivals, self._alive, self._boundary, self._dirty, self._untimed = rest

        self._undo.append(restore)

    def apply(self, changes: Sequence[tuple[int, Ints, Ints | None]], now: int | None) -> InputCounts:
        """Take runs of changes (weight, rows, times), at event time ``now``, and let facts expire."""
        counts = InputCounts()
        self._remember_rest()
        if now is not None and self._untimed:
            for numbers in self._untimed:
                self._stamp(distinct(numbers[self._present[numbers] & (self._times[numbers] == NEVER)]), now)
            self._untimed = []
        for weight, rows, times in changes:
            if weight > 0:
                self._insert(rows, times, now, counts)
            else:
                self._delete(rows, counts)
        self._settle(now, counts)
        return counts

    def _edge(self, now: int | None) -> int | None:
        window = self.relation.window
        if now is None or window is None or window.slide is None or window.counted:
            return now
        return now - now % window.slide

    def _insert(self, rows: Ints, times: Ints | None, now: int | None, counts: InputCounts) -> None:
        size, edge = self._lasts, self._edge(now)
        if times is None and self.relation.ttl is not None:
            times = np.full(len(rows), NEVER if now is None else now, np.int64)
        if times is not None and size is not None and edge is not None and len(times) and times.min() <= edge - size:
            alive = times > edge - size
            counts.late += len(rows) - int(np.count_nonzero(alive))
            rows, times = np.ascontiguousarray(rows[alive]), times[alive]
        numbers = self.stored.number(rows)
        self._reserve()
        if self._keys is None:
            self._arrive(numbers, times, counts)
        else:
            self._replace(rows, numbers, times, counts)

    def _arrive(self, numbers: Ints, times: Ints | None, counts: InputCounts) -> None:
        """Let facts arrive in their order, with their times if there are any."""
        many, stored = len(numbers), self.stored
        touched, known = np.empty(many, np.int64), np.empty(many, np.int64)
        before, made = np.empty((many, 3), np.int64), np.empty(5, np.int64)
        facts = (self._present, self._times, self._arrived)
        stamps, arrivals = _writable(times), self._arrivals if self._counted else -1
        fact_arrays.arrive(numbers, stamps, arrivals, self._old, facts, stored.arrays, touched, known, before, made)
        arrived, fresh, noted, first, last = made.tolist()
        touched = touched[:arrived]
        self._undo.append(partial(self._send_back, touched, known[:noted], before[:noted]))
        counts.inserted += fresh
        counts.refreshed += many - fresh
        self._dirty.append(touched)
        self._line_up(numbers, fresh)
        if times is not None:
            self._wait_from(touched, first, last)

    def _replace(self, rows: Ints, numbers: Ints, times: Ints | None, counts: InputCounts) -> None:
        """Let facts arrive in their order, each in the place of the one that held its key."""
        assert self._keys is not None, "a relation without keys replaces nothing"
        slots = self._keys.number(rows)
        many, holders = len(numbers), self._keys.holders
        self._undo.append(partial(self._keys.restore, slots, holders[slots]))
        gone, known = np.empty(many, np.int64), np.empty(2 * many, np.int64)
        before, made = np.empty((2 * many, 3), np.int64), np.empty(5, np.int64)
        facts = (self._present, self._times, self._arrived)
        stamps, arrivals = _writable(times), self._arrivals if self._counted else -1
        keys = (slots, holders, gone)
        fact_arrays.replace(numbers, keys, stamps, arrivals, self._old, facts, self.stored.arrays, known, before, made)
        lost, fresh, noted, first, last = made.tolist()
        self._undo.append(partial(self._send_back, numbers, known[:noted], before[:noted]))
        counts.inserted += fresh
        counts.refreshed += many - fresh
        counts.deleted += lost
        self._dirty += [numbers, gone[:lost]]
        self._line_up(numbers, fresh - lost)
        if times is not None:
            self._wait_from(numbers, first, last)

    def _line_up(self, numbers: Ints, more: int) -> None:
        """Count arrivals, after which so many more facts are present; in a counted window they stand in line."""
        many = len(numbers)
        self._arrivals += many
        if self._counted:
            self._alive += more
            line = range(self._arrivals - many + 1, self._arrivals + 1)
            self._line.extend(zip(line, numbers.tolist(), strict=True))
            self._undo.append(partial(self._leave_line, many))

    def _wait_from(self, numbers: Ints, first: int, last: int) -> None:
        """Let facts wait for their end, which arrived with times from the first to the last."""
        if self._lasts is None or not len(numbers):
            return
        if first == NEVER:
            self._untimed.append(numbers.copy())
        elif (death := self._death(first)) == self._death(last):  # one that lives longer waits already
            self._queue.wait_together(numbers.copy(), death)
        else:
            self._wait(numbers)

    def _leave_line(self, many: int) -> None:
        """Take the facts out of line that were the last to get into it."""
        for _ in range(many):
            self._line.pop()

    def _stamp(self, numbers: Ints, time: int) -> None:
        """Give facts that have none a time, and let them wait for their end."""
        self._remember(numbers)
        self._times[numbers] = time
        if len(numbers):
            self._wait(numbers)

    def _wait(self, numbers: Ints) -> None:
        """Let facts wait for their end."""
        self._queue.wait(numbers, self._deaths(numbers))

    def _delete(self, rows: Ints, counts: InputCounts) -> None:
        numbers = self.stored.find(rows)
        self._reserve()
        known = numbers[numbers >= 0]
        there = distinct(known[self._present[known]])
        counts.deleted += len(there)
        counts.absent += len(rows) - len(there)
        self._forget(there)

    def _forget(self, numbers: Ints) -> None:
        """Let facts go that are present."""
        self._present[numbers] = False
        self._note_gone(numbers)

    def _note_gone(self, numbers: Ints) -> None:
        self._undo.append(partial(self._put_back, numbers))
        self._dirty.append(numbers)
        if self._counted:
            self._alive -= len(numbers)

    def _settle(self, now: int | None, counts: InputCounts) -> None:
        window = self.relation.window
        if window is not None and window.slide is not None:
            position = self._arrivals if window.counted else now
            reached = None if position is None else position // window.slide
            passed = 0 if window.counted and self._boundary is None else self._boundary
            if reached == passed and reached is not None:
                return
            self._boundary = reached
        if self._lasts is not None and now is not None:
            counts.expired += self._expire(now)
        if window is not None and window.counted:
            counts.expired += self._expire_counted(window.size)
        self._show()

    def _expire(self, now: int) -> int:
        """Let the facts die whose end has come."""
        due = self._queue.due(now)
        if not len(due):
            return 0
        self._undo.insert(0, partial(self._wait, due))  # last of all, when they have their old times
        gone = np.empty(len(due), np.int64)
        facts = (self._present, self._times, self._arrived)
        made: int = fact_arrays.expire(due, now, self._lasts, self._slide, facts, gone)
        self._note_gone(gone[:made])
        return made

    def _expire_counted(self, size: int) -> int:
        expired = 0
        while self._alive > size:
            arrival, number = self._line.popleft()
            self._undo.append(partial(self._line.appendleft, (arrival, number)))
            if self._present[number] and self._arrived[number] == arrival:
                self._forget(np.array([number]))
                expired += 1
        return expired

    def _show(self) -> None:
        """Let views see what changed since the last time."""
        if not self._dirty:
            return
        parts = self._dirty if len(self._dirty) <= _PARTS else [np.concatenate(self._dirty)]
        self._dirty = []
        stored, facts = self.stored, (self._present, self._times, self._arrived)
        many = sum(map(len, parts))
        out, counts, before = np.empty((4, many), np.int64), np.zeros(4, np.int64), np.empty(many, np.int64)
        size = self._lasts if stored.dying else 0
        for numbers in parts:
            stored.lowered |= bool(
                fact_arrays.show(numbers, facts, size, self._slide, stored.arrays, stored.labels, out, before, counts)
            )
        written, appeared, vanished, stayed = counts.tolist()
        self._undo.append(partial(self._unlabel, out[0, :written], before[:written]))
        stored.note_all((out[1, :appeared], out[2, :vanished], out[3, :stayed]))

    def _unlabel(self, numbers: Ints, before: Ints) -> None:
        """Give rows back the labels that they had."""
        self.stored.labels[numbers] = before

    def label_all(self) -> None:
        """Note when the facts that views see die."""
        if self.stored.dying:
            shown = self.stored.alive()
            self.stored.labels[shown] = self._deaths(shown)

    def _death(self, time: int) -> int:
        """Return when a fact of some time dies."""
        return -(-(time + (self._lasts or 0)) // self._slide) * self._slide

    def _deaths(self, numbers: Ints) -> Ints:
        """Return when facts die: at the first slide, if there are any, from which their window does not reach back."""
        deaths = np.empty(len(numbers), np.int64)
        fact_arrays.find_deaths(numbers, self._times, self._lasts, self._slide, deaths)
        return deaths

    def _reserve(self) -> None:
        """Make room for what is known of the rows stored by now."""
        count = self.stored.count
        if count > len(self._present):
            self._lengthen()
        self._known = count

    def _lengthen(self) -> None:
        """Give what is known of rows as much room as the rows have."""
        known, spare = self._known, self.stored.room - self._known
        self._present = with_room(self._present[:known], spare)
        self._times = with_room(self._times[:known], spare)
        self._arrived = with_room(self._arrived[:known], spare)


def _writable(times: Ints | None) -> Ints:
    """Return times as kernels take them; Arrow's cannot be written."""
    if times is None:
        return _NO_TIMES
    if times.flags.carray and times.dtype == np.int64:
        return times
    return np.require(times, np.int64, ("C", "W"))
