"""Rows that wait for their end: queued by the time at which they die, so that only what is due is looked at.

Cost: a row costs when it is queued and when its time comes; a row whose time was put off waits again.
"""

from __future__ import annotations

import heapq

import numpy as np

from whorl.kernel.state.relation import Ints


class DeathQueue:
    """Row numbers by time."""

    def __init__(self) -> None:
        self._waiting: dict[int, list[Ints]] = {}
        self._times: list[int] = []

    def wait(self, numbers: Ints, times: Ints) -> None:
        """Queue rows, each under its time."""
        if not len(numbers):
            return
        if times[0] == times[-1] and (times == times[0]).all():
            self._put(int(times[0]), numbers)
            return
        if not (times[1:] >= times[:-1]).all():
            order = np.argsort(times)
            numbers, times = numbers[order], times[order]
        starts = [0, *(np.flatnonzero(times[1:] != times[:-1]) + 1).tolist(), len(times)]
        for time, low, high in zip(times[starts[:-1]].tolist(), starts, starts[1:], strict=False):
            self._put(time, numbers[low:high])

    def _put(self, time: int, numbers: Ints) -> None:
        if time not in self._waiting:
            self._waiting[time] = []
            heapq.heappush(self._times, time)
        self._waiting[time].append(numbers)

    def due(self, now: int) -> Ints:
        """Take out and return the rows queued up to a time, perhaps more than once; some may have been put off."""
        parts: list[Ints] = []
        while self._times and self._times[0] <= now:
            parts.extend(self._waiting.pop(heapq.heappop(self._times)))
        return np.concatenate(parts) if parts else np.empty(0, np.int64)
