"""Operators that look rows up: joins by an index or by a whole row, and the absence of rows.

A join takes along only what later operators need.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from whorl.kernel.arrays import index as index_arrays
from whorl.kernel.operators.expressions import Mask
from whorl.kernel.state.relation import Ints, StoredRelation
from whorl.model.report import Work

CHUNK, _SMALL = 8192, 512  # lines that come out at once: at the most, and of a small batch


class ProbeIndex:
    """Join with the rows that hold the key."""

    def __init__(
        self, relation: StoredRelation, columns: tuple[int, ...], keys: Ints, wants: Ints, atom: int, work: Work
    ) -> None:
        self.relation = relation
        self.index = relation.index(columns)
        self.keys = keys
        self.wants = wants
        self._atom = atom
        self._work = work

    def chunks(self, batch: Ints, needs: Sequence[int]) -> Iterator[Ints]:
        self._work.probes += len(batch)
        state = np.array([0, 0, needs[self._atom], 0], np.int64)
        room = min(CHUNK, max(_SMALL, 4 * len(batch)))
        while state[0] < len(batch):
            out = np.empty((room, len(self.wants)), np.int64)
            # Later operators may have grown the arrays since the last call: ask for them each time.
            made = index_arrays.probe(
                batch, self.keys, self.index.arrays(), self.relation.arrays, self.wants, out, state
            )
            if made:
                yield out[:made]
            room = CHUNK
        self._work.matches += int(state[3])


class ProbeRow:
    """Join with the one row whose columns are all known."""

    def __init__(self, relation: StoredRelation, keys: Ints, wants: Ints, atom: int, work: Work) -> None:
        self._relation = relation
        self._keys = keys
        self._wants = wants
        self._atom = atom
        self._work = work

    def chunks(self, batch: Ints, needs: Sequence[int]) -> Iterator[Ints]:
        self._work.probes += len(batch)
        out = np.empty((len(batch), len(self._wants)), np.int64)
        need = needs[self._atom]
        made = index_arrays.probe_rows(batch, self._keys, self._relation.arrays, self._wants, out, need)
        self._work.matches += made
        if made:
            yield out[:made]


class AbsentRow:
    """Keep the lines for which no row holds the key."""

    def __init__(self, relation: StoredRelation, columns: tuple[int, ...], keys: Ints, atom: int, work: Work) -> None:
        self._relation = relation
        self._columns = columns
        self._keys = keys
        self._atom = atom
        self._work = work

    def chunks(self, batch: Ints, needs: Sequence[int]) -> Iterator[Ints]:
        self._work.probes += len(batch)
        kept = batch[~has_row(self._relation, self._columns, batch, self._keys, needs[self._atom])]
        if len(kept):
            yield kept


def has_row(relation: StoredRelation, columns: tuple[int, ...], batch: Ints, keys: Ints, need: int) -> Mask:
    """Tell for which lines some row, alive by ``need``, has the values of columns ``keys`` in ``columns``."""
    if len(columns) == relation.width:
        found = relation.find(batch, keys)
        present = found >= 0
        present[present] = relation.is_alive(found[present], need)
        return present
    if not columns:
        return np.full(len(batch), len(relation.alive(need)) > 0)
    out = np.zeros(len(batch), np.uint8)
    index_arrays.test_keys(batch, keys, relation.index(columns).arrays(), relation.arrays, need, out)
    return out.view(np.bool_)
