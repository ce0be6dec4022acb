"""Aggregate selection: derive only what can still be best.

Where all that is used of a recursive relation is the best row of each group (`min` or `max` of one column, or
several such choices), rows that are best in no choice are dropped while the recursion runs. So path programs end on
cyclic graphs.

It is right when a worse row can only lead to worse rows: in every recursive rule there is one recursive atom; the
group of the head depends on that atom's group only; the value of the head grows strictly with the atom's value; no
condition looks at the atom's other columns; and what is made from them has a value whatever they hold. Then whatever
follows from a dropped row is beaten by what follows from the row that beat it. Sums of Floats are rounded and may come
out the same; then it counts as beaten.
"""

from __future__ import annotations

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
from whorl.model.types import NUMERIC, Type
from whorl.syntax import ast

_TOTAL = frozenset({"concat", "cat"})  # functions that have a value for all arguments of the type of their result


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
    if not all(_keeps_order(rule, selection, plan) for rule in recursive for selection in selections):
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


def _keeps_order(rule: RulePlan, selection: Selection, plan: LogicalPlan) -> bool:
    """Whether a worse row, put into the recursive atom of a rule, gives a worse row of the head."""
    atoms = [s for s in rule.steps if isinstance(s, Join | SemiJoin | AntiJoin) and s.relation == selection.relation]
    if len(atoms) != 1 or not isinstance(atoms[0], Join):
        return False
    names = _plain_names(atoms[0])
    value = None if names is None else names[selection.value]
    if names is None or value is None:
        return False
    columns = plan.relations[selection.relation].columns
    group = {names[column] for column in selection.group}
    kinds = {name: columns[at].type for at, name in enumerate(names) if name is not None and name not in group}
    body = _Body(kinds, {value}, plan.program.functions)
    for step in rule.steps:
        if step is not atoms[0] and not _harmless(step, body, selection):
            return False
    head = [arg for arg in rule.args if not isinstance(arg, Contribution)]
    plain = all(not body.moves(head[column]) for column in selection.group)
    moving = [arg for at, arg in enumerate(head) if at != selection.value and body.moves(arg)]
    return plain and body.rises(head[selection.value]) and all(body.kind(arg) for arg in moving)


def _harmless(step: Step, body: _Body, selection: Selection) -> bool:
    """Check one step, and follow what it calculates."""
    if not step_uses(step) & body.kinds.keys():
        return True
    if isinstance(step, Extend) and isinstance(step.pattern, ast.Variable):
        if step.pattern.name in body.kinds:
            return False  # it binds what the atom, or another calculation, has as well: that is a test
        kind = body.kind(step.value)
        if body.rises(step.value):
            body.rising.add(step.pattern.name)
            kind = kind or Type.UNKNOWN
        if kind is not None:
            body.kinds[step.pattern.name] = kind
        return kind is not None
    return isinstance(step, Filter) and _bounds(step, body, selection)


@dataclass
class _Body:
    """What is known of the variables of a rule that differ between the rows of a group.

    `kinds` are their types; those in `rising` grow strictly with the value that is selected by, the others may be
    anything.
    """

    kinds: dict[str, Type]
    rising: set[str]
    functions: Functions

    def moves(self, expr: ast.Expr) -> bool:
        """Whether the rows of a group may differ in an expression."""
        return not variable_names(expr).isdisjoint(self.kinds)

    def rises(self, expr: ast.Expr) -> bool:
        """Whether an expression grows strictly with the value, whatever the other columns hold."""
        if isinstance(expr, ast.Variable):
            return expr.name in self.rising
        if not isinstance(expr, ast.Operation) or len(expr.args) != 2:
            return False
        left, right = expr.args
        if expr.operator == "+":
            return (self.rises(left) and not self.moves(right)) or (not self.moves(left) and self.rises(right))
        return expr.operator == "-" and self.rises(left) and not self.moves(right)

    def kind(self, expr: ast.Expr) -> Type | None:
        """Return the type of an expression that has a value in every row of a group if it has one in any, else None.

        So to calculate it tests nothing. That numbers stay in their range, and are numbers, is watched.
        """
        if not self.moves(expr):
            return Type.ANY
        if isinstance(expr, ast.Variable):
            return self.kinds[expr.name]
        within = [self.kind(part) for part in parts(expr)]
        if isinstance(expr, ast.ListExpr):
            ends = [self.kind(end) for end in (expr.prefix, expr.tail) if end is not None]
            return Type.LIST if None not in within and all(_is(end, Type.LIST) for end in ends) else None
        if isinstance(expr, ast.Operation):
            numbers = all(_is(arg, *NUMERIC, Type.UNKNOWN) for arg in within)
            return Type.FLOAT if numbers and expr.operator in ("+", "-") else None
        assert isinstance(expr, ast.Call), "constants and underscores do not move"
        function = self.functions.get(expr.name)
        if function is None:
            return None if None in within else Type.TERM
        total = expr.name in _TOTAL and not function.user
        return function.result if total and all(_is(arg, function.result) for arg in within) else None


def _is(kind: Type | None, *wanted: Type) -> bool:
    return kind is Type.ANY or kind in wanted


def _bounds(step: Filter, body: _Body, selection: Selection) -> bool:
    """Whether a condition holds for every better value if it holds for a worse one."""
    sides = [(step.left, step.right), (step.right, step.left)]
    smaller_first = step.operator in ("<", "<=")
    if not smaller_first and step.operator not in (">", ">="):
        return False
    small, large = sides[0] if smaller_first else sides[1]
    own, other = (small, large) if selection.function == "min" else (large, small)
    return body.rises(own) and not body.moves(other)
