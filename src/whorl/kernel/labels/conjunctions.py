"""Conjunctions of variables, many at once: what derivations need, and what lazy labels tell.

>>> left = Conjunctions.single(np.array([4, 2]))
>>> both = left.united(Conjunctions.single(np.array([1, 2])))
>>> both.lists()
[[1, 4], [2]]
>>> both.picked(np.array([1])).lists(), left.joined([both, left]).lists()
([[2]], [[4], [2], [1, 4], [2], [4], [2]])
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from whorl.kernel.arrays import conjunctions as arrays
from whorl.kernel.state.relation import Ints

Places = npt.NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Conjunctions:
    """Conjunctions one after the other: the places of their variables, ascending in each, and where each begins."""

    bounds: Ints
    places: Places

    @classmethod
    def single(cls, places: Ints) -> Conjunctions:
        """Return conjunctions of one variable each."""
        return cls(np.arange(len(places) + 1), places.astype(np.int32))

    @classmethod
    def empty(cls, count: int) -> Conjunctions:
        """Return conjunctions of nothing, which always hold."""
        return cls(np.zeros(count + 1, np.int64), np.empty(0, np.int32))

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def united(self, other: Conjunctions) -> Conjunctions:
        """Return what both have, line by line."""
        bounds, places = np.empty(len(self.bounds), np.int64), np.empty(len(self.places) + len(other.places), np.int32)
        made = arrays.unite(self.bounds, self.places, other.bounds, other.places, bounds, places)
        return Conjunctions(bounds, places[:made])

    def picked(self, lines: Ints) -> Conjunctions:
        """Return some of them."""
        if len(lines) == len(self):
            return self  # lines are picked in their order
        sizes = (self.bounds[1:] - self.bounds[:-1])[lines]
        bounds = np.zeros(len(lines) + 1, np.int64)
        np.cumsum(sizes, out=bounds[1:])
        at = np.arange(bounds[-1]) + np.repeat(self.bounds[lines] - bounds[:-1], sizes)
        return Conjunctions(bounds, self.places[at])

    def joined(self, others: Sequence[Conjunctions]) -> Conjunctions:
        """Return these, and others behind."""
        parts = (self, *others)
        starts = np.cumsum([0, *(len(part.places) for part in parts)])
        bounds = [part.bounds[:-1] + start for part, start in zip(parts, starts[:-1], strict=True)]
        return Conjunctions(np.concatenate((*bounds, starts[-1:])), np.concatenate([part.places for part in parts]))

    def lists(self) -> list[list[int]]:
        """Return the variables of each."""
        places = self.places.tolist()
        return [places[low:high] for low, high in zip(self.bounds[:-1], self.bounds[1:], strict=True)]
