"""The labels of one relation's rows where propagation is lazy: alternatives, of which the first has been told.

Whoever tells only one conjunction of a row leaves those that follow from it with one conjunction for each derivation.
So a label is a list of them, no longer than the derivations of the row, and no diagram is needed to keep it small.
"""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

from whorl.kernel.arrays import conjunctions as arrays
from whorl.kernel.arrays.conjunctions import ENTRIES, LIVE, NEXT, SIZE, START, USES
from whorl.kernel.labels.conjunctions import Conjunctions
from whorl.kernel.labels.losses import Losses
from whorl.kernel.labels.variables import widened
from whorl.kernel.state.relation import Ints

_Item = TypeVar("_Item", np.int32, np.int64)
_SPARE = 4096  # uses of dead alternatives that are kept at least


class Alternatives:
    """The alternatives of rows, by the number of the row, and the index from variables to them."""

    def __init__(self) -> None:
        self._first: Ints = np.full(32, -1, np.int64)
        self._heads: Ints = np.full(32, -1, np.int64)
        self._entries = np.empty((32, 4), np.int64)
        self._uses = np.empty((64, 3), np.int32)
        self._counts = np.zeros(3, np.int64)

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        arrays_kept = (self._first, self._heads, self._entries, self._uses)
        return sum(array.nbytes for array in arrays_kept)

    @property
    def uses(self) -> int:
        """How often alternatives use variables, all together."""
        return int(self._counts[LIVE])

    def told(self, numbers: Ints) -> Conjunctions:
        """Return the first alternatives of rows that have labels."""
        bounds = np.empty(len(numbers) + 1, np.int64)
        total = arrays.measure(numbers, self._first, self._entries, bounds)
        places = np.empty(total, np.int32)
        arrays.gather(numbers, self._first, self._entries, self._uses, places)
        return Conjunctions(bounds, places)

    def of(self, number: int) -> list[list[int]]:
        """Return the alternatives of a row, the one that was told first."""
        found: list[list[int]] = []
        entry = int(self._first[number]) if number < len(self._first) else -1
        while entry >= 0:
            start, size = int(self._entries[entry, START]), int(self._entries[entry, SIZE])
            found.append(self._uses[start : start + size, arrays.PLACE].tolist())
            entry = int(self._entries[entry, NEXT])
        return found

    def offer(self, numbers: Ints, offers: Conjunctions, variables: int) -> Ints:
        """Add an alternative to each of some rows; return those that had none. There are so many variables."""
        self._reserve(int(numbers.max(initial=-1)) + 1, variables, len(numbers), len(offers.places))
        told = np.empty(len(numbers), np.int64)
        made = arrays.offer(
            numbers,
            offers.bounds,
            offers.places,
            self._first,
            self._entries,
            self._uses,
            self._heads,
            self._counts,
            told,
        )
        return told[:made]

    def _reserve(self, rows: int, variables: int, entries: int, uses: int) -> None:
        if rows > len(self._first):
            self._first = widened(self._first, rows, -1)
        if variables > len(self._heads):
            self._heads = widened(self._heads, variables, -1)
        entries, uses = entries + int(self._counts[ENTRIES]), uses + int(self._counts[USES])
        if entries > len(self._entries):
            self._entries = _longer(self._entries, entries)
        if uses > len(self._uses):
            self._uses = _longer(self._uses, uses)

    def forget(self, lost: Ints) -> Losses:
        """Set variables to false."""
        lost = lost[lost < len(self._heads)]
        struck = np.empty(arrays.count_uses(lost, self._uses, self._heads), np.int64)
        struck = struck[: arrays.strike(lost, self._entries, self._uses, self._heads, self._counts, struck)]
        gone, released, found = np.empty_like(struck), np.empty_like(struck), np.zeros(2, np.int64)
        changed = arrays.lose(struck, self._first, self._entries, gone, released, found)
        self._compact()
        return Losses(changed, gone[: found[0]], released[: found[1]])

    def _compact(self) -> None:
        """Forget dead alternatives where they take more room than those alive."""
        live = int(self._counts[LIVE])
        if self._counts[USES] <= 2 * live + _SPARE:
            return
        entries, uses = self._entries, self._uses
        self._entries, self._uses = np.empty((int(self._counts[ENTRIES]), 4), np.int64), np.empty((live, 3), np.int32)
        self._heads[:] = -1
        self._counts[:] = 0
        arrays.compact(self._first, entries, uses, self._entries, self._uses, self._heads, self._counts)
        self._entries = self._entries[: self._counts[ENTRIES]].copy()


def _longer(array: npt.NDArray[_Item], size: int) -> npt.NDArray[_Item]:
    """Return an array with room for some lines, and more."""
    longer = np.empty((max(size, 2 * len(array)), array.shape[1]), array.dtype)
    longer[: len(array)] = array
    return longer
