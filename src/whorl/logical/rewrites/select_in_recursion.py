"""Aggregate selection: derive only what can still be best.

Where all that is used of a recursive relation is the best row of each group (`min` or `max` of one column, or
several such choices), rows that are best in no choice are dropped while the recursion runs. So path programs end on
cyclic graphs.

It is right when a worse row can only lead to worse rows: in every recursive rule there is one recursive atom; the
group of the head depends on that atom's group only; the value of the head grows strictly with the atom's value; and
no condition looks at the atom's other columns. Then whatever follows from a dropped row is beaten by what follows
from the row that beat it. Sums of Floats are rounded and may come out the same; then it counts as beaten.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from whorl.analysis.expressions import Functions
from whorl.analysis.program import parts, variable_names
from whorl.logical.plan import (
    AntiJoin,
    Contribution,
    Extend,
    Filter,
    Fixpoint,
    Join,
    LogicalPlan,
    Project,
    RulePlan,
    Selection,
    SemiJoin,
    Step,
)
from whorl.logical.steps import step_uses
from whorl.logical.watching import EITHER, Ways, watch_rule
from whorl.syntax import ast

_TOTAL = frozenset({"concat", "cat"})  # functions that have a value for every argument of their type


def select_in_recursion(plan: LogicalPlan) -> LogicalPlan:
    """Push the choices of `min` and `max` into the recursions that they choose from."""
    return replace(plan, strata=tuple(_rewrite(stratum, plan) for stratum in plan.strata))


def _rewrite(stratum: Fixpoint, plan: LogicalPlan) -> Fixpoint:
    if not stratum.recursive or stratum.stages is not None or len(stratum.relations) > 1 or stratum.selections:
        return stratum
    (relation,) = stratum.relations
    shown = any(output.relation == relation for output in plan.outputs)
    if shown or plan.relations[relation].aggregates:
        return stratum
    choosers = _choosers(relation, stratum, plan)
    if choosers is None:
        return stratum
    selections = tuple(dict.fromkeys(chooser.selection for chooser in choosers.values()))
    recursive = [rule for rule in stratum.rules if any(name == relation for name, _ in rule.relations())]
    if not all(_keeps_order(rule, selection) for rule in recursive for selection in selections):
        return stratum
    rules = tuple(
        _watched(rule, selections, plan.program.functions) if rule in recursive else rule for rule in stratum.rules
    )
    return replace(stratum, rules=rules, selections=selections)


def _watched(rule: RulePlan, selections: tuple[Selection, ...], functions: Functions) -> RulePlan:
    """Watch what a recursive rule calculates from columns that may change while the recursion runs."""
    (atom,) = (s for s in rule.steps if isinstance(s, Join) and s.relation == rule.relation)
    ways: dict[str, Ways] = {}
    for selection in selections:
        for column, arg in enumerate(atom.args):
            if isinstance(arg, ast.Variable) and column not in selection.group:
                own = EITHER if column != selection.value else frozenset({-1 if selection.function == "min" else 1})
                ways[arg.name] = ways.get(arg.name, own) | own
    return watch_rule(rule, ways, functions)


@dataclass(frozen=True, slots=True)
class _Chooser:
    """A relation that holds the best value of each group; `columns` maps its columns to those it chooses from."""

    selection: Selection
    columns: tuple[int, ...]


def _choosers(relation: str, stratum: Fixpoint, plan: LogicalPlan) -> dict[str, _Chooser] | None:
    """Return the relations that choose from ``relation``, or None if it is used in any other way."""
    outside = [rule for rule in plan.rules() if rule not in stratum.rules]
    readers = [rule for rule in outside if any(name == relation for name, _ in rule.relations())]
    choosers: dict[str, _Chooser] = {}
    for rule in readers:
        chooser = _chooser(rule, relation)
        alone = sum(1 for other in outside if other.relation == rule.relation) == 1
        if chooser is not None and alone:
            choosers[rule.relation] = chooser
    if not choosers:
        return None
    for rule in readers:
        if rule.relation not in choosers and not _chosen_only(rule, relation, choosers):
            return None
    return choosers


def _chooser(rule: RulePlan, relation: str) -> _Chooser | None:
    steps = [step for step in rule.steps if not isinstance(step, Project)]
    if len(steps) != 1 or not isinstance(steps[0], Join):
        return None
    names = _plain_names(steps[0])
    if names is None:
        return None
    columns: list[int] = []
    chosen: list[tuple[int, str]] = []
    for arg in rule.args:
        value = arg.value if isinstance(arg, Contribution) else arg
        if not isinstance(value, ast.Variable):
            return None
        column = names.index(value.name)
        columns.append(column)
        if isinstance(arg, Contribution):
            chosen.append((column, arg.function))
    if len(chosen) != 1 or chosen[0][1] not in ("min", "max") or len(set(columns)) != len(columns):
        return None
    value_column, function = chosen[0]
    group = tuple(sorted(column for column in columns if column != value_column))
    return _Chooser(Selection(relation, group, value_column, function), tuple(columns))


def _plain_names(step: Join) -> list[str | None] | None:
    """Return the variable in each place of an atom that takes any row; None if it takes only some."""
    if not all(isinstance(arg, ast.Variable | ast.Anonymous) for arg in step.args):
        return None
    names = [arg.name if isinstance(arg, ast.Variable) else None for arg in step.args]
    named = [name for name in names if name is not None]
    return names if len(set(named)) == len(named) else None


def _chosen_only(rule: RulePlan, relation: str, choosers: dict[str, _Chooser]) -> bool:
    """Whether a rule joins every atom of the relation with the best value of its group."""
    atoms = [step for step in rule.steps if isinstance(step, Join | SemiJoin)]
    for step in rule.steps:
        if isinstance(step, AntiJoin) and step.relation == relation:
            return False
    own = [step for step in atoms if step.relation == relation]
    return all(any(_same_row(step, other, choosers) for other in atoms) for step in own)


def _same_row(step: Join | SemiJoin, other: Join | SemiJoin, choosers: dict[str, _Chooser]) -> bool:
    chooser = choosers.get(other.relation)
    if chooser is None:
        return False
    pairs = zip(other.args, chooser.columns, strict=True)
    return all(isinstance(arg, ast.Variable) and arg == step.args[column] for arg, column in pairs)


def _keeps_order(rule: RulePlan, selection: Selection) -> bool:
    """Whether a worse row, put into the recursive atom of a rule, gives a worse row of the head."""
    atoms = [s for s in rule.steps if isinstance(s, Join | SemiJoin | AntiJoin) and s.relation == selection.relation]
    if len(atoms) != 1 or not isinstance(atoms[0], Join):
        return False
    names = _plain_names(atoms[0])
    value = None if names is None else names[selection.value]
    if names is None or value is None:
        return False
    group = {names[column] for column in selection.group}
    free = {name for name in names if name is not None and name not in group and name != value}
    rising = {value}
    for step in rule.steps:
        if step is not atoms[0] and not _harmless(step, free, rising, selection):
            return False
    head = [arg for arg in rule.args if not isinstance(arg, Contribution)]
    plain = all(not variable_names(head[column]) & (free | rising) for column in selection.group)
    return plain and _rises(head[selection.value], free, rising)


def _harmless(step: Step, free: set[str], rising: set[str], selection: Selection) -> bool:
    """Check one step, and follow what it calculates: `free` may be anything, `rising` grows strictly with the value."""
    used = step_uses(step)
    if not used & (free | rising):
        return True
    if isinstance(step, Extend) and isinstance(step.pattern, ast.Variable):
        if _rises(step.value, free, rising):
            rising.add(step.pattern.name)
            return True
        if _total(step.value):
            free.add(step.pattern.name)
            return True
        return False
    return isinstance(step, Filter) and _bounds(step, free, rising, selection)


def _rises(expr: ast.Expr, free: set[str], rising: set[str]) -> bool:
    """Whether an expression grows strictly with the value, whatever the other columns hold."""
    if isinstance(expr, ast.Variable):
        return expr.name in rising
    if not isinstance(expr, ast.Operation) or len(expr.args) != 2:
        return False
    settled = [not variable_names(arg) & (free | rising) for arg in expr.args]
    left, right = expr.args
    if expr.operator == "+":
        return (_rises(left, free, rising) and settled[1]) or (settled[0] and _rises(right, free, rising))
    return expr.operator == "-" and _rises(left, free, rising) and settled[1]


def _total(expr: ast.Expr) -> bool:
    """Whether an expression has a value under every assignment, so that calculating it tests nothing."""
    return all(_total_part(part) for part in _walk(expr))


def _total_part(expr: ast.Expr) -> bool:
    if isinstance(expr, ast.Operation):
        return expr.operator in ("+", "-")
    if isinstance(expr, ast.Call):
        return expr.name in _TOTAL
    return True


def _walk(expr: ast.Expr) -> Iterator[ast.Expr]:
    yield expr
    for part in parts(expr):
        yield from _walk(part)


def _bounds(step: Filter, free: set[str], rising: set[str], selection: Selection) -> bool:
    """Whether a condition holds for every better value if it holds for a worse one."""
    sides = [(step.left, step.right), (step.right, step.left)]
    smaller_first = step.operator in ("<", "<=")
    if not smaller_first and step.operator not in (">", ">="):
        return False
    small, large = sides[0] if smaller_first else sides[1]
    own, other = (small, large) if selection.function == "min" else (large, small)
    return _rises(own, free, rising) and not variable_names(other) & (free | rising)
