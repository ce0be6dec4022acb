"""Stored values in their order, as integers: smaller the better, whether the smallest or the largest is wanted."""

from __future__ import annotations

import numpy as np

from whorl.kernel.state.best import order_keys
from whorl.kernel.state.dictionary import Dictionary
from whorl.kernel.state.relation import Ints, Mask
from whorl.model.types import Type
from whorl.model.values import order_key

_NUMBERS = frozenset({Type.INTEGER, Type.TIMESTAMP, Type.BOOLEAN, Type.FLOAT})


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
