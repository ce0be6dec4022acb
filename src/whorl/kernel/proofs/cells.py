"""Derivations of rows that the kernel aggregates: the contributions stored for their groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from whorl.kernel.arrays.index import ROW_NUMBER
from whorl.kernel.arrays.rowset import NEW
from whorl.kernel.operators.joins import ProbeIndex
from whorl.kernel.operators.pipeline import State
from whorl.kernel.proofs.derivations import Derivation, Key, Rows
from whorl.kernel.state.relation import Ints, StoredRelation
from whorl.model.values import Value, order_key, row_key
from whorl.physical.plan import Cell, PhysicalStratum

CONTRIBUTIONS = 100  # that a proof names of one column
_SORTED = 20_000  # of more contributions, the first that came are named, and not the first in order


class CellsFinder:
    """Finds what the cells of one relation are made of."""

    def __init__(self, stratum: PhysicalStratum, rows: Rows, contributions: int = CONTRIBUTIONS) -> None:
        """Name at most so many ``contributions`` of one column."""
        self._most = contributions
        self._cells = stratum.cells
        self._rows = rows
        self._state: State = rows.state

    def find(self, relation: str, numbers: Sequence[int]) -> Iterator[tuple[Key, Derivation]]:
        """Yield each derivation with the row that it derives."""
        stored = self._state.relations[relation]
        batch = stored.read(np.array(numbers, np.int64))
        aggregated = {cell.column for cell in self._cells}
        group = [column for column in range(batch.shape[1]) if column not in aggregated]
        for number, line in zip(numbers, batch, strict=True):
            premises: list[Key] = []
            left_out = 0
            for cell in self._cells:
                keys, more = self._contributions(cell, line[group], line[cell.column])
                premises += keys
                left_out += more
            yield (relation, number), Derivation(None, tuple(premises), left_out=left_out)

    def _contributions(self, cell: Cell, group: Ints, value: np.int64) -> tuple[list[Key], int]:
        if cell.function in ("min", "max"):
            row = np.array([[*group, value]], np.int64)
            return [(name, int(self._state.relations[name].find(row)[0])) for name in cell.sources], 0
        found = [(name, numbers) for name in cell.sources if len(numbers := self._counting(name, group))]
        total = sum(len(numbers) for _name, numbers in found)
        if total <= _SORTED:
            keys = [(name, number) for name, numbers in found for number in self._in_order(name, numbers)]
        else:
            keys = [(name, number) for name, numbers in found for number in numbers[: self._most].tolist()]
        return keys[: self._most], max(0, total - self._most)

    def _in_order(self, name: str, numbers: Ints) -> list[int]:
        rows = self._rows.decode(name, numbers.tolist())
        ordered = sorted(zip(rows, numbers.tolist(), strict=True), key=lambda pair: row_key(pair[0]))
        return [number for _row, number in ordered]

    def _counting(self, name: str, group: Ints) -> Ints:
        """Return the contributions to a group that count: for each key the one with the largest value."""
        stored = self._state.relations[name]
        numbers = rows_with(stored, tuple(range(len(group))), group, self._state)
        if not name.endswith("^key"):
            return numbers  # the key is the whole assignment: there is one value for each
        best: dict[tuple[int, ...], tuple[tuple[object, ...], int]] = {}
        values = self._values(stored, numbers)
        for line, number, value in zip(stored.read(numbers).tolist(), numbers.tolist(), values, strict=True):
            key, candidate = tuple(line[:-1]), (order_key(value), number)
            if key not in best or best[key][0] < candidate[0]:
                best[key] = candidate
        return np.array([number for _order, number in best.values()], np.int64)

    def _values(self, stored: StoredRelation, numbers: Ints) -> list[Value]:
        return self._state.dictionary.decode_column(stored.read(numbers)[:, -1], stored.types[-1])


def rows_with(stored: StoredRelation, columns: tuple[int, ...], values: Ints, state: State) -> Ints:
    """Return the numbers of the rows alive that hold some values in some columns."""
    if not columns:
        return stored.alive()
    batch = np.ascontiguousarray(np.array(values, np.int64).reshape(1, -1))
    if len(columns) == stored.width:
        found = stored.find(batch)
        return found[(found >= 0) & stored.is_alive(found)]
    keys, wants = np.arange(len(columns), dtype=np.int64), np.array([ROW_NUMBER], np.int64)
    chunks = list(ProbeIndex(stored, columns, keys, wants, 0, state.work).chunks(batch, [NEW]))
    return np.concatenate([chunk[:, 0] for chunk in chunks]) if chunks else np.empty(0, np.int64)
