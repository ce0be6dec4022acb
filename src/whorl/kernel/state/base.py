"""Base facts as they arrive: times, windows, keys, and what of them the views may see.

The same meaning as `whorl.oracle.base`, kept up by the change: facts wait for their expiry in a queue of times, and
only what is due is looked at.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from whorl.analysis.program import Relation
from whorl.kernel.state.relation import Ints, StoredRelation
from whorl.model.report import InputCounts

NEVER = np.iinfo(np.int64).min  # the time of a fact that arrived before event time was known


class BaseFacts:
    """The facts of one base relation, beside the stored rows that views see."""

    def __init__(self, relation: Relation, stored: StoredRelation) -> None:
        self.relation = relation
        self.stored = stored
        self._keys = tuple(i for i, column in enumerate(relation.columns) if column.key)
        self.clear()

    def clear(self) -> None:
        """Forget all facts."""
        self._present = np.zeros(32, np.bool_)
        self._times = np.full(32, NEVER, np.int64)
        self._arrived = np.zeros(32, np.int64)
        self._by_key: dict[tuple[int, ...], int] = {}
        self._arrivals = 0
        self._alive = 0
        self._boundary: int | None = None
        self._dirty: list[Ints] = []
        self._due: list[int] = []  # heap of times that facts wait under
        self._waiting: dict[int, list[Ints]] = {}
        self._line: deque[tuple[int, int]] = deque()  # (arrival, row) of a counted window
        self._untimed: list[Ints] = []
        self._undo: list[Callable[[], None]] = []

    @property
    def _timed_window(self) -> int | None:
        window = self.relation.window
        if window is not None and not window.counted:
            return window.size
        return self.relation.ttl

    def keep(self) -> None:
        """Close an epoch that succeeded."""
        self._undo = []

    def roll_back(self) -> None:
        """Undo what the epoch did, last things first."""
        while self._undo:
            self._undo.pop()()

    def _remember(self, numbers: Ints) -> None:
        """Note how facts are now, to be able to undo."""
        present, times, arrived = self._present[numbers], self._times[numbers], self._arrived[numbers]

        def restore() -> None:
            self._present[numbers], self._times[numbers], self._arrived[numbers] = present, times, arrived

        self._undo.append(restore)

    def _remember_rest(self) -> None:
        """Note what an epoch changes beside the facts themselves."""
        rest = (self._arrivals, self._alive, self._boundary, list(self._dirty), list(self._untimed))

        def restore() -> None:
            self._arrivals, self._alive, self._boundary, self._dirty, self._untimed = rest

        self._undo.append(restore)

    def apply(self, changes: Sequence[tuple[int, Ints, Ints | None]], now: int | None) -> InputCounts:
        """Take runs of changes (weight, rows, times), at event time ``now``, and let facts expire."""
        counts = InputCounts()
        self._remember_rest()
        if now is not None and self._untimed:
            for numbers in self._untimed:
                self._stamp(numbers[self._present[numbers] & (self._times[numbers] == NEVER)], now)
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
        size, edge = self._timed_window, self._edge(now)
        if times is None and self.relation.ttl is not None:
            times = np.full(len(rows), NEVER if now is None else now, np.int64)
        if times is not None and size is not None and edge is not None:
            alive = times > edge - size
            counts.late += int(len(rows) - alive.sum())
            rows, times = np.ascontiguousarray(rows[alive]), times[alive]
        numbers = self.stored.number(rows)
        self._reserve()
        if self._keys:
            for at in range(len(numbers)):
                self._replace(rows[at], int(numbers[at]), counts)
                self._arrive(numbers[at : at + 1], None if times is None else times[at : at + 1], counts)
        else:
            self._arrive(numbers, times, counts)

    def _arrive(self, numbers: Ints, times: Ints | None, counts: InputCounts) -> None:
        unique = np.unique(numbers)
        self._remember(unique)
        new = unique[~self._present[unique]]
        counts.inserted += len(new)
        counts.refreshed += len(numbers) - len(new)
        self._present[new] = True
        self._times[new] = NEVER
        arrivals = range(self._arrivals + 1, self._arrivals + 1 + len(numbers))
        self._arrived[numbers] = arrivals
        self._arrivals += len(numbers)
        self._dirty.append(unique)
        window = self.relation.window
        if window is not None and window.counted:
            self._alive += len(new)
            self._line.extend(zip(arrivals, numbers.tolist(), strict=True))
        if times is not None:
            self._stamp(numbers, times)

    def _stamp(self, numbers: Ints, times: Ints | int) -> None:
        """Raise the times of facts, and let them wait for their end."""
        self._remember(np.unique(numbers))
        np.maximum.at(self._times, numbers, times)
        if self._timed_window is None or not len(numbers):
            return
        if isinstance(times, np.ndarray) and (times == NEVER).any():
            self._untimed.append(numbers)
            return
        own = self._times[numbers]
        order = np.argsort(own, kind="stable")
        numbers, own = numbers[order], own[order]
        times_here, starts = np.unique(own, return_index=True)
        for time, part in zip(times_here.tolist(), np.split(numbers, starts[1:]), strict=True):
            if time not in self._waiting:
                self._waiting[time] = []
                heapq.heappush(self._due, time)
            self._waiting[time].append(part)

    def _replace(self, row: Ints, number: int, counts: InputCounts) -> None:
        key = tuple(int(row[i]) for i in self._keys)
        old = self._by_key.get(key)
        if old is not None and old >= 0 and old != number and self._present[old]:
            self._forget(np.array([old]))
            counts.deleted += 1
        self._by_key[key] = number
        self._undo.append(lambda: self._by_key.update({key: -1 if old is None else old}))

    def _delete(self, rows: Ints, counts: InputCounts) -> None:
        numbers = self.stored.find(rows)
        self._reserve()
        known = numbers[numbers >= 0]
        there = np.unique(known[self._present[known]])
        counts.deleted += len(there)
        counts.absent += len(rows) - len(there)
        self._forget(there)

    def _forget(self, numbers: Ints) -> None:
        self._remember(numbers)
        self._present[numbers] = False
        self._dirty.append(numbers)
        window = self.relation.window
        if window is not None and window.counted:
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
        size, edge = self._timed_window, self._edge(now)
        if size is not None and edge is not None:
            counts.expired += self._expire(edge - size)
        if window is not None and window.counted:
            counts.expired += self._expire_counted(window.size)
        self._show()

    def _expire(self, last: int) -> int:
        """Let the facts die whose time is ``last`` or earlier."""
        expired = 0
        while self._due and self._due[0] <= last:
            time = heapq.heappop(self._due)
            waiting = self._waiting.pop(time)
            self._undo.append(partial(self._wait_again, time, waiting))
            numbers = np.unique(np.concatenate(waiting))
            numbers = numbers[self._present[numbers] & (self._times[numbers] <= last)]
            expired += len(numbers)
            self._forget(numbers)
        return expired

    def _wait_again(self, time: int, waiting: list[Ints]) -> None:
        if time not in self._waiting:
            heapq.heappush(self._due, time)
        self._waiting.setdefault(time, []).extend(waiting)

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
        numbers = np.unique(np.concatenate(self._dirty))
        self._dirty = []
        present = self._present[numbers]
        self.stored.retire(numbers[~present])
        self.stored.revive(numbers[present])

    def _reserve(self) -> None:
        if self.stored.count > len(self._present):
            size = max(self.stored.count, 2 * len(self._present))
            times = np.full(size, NEVER, np.int64)
            times[: len(self._times)] = self._times
            self._times = times
            self._present.resize(size, refcheck=False)
            self._arrived.resize(size, refcheck=False)
