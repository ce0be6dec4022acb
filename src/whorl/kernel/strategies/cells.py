"""Aggregates over complete inputs: each group follows the changes of its contributions, which are stored rows.

Counts and sums add and subtract; float sums are kept exactly, so that the order of changes cannot matter and nothing
drifts. `min` and `max` keep a heap of contributions for each group, and so does every key of a sum that may get several
values: the larger counts.

Cost: a constant for each contribution that changed; where there is a heap, the logarithm of its size when the first one
goes, and what `whorl.kernel.state.ordering.Order` takes for values never seen that are not numbers. Heaps know
contributions by number, so those of a relation whose dead rows were swept out are filled again, and no others. Groups
and keys that nothing contributes to any more are forgotten when they outnumber all contributions.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np

from whorl.diagnostics.errors import UserError
from whorl.kernel.state.dictionary import Dictionary
from whorl.kernel.state.distinct import distinct
from whorl.kernel.state.heaps import Heaps
from whorl.kernel.state.ordering import Order
from whorl.kernel.state.relation import SPARE, Ints, Mask, Moves, StoredRelation
from whorl.kernel.state.sums import Tally
from whorl.kernel.strategies.stratum import Stratum
from whorl.model.types import Type
from whorl.physical.plan import Cell

_NONE = -1
_NOBODY = np.empty(0, np.int64)
_READ = 1 << 16  # contributions that are taken in at once


class Total(Protocol):
    """The values of one aggregated column, by group."""

    numbered: frozenset[str]  # the sources whose contributions it knows by their numbers

    def clear(self) -> None:
        """Forget all contributions."""

    def empty(self, source: str) -> None:
        """Forget the numbers of a source's contributions, and not what they come to."""

    def enter(self, source: str, groups: Ints, numbers: Ints, rows: Ints) -> None:
        """Learn the numbers of contributions that are in, or that `change` will take in."""

    def change(self, source: str, groups: Ints, numbers: Ints, rows: Ints, weight: int) -> None:
        """Take contributions in (1), or out (-1): these are dead by now."""

    def read(self, groups: Ints) -> tuple[Ints, Mask, Mask]:
        """Return the values of groups, which of them can be stored, and which groups have one."""

    @property
    def keys(self) -> int:
        """How many keys are known, those that nothing contributes to included."""

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""


class Best:
    """`min` or `max`: the first of each group's contributions."""

    keys = 0

    def __init__(self, source: StoredRelation, order: Order) -> None:
        self.numbered = frozenset((source.name,))
        self._source = source
        self._heaps = Heaps(source, order)

    def clear(self) -> None:
        """Forget all contributions."""
        self._heaps.clear()

    def empty(self, _source: str) -> None:
        """Forget the numbers of all contributions."""
        self._heaps.clear()

    def enter(self, _source: str, groups: Ints, numbers: Ints, rows: Ints) -> None:
        """Enter contributions."""
        self._heaps.enter(numbers, groups, rows[:, -1])

    def change(self, source: str, groups: Ints, numbers: Ints, rows: Ints, weight: int) -> None:
        """Take contributions in; those that died are found when they come first."""
        if weight > 0:
            self.enter(source, groups, numbers, rows)

    def read(self, groups: Ints) -> tuple[Ints, Mask, Mask]:
        """Return the best values of groups, and which groups have one."""
        first = self._heaps.first(groups)
        filled = first != _NONE
        values = np.zeros(len(groups), np.int64)
        values[filled] = self._source.read(first[filled])[:, -1]
        return values, np.ones(len(groups), np.bool_), filled

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        return self._heaps.nbytes


class Sum:
    """Sums, counts and averages: for each key the largest contribution.

    Where the key is the assignment of a rule, there is no other.
    """

    def __init__(self, cell: Cell, kind: Type, explicit: dict[str, Largest]) -> None:
        self._tally = Tally(kind, average=cell.function == "avg")
        self._explicit = explicit
        self.numbered = frozenset(explicit)

    def clear(self) -> None:
        """Forget all contributions."""
        self._tally.clear()
        for largest in self._explicit.values():
            largest.clear()

    def empty(self, source: str) -> None:
        """Forget the numbers of a source's contributions; what counts stays."""
        self._explicit[source].heaps.clear()

    def enter(self, source: str, _groups: Ints, numbers: Ints, rows: Ints) -> None:
        """Enter contributions into the heaps of their keys."""
        self._explicit[source].enter(numbers, rows)

    def change(self, source: str, groups: Ints, numbers: Ints, rows: Ints, weight: int) -> None:
        """Add what counts now, and take away what counted before."""
        self._tally.reserve(int(groups.max(initial=-1)) + 1)
        if source not in self._explicit:
            self._tally.add(groups, np.ascontiguousarray(rows[:, -1]), weight)
            return
        for owners, values, sign in self._explicit[source].change(groups, numbers, rows, weight):
            self._tally.add(owners, values, sign)

    def read(self, groups: Ints) -> tuple[Ints, Mask, Mask]:
        """Return the sums of groups, which of them can be stored, and which groups have one."""
        self._tally.reserve(int(groups.max(initial=-1)) + 1)
        filled = self._tally.filled(groups)
        values, fits = np.zeros(len(groups), np.int64), np.ones(len(groups), np.bool_)
        values[filled], fits[filled] = self._tally.read(groups[filled])
        return values, fits, filled

    @property
    def keys(self) -> int:
        """How many explicit keys are known."""
        return sum(largest.keys for largest in self._explicit.values())

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        return self._tally.nbytes + sum(largest.nbytes for largest in self._explicit.values())


