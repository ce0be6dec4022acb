"""Derivations that lead back to their own row: how labels can tell that they need not have them.

    reachable(X, Y) :- link(X, Z), reachable(Z, Y).

Every `link` that a row reachable(Z, Y) follows from is a step of one chain: it led to a row with its own first column,
and the same Y. So if one of them starts at X, then reachable(X, Y) was on the way, and follows from a part of what is
used: to derive it once more adds nothing, whatever may be deleted later. Routers know this as the split horizon.

That holds for a relation which every rule reads at most once. The columns that some rule changes tell the rows of a
chain apart; a fact stands for such a row if all rules that read its relation find those columns of their head, or of
the row that they start from, in the same columns of the fact.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TypeAlias

from whorl.analysis.program import Relation
from whorl.logical.plan import Contribution, Join
from whorl.physical.alignment import same_kind
from whorl.physical.plan import Circles, PhysicalPlan, PhysicalRule, PhysicalStratum
from whorl.syntax import ast

_Args: TypeAlias = Sequence[ast.Expr | Contribution]


def with_circles(plan: PhysicalPlan) -> PhysicalPlan:
    """Return the plan in which strata that keep what their rows follow from know about circles."""
    copies = {channel.target: channel.source for stratum in plan.strata for channel in stratum.feeds}
    return replace(plan, strata=tuple(_with_circles(each, plan.relations, copies) for each in plan.strata))


def _with_circles(
    stratum: PhysicalStratum, relations: Mapping[str, Relation], copies: Mapping[str, str]
) -> PhysicalStratum:
    """Return a stratum that knows about circles, if it keeps labels and is not asked to tell all of them."""
    homes = [name for name in stratum.relations if not name.endswith("^out")]
    labelled = stratum.strategy == "absorption" and stratum.ship != "plain"
    if not labelled or stratum.kind != "rows" or not stratum.recursive or len(homes) > 1:
        return stratum
    rules = _Rules(stratum, homes[0], relations, copies)
    return replace(stratum, circles=rules.circles())


@dataclass(frozen=True, slots=True)
class _Rules:
    """The rules of one relation."""

    stratum: PhysicalStratum
    relation: str
    relations: Mapping[str, Relation]
    copies: Mapping[str, str]

    def circles(self) -> Circles | None:
        """Return how to tell, None if it cannot be told."""
        if any(len(self._inner(rule)) > 1 for rule in self.stratum.rules):
            return None
        changed = [self._changed(rule) for rule in self.stratum.rules]
        columns = tuple(sorted(frozenset[int]().union(*changed)))
        steps = dict(self._steps(columns)) if columns else {}
        return Circles(columns, steps, tuple(at for at, each in enumerate(changed) if each)) if steps else None

    def _inner(self, rule: PhysicalRule) -> list[Join]:
        """Return the atoms that read the relation itself, or what other partitions have sent of it."""
        own = {*self.stratum.relations, *self.stratum.imports}
        return [step for step in _atoms(rule) if step.relation in own]

    def _changed(self, rule: PhysicalRule) -> frozenset[int]:
        """Return the columns of the head that are not those of the row that the rule starts from."""
        return frozenset(
            at
            for step in self._inner(rule)
            for at in range(len(self.relations[self.relation].columns))
            if not _same(rule.args[at], step.args[at])
        )

    def _steps(self, columns: tuple[int, ...]) -> Iterator[tuple[str, tuple[int, ...]]]:
        """Yield the relations whose facts stand for rows, with the places of those rows' columns."""
        ways: defaultdict[str, list[set[tuple[int, ...]]]] = defaultdict(list)  # for each atom that reads a relation
        heads: Counter[tuple[str, tuple[int, ...]]] = Counter()
        for rule in self.stratum.rules:
            inner = self._inner(rule)
            for step in _atoms(rule):
                if step not in inner:
                    source = self.copies.get(step.relation, step.relation)
                    to = set(self._ways(step, rule.args, columns))
                    ways[source].append(to.union(*(self._ways(step, row.args, columns) for row in inner)))
                    heads.update((source, way) for way in to)
        for source, each in ways.items():
            common = sorted(set.intersection(*each))
            if common:
                best = max(common, key=lambda way: heads[source, way])
                yield source, best
                yield from ((copy, best) for copy, copied in self.copies.items() if copied == source)

    def _ways(self, step: Join, row: _Args, columns: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        """Yield the columns of an atom that have the values of some columns of a row, and store them alike."""
        kinds = [column.type for column in self.relations[step.relation].columns]
        own = self.relations[self.relation].columns
        return product(
            *(
                [
                    at
                    for at, arg in enumerate(step.args)
                    if _same(arg, row[column]) and same_kind(kinds[at], own[column].type)
                ]
                for column in columns
            )
        )


def _atoms(rule: PhysicalRule) -> list[Join]:
    return [step for step, _positive in rule.atoms if isinstance(step, Join)]


def _same(left: ast.Expr | Contribution, right: ast.Expr | Contribution) -> bool:
    """Whether both are the same variable."""
    return isinstance(left, ast.Variable) and isinstance(right, ast.Variable) and left.name == right.name
