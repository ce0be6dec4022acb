"""Aggregates in recursion: when rules may see a value that may still improve.

While a recursion runs, an aggregated value only improves: a minimum falls, a maximum, a sum of non-negative
contributions or a count rises. Rules may read it early if all they do with it is monotone: a better value in gives a
better value out, and a condition that holds once holds from then on. Then the fixpoint is the same whatever the order,
and `min` and `max` may be pushed into the recursion.

Each variable has a *trend*: -1 if its value may fall, 1 if it may rise, 0 if it is settled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from whorl.analysis.draft import Draft
from whorl.analysis.program import (
    MONOTONE_SPELLINGS,
    Compare,
    Rule,
    expressions,
    variable_names,
    variables,
)
from whorl.analysis.signs import NONNEGATIVE, POSITIVE, Signs, expr_sign, variable_signs
from whorl.diagnostics.source import Span
from whorl.syntax import ast


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why an aggregate may not stand in a recursion. `declared` if the program called it monotone."""

    relation: str
    function: str
    reason: str
    span: Span | None
    declared: bool


class _NotMonotone(Exception):
    """The reason, at a place."""

    def __init__(self, reason: str, span: Span | None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.span = span


def check_monotone(
    members: tuple[str, ...], rules: tuple[Rule, ...], draft: Draft, signs: Signs
) -> Refusal | list[tuple[Rule, dict[str, int]]]:
    """Return the trends of each rule, where there are any, or the reason to refuse."""
    found: list[tuple[Rule, dict[str, int]]] = []
    for rule in rules:
        inside = [atom for atom, _ in rule.atoms() if atom.relation in members]
        if not inside:
            continue
        try:
            context = _context(rule, signs, draft)
            trends = _trends(rule, set(members), draft, context)
            _check_head(rule, trends, context)
        except _NotMonotone as refused:
            return _refusal(rule, inside, refused, draft)
        moving = {name: trend for name, trend in trends.items() if trend}
        if moving:
            found.append((rule, moving))
    return found


def _refusal(rule: Rule, inside: list[ast.Atom], refused: _NotMonotone, draft: Draft) -> Refusal:
    relation = rule.head.relation
    if not draft.relations[relation].aggregates:
        relation = next(a.relation for a in inside if draft.relations[a.relation].aggregates)
    spellings = [
        aggregate.function
        for other in draft.rules
        if other.head.relation == relation
        for aggregate in other.aggregates.values()
    ]
    declared = any(name in MONOTONE_SPELLINGS for name in spellings)
    return Refusal(relation, spellings[0], refused.reason, refused.span or rule.span, declared)


@dataclass(frozen=True, slots=True)
class _Context:
    """What is known of a rule's variables; `trusted` if the program itself calls its aggregate monotone."""

    signs: Mapping[str, int]
    trusted: bool

    def nonnegative(self, expr: ast.Expr) -> bool:
        return expr_sign(expr, self.signs) in (POSITIVE, NONNEGATIVE)

    def weight(self, expr: ast.Expr) -> bool:
        """Whether multiplying by it keeps the order: not negative, or trusted not to be."""
        return self.nonnegative(expr) or (self.trusted and not isinstance(expr, ast.Constant))


def _context(rule: Rule, signs: Signs, draft: Draft) -> _Context:
    trusted = any(aggregate.function in MONOTONE_SPELLINGS for aggregate in rule.aggregates.values())
    return _Context(variable_signs(rule, signs, draft), trusted)


def _direction(function: str) -> int:
    return -1 if MONOTONE_SPELLINGS.get(function, function) == "min" else 1


def _trends(rule: Rule, members: set[str], draft: Draft, context: _Context) -> dict[str, int]:
    occurrences = Counter(variable.name for atom, _ in rule.atoms() for arg in atom.args for variable in variables(arg))
    trends: dict[str, int] = {}
    for atom, positive in rule.atoms():
        for position, arg in enumerate(atom.args):
            function = draft.relations[atom.relation].aggregates.get(position)
            if atom.relation not in members or function is None or isinstance(arg, ast.Anonymous):
                continue
            if not isinstance(arg, ast.Variable) or not positive:
                reason = f'the value of "{atom.relation}" is compared for equality while it may still change'
                raise _NotMonotone(reason, arg.span or atom.span)
            if occurrences[arg.name] > 1:
                reason = f'"{arg.name}" is joined on while its value may still change'
                raise _NotMonotone(reason, arg.span)
            trends[arg.name] = _direction(function)
    if trends:
        _follow(rule, trends, context)
    return trends


def _follow(rule: Rule, trends: dict[str, int], context: _Context) -> None:
    """Carry trends through the equations of a body, which is in a safe order, and check its conditions."""
    bound = {name for atom, positive in rule.atoms() if positive for arg in atom.args for name in variable_names(arg)}
    for literal in rule.body:
        if isinstance(literal, Compare):
            _follow_compare(literal, trends, bound, context)
            continue
        for expr in expressions(literal):
            plain = isinstance(literal, ast.Atom) and isinstance(expr, ast.Variable)
            if not plain and any(trends.get(name) for name in variable_names(expr)):
                raise _NotMonotone("a value that may still change is matched here", literal.span)


def _follow_compare(literal: Compare, trends: dict[str, int], bound: set[str], context: _Context) -> None:
    left, right = (_trend(side, trends, context) for side in (literal.left, literal.right))
    if literal.operator == "=":
        for own, other in ((literal.left, right), (literal.right, left)):
            if isinstance(own, ast.Variable) and own.name not in bound:
                bound.add(own.name)
                if other is None:
                    raise _NotMonotone("this calculation does not keep the order of its input", literal.span)
                trends[own.name] = other
                return
    moving = {left, right} - {0}
    if not moving:
        bound |= variable_names(literal.left) | variable_names(literal.right)
        return
    fits = {"<": (-1, 1), "<=": (-1, 1), ">": (1, -1), ">=": (1, -1)}.get(literal.operator)
    if fits is None or left not in (0, fits[0]) or right not in (0, fits[1]):
        reason = f'the condition "{literal.span.text if literal.span else literal.operator}" may hold and then fail'
        raise _NotMonotone(reason, literal.span)


def _trend(expr: ast.Expr, trends: Mapping[str, int], context: _Context) -> int | None:
    """Return the trend of an expression, None if it may go either way."""
    names = variable_names(expr)
    if not any(trends.get(name) for name in names):
        return 0
    if isinstance(expr, ast.Variable):
        return trends[expr.name]
    if isinstance(expr, ast.Operation):
        return _operation_trend(expr, trends, context)
    if isinstance(expr, ast.Call) and expr.name in ("min", "max", "floor", "ceil", "round", "to_float", "sqrt"):
        return _join([_trend(arg, trends, context) for arg in expr.args])
    return None


def _operation_trend(expr: ast.Operation, trends: Mapping[str, int], context: _Context) -> int | None:
    args = [_trend(arg, trends, context) for arg in expr.args]
    if expr.operator == "+":
        return _join(args)
    if expr.operator == "-":
        last = args[-1]
        return _join([*args[:-1], None if last is None else -last])
    if expr.operator in ("*", "/") and len(args) == 2:
        left, right = expr.args
        if args[1] == 0 and context.weight(right):
            return args[0]
        if expr.operator == "*" and args[0] == 0 and context.weight(left):
            return args[1]
    return None


def _join(trends: list[int | None]) -> int | None:
    if None in trends:
        return None
    moving = set(trends) - {0}
    if not moving:
        return 0
    return moving.pop() if len(moving) == 1 else None


def _check_head(rule: Rule, trends: dict[str, int], context: _Context) -> None:
    aggregates = rule.aggregates
    for position, arg in enumerate(rule.head.args):
        if position in aggregates:
            _check_aggregate(aggregates[position], trends, context)
        elif any(trends.get(name) for name in variable_names(arg)):
            reason = f'a value that may still change is copied into a column of "{rule.head.relation}"'
            raise _NotMonotone(reason, arg.span)


def _check_aggregate(aggregate: ast.Aggregate, trends: dict[str, int], context: _Context) -> None:
    if aggregate.function == "avg":
        raise _NotMonotone("an average may rise and fall as values arrive", aggregate.span)
    *keys, value = aggregate.args
    if any(trends.get(name) for key in keys for name in variable_names(key)):
        raise _NotMonotone("the key may still change", aggregate.span)
    counting = MONOTONE_SPELLINGS.get(aggregate.function, aggregate.function) == "count" and not keys
    trend = _trend(value, trends, context)
    if counting:
        if aggregate.distinct and trend != 0:
            raise _NotMonotone("the values counted may still change", aggregate.span)
        return
    if trend not in (0, _direction(aggregate.function)):
        better = "fall" if _direction(aggregate.function) < 0 else "rise"
        reason = f"when the value it comes from {better}s, its input does not {better} with it"
        raise _NotMonotone(reason, aggregate.span)
    if aggregate.function == "sum" and not context.nonnegative(value):
        reason = "its contributions may be negative, so the sum may rise and fall"
        raise _NotMonotone(reason, aggregate.span)