class Largest:
    """The largest contribution of every explicit key."""

    def __init__(self, source: StoredRelation, order: Order) -> None:
        self._source = source
        self.heaps = Heaps(source, order)
        self._keys = StoredRelation(f"{source.name}^keys", source.types[:-1])
        self.clear()

    def clear(self) -> None:
        """Forget all keys."""
        self.heaps.clear()
        self._keys.clear()
        self._owners = np.zeros(32, np.int64)
        self._values = np.zeros(32, np.int64)
        self._known = np.zeros(32, np.bool_)

    def enter(self, numbers: Ints, rows: Ints) -> None:
        """Enter contributions."""
        self.heaps.enter(numbers, self._number(rows), rows[:, -1])

    def change(self, groups: Ints, numbers: Ints, rows: Ints, weight: int) -> Iterator[tuple[Ints, Ints, int]]:
        """Take contributions in or out; yield groups with values that count no more (-1), and that count now (1)."""
        slots = self._number(rows)
        self._owners[slots] = groups
        if weight > 0:
            self.heaps.enter(numbers, slots, rows[:, -1])
        slots = distinct(slots)
        first = self.heaps.first(slots)
        held = self._known[slots]
        yield self._owners[slots[held]], self._values[slots[held]], -1
        filled = first != _NONE
        self._known[slots] = filled
        slots = slots[filled]
        self._values[slots] = self._source.read(first[filled])[:, -1]
        yield self._owners[slots], self._values[slots], 1

    def _number(self, rows: Ints) -> Ints:
        """Return the number of each contribution's key."""
        width = self._source.width - 1
        plain = np.ascontiguousarray(rows[:, :width]) if width else np.zeros((len(rows), 1), np.int64)
        slots = self._keys.number(plain)
        if self._keys.count > len(self._known):
            size = max(self._keys.count, 2 * len(self._known))
            for array in (self._owners, self._values, self._known):
                array.resize(size, refcheck=False)
        return slots

    @property
    def keys(self) -> int:
        """How many keys are known."""
        return self._keys.count

    @property
    def nbytes(self) -> int:
        """The memory that they take."""
        kept = self._owners.nbytes + self._values.nbytes + self._known.nbytes
        return self.heaps.nbytes + self._keys.nbytes + kept


