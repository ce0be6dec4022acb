"""Rows that wait for their end: queued by the time at which they die, so that only what is due is looked at.

Cost: a row costs when it is queued and when its time comes; a row whose time was put off waits again.
"""

from __future__ import annotations

import heapq

import numpy as np

from whorl.kernel.arrays import facts as fact_arrays
from whorl.kernel.arrays import rowset
from whorl.kernel.state.relation import Ints, Moves

_FEW = 64  # times that are told apart without sorting


class DeathQueue:
    """Row numbers by time."""

    def __init__(self) -> None:
        self._waiting: dict[int, list[Ints]] = {}
        self._times: list[int] = []
        self._found, self._ends = np.empty(_FEW, np.int64), np.empty(_FEW, np.int64)  # room for the times of some rows

    def wait(self, numbers: Ints, times: Ints) -> None:
        """Queue rows, each under its time."""
        many = len(numbers)
        if not many:
            return
        grouped, found, ends = np.empty(many, np.int64), self._found, self._ends
        groups = fact_arrays.group_by_time(numbers, times, grouped, found, ends)
        if groups < 0:
            order = np.argsort(times)
            grouped, times = numbers[order], times[order]
            ends = np.append(np.flatnonzero(times[1:] != times[:-1]) + 1, many)
            found, groups = times[ends - 1], len(ends)
        low = 0
        for time, high in zip(found[:groups].tolist(), ends[:groups].tolist(), strict=True):
            (self._waiting.get(time) or self._open(time)).append(grouped[low:high])
            low = high

    def wait_together(self, numbers: Ints, time: int) -> None:
        """Queue rows under one time; they are the queue's then."""
        (self._waiting.get(time) or self._open(time)).append(numbers)

    def _open(self, time: int) -> list[Ints]:
        """Return the list of a time that nobody waits for yet; it does not stay empty."""
        heapq.heappush(self._times, time)
        waiting: list[Ints] = []
        self._waiting[time] = waiting
        return waiting

    def renumbered(self, moved: Moves) -> None:
        """Take over the new numbers of rows, -1 for those that are gone."""
        waiting: dict[int, list[Ints]] = {}
        for time, parts in self._waiting.items():
            left = np.concatenate([part[: rowset.renumber(part, moved)] for part in parts])  # holds on to no part
            if len(left):
                waiting[time] = [left]
        self._waiting, self._times = waiting, sorted(waiting)

    def due(self, now: int) -> Ints:
        """Take out and return the rows queued up to a time, perhaps more than once; some may have been put off."""
        parts: list[Ints] = []
        while self._times and self._times[0] <= now:
            parts.extend(self._waiting.pop(heapq.heappop(self._times)))
        return parts[0] if len(parts) == 1 else np.concatenate(parts) if parts else np.empty(0, np.int64)
