"""Sums and other aggregates in recursion under changes: groups that may have lost something are filled anew.

1. Doubt: every group, and every plain row, that a derivation led to which no longer holds; and all that follows from
   their rows.
2. Empty the groups in doubt, and let the rows go.
3. Derive: what leads to them from elsewhere, what new facts add anywhere, and whatever follows, round by round.

Groups that were not in doubt lost nothing, so their contributions stand; what is new can only improve them. That holds
while contributions are not negative. If one is, only the rounds from nothing say what the sum is, and they are run.

Cost: the derivations that lead to or from groups in doubt, and those that use new facts; a look at the keys of all
contributions. If more than half of the stratum falls into doubt, or more changed than there was, all derivations.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from whorl.kernel.arrays.rowset import NEW, OLD
from whorl.kernel.operators.compiling import compile_at_atom
from whorl.kernel.operators.pipeline import Pipeline
from whorl.kernel.state.relation import Ints
from whorl.kernel.strategies.rounds import Delta, Rounds
from whorl.kernel.strategies.stratum import READ, Entry, Stratum
from whorl.logical.plan import Contribution, Join
from whorl.physical.plan import PhysicalRule
from whorl.physical.rules import head_name
from whorl.syntax import ast


class _TooMany(Exception):
    """So much is in doubt that all is better derived again."""


class Filled(Rounds):
    """Maintains a stratum whose groups gather contributions."""

    def __init__(self, stratum: Stratum) -> None:
        super().__init__(stratum)
        self._known = False  # whether contributions are there beside the rows
        self._heads: dict[int, Pipeline] = {}
        self._outside = [entry for entry in stratum.entries if not entry.inside]
        self._inside = [entry for entry in stratum.entries if entry.inside]
        self._enterable = all(_enterable(rule, stratum) for rule in stratum.rules)

    def resume(self) -> None:
        """Go on from the rows that were saved; the next change starts from nothing."""
        super().resume()
        self._known = False

    def step(self) -> None:
        """Follow the changes, or derive everything."""
        changed = self.stratum.changed()
        if not changed and not self.fresh:
            return
        restart = self.fresh or not self._known or not self._enterable
        self.fresh = True  # unless it ends well
        if restart or self._negative() or self._large():
            self._restart()
            self.fresh = False
            return
        try:
            self._doubt()
        except _TooMany:
            self._restart()
        else:
            emptied = {name: shown.empty() for name, shown in self.shown.items()}
            self.fixpoint(lambda: self._refill(emptied), self._inside)
            if self._negative():
                self._restart()
            else:
                self.flush()
        self.fresh = False

    def _negative(self) -> bool:
        return any(shown.negative for shown in self.shown.values())

    def _large(self) -> bool:
        """Whether more changed than there is."""
        names = self.stratum.plan.inputs()
        return sum(len(self.stratum.relation(n).changed()) for n in names) > sum(s.size for s in self.shown.values())

    def _restart(self) -> None:
        self.clear()
        self.run()
        self._known = True

    def _doubt(self) -> None:
        """Doubt what derivations led to that no longer hold, and all that follows from it."""
        rows: Delta = {}
        for entry in self._outside:
            appeared, vanished = self.stratum.relation(entry.relation).pending()
            self._doubt_heads(entry, vanished if entry.positive else appeared, rows)
        half = sum(shown.size for shown in self.shown.values()) // 2
        doubted = 0
        while rows:
            doubted += sum(len(part) for part in rows.values())
            if doubted > half:
                raise _TooMany
            following: Delta = {}
            for entry in self._inside:
                if entry.relation in rows:
                    self._doubt_heads(entry, rows[entry.relation], following)
            rows = following

    def _doubt_heads(self, entry: Entry, rows: Ints, doubted: Delta) -> None:
        if not len(rows):
            return
        head = self.stratum.rules[entry.rule].relation
        needs = [OLD] * len(self.stratum.rules[entry.rule].atoms)
        for chunk in self.entered(entry, rows, needs):
            fallen = self.shown[head].doubt(chunk)
            if len(fallen):
                self.stratum.state.work.doubted += len(fallen)
                doubted[head] = np.concatenate((doubted[head], fallen)) if head in doubted else fallen

    def _refill(self, emptied: Delta) -> None:
        """Derive what leads to emptied groups, and what new facts lead to."""
        for number, rule in enumerate(self.stratum.rules):
            for chunk in self._leading_to(number, emptied[rule.relation]):
                self.offer(number, chunk)
        for entry in self._outside:
            appeared, vanished = self.stratum.relation(entry.relation).pending()
            for chunk in self.entered(entry, appeared if entry.positive else vanished):
                self.offer(entry.rule, chunk)

    def _leading_to(self, rule: int, groups: Ints) -> Iterator[Ints]:
        """Yield what a rule derives for groups, given as rows without their aggregated columns."""
        if rule not in self._heads:
            wide, kinds = self.wide_rule(rule)
            at_head = _at_head(self.stratum.rules[rule], wide)
            self._heads[rule] = compile_at_atom(at_head, len(wide.atoms), self.stratum.state, kinds, trace=False)
        needs = [NEW] * len(self.stratum.rules[rule].atoms)
        for low in range(0, len(groups), READ):
            yield from self.counted(self._heads[rule].run(groups[low : low + READ], needs))


def _entered_args(rule: PhysicalRule) -> Iterator[tuple[int, ast.Variable]]:
    """Yield the columns of a head that are not aggregated, with the name under which each enters the body."""
    seen: set[str] = set()
    for position, arg in enumerate(rule.args):
        if isinstance(arg, Contribution):
            continue
        plain = isinstance(arg, ast.Variable) and arg.name not in seen
        seen |= {arg.name} if isinstance(arg, ast.Variable) else set()
        yield position, arg if plain and isinstance(arg, ast.Variable) else ast.Variable(head_name(position))


def _at_head(rule: PhysicalRule, wide: PhysicalRule) -> PhysicalRule:
    """Return a rule with one atom more, for the head: entered there, it finds the derivations of groups."""
    head = Join(rule.relation, tuple(variable for _position, variable in _entered_args(rule)))
    return replace(wide, atoms=(*wide.atoms, (head, True)), at_atom=(*wide.at_atom, rule.at_head))


def _enterable(rule: PhysicalRule, stratum: Stratum) -> bool:
    """Whether the columns of a head hold values as the body does."""
    kinds = stratum.types(rule.relation)
    return all(rule.types.get(variable.name) is kinds[position] for position, variable in _entered_args(rule))
