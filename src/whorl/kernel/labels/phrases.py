"""Conjunctions on the way from one partition to another: most are one that has passed before, and a variable more.

Both ends keep a book of what has passed, in the same order; it starts anew when it is full. What is written must be
read once, in the same order.

>>> writer, reader = Phrases(), Phrases()
>>> content = writer.write(np.array([0, 2, 5]), np.array([3, 9, 3, 5, 9], np.int32))
>>> list(content)
[0, 2, 3, 5, 1, 6]
>>> bounds, numbers = reader.read(content, 0, 2)
>>> bounds.tolist(), numbers.tolist()
([0, 2, 5], [3, 9, 3, 5, 9])
"""

from __future__ import annotations

import numpy as np

from whorl.kernel.arrays import phrases as arrays
from whorl.kernel.labels.conjunctions import Places
from whorl.kernel.state.relation import Ints

FULL = 1 << 14  # lists in a book


class Phrases:
    """One end of the way: lists of numbers in, bytes out, or the other way round."""

    def __init__(self) -> None:
        self._known = 0
        self._starts: Ints = np.zeros(32, np.int64)
        self._numbers: Places = np.empty(128, np.int32)
        self._slots: Ints = np.zeros(0, np.int64)  # a reader has none

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        return self._starts.nbytes + self._numbers.nbytes + self._slots.nbytes

    def write(self, bounds: Ints, numbers: Places) -> bytes:
        """Return lists, each ascending, as bytes."""
        self._make_room(len(bounds) - 1)
        self._reserve(int(self._starts[self._known]) + len(numbers))
        if len(self._slots) < 2 * (self._known + len(bounds)):
            self._slots = np.zeros(1 << (4 * (self._known + len(bounds))).bit_length(), np.int64)
            arrays.fill_slots(self._known, self._starts, self._numbers, self._slots)
        out = np.empty(arrays.LONGEST * (2 * len(bounds) + len(numbers)), np.uint8)
        end = arrays.write_phrases(bounds, numbers, self._known, self._starts, self._numbers, self._slots, out)
        self._known += len(bounds) - 1
        return out[:end].tobytes()

    def read(self, content: bytes, at: int, count: int) -> tuple[Ints, Places]:
        """Return so many lists, which begin at a byte and take the rest."""
        self._make_room(count)
        known = self._known
        read = np.frombuffer(bytearray(content), np.uint8)
        end = arrays.measure_phrases(read, at, count, known, self._starts)
        assert end == len(content), "lists are read as they were written"
        self._known += count
        start, stop = int(self._starts[known]), int(self._starts[self._known])
        self._reserve(stop)
        arrays.read_phrases(read, at, count, known, self._starts, self._numbers)
        return self._starts[known : self._known + 1] - start, self._numbers[start:stop]

    def _make_room(self, count: int) -> None:
        """Make room for lists; if the book is full, forget what it has."""
        if self._known + count > FULL:
            self._known = 0
            self._slots[:] = 0
        size = self._known + count + 1
        if size > len(self._starts):
            self._starts = np.concatenate((self._starts, np.zeros(max(size, len(self._starts)), np.int64)))

    def _reserve(self, size: int) -> None:
        if size > len(self._numbers):
            self._numbers = np.concatenate((self._numbers, np.empty(max(size, len(self._numbers)), np.int32)))