class Cells:
    """Maintains one aggregated relation from its contributions."""

    def __init__(self, stratum: Stratum) -> None:
        self._stratum = stratum
        (name,) = stratum.plan.relations
        self._relation = stratum.relation(name)
        self._cells = stratum.plan.cells
        aggregated = {cell.column for cell in self._cells}
        self._plain = [column for column in range(len(stratum.types(name))) if column not in aggregated]
        types = stratum.types(name)
        self._groups = StoredRelation(f"{name}^groups", [types[column] for column in self._plain])
        self._totals = [_build_total(stratum, cell, types[cell.column]) for cell in self._cells]
        self._shown = np.full(32, _NONE, np.int64)  # the row of each group
        self._fresh = True  # all groups are to be looked at
        self._stale = True  # contributions are to be taken in again
        self._moved: set[str] = set()  # sources whose contributions have other numbers than heaps know

    def reset(self) -> None:
        """Aggregate again from nothing at the next step."""
        self._fresh = self._stale = True

    def resume(self) -> None:
        """Aggregate the contributions that were saved at the next step; the rows are there already."""
        self._fresh, self._stale = False, True

    def renumbered(self, name: str, moved: Moves) -> None:
        """Take over the new numbers of the rows shown; of contributions, at the next step."""
        if name != self._relation.name:
            self._moved.add(name)
            return
        held = self._shown != _NONE
        self._shown[held] = moved[self._shown[held]]

    def step(self) -> None:
        """Follow the changes of the contributions, and publish the groups that they touch."""
        if not self._fresh and not self._stratum.changed():
            return
        if self._stale or self._wasteful():
            touched = self._take_in()
        else:
            self._refill()
            touched = [self._change(*each) for each in self._changes()]
        self._fresh = self._stale = False
        self._moved.clear()
        if touched:
            self._publish(distinct(np.concatenate(touched)))

    def _wasteful(self) -> bool:
        """Whether so many groups and keys without contributions are known that these pay for forgetting them."""
        known = self._groups.count + sum(total.keys for total in self._totals)
        contributions = sum(self._stratum.relation(name).living for cell in self._cells for name in cell.sources)
        return known > 4 * contributions + SPARE

    def _take_in(self) -> list[Ints]:
        """Take all contributions in, and number the groups anew; return those to look at."""
        self._groups.clear()
        self._shown[:] = _NONE
        for total in self._totals:
            total.clear()
        rows = self._relation.alive()
        groups = self._number(self._relation.read(rows)[:, self._plain])
        self._shown[groups] = rows
        for at, cell in enumerate(self._cells):
            for source in cell.sources:
                self._change(at, source, self._stratum.relation(source).alive(), 1)
        if self._fresh:
            return [np.arange(self._groups.count)]
        width = len(self._plain)
        changes = ((self._stratum.relation(source), numbers) for _at, source, numbers, _weight in self._changes())
        return [self._number(relation.read(numbers)[:, :width]) for relation, numbers in changes]

    def _refill(self) -> None:
        """Fill the heaps again whose contributions have other numbers now; what changed in this epoch is among them."""
        for total in self._totals:
            for source in self._moved & total.numbered:
                total.empty(source)
                for groups, numbers, rows in self._read(source, self._stratum.relation(source).alive()):
                    total.enter(source, groups, numbers, rows)

    def _changes(self) -> Iterator[tuple[int, str, Ints, int]]:
        """Yield the contributions that changed: the cell, the source, their numbers, whether they came or went."""
        for at, cell in enumerate(self._cells):
            for source in cell.sources:
                appeared, vanished = self._stratum.relation(source).pending()
                yield at, source, vanished, -1
                yield at, source, appeared, 1

    def _change(self, at: int, source: str, numbers: Ints, weight: int) -> Ints:
        """Take contributions in or out; return their groups."""
        touched: list[Ints] = [_NOBODY]
        for groups, part, rows in self._read(source, numbers):
            self._totals[at].change(source, groups, part, rows, weight)
            touched.append(distinct(groups))
        return np.concatenate(touched)

    def _read(self, source: str, numbers: Ints) -> Iterator[tuple[Ints, Ints, Ints]]:
        """Yield contributions, some at a time: their groups, their numbers, and as they are stored."""
        self._stratum.state.work.labels += len(numbers)
        relation, width = self._stratum.relation(source), len(self._plain)
        for low in range(0, len(numbers), _READ):
            part = numbers[low : low + _READ]
            rows = relation.read(part)
            yield self._number(rows[:, :width]), part, rows

    def _number(self, plain: Ints) -> Ints:
        """Return the number of the group of each line."""
        batch = np.ascontiguousarray(plain) if self._plain else np.zeros((len(plain), 1), np.int64)
        numbers = self._groups.number(batch)
        if self._groups.count > len(self._shown):
            shown = np.full(max(self._groups.count, 2 * len(self._shown)), _NONE, np.int64)
            shown[: len(self._shown)] = self._shown
            self._shown = shown
        return numbers

    def _publish(self, groups: Ints) -> None:
        """Show one row for each group in which every cell has a value."""
        batch = np.empty((len(groups), self._relation.width), np.int64)
        if self._plain:
            batch[:, self._plain] = self._groups.read(groups)
        filled = np.ones(len(groups), np.bool_)
        stored: list[Mask] = []
        for cell, total in zip(self._cells, self._totals, strict=True):
            batch[:, cell.column], fits, some = total.read(groups)
            filled &= some
            stored.append(fits)
        for cell, fits in zip(self._cells, stored, strict=True):
            if not fits[filled].all():
                raise UserError("E509", None, function=cell.function, relation=self._relation.name)
        numbers = np.full(len(groups), _NONE, np.int64)
        numbers[filled] = self._relation.number(batch[filled])
        before: Ints = self._shown[groups]
        other = numbers != before
        self._relation.retire(before[other & (before != _NONE)])
        self._relation.revive(numbers[other & filled])
        self._shown[groups] = numbers

    @property
    def nbytes(self) -> int:
        """The memory kept beside the rows."""
        return self._groups.nbytes + self._shown.nbytes + sum(total.nbytes for total in self._totals)


def _build_total(stratum: Stratum, cell: Cell, kind: Type) -> Total:
    dictionary: Dictionary = stratum.state.dictionary
    if cell.function in ("min", "max"):
        (source,) = cell.sources
        order = Order(stratum.types(source)[-1], dictionary, lowest=cell.function == "min")
        return Best(stratum.relation(source), order)
    explicit = {
        source: Largest(stratum.relation(source), Order(stratum.types(source)[-1], dictionary, lowest=False))
        for source in cell.sources
        if source.endswith("^key")
    }
    return Sum(cell, kind, explicit)
