"""Rows that are best in some choice: `min` or `max` of one column for each group, of several such choices one at least.

Candidates are compared with the best values before they are stored, so those that cannot win leave no trace. When a
group's best value improves, the rows that held the old one go, unless another choice keeps them.

What followed from them is beaten in turn, as values grow strictly; but sums of Floats are rounded, and may come out the
same. Then the rows that were beaten are remembered, for what followed from them.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from whorl.kernel.arrays.index import ROW_NUMBER
from whorl.kernel.arrays.rowset import NEW
from whorl.kernel.operators.joins import ProbeIndex
from whorl.kernel.operators.pipeline import State
from whorl.kernel.state.doubts import Doubts
from whorl.kernel.state.ordering import Champions
from whorl.kernel.state.relation import Ints, Mask, StoredRelation, no_rows
from whorl.logical.plan import Selection
from whorl.model.types import Type


class _Choice:
    """One choice: its groups and their best values."""

    def __init__(self, relation: StoredRelation, selection: Selection, state: State) -> None:
        self.column = selection.value
        self.group = list(selection.group)
        kind = relation.types[self.column]
        # Whether rows of a group may differ that have the same value, and one of them follow from a row that is beaten.
        self.rounded = kind is Type.FLOAT and len({*self.group, self.column}) < relation.width
        kinds = [relation.types[at] for at in self.group]
        self._groups = StoredRelation(f"{relation.name}^groups", kinds)
        lowest = selection.function == "min"
        self._best = Champions(kind, state.dictionary, lowest=lowest)
        keys, wants = np.arange(len(self.group), dtype=np.int64), np.array([ROW_NUMBER], np.int64)
        self._relation = relation
        self._probe = ProbeIndex(relation, selection.group, keys, wants, 0, state.work) if self.group else None

    def clear(self) -> None:
        self._groups.clear()
        self._best.forget()

    def _plain(self, batch: Ints) -> Ints:
        return np.ascontiguousarray(batch[:, self.group]) if self.group else np.zeros((len(batch), 1), np.int64)

    def _number(self, batch: Ints) -> Ints:
        numbers = self._groups.number(self._plain(batch))
        self._best.reserve(self._groups.count)
        return numbers

    def offer(self, batch: Ints) -> Ints:
        """Take candidates; return the groups that had a best value and now have a better one."""
        changed, _before, had = self._best.offer(self._number(batch), np.ascontiguousarray(batch[:, self.column]))
        return changed[had]

    def wants(self, batch: Ints) -> Mask:
        """Tell which rows are best in their groups."""
        best: Mask = self._best.values[self._number(batch)] == batch[:, self.column]
        return best

    def may_win(self, groups: Ints, values: Ints) -> Mask:
        """Tell which values are not worse than the best of their groups; groups come as rows."""
        plain = groups if self.group else np.zeros((len(groups), 1), np.int64)
        found = self._groups.find(np.ascontiguousarray(plain))
        wins: Mask = found < 0
        held = ~wins
        wins[held] = self._best.rivals(found[held], values[held])
        return wins

    def learn_again(self, gone: Ints) -> Ints:
        """Take the best values of groups that lost theirs from the rows alive; return the groups, as rows."""
        groups = self._losing(gone)
        self._best.forget(groups)
        self.offer(self._relation.read(self.members(groups)))
        return self._groups.read(groups)

    def losing(self, gone: Ints) -> Ints:
        """Return the groups, as rows, in which some of these rows were best."""
        return self._groups.read(self._losing(gone))

    def _losing(self, gone: Ints) -> Ints:
        return np.unique(self._number(gone[self.wants(gone)]))

    def members(self, groups: Ints) -> Ints:
        """Return the rows alive of groups, by number."""
        if self._probe is None:
            return self._relation.alive() if len(groups) else groups
        chunks = [chunk[:, 0] for chunk in self._probe.chunks(self._groups.read(groups), [NEW])]
        return np.concatenate(chunks) if chunks else np.empty(0, np.int64)

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        return self._groups.nbytes + self._best.nbytes


class SelectedRows:
    """The rows of a relation that some choice wants."""

    negative = False

    def __init__(self, relation: StoredRelation, selections: Sequence[Selection], state: State) -> None:
        self._relation = relation
        self._doubts = Doubts(relation)
        self._choices = [_Choice(relation, selection, state) for selection in selections]
        # The columns that the choices look at.
        self.columns: list[int] = sorted({at for choice in self._choices for at in (*choice.group, choice.column)})
        self.rounded = any(choice.rounded for choice in self._choices)
        self.clear()

    def clear(self) -> None:
        """Forget the best values; all rows are dead."""
        for choice in self._choices:
            choice.clear()
        self.clear_rows()

    def clear_rows(self) -> None:
        """Keep the best values alone; all rows are dead."""
        self._doubts.clear()
        self._waiting: list[Ints] = []
        self._beaten: list[Ints] = []
        self._improved: list[list[Ints]] = [[] for _choice in self._choices]
        self.size = 0

    def resume(self) -> None:
        """Learn the best values from the rows alive, after a fixpoint."""
        self.clear()
        rows = self._relation.alive()
        for choice in self._choices:
            choice.offer(self._relation.read(rows))
        self.size = len(rows)

    def offer(self, batch: Ints, _spaces: Sequence[int]) -> None:
        """Take candidates."""
        for choice, improved in zip(self._choices, self._improved, strict=True):
            groups = choice.offer(batch)
            if len(groups):
                improved.append(groups)
        self._waiting.append(batch[self._wanted(batch)])

    def may_win(self, batch: Ints) -> Mask:
        """Tell which candidates some choice may want, given the columns that choices look at."""
        wins = np.zeros(len(batch), np.bool_)
        for choice in self._choices:
            group = [self.columns.index(column) for column in choice.group]
            wins |= choice.may_win(batch[:, group], np.ascontiguousarray(batch[:, self.columns.index(choice.column)]))
        return wins

    def _wanted(self, batch: Ints) -> Mask:
        wanted = np.zeros(len(batch), np.bool_)
        for choice in self._choices:
            wanted |= choice.wants(batch)
        return wanted

    def publish(self) -> Ints:
        """Close a round: let the rows go that are beaten; return those that are new."""
        for choice, improved in zip(self._choices, self._improved, strict=True):
            if improved:
                members = choice.members(np.unique(np.concatenate(improved)))
                rows = self._relation.read(members)
                lost = ~self._wanted(rows)
                self.size -= len(self._relation.retire(members[lost]))
                if self.rounded:
                    self._beaten.append(rows[lost])
                improved.clear()
        if not self._waiting:
            return no_rows(self._relation.width)
        batch = np.concatenate(self._waiting)
        self._waiting = []
        fresh = self._relation.add(batch[self._wanted(batch)])
        self.size += len(fresh)
        return self._relation.read(fresh)

    def take_beaten(self) -> Ints:
        """Return the rows that were beaten since this was asked last, if what followed from them may still be there."""
        beaten, self._beaten = self._beaten, []
        return np.concatenate(beaten) if beaten else no_rows(self._relation.width)

    def flush(self) -> Ints:
        """End a fixpoint: everything is stored already."""
        return no_rows(self._relation.width)

    def forget(self, _rows: Ints, _column: int, _least: int) -> None:
        """Never asked: a stratum with stages selects nothing."""
        raise AssertionError

    def doubt(self, batch: Ints) -> Ints:
        """Doubt rows; return those that were not in doubt."""
        return self._doubts.add(batch)

    def empty(self) -> list[Ints]:
        """Let the rows go that are in doubt; return their groups in each choice, which keep what else is alive."""
        gone = self._let_go()
        return [choice.learn_again(gone) for choice in self._choices]

    def empty_followers(self) -> list[Ints]:
        """Let the rows go that are in doubt where all best values are known; return their groups in each choice."""
        gone = self._let_go()
        return [choice.losing(gone) for choice in self._choices]

    def _let_go(self) -> Ints:
        gone = self._doubts.retire()
        self.size -= len(gone)
        return gone

    def renumbered(self) -> None:
        """Forget groups that have no row any more."""
        self.resume()

    @property
    def nbytes(self) -> int:
        """The memory kept beside the rows."""
        return sum(choice.nbytes for choice in self._choices)
