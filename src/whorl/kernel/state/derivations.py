"""Derivations that are kept: for each rule a stored relation, a derivation a row.

A derivation is the number of the row that it derives and the numbers of the rows it uses, one for each positive atom.
It is found by the row that it derives, or by one that it uses. Derivations that went are swept out between epochs, when
they are many.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from whorl.kernel.arrays import index as index_arrays
from whorl.kernel.arrays.rowset import NEW
from whorl.kernel.state.relation import Ints, StoredRelation
from whorl.model.types import Type

_CHUNK = 4096


class KeptDerivations:
    """The derivations by the rules of a stratum, of which each uses a number of rows."""

    def __init__(self, uses: Sequence[int]) -> None:
        self._uses = tuple(uses)
        self.clear()

    def clear(self) -> None:
        """Forget all derivations."""
        self._stores = [
            StoredRelation(f"derivations^{rule}", [Type.INTEGER] * (1 + uses)) for rule, uses in enumerate(self._uses)
        ]

    @property
    def nbytes(self) -> int:
        """The memory that derivations take."""
        return sum(store.nbytes for store in self._stores)

    def settle(self) -> None:
        """Close the epoch; no number of a derivation outlives it."""
        for store in self._stores:
            store.settle()
            if store.wasteful(store.living):
                store.drop(~store.is_alive(slice(store.count)))

    def add(self, rule: int, numbers: Ints, used: Ints) -> None:
        """Keep derivations of rows."""
        self._stores[rule].add(np.column_stack((numbers, used)))

    def retire(self, rule: int, lost: Ints) -> Ints:
        """Let derivations go; return the rows that had them."""
        store = self._stores[rule]
        return np.ascontiguousarray(store.read(store.retire(lost))[:, 0])

    def find(self, rule: int, numbers: Ints, used: Ints) -> Ints:
        """Return which of some derivations are known; they may have gone."""
        found = self._stores[rule].find(np.column_stack((numbers, used)))
        return found[found >= 0]

    def heads(self, rule: int, derivations: Ints) -> Ints:
        """Return the rows that derivations derive."""
        return np.ascontiguousarray(self._stores[rule].read(derivations)[:, 0])

    def using(self, rule: int, place: int, numbers: Ints) -> Iterator[Ints]:
        """Yield the derivations that use rows at a place among the positive atoms."""
        for found in self._look_up(rule, 1 + place, numbers):
            yield np.ascontiguousarray(found[:, 1])

    def of_rows(self, rule: int, numbers: Ints) -> Iterator[Ints]:
        """Yield the derivations of rows: the place of the row in ``numbers``, then the rows used."""
        for found in self._look_up(rule, 0, numbers):
            used = self._stores[rule].read(np.ascontiguousarray(found[:, 1]))
            used[:, 0] = found[:, 0]
            yield used

    def _look_up(self, rule: int, column: int, numbers: Ints) -> Iterator[Ints]:
        """Yield pairs: the place of a number, and a derivation that holds it in a column."""
        store = self._stores[rule]
        batch = np.column_stack((numbers, np.arange(len(numbers))))
        keys, wants = np.zeros(1, np.int64), np.array([1, index_arrays.ROW_NUMBER], np.int64)
        index = store.index((column,))
        state = np.array([0, 0, NEW, 0], np.int64)
        while state[0] < len(batch):
            out = np.empty((_CHUNK, 2), np.int64)
            made = index_arrays.probe(batch, keys, index.arrays(), store.arrays, wants, out, state)
            if made:
                yield out[:made]
