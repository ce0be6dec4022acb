"""Stored values in their order, as integers: smaller the better, whether the smallest or the largest is wanted."""

from __future__ import annotations

from bisect import bisect, insort
from collections.abc import Sequence

import numpy as np

from whorl.kernel.state.best import order_keys
from whorl.kernel.state.dictionary import Dictionary
from whorl.kernel.state.relation import Ints, Mask
from whorl.model.types import Type
from whorl.model.values import order_key

_NUMBERS = frozenset({Type.INTEGER, Type.TIMESTAMP, Type.BOOLEAN, Type.FLOAT})
_GAP = 1 << 32  # between the places of two values in a dictionary, for those that come between them
_LAST = 1 << 62
_MANY = 8  # values that come at once are placed one by one if there are so many times as many already


def ranks(values: Ints, kind: Type, dictionary: Dictionary, *, lowest: bool) -> Ints:
    """Return integers in the order of values; those of values in a dictionary compare only within one call."""
    if kind in _NUMBERS:
        return order_keys(values, kind, lowest=lowest)
    numbers, places = np.unique(values, return_inverse=True)
    keys = [order_key(dictionary.value(number)) for number in numbers.tolist()]
    order = np.empty(len(keys), np.int64)
    order[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
    return order[places] if lowest else ~order[places]


class Champions:
    """The best value of each group."""

    def __init__(self, kind: Type, dictionary: Dictionary, *, lowest: bool) -> None:
        self._kind = kind
        self._dictionary = dictionary
        self._lowest = lowest
        self.values: Ints = np.zeros(32, np.int64)
        self.known: Mask = np.zeros(32, np.bool_)

    @property
    def nbytes(self) -> int:
        """The memory that they take."""
        return self.values.nbytes + self.known.nbytes

    def reserve(self, groups: int) -> None:
        """Make room for so many groups."""
        if groups > len(self.known):
            more = max(groups, 2 * len(self.known)) - len(self.known)
            self.values = np.concatenate((self.values, np.zeros(more, np.int64)))
            self.known = np.concatenate((self.known, np.zeros(more, np.bool_)))

    def forget(self, groups: Ints | None = None) -> None:
        """Let groups have no value; all, if none are named."""
        self.known[slice(None) if groups is None else groups] = False

    def rivals(self, groups: Ints, values: Ints) -> Mask:
        """Tell which values are not worse than those that their groups have."""
        both = ranks(np.concatenate((values, self.values[groups])), self._kind, self._dictionary, lowest=self._lowest)
        equal_or_better: Mask = ~self.known[groups] | (both[: len(values)] <= both[len(values) :])
        return equal_or_better

    def offer(self, groups: Ints, values: Ints) -> tuple[Ints, Ints, Mask]:
        """Offer values; return the groups that took another, each once, what they had, and whether they had any."""
        held = self.known[groups]
        both = ranks(np.concatenate((values, self.values[groups])), self._kind, self._dictionary, lowest=self._lowest)
        keys, current = both[: len(values)], both[len(values) :]
        better = np.flatnonzero(~held | (keys < current))
        order = better[np.lexsort((keys[better], groups[better]))]
        first = np.ones(len(order), np.bool_)
        first[1:] = groups[order][1:] != groups[order][:-1]
        taken = order[first]
        changed = groups[taken]
        before = self.values[changed]
        self.values[changed] = values[taken]
        self.known[changed] = True
        return changed, before, held[taken]


class Order:
    """Integers in the order of values that can be kept, whatever values come later.

    Those of values in a dictionary are places with gaps, into which later values go. Where a gap is full, all get other
    places; `take_moved` tells.

    Cost: for a value in a dictionary that was never seen, the logarithm of their number in comparisons.
    """

    def __init__(self, kind: Type, dictionary: Dictionary, *, lowest: bool) -> None:
        self._kind = kind
        self._dictionary = dictionary
        self._lowest = lowest
        self._sorted: list[tuple[tuple[object, ...], int]] = []  # with the number of each
        self._places: Ints = np.zeros(0, np.int64)  # by number
        self._known: Mask = np.zeros(0, np.bool_)
        self._moved = False

    def keys(self, values: Ints) -> Ints:
        """Return the integers of values, smaller the better."""
        if self._kind in _NUMBERS:
            return order_keys(values, self._kind, lowest=self._lowest)
        self._reserve()
        fresh = values[~self._known[values]]
        if len(fresh):
            self._place(np.unique(fresh).tolist())
        places: Ints = self._places[values]
        return places if self._lowest else ~places

    def take_moved(self) -> bool:
        """Tell whether values that were placed before have got other places since this was asked last."""
        moved, self._moved = self._moved, False
        return moved

    def _reserve(self) -> None:
        many = len(self._dictionary)
        if many > len(self._known):
            size = max(many, 2 * len(self._known))
            self._places.resize(size, refcheck=False)
            self._known.resize(size, refcheck=False)

    def _place(self, numbers: Sequence[int]) -> None:
        self._known[numbers] = True
        fresh = [(order_key(self._dictionary.value(number)), number) for number in numbers]
        if _MANY * len(fresh) > len(self._sorted):
            self._sorted = sorted(self._sorted + fresh)
            self._spread()
            return
        for entry in fresh:
            if not self._fit(entry):
                insort(self._sorted, entry)
                self._spread()

    def _fit(self, entry: tuple[tuple[object, ...], int]) -> bool:
        """Place a value between its neighbours, if there is room."""
        at = bisect(self._sorted, entry)
        if at == 0:
            place = self._place_at(0) - _GAP
        elif at == len(self._sorted):
            place = self._place_at(-1) + _GAP
        else:
            low = self._place_at(at - 1)
            place = low + (self._place_at(at) - low) // 2
            if place == low:
                return False
        if abs(place) >= _LAST:
            return False
        self._sorted.insert(at, entry)
        self._places[entry[1]] = place
        return True

    def _place_at(self, at: int) -> int:
        return int(self._places[self._sorted[at][1]])

    def _spread(self) -> None:
        """Give all values places with equal gaps."""
        many = len(self._sorted)
        self._places[[number for _key, number in self._sorted]] = (np.arange(many) - many // 2) * _GAP
        self._moved = True
