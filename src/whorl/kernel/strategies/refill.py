"""Deletion where rows come and go on the way to the fixpoint: groups that may have lost something are filled anew.

1. Doubt: whatever a derivation led to that no longer holds, and all that follows from it.
2. Empty: what is in doubt goes, and with it what its groups know.
3. Derive: what leads to those groups from elsewhere, what new facts add anywhere, and whatever follows, round by round.

What was not in doubt lost nothing, so it stands; what is new can only improve it.

Cost: the derivations that lead to or from groups in doubt, and those that use new facts. If more than half of the
stratum falls into doubt, all derivations.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from whorl.kernel.arrays.rowset import NEW, OLD
from whorl.kernel.operators.compiling import compile_at_atom
from whorl.kernel.operators.pipeline import Pipeline
from whorl.kernel.state.relation import Ints
from whorl.kernel.strategies.pruning import Pruned, compile_pruned
from whorl.kernel.strategies.rounds import Delta, Rounds
from whorl.kernel.strategies.selection import SelectedRows
from whorl.kernel.strategies.stratum import READ, Entry, Stratum
from whorl.logical.plan import Join
from whorl.physical.plan import GroupEntry, PhysicalRule
from whorl.physical.rules import entered_as
from whorl.syntax import ast

_MOST = 0.5  # the share of a stratum that may be in doubt before all is derived again


class Refill(Rounds):
    """Empties and fills groups; a subclass says how rules are entered at a group, and when to start anew."""

    def __init__(self, stratum: Stratum) -> None:
        super().__init__(stratum)
        self._groups = [self.groups(rule) for rule in stratum.rules]
        self._into: dict[tuple[int, int], Pipeline | Pruned] = {}
        self.inside = [entry for entry in stratum.entries if entry.inside]
        self.outside = [entry for entry in stratum.entries if not entry.inside]
        self.enterable = all(map(self._fits, range(len(stratum.rules))))

    def groups(self, rule: PhysicalRule) -> Sequence[GroupEntry]:
        """Return how a rule is entered at the groups that its rows are in, for each kind of them."""
        raise NotImplementedError

    def starts_anew(self) -> bool:
        """Whether the changes must not be followed, or are so many that it does not pay."""
        raise NotImplementedError

    def step(self) -> None:
        """Follow the changes, or derive everything."""
        if self.stratum.exchange is not None:  # each improvement would be told, and what it beats taken back
            super().step()
        elif self.fresh or self.stratum.changed():
            anew = self.fresh or not self.enterable or self.starts_anew()
            self.fresh = True  # unless it ends well
            if anew or not self.follow_changes():
                self.clear()
                self.run()
            self.fresh = False

    def follow_changes(self) -> bool:
        """Bring the stratum up to date; tell whether that went well. If not, it must start anew."""
        if not self._doubt():
            return False
        emptied = {name: shown.empty() for name, shown in self.shown.items()}
        self.fixpoint(lambda: self._refill(emptied), self.inside)
        self.flush()
        return True

    def _doubt(self) -> bool:
        """Doubt what derivations led to that no longer hold, and all that follows; False if that is very much."""
        rows: Delta = {}
        for entry in self.outside:
            appeared, vanished = self.stratum.relation(entry.relation).pending()
            self._doubt_heads(entry, vanished if entry.positive else appeared, rows, OLD)
        most = int(_MOST * sum(shown.size for shown in self.shown.values()))
        doubted = 0
        while rows:
            doubted += sum(len(part) for part in rows.values())
            if doubted > most:
                return False
            rows = self._doubt_next(rows, OLD)
        return True

    def doubt_followers(self, rows: Delta) -> None:
        """Doubt all that follows from rows that are gone, with what is there now."""
        while rows:
            rows = self._doubt_next(rows, NEW)

    def _doubt_next(self, rows: Delta, when: int) -> Delta:
        following: Delta = {}
        for entry in self.inside:
            if entry.relation in rows:
                self._doubt_heads(entry, rows[entry.relation], following, when)
        return following

    def _doubt_heads(self, entry: Entry, rows: Ints, doubted: Delta, when: int) -> None:
        if not len(rows):
            return
        head = self.stratum.rules[entry.rule].relation
        needs = [when] * len(self.stratum.rules[entry.rule].atoms)
        with self.stratum.state.faults.ignored():
            for chunk in self.entered(entry, rows, needs):
                fallen = self.shown[head].doubt(chunk)
                if len(fallen):
                    self.stratum.state.work.doubted += len(fallen)
                    doubted[head] = np.concatenate((doubted[head], fallen)) if head in doubted else fallen

    def _refill(self, emptied: dict[str, list[Ints]]) -> None:
        """Derive what leads to emptied groups, and what new facts lead to."""
        self.fill(emptied)
        for entry in self.outside:
            appeared, vanished = self.stratum.relation(entry.relation).pending()
            fresh = appeared if entry.positive else vanished
            for chunk in self.entered(entry, fresh) if len(fresh) else ():
                self.offer(entry.rule, chunk)

    def fill(self, emptied: dict[str, list[Ints]]) -> None:
        """Derive what leads to emptied groups."""
        for number, rule in enumerate(self.stratum.rules):
            for kind, groups in enumerate(emptied[rule.relation]):
                for chunk in self._leading_to(number, kind, groups):
                    self.offer(number, chunk)

    def _leading_to(self, rule: int, kind: int, groups: Ints) -> Iterator[Ints]:
        """Yield what a rule derives for groups of a kind, given by their columns."""
        if (rule, kind) not in self._into and len(groups):
            self._into[rule, kind] = self._compile(rule, self._groups[rule][kind])
        needs = [NEW] * len(self.stratum.rules[rule].atoms)
        for low in range(0, len(groups), READ):
            yield from self.counted(self._into[rule, kind].run(groups[low : low + READ], needs))

    def _compile(self, rule: int, entry: GroupEntry) -> Pipeline | Pruned:
        """Compile a rule with one atom more, for a group: entered there, it finds what leads to it."""
        wide, kinds = self.wide_rule(rule)
        head = Join(wide.relation, tuple(map(ast.Variable, self._names(rule, entry))))
        at_head = replace(wide, atoms=(*wide.atoms, (head, True)), at_atom=(*wide.at_atom, entry.steps))
        if isinstance(rows := self.shown[wide.relation], SelectedRows):
            return compile_pruned(at_head, len(wide.atoms), self.stratum.state, kinds, rows)
        return compile_at_atom(at_head, len(wide.atoms), self.stratum.state, kinds, trace=False)

    def _names(self, rule: int, entry: GroupEntry) -> tuple[str, ...]:
        plan = self.stratum.rules[rule]
        return entered_as(plan, entry.columns, self.stratum.types(plan.relation))

    def _fits(self, rule: int) -> bool:
        """Whether a rule can be entered at groups, whose columns hold values as the body does."""
        types, kinds = self.stratum.rules[rule].types, self.stratum.types(self.stratum.rules[rule].relation)
        entered = [
            pair for each in self._groups[rule] for pair in zip(each.columns, self._names(rule, each), strict=True)
        ]
        return bool(self._groups[rule]) and all(types.get(name) is kinds[column] for column, name in entered)
