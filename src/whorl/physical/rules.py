"""Bring one rule into the shape that the kernel runs: plain joins, typed variables, an order for every entry."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TypeGuard

from whorl.analysis.expressions import Functions, cast_constant, is_pattern
from whorl.analysis.program import Relation, parts, variable_names
from whorl.logical.plan import (
    AntiJoin,
    Contribution,
    Extend,
    Filter,
    Join,
    Lacks,
    Project,
    RulePlan,
    SemiJoin,
    Step,
    Unnest,
)
from whorl.logical.rewrites.order_joins import order_steps
from whorl.logical.steps import asks_user, names_of, step_binds, step_requires
from whorl.model.types import Type, type_of, unify
from whorl.physical.plan import GroupEntry, PhysicalRule
from whorl.syntax import ast


class NotVectorized(Exception):
    """The rule needs the reference evaluator; the text says why."""


def build_rule(
    rule: RulePlan, relations: Mapping[str, Relation], functions: Functions, own: frozenset[str] = frozenset()
) -> PhysicalRule:
    """Build the entries of a rule; raise NotVectorized if the kernel cannot run it.

    Relations of the stratum's ``own`` are usually larger than what they are derived from, and are joined later.
    """
    steps = tuple(_plain_steps(rule, relations, functions))
    types = infer_variables(rule, steps, relations, functions)
    _check_columns(steps, types, relations)
    atoms = tuple((step, not isinstance(step, AntiJoin)) for step in steps if isinstance(step, Join | AntiJoin))
    at_atom = tuple(_enter(steps, step, functions, own, positive=positive) for step, positive in atoms)
    kinds = [column.type for column in relations[rule.relation].columns]
    grouped = [column for column, arg in enumerate(rule.args) if not isinstance(arg, Contribution)]
    at_head = _enter_head(rule.args, steps, grouped, functions, own, types, kinds)
    at_nothing = () if any(positive for _step, positive in atoms) else order_steps(steps, functions, frozenset())
    types = {**types, **_head_types(rule, relations)}
    return PhysicalRule(replace(rule, steps=steps), atoms, at_atom, at_head, at_nothing, types)


def _plain_steps(rule: RulePlan, relations: Mapping[str, Relation], functions: Functions) -> Iterator[Step]:
    """Yield the steps with atoms whose arguments are variables, constants and underscores only, no variable twice."""
    fresh = 0
    for step in rule.steps:
        if isinstance(step, Project):
            continue
        if isinstance(step, Lacks) and not isinstance(step.item, ast.Variable | ast.Constant):
            # What has no value is not absent either: calculate the element first.
            if _holds_anonymous(step.item):
                raise NotVectorized("it negates a pattern with an underscore")
            fresh += 1
            name = ast.Variable(f"{fresh}$member")
            yield from (Extend(name, step.item), replace(step, item=name))
            continue
        if not isinstance(step, Join | SemiJoin | AntiJoin):
            yield step
            continue
        args: list[ast.Expr] = []
        before: list[Step] = []
        after: list[Step] = []
        for position, arg in enumerate(step.args):
            repeated = isinstance(arg, ast.Variable) and arg in args and not isinstance(step, AntiJoin)
            if isinstance(arg, ast.Anonymous) or (isinstance(arg, ast.Variable) and not repeated):
                args.append(arg)
                continue
            if isinstance(arg, ast.Constant):
                args.append(cast_constant(arg, relations[step.relation].columns[position].type))
                continue
            fresh += 1
            name = ast.Variable(f"{fresh}${step.relation}")
            args.append(name)
            if repeated:
                after.append(_equals(arg, name, exact=_some_unknown(step, relations)))
            elif not is_pattern(arg, functions):
                before.append(Extend(name, arg))
            elif isinstance(step, AntiJoin):
                if _holds_anonymous(arg):
                    raise NotVectorized("it negates a pattern with an underscore")
                before.append(Extend(name, arg))
            else:
                after.append(Extend(arg, name))
        yield from before
        yield replace(step, args=tuple(args)) if isinstance(step, AntiJoin) else Join(step.relation, tuple(args))
        yield from after


def _holds_anonymous(expr: ast.Expr) -> bool:
    return isinstance(expr, ast.Anonymous) or any(_holds_anonymous(part) for part in parts(expr))


def infer_variables(
    rule: RulePlan, steps: tuple[Step, ...], relations: Mapping[str, Relation], functions: Functions
) -> dict[str, Type]:
    """Return the type of each variable of a rule."""
    types: dict[str, Type] = {}
    for step in steps:
        if isinstance(step, Join):  # a negated atom does not say what its variables hold
            for arg, column in zip(step.args, relations[step.relation].columns, strict=True):
                if isinstance(arg, ast.Variable):
                    found = unify(types.get(arg.name, Type.UNKNOWN), column.type)
                    types[arg.name] = column.type if found is None else found
    for _pass in steps:
        for step in steps:
            if isinstance(step, Extend) and isinstance(step.pattern, ast.Variable):
                if types.get(step.pattern.name, Type.UNKNOWN) is Type.UNKNOWN:
                    types[step.pattern.name] = expr_type(step.value, types, functions)
            elif isinstance(step, Extend | Unnest):
                pattern = step.pattern if isinstance(step, Extend) else step.item
                _pattern_types(pattern, types)
    return types


def _pattern_types(pattern: ast.Expr, types: dict[str, Type]) -> None:
    if isinstance(pattern, ast.Variable):
        types.setdefault(pattern.name, Type.UNKNOWN)
    for part in parts(pattern):
        ends = (pattern.prefix, pattern.tail) if isinstance(pattern, ast.ListExpr) else ()
        if isinstance(part, ast.Variable) and any(part is end for end in ends):
            types.setdefault(part.name, Type.LIST)
        else:
            _pattern_types(part, types)


def expr_type(expr: ast.Expr, types: Mapping[str, Type], functions: Functions) -> Type:
    """Return the type of an expression."""
    if isinstance(expr, ast.Constant):
        return type_of(expr.value)
    if isinstance(expr, ast.Variable):
        return types.get(expr.name, Type.UNKNOWN)
    if isinstance(expr, ast.ListExpr):
        return Type.LIST
    assert isinstance(expr, ast.Call | ast.Operation)
    found = [expr_type(arg, types, functions) for arg in expr.args]
    if isinstance(expr, ast.Call):
        function = functions.get(expr.name)
        return Type.TERM if function is None else function.result_type(found).settled
    if Type.FLOAT in found:
        return Type.FLOAT
    return Type.UNKNOWN if Type.UNKNOWN in found else Type.INTEGER


def _check_columns(steps: tuple[Step, ...], types: Mapping[str, Type], relations: Mapping[str, Relation]) -> None:
    """A variable must have one representation everywhere."""
    for step in steps:
        if not isinstance(step, Join | AntiJoin):
            continue
        for arg, column in zip(step.args, relations[step.relation].columns, strict=True):
            if not isinstance(arg, ast.Variable):
                continue
            own = types[arg.name]
            if own is not column.type and {own, column.type} != {Type.INTEGER, Type.TIMESTAMP}:
                reason = f'variable "{arg.name}" has no single type'
                raise NotVectorized(reason)


def _enter(
    steps: tuple[Step, ...], atom: Step, functions: Functions, own: frozenset[str], *, positive: bool
) -> tuple[Step, ...]:
    assert isinstance(atom, Join | AntiJoin)
    rest = tuple(step for step in steps if step is not atom) if positive else steps
    return order_steps(rest, functions, names_of(atom.args), own)


def enter_group(
    rule: PhysicalRule, columns: tuple[int, ...], relations: Mapping[str, Relation], functions: Functions
) -> GroupEntry:
    """Enter a recursive rule at columns of its head."""
    kinds = [column.type for column in relations[rule.relation].columns]
    own = frozenset({rule.relation})
    return GroupEntry(columns, _enter_head(rule.args, rule.rule.steps, columns, functions, own, rule.types, kinds))


def entered_as(rule: PhysicalRule, columns: Sequence[int], kinds: Sequence[Type]) -> tuple[str, ...]:
    """Return the names under which columns of the head enter the body."""
    names: list[str] = []
    for position in columns:
        arg = rule.args[position]
        assert not isinstance(arg, Contribution), "an aggregated column is not known before"
        if enters_as(arg, rule.types, kinds[position]) and arg.name not in names:
            names.append(arg.name)
        else:
            names.append(head_name(position))
    return tuple(names)


def _enter_head(
    args: Sequence[ast.Expr | Contribution],
    steps: tuple[Step, ...],
    columns: Sequence[int],
    functions: Functions,
    own: frozenset[str],
    types: Mapping[str, Type],
    kinds: Sequence[Type],
) -> tuple[Step, ...]:
    """Return the steps that find the derivations of a row; some columns are known, under the name of the argument."""
    bound: set[str] = set()
    checks: list[Step] = []
    for position in columns:
        arg = args[position]
        assert not isinstance(arg, Contribution), "an aggregated column is not known before"
        if enters_as(arg, types, kinds[position]) and arg.name not in bound:
            bound.add(arg.name)
        else:
            bound.add(head_name(position))
            known, kind = ast.Variable(head_name(position)), kinds[position]
            checks.append(_equals(known, _as_kind(arg, types, kind), exact=kind is Type.UNKNOWN))
    ready = [check for check in checks if _names(check) <= bound]
    late = [check for check in checks if check not in ready]
    ordered = order_steps((*ready, *steps, *late), functions, frozenset(bound), own)
    return _call_last(ordered, functions, frozenset(bound))


def _call_last(steps: tuple[Step, ...], functions: Functions, bound: frozenset[str]) -> tuple[Step, ...]:
    """Move calls of users' functions, and what needs their results, behind all that must hold for them to be made.

    A column of the head may hold what the body has no rows for, and what a function fails for. Where other steps look
    something up by a result, or could bind what a call binds, only the atoms that have what it is called with go first.
    """
    called = [step for step in steps if not isinstance(step, Join) and asks_user(step, functions)]
    results = frozenset().union(*map(step_binds, called))
    first: list[Step] = []
    for step in steps:
        if step not in called and not step_binds(step) & results and step_requires(step, functions) <= bound:
            first.append(step)
            bound |= step_binds(step)
    last = [step for step in steps if step not in first]
    if any(isinstance(step, Join) or (step not in called and step_binds(step) & results) for step in last):
        asked = frozenset().union(*(step_requires(step, functions) for step in called))
        first = [step for step in first if isinstance(step, Join) and step_binds(step) & asked]
    return (*first, *(step for step in steps if step not in first))


def _equals(left: ast.Expr, right: ast.Expr, *, exact: bool) -> Filter:
    """Return the condition that two values are equal; the items of lists are so only if they are of one type."""
    return Filter("=", ast.ListExpr((left,)), ast.ListExpr((right,))) if exact else Filter("=", left, right)


def _some_unknown(atom: Join | SemiJoin | AntiJoin, relations: Mapping[str, Relation]) -> bool:
    return any(column.type is Type.UNKNOWN for column in relations[atom.relation].columns)


def enters_as(arg: ast.Expr, types: Mapping[str, Type], kind: Type) -> TypeGuard[ast.Variable]:
    """Whether a head column can stand for the variable in it: both hold values in the same way."""
    if not isinstance(arg, ast.Variable):
        return False
    own = types.get(arg.name, kind)
    return own is kind or {own, kind} == {Type.INTEGER, Type.TIMESTAMP}


def _as_kind(arg: ast.Expr, types: Mapping[str, Type], kind: Type) -> ast.Expr:
    """Return an expression whose value is stored as the head stores it: whole numbers may go into a Float column."""
    if kind is Type.FLOAT and isinstance(arg, ast.Variable) and types.get(arg.name) is not Type.FLOAT:
        return ast.Operation("+", (arg, ast.Constant(0.0)), arg.span)
    return arg


def _names(check: Step) -> frozenset[str]:
    assert isinstance(check, Filter)
    return variable_names(check.left) | variable_names(check.right)


def head_name(position: int) -> str:
    """Return the name under which a head column that is no plain variable enters the body."""
    return f"${position}"


def _head_types(rule: RulePlan, relations: Mapping[str, Relation]) -> dict[str, Type]:
    columns = relations[rule.relation].columns
    return {head_name(position): column.type for position, column in enumerate(columns)}
