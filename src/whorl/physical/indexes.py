"""Which indexes the rules of a plan look rows up in, and who shares them.

A rule that is entered somewhere joins the other atoms one by one. Columns whose values are known by then are the key of
a look-up: all of them together need no index, since whole rows are found by themselves; some of them need one, over
just these columns. The kernel makes an index when it is first used, and once for all who look things up by its columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from whorl.logical.plan import AntiJoin, Contribution, Join, Step
from whorl.logical.steps import names_of, step_binds
from whorl.physical.plan import PhysicalPlan, PhysicalRule, PhysicalStratum
from whorl.physical.rules import entered_as
from whorl.syntax import ast

_REDERIVING = frozenset({"expiry", "dred", "pf", "support"})  # they look for derivations of a row, as totals do


@dataclass(frozen=True, slots=True)
class Need:
    """An index: of which relation, over which columns, and the entries of rules that use it."""

    relation: str
    columns: tuple[int, ...]
    users: tuple[str, ...]


def find_indexes(plan: PhysicalPlan) -> tuple[Need, ...]:
    """Return the indexes that the rules of a plan may need, in the order of relations and columns."""
    found: dict[tuple[str, tuple[int, ...]], dict[str, None]] = {}
    for stratum in plan.strata:
        for selection in stratum.source.selections if stratum.kind == "selected" and stratum.source else ():
            if selection.group:
                found.setdefault((selection.relation, selection.group), {})[f"{selection}"] = None
        for rule in stratum.rules:
            for user, known, steps in _entries(plan, stratum, rule):
                for place in _look_ups(plan, known, steps):
                    found.setdefault(place, {})[user] = None
    return tuple(Need(*place, tuple(users)) for place, users in sorted(found.items()))


def _entries(
    plan: PhysicalPlan, stratum: PhysicalStratum, rule: PhysicalRule
) -> Iterator[tuple[str, frozenset[str], tuple[Step, ...]]]:
    """Yield the ways in which a rule is entered: in words, the variables known then, and the steps left."""
    name = f"line {rule.rule.span.line}" if rule.rule.span else rule.relation
    for (step, positive), rest in zip(rule.atoms, rule.at_atom, strict=True):
        assert isinstance(step, Join | AntiJoin)
        yield f"{name} on {'' if positive else 'not '}{step.relation}", names_of(step.args), rest
    yield name, frozenset(), rule.at_nothing
    if stratum.kind == "totals" or _REDERIVING & {stratum.strategy, *stratum.arms}:
        plain = [column for column, arg in enumerate(rule.args) if not isinstance(arg, Contribution)]
        yield f"{name} to derive a row", _head_names(plan, rule, plain), rule.at_head
    for entry in rule.at_groups:
        yield f"{name} to derive a group", _head_names(plan, rule, entry.columns), entry.steps


def _head_names(plan: PhysicalPlan, rule: PhysicalRule, columns: Sequence[int]) -> frozenset[str]:
    """Return the variables that columns of a row stand for."""
    kinds = [column.type for column in plan.relations[rule.relation].columns]
    return frozenset(entered_as(rule, columns, kinds))


def _look_ups(
    plan: PhysicalPlan, known: frozenset[str], steps: tuple[Step, ...]
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """Yield the relation and the columns of each look-up that needs an index."""
    for step in steps:
        if isinstance(step, Join | AntiJoin):
            columns = tuple(
                at
                for at, arg in enumerate(step.args)
                if isinstance(arg, ast.Constant) or (isinstance(arg, ast.Variable) and arg.name in known)
            )
            whole = len(columns) == max(len(plan.relations[step.relation].columns), 1)
            if not whole and (columns or isinstance(step, Join)):
                yield step.relation, columns
        known |= step_binds(step)
