"""Which fact holds each key of a base relation: a fact that arrives takes the place of the one that held its key."""

from __future__ import annotations

import numpy as np

from whorl.kernel.state.relation import Ints, StoredRelation

NOBODY = -1


class Keys:
    """The holder of each key, by row number; one that is not present any more holds it in vain."""

    def __init__(self, stored: StoredRelation, columns: tuple[int, ...]) -> None:
        self._stored = stored
        self._columns = list(columns)
        self.clear()

    def clear(self) -> None:
        """Forget all keys."""
        self._keys = StoredRelation(f"{self._stored.name}^keys", [self._stored.types[at] for at in self._columns])
        self.holders = np.full(32, NOBODY, np.int64)

    def number(self, rows: Ints) -> Ints:
        """Return the number of the key of each row: its place in `holders`."""
        numbers = self._keys.number(np.ascontiguousarray(rows[:, self._columns]))
        if self._keys.count > len(self.holders):
            holders = np.full(max(self._keys.count, 2 * len(self.holders)), NOBODY, np.int64)
            holders[: len(self.holders)] = self.holders
            self.holders = holders
        return numbers

    def restore(self, numbers: Ints, holders: Ints) -> None:
        """Let keys be held as they were."""
        self.holders[numbers] = holders

    def start_anew(self, present: Ints) -> None:
        """Let the facts that are present hold their keys, and forget the others."""
        self.clear()
        numbers = self.number(self._stored.read(present))
        self.holders[numbers] = present
