"""Rows of a relation that are in doubt: they may have lost what they follow from."""

from __future__ import annotations

import numpy as np

from whorl.kernel.state.relation import Ints, StoredRelation


class Doubts:
    """Marks rows, each once, until they go or nobody doubts any more."""

    def __init__(self, relation: StoredRelation) -> None:
        self._relation = relation
        self._marked: list[Ints] = []

    def clear(self) -> None:
        """Doubt nothing."""
        for numbers in self._marked:
            self._relation.unmark(numbers)
        self._marked = []

    def add(self, batch: Ints) -> Ints:
        """Doubt rows, given by their columns; return those that are alive and were not in doubt."""
        numbers = self._relation.find(batch)
        numbers = numbers[numbers >= 0]
        fallen = self._relation.mark(numbers[self._relation.is_alive(numbers)])
        self._marked.append(fallen)
        return self._relation.read(fallen)

    def retire(self) -> Ints:
        """Let the rows in doubt die; return them by their columns."""
        numbers = np.concatenate(self._marked) if self._marked else np.empty(0, np.int64)
        self.clear()
        self._relation.retire(numbers)
        return self._relation.read(numbers)
