"""Stored values in their order, as integers: smaller the better, whether the smallest or the largest is wanted."""

from __future__ import annotations

from bisect import bisect, bisect_left
from collections.abc import Sequence
from itertools import chain

import numpy as np

from whorl.kernel.state.best import order_keys
from whorl.kernel.state.dictionary import Dictionary
from whorl.kernel.state.relation import Ints, Mask
from whorl.model.types import Type
from whorl.model.values import order_key

_NUMBERS = frozenset({Type.INTEGER, Type.TIMESTAMP, Type.BOOLEAN, Type.FLOAT})
_BITS = 62  # of places
_GAP = 1 << 32  # between the places of two values in a dictionary, for those that come between them
_DENSITY = 2 / 1.4  # a range of 2 ** n places may hold so many values to the power of n: all, if there are 4e9
_BLOCK = 256  # entries that are kept together, twice as many at most
_MANY = 16  # values that come at once are placed one by one if there are so many times as many already
_Entry = tuple[tuple[object, ...], int]  # the sort key of a value, and its number


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

    For values in a dictionary these are their numbers, and `places` has the place of each: in the order of values, with
    gaps into which later ones go. Where a gap is full, values around it get other places, in the same order: those of
    the smallest range of 2 ** n places, starting at a multiple of that, which is sparse enough (M. Bender and others,
    Two Simplified Algorithms for Maintaining Order in a List, 2002).

    Cost: for a value in a dictionary that was never seen, the logarithm of their number in comparisons, a move within a
    block of pointers, and on average at most the logarithm of their number in other places, whatever the order in which
    values come. If more than a sixteenth of all come at once, all are sorted again and get other places.
    """

    def __init__(self, kind: Type, dictionary: Dictionary, *, lowest: bool) -> None:
        self._kind = kind
        self._dictionary = dictionary
        self._lowest = lowest
        self.clear()

    def clear(self) -> None:
        """Forget all values."""
        self.whole = False  # and stays so if somebody is interrupted on the way
        self.places: Ints = np.zeros(1, np.int64)  # by number, smaller the better; one alone means nothing
        self._known: Mask = np.zeros(0, np.bool_)
        self._blocks: list[list[_Entry]] = [[]]  # all that are known, sorted
        self.many = 0  # values that are known
        self.whole = True

    @property
    def nbytes(self) -> int:
        """The memory that arrays take; what is sorted are objects of Python's, as the values in the dictionary are."""
        return int(self.places.nbytes + self._known.nbytes)

    def keys(self, values: Ints) -> Ints:
        """Return integers for values: smaller the better, or with smaller `places` if there are more than one."""
        if self._kind in _NUMBERS:
            return order_keys(values, self._kind, lowest=self._lowest)
        self._reserve()
        fresh = values[~self._known[values]]
        if len(fresh):
            self._take(np.unique(fresh).tolist())
        return np.ascontiguousarray(values)

    def _reserve(self) -> None:
        many = len(self._dictionary)
        if many > len(self._known):
            size = max(many, 2 * len(self._known), 32)
            self.places.resize(size, refcheck=False)
            self._known.resize(size, refcheck=False)

    def _take(self, numbers: Sequence[int]) -> None:
        fresh = [(order_key(self._dictionary.value(number)), number) for number in numbers]
        self.whole = False
        self.many += len(fresh)
        if _MANY * len(fresh) > self.many:
            entries = sorted(chain(*self._blocks, fresh))
            self._blocks = [entries[low : low + _BLOCK] for low in range(0, len(entries), _BLOCK)]
            gap = min(_GAP, (1 << _BITS) // self.many)
            self._spread(entries, ((1 << _BITS) - gap * self.many) // 2, gap)
        else:
            for entry in fresh:
                self._place(entry)
        self._known[numbers] = True
        self.whole = True

    def _place(self, entry: _Entry) -> None:
        """Place a value between its neighbours; where there is no room, some around it get other places."""
        which = max(bisect(self._blocks, [entry]) - 1, 0)
        block, later = self._blocks[which], self._blocks[which + 1 : which + 2]
        at = bisect(block, entry)
        first, last = at == 0, at == len(block) and not later
        low = -1 if first else self._place_of(block[at - 1])
        high = 1 << _BITS if last else self._place_of(block[at] if at < len(block) else later[0][0])
        if first:
            low = max(low, high - 2 * _GAP)
        if last:
            high = min(high, low + 2 * _GAP)
        block.insert(at, entry)
        if len(block) > 2 * _BLOCK:
            self._blocks[which : which + 1] = block[:_BLOCK], block[_BLOCK:]
        place = (low + high) // 2
        self._spread([entry], max(place, 0), 1)
        if place == low:
            self._make_room(max(place, 0))

    def _make_room(self, near: int) -> None:
        """Spread values around a place that two of them share."""
        for bits in range(2, _BITS + 1):
            start = near >> bits << bits
            found = self._within(start, start + (1 << bits))
            if len(found) <= _DENSITY**bits:
                break
        self._spread(found, start, (1 << bits) // len(found))

    def _within(self, start: int, stop: int) -> list[_Entry]:
        """Return the values with places in a range."""
        ends = (start, stop)
        first, last = (bisect_left(self._blocks, end, key=lambda block: self._place_of(block[0])) for end in ends)
        entries = list(chain(*self._blocks[max(first - 1, 0) : last]))
        low, high = (bisect_left(entries, end, key=self._place_of) for end in ends)
        return entries[low:high]

    def _place_of(self, entry: _Entry) -> int:
        place: int = self.places.item(entry[1])
        return place if self._lowest else ~place

    def _spread(self, entries: Sequence[_Entry], start: int, gap: int) -> None:
        """Give values places with equal gaps, the first in the middle of one."""
        places = np.arange(len(entries)) * gap + (start + gap // 2)
        self.places[[number for _key, number in entries]] = places if self._lowest else ~places
