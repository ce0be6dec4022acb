"""`min` or `max` in recursion under labels: all rows that were derived for a group, of which the best is alive."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from whorl.kernel.state.best import BestRows
from whorl.kernel.state.distinct import distinct
from whorl.kernel.state.relation import Ints


class Candidates:
    """The rows of a relation that have labels, by group."""

    def __init__(self, best: BestRows) -> None:
        self._best = best
        self._rows: defaultdict[int, set[int]] = defaultdict(set)

    def add(self, numbers: Ints) -> None:
        """Take rows with labels; let those live that are better than what their groups have."""
        if len(numbers):
            batch = self._best.relation.read(numbers)
            for group, number in zip(self._groups(batch).tolist(), numbers.tolist(), strict=True):
                self._rows[group].add(number)
            self._best.improve(batch)

    def choose(self, gone: Ints, fallen: Ints) -> Ints:
        """Forget rows without labels; let the best that is left live in the groups of those that fell; return these."""
        relation = self._best.relation
        for group, number in zip(self._groups(relation.read(gone)).tolist(), gone.tolist(), strict=True):
            self._rows[group].discard(number)
        groups = distinct(self._groups(relation.read(fallen))).tolist() if len(fallen) else []
        left = [number for group in groups for number in self._rows[group]]
        return self._best.improve(relation.read(np.array(left, np.int64)))

    def _groups(self, batch: Ints) -> Ints:
        return self._best.number(np.ascontiguousarray(batch[:, self._best.group]))
