"""Aggregates over complete inputs: each group follows the changes of its contributions.

Counts and sums add and subtract; float sums are kept exactly, as integers, so that the order of changes cannot
matter and nothing drifts. `min` and `max` keep a heap for each group; entries that died are skipped when they come
to the top.

Cost: a constant, or the logarithm of the group's size, for each contribution that changed.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from whorl.diagnostics.errors import UserError
from whorl.kernel.state.relation import Ints, Moves
from whorl.kernel.strategies.stratum import Stratum
from whorl.model.types import Type
from whorl.model.values import INTEGER_MAX, INTEGER_MIN, Value, order_key

_SCALE = 1074  # the smallest float is 2 ** -1074: every float is a whole number of these


class Total(Protocol):
    """The running value of one cell."""

    def change(self, key: tuple[int, ...], value: Value, weight: int) -> None:
        """Take a contribution in (1) or out (-1)."""

    def value(self) -> Value | None:
        """Return the value, None if nothing contributes."""


def _scaled(value: float) -> int:
    numerator, denominator = value.as_integer_ratio()
    return numerator * ((1 << _SCALE) // denominator)


class Sum:
    """Sums, counts and averages: for each key the largest contribution."""

    def __init__(self, function: str, *, floats: bool) -> None:
        self._function = function
        self._floats = floats
        self._total = 0
        self._keys: dict[tuple[int, ...], dict[int, int]] = {}

    def change(self, key: tuple[int, ...], value: Value, weight: int) -> None:
        amount = _scaled(value) if self._floats else int(value)  # type: ignore[arg-type]
        held = self._keys.setdefault(key, {})
        before = max(held, default=0) if held else 0
        held[amount] = held.get(amount, 0) + weight
        if not held[amount]:
            del held[amount]
        after = max(held, default=0) if held else 0
        self._total += after - before
        if not held:
            del self._keys[key]

    def value(self) -> Value | None:
        if not self._keys:
            return None
        if not self._floats:
            return self._total
        try:
            total = self._total / (1 << _SCALE)
        except OverflowError:
            return float("inf")
        return total / len(self._keys) if self._function == "avg" else total


class Best:
    """`min` or `max`: a heap of the values that contribute, dead ones skipped."""

    def __init__(self, *, lowest: bool) -> None:
        self._lowest = lowest
        self._alive: dict[tuple[object, ...], Value] = {}
        self._heap: list[_Ranked] = []

    def change(self, _key: tuple[int, ...], value: Value, weight: int) -> None:
        order = order_key(value)
        if weight > 0:
            self._alive[order] = value
            heapq.heappush(self._heap, _Ranked(order, lowest=self._lowest))
        else:
            self._alive.pop(order, None)

    def value(self) -> Value | None:
        while self._heap and self._heap[0].order not in self._alive:
            heapq.heappop(self._heap)
        return self._alive[self._heap[0].order] if self._heap else None


class _Ranked:
    """An entry of a heap, smallest or largest first."""

    __slots__ = ("_lowest", "order")

    def __init__(self, order: tuple[object, ...], *, lowest: bool) -> None:
        self.order = order
        self._lowest = lowest

    def __lt__(self, other: _Ranked) -> bool:
        return self.order < other.order if self._lowest else other.order < self.order


class Cells:
    """Maintains one aggregated relation from its contributions."""

    def __init__(self, stratum: Stratum) -> None:
        self._stratum = stratum
        (self._name,) = stratum.plan.relations
        self._types = stratum.types(self._name)
        self.reset()

    def reset(self) -> None:
        """Aggregate again from nothing at the next step."""
        self._fresh = True
        self._totals: dict[tuple[int, ...], list[Total]] = {}
        self._shown: dict[tuple[int, ...], Ints] = {}

    def resume(self) -> None:
        """Aggregate the contributions that were saved; the rows are there already."""
        self._take_in({})
        self._fresh = False
        relation = self._stratum.relation(self._name)
        plain = [at for at in range(len(self._types)) if at not in {cell.column for cell in self._stratum.plan.cells}]
        for row in relation.read(relation.alive()):
            self._shown[tuple(row[plain].tolist())] = row

    def renumbered(self, _name: str, _moved: Moves) -> None:
        """Nothing is kept by number."""

    def step(self) -> None:
        """Follow the changes of the contributions, and publish the groups that they touch."""
        if not self._fresh and not self._stratum.changed():
            return
        relation = self._stratum.relation(self._name)
        if self._fresh and relation.count:
            relation.retire(relation.alive())
        touched: dict[tuple[int, ...], None] = {}
        self._take_in(touched)
        self._fresh = False
        self._publish(list(touched))

    def _take_in(self, touched: dict[tuple[int, ...], None]) -> None:
        """Follow the contributions that changed; all of them, after a fresh start."""
        for at, cell in enumerate(self._stratum.plan.cells):
            for source in cell.sources:
                stored = self._stratum.relation(source)
                appeared, vanished = (stored.alive(), None) if self._fresh else stored.pending()
                if vanished is not None and len(vanished):
                    self._change(at, source, vanished, -1, touched)
                self._change(at, source, appeared, 1, touched)

    def _change(self, at: int, source: str, numbers: Ints, weight: int, touched: dict[tuple[int, ...], None]) -> None:
        if not len(numbers):
            return
        self._stratum.state.work.labels += len(numbers)
        batch = self._stratum.relation(source).read(numbers)
        kinds = self._stratum.types(source)
        values = self._stratum.state.dictionary.decode_column(batch[:, len(kinds) - 1], kinds[-1])
        width = len(self._types) - len(self._stratum.plan.cells)
        for line, value in zip(batch.tolist(), values, strict=True):
            group = tuple(line[:width])
            totals = self._totals.get(group)
            if totals is None:
                totals = self._totals[group] = [self._total(cell) for cell in range(len(self._stratum.plan.cells))]
            totals[at].change(
                (hash(source), *line[width:-1]) if _keyed(source) else tuple(line[width:-1]), value, weight
            )
            touched[group] = None

    def _total(self, at: int) -> Total:
        cell = self._stratum.plan.cells[at]
        if cell.function in ("min", "max"):
            return Best(lowest=cell.function == "min")
        kinds = [self._stratum.types(source)[-1] for source in cell.sources]
        floats = Type.FLOAT in kinds and not all(self._whole(source) for source in cell.sources)
        if cell.function == "avg":
            return Sum("avg", floats=True)
        return Sum(cell.function, floats=floats)

    def _whole(self, source: str) -> bool:
        return self._stratum.types(source)[-1] is not Type.FLOAT

    def _publish(self, groups: Sequence[tuple[int, ...]]) -> None:
        relation = self._stratum.relation(self._name)
        old = [self._shown.pop(group) for group in groups if group in self._shown]
        if old:
            relation.retire(relation.find(np.stack(old)))
        new: list[Ints] = []
        for group in groups:
            row = self._row(group)
            if row is not None:
                self._shown[group] = row
                new.append(row)
        if new:
            relation.add(np.stack(new))

    def _row(self, group: tuple[int, ...]) -> Ints | None:
        values = [total.value() for total in self._totals[group]]
        if any(value is None for value in values):
            if all(value is None for value in values):
                del self._totals[group]
            return None
        columns = {cell.column: value for cell, value in zip(self._stratum.plan.cells, values, strict=True)}
        plain = iter(group)
        row: list[int] = []
        for column, kind in enumerate(self._types):
            value = columns.get(column)
            row.append(next(plain) if value is None else self._encode(column, value, kind))
        return np.array(row, np.int64)

    def _encode(self, column: int, value: Value, kind: Type) -> int:
        fits = not isinstance(value, float) or np.isfinite(value)
        if isinstance(value, int) and not INTEGER_MIN <= value <= INTEGER_MAX:
            fits = False
        if not fits:
            function = next(c.function for c in self._stratum.plan.cells if c.column == column)
            raise UserError("E509", None, function=function, relation=self._name)
        return self._stratum.state.dictionary.encode(value, kind)


def _keyed(source: str) -> bool:
    """Whether keys of a source are its own: those of one rule's assignments; explicit keys are shared."""
    return not source.endswith("^key")
