"""Aggregated columns as cells: contributions come in, and each group shows one row.

Of the contributions to a cell with the same key the larger counts, to a minimum the smaller. `min` and `max` have one
key, the others one for each assignment or whatever the rule names. Contributions that better ones replaced are
forgotten, so a cell only ever improves.

A row is stored as soon as it shows if rules look it up on the way (`Totals.prompt`). Else it is stored when the rounds
are over, and the values on the way leave no trace.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from whorl.diagnostics.errors import UserError
from whorl.kernel.state.dictionary import Dictionary
from whorl.kernel.state.ordering import Champions
from whorl.kernel.state.relation import Ints, Mask, StoredRelation, no_rows
from whorl.kernel.state.sums import Tally, grow
from whorl.model.types import Type
from whorl.physical.plan import KeySpace

_NONE = np.empty(0, np.int64)


class Choice:
    """A cell that is the least or the largest of its contributions."""

    negative = False

    def __init__(self, kind: Type, dictionary: Dictionary, *, lowest: bool) -> None:
        self._best = Champions(kind, dictionary, lowest=lowest)

    def reserve(self, groups: int) -> None:
        """Make room for so many groups."""
        self._best.reserve(groups)

    def forget(self, groups: Ints | None = None) -> None:
        """Empty the cells of groups, or all."""
        self._best.forget(groups)

    def offer(self, groups: Ints, values: Ints, _keys: Ints, _space: int) -> Ints:
        """Take contributions; return the groups whose value changed."""
        return self._best.offer(groups, values)[0]

    def key_width(self, _space: int) -> int:
        """Return how many columns its keys take."""
        return 0

    def read(self, groups: Ints) -> tuple[Ints, Mask]:
        """Return the values of groups, and which of them can be stored."""
        return self._best.values[groups], np.ones(len(groups), np.bool_)

    def filled(self, groups: Ints) -> Mask:
        """Tell which groups have a contribution."""
        return self._best.known[groups]

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        return self._best.nbytes


class Sum:
    """A cell that adds up its contributions, one for each key, or averages them."""

    def __init__(self, function: str, kind: Type, spaces: Sequence[KeySpace], dictionary: Dictionary) -> None:
        self.negative = False
        self._tally = Tally(kind, average=function == "avg")
        self._keys = [StoredRelation("keys", [Type.INTEGER, *space.kinds]) for space in spaces]
        self._held = [Champions(kind, dictionary, lowest=False) for _space in spaces]

    def reserve(self, groups: int) -> None:
        """Make room for so many groups."""
        self._tally.reserve(groups)

    def forget(self, groups: Ints | None = None) -> None:
        """Empty the cells of groups, or all."""
        if groups is None:
            self.negative = False
            self._tally.clear()
            for keys, held in zip(self._keys, self._held, strict=True):
                keys.clear()
                held.forget()
            return
        self._tally.reset(groups)
        for keys, held in zip(self._keys, self._held, strict=True):
            own = keys.read(np.arange(keys.count))[:, 0]
            held.forget(np.flatnonzero(~self._tally.filled(own)))

    def offer(self, groups: Ints, values: Ints, keys: Ints, space: int) -> Ints:
        """Take contributions; return the groups whose value changed."""
        held = self._held[space]
        self.negative |= bool((values < 0).any())  # floats too: the sign is the first of their bits
        slots = self._keys[space].number(np.column_stack((groups, keys)))
        held.reserve(self._keys[space].count)
        changed, before, had = held.offer(slots, values)
        if not len(changed):
            return _NONE
        own = self._keys[space].read(changed)[:, 0]
        self._tally.add(own, held.values[changed])
        self._tally.add(own[had], before[had], -1)
        return own

    def key_width(self, space: int) -> int:
        """Return how many columns its keys take."""
        return self._keys[space].width - 1

    def read(self, groups: Ints) -> tuple[Ints, Mask]:
        """Return the values of groups, and which of them can be stored."""
        return self._tally.read(groups)

    def filled(self, groups: Ints) -> Mask:
        """Tell which groups have a contribution."""
        return self._tally.filled(groups)

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        kept = sum(keys.nbytes for keys in self._keys) + sum(held.nbytes for held in self._held)
        return self._tally.nbytes + kept


class Totals:
    """The rows of a relation with aggregated columns, from the contributions of rules."""

    def __init__(
        self,
        relation: StoredRelation,
        aggregates: dict[int, str],
        spaces: Mapping[int, Sequence[KeySpace]],
        dictionary: Dictionary,
        *,
        prompt: bool,
    ) -> None:
        self._relation = relation
        self._functions = aggregates
        self._prompt = prompt
        self._group = [column for column in range(relation.width) if column not in aggregates]
        self._groups = StoredRelation(f"{relation.name}^groups", [relation.types[at] for at in self._group])
        self._cells: dict[int, Choice | Sum] = {}
        for column, function in aggregates.items():
            kind = relation.types[column]
            if function in ("min", "max"):
                self._cells[column] = Choice(kind, dictionary, lowest=function == "min")
            else:
                self._cells[column] = Sum(function, kind, spaces.get(column, ()), dictionary)
        self._rows = np.zeros((32, relation.width), np.int64)
        self._shown = np.zeros(32, np.bool_)
        self._in_doubt = np.zeros(32, np.bool_)
        self._stored = np.full(32, -1, np.int64)
        self.clear()

    @property
    def negative(self) -> bool:
        """Whether something negative was added up: then a sum need not grow."""
        return any(cell.negative for cell in self._cells.values())

    def clear(self) -> None:
        """Forget all groups, whose rows are dead."""
        self._groups.clear()
        for cell in self._cells.values():
            cell.forget()
        self._shown[:] = False
        self._in_doubt[:] = False
        self._stored[:] = -1
        self._touched: list[Ints] = []
        self._doubted: list[Ints] = []
        self._late: list[Ints] = []
        self.size = 0

    def offer(self, batch: Ints, spaces: Sequence[int]) -> None:
        """Take what a rule contributes: the columns of the relation, then the keys of each column in turn.

        ``spaces`` says to which of a column's spaces its keys belong.
        """
        width = self._relation.width
        groups = self._groups.number(self._plain(batch))
        self._reserve(self._groups.count)
        for space, (column, cell) in zip(spaces, self._cells.items(), strict=True):
            wide = cell.key_width(space)
            keys = batch[:, width : width + wide]
            width += wide
            changed = cell.offer(groups, np.ascontiguousarray(batch[:, column]), keys, space)
            if len(changed):
                self._touched.append(changed)

    def _plain(self, batch: Ints) -> Ints:
        if not self._group:
            return np.zeros((len(batch), 1), np.int64)
        return np.ascontiguousarray(batch[:, self._group])

    def _reserve(self, groups: int) -> None:
        for cell in self._cells.values():
            cell.reserve(groups)
        if groups > len(self._shown):
            lines = len(self._shown)
            self._rows = grow(self._rows, groups)
            more = len(self._rows) - lines
            self._shown = np.concatenate((self._shown, np.zeros(more, np.bool_)))
            self._in_doubt = np.concatenate((self._in_doubt, np.zeros(more, np.bool_)))
            self._stored = np.concatenate((self._stored, np.full(more, -1, np.int64)))

    def publish(self) -> Ints:
        """Close a round: return the rows that groups show since, where they are others than before."""
        if not self._touched:
            return no_rows(self._relation.width)
        groups = np.unique(np.concatenate(self._touched))
        self._touched = []
        for cell in self._cells.values():
            groups = groups[cell.filled(groups)]
        rows = self._read(groups)
        other = ~self._shown[groups] | (rows != self._rows[groups]).any(axis=1)
        groups = groups[other]
        changed: Ints = rows[other]
        self.size += int(np.count_nonzero(~self._shown[groups]))
        self._rows[groups] = changed
        self._shown[groups] = True
        self._late.append(groups)
        if self._prompt and len(groups):
            self._store(groups)
        return changed

    def _read(self, groups: Ints) -> Ints:
        rows = np.empty((len(groups), self._relation.width), np.int64)
        if self._group:
            rows[:, self._group] = self._groups.read(groups)
        for column, cell in self._cells.items():
            rows[:, column], fits = cell.read(groups)
            if not fits.all():
                raise UserError("E509", None, function=self._functions[column], relation=self._relation.name)
        return rows

    def forget(self, _rows: Ints, column: int, least: int) -> None:
        """Let rows die: all groups that have at least some number in a column, also those that show nothing yet."""
        values = self._groups.read(np.arange(self._groups.count))[:, self._group.index(column)]
        self._empty(np.flatnonzero(values >= least))

    def _empty(self, groups: Ints) -> None:
        for cell in self._cells.values():
            cell.forget(groups)
        self.size -= int(np.count_nonzero(self._shown[groups]))
        self._shown[groups] = False
        self._relation.retire(self._stored[groups])
        self._stored[groups] = -1

    def doubt(self, batch: Ints) -> Ints:
        """Doubt the groups of what a rule contributed; return the rows of those that were not in doubt."""
        groups = np.unique(self._groups.find(self._plain(batch)))
        groups = groups[groups >= 0]
        groups = groups[~self._in_doubt[groups]]
        self._in_doubt[groups] = True
        self._doubted.append(groups)
        rows: Ints = self._rows[groups[self._shown[groups]]]
        return rows

    def empty(self) -> list[Ints]:
        """Empty the groups in doubt; return their columns."""
        groups = np.concatenate(self._doubted) if self._doubted else _NONE
        self._doubted = []
        self._in_doubt[groups] = False
        if len(groups):
            self._empty(groups)
        return [self._groups.read(groups)]

    def renumbered(self) -> None:
        """Take over new numbers of the rows stored."""
        groups = np.flatnonzero(self._stored >= 0)
        self._stored[groups] = self._relation.find(self._rows[groups])

    @property
    def nbytes(self) -> int:
        """The memory kept beside the rows."""
        own = self._rows.nbytes + self._shown.nbytes + self._in_doubt.nbytes + self._stored.nbytes
        return self._groups.nbytes + own + sum(cell.nbytes for cell in self._cells.values())

    def _store(self, groups: Ints) -> None:
        numbers = self._relation.number(self._rows[groups])
        self._relation.retire(self._stored[groups])
        self._stored[groups] = numbers
        self._relation.revive(numbers)

    def flush(self) -> Ints:
        """End a fixpoint: store what is shown; return the rows that it brought or changed."""
        if not self._late:
            return no_rows(self._relation.width)
        groups = np.unique(np.concatenate(self._late))
        self._late = []
        if not self._prompt and len(groups):
            self._store(groups)
        rows: Ints = self._rows[groups]
        return rows
