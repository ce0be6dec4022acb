"""XY-stratification: recursion through negation or aggregates that climbs a stage argument.

A stratum is staged when each of its relations has a column, the stage, such that every rule refers to its own stage or
to lower ones, at least one reference is to the same stage or the one just below, and inside one stage negation and
aggregation do not depend on themselves. The stages are then the strata, and there is exactly one model.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product

from whorl.analysis.draft import Draft
from whorl.analysis.graph import components
from whorl.analysis.program import Compare, Rule, Stages
from whorl.model.types import Type
from whorl.syntax import ast

MAX_CHOICES = 5_000
_UPPER = {"<": -1, "<=": 0}
_LOWER = {">": -1, ">=": 0}


def find_stages(members: tuple[str, ...], rules: tuple[Rule, ...], draft: Draft) -> Stages | None:
    """Return the stage column of each relation, or None if there is no choice that works."""
    for number, choice in enumerate(_choices(members, draft)):
        if number >= MAX_CHOICES:
            return None
        stages = _try(dict(zip(members, choice, strict=True)), members, rules, draft)
        if stages is not None:
            return stages
    return None


def _choices(members: tuple[str, ...], draft: Draft) -> Iterator[tuple[int, ...]]:
    candidates = []
    for name in members:
        relation = draft.relations[name]
        candidates.append(
            [
                position
                for position, column in enumerate(relation.columns)
                if column.type in (Type.INTEGER, Type.UNKNOWN) and position not in relation.aggregates
            ]
        )
    return product(*candidates)


def _try(columns: dict[str, int], members: tuple[str, ...], rules: tuple[Rule, ...], draft: Draft) -> Stages | None:
    same: dict[str, set[str]] = {name: set() for name in members}
    strict: set[tuple[str, str]] = set()
    for rule in rules:
        inside = [(atom, positive) for atom, positive in rule.atoms() if atom.relation in columns]
        if not inside:
            continue
        steps = [_step(rule, atom, columns) for atom, _positive in inside]
        if any(step is None for step in steps) or not _climbs(inside, steps):
            return None
        for (atom, positive), step in zip(inside, steps, strict=True):
            if step == 0:
                same[rule.head.relation].add(atom.relation)
                if not positive or rule.aggregates:
                    strict.add((rule.head.relation, atom.relation))
    layers = components(same)
    place = {name: index for index, layer in enumerate(layers) for name in layer}
    if any(place[head] == place[body] for head, body in strict):
        return None
    return Stages(columns, tuple(layers), _bound(columns, members, draft))


def _climbs(inside: list[tuple[ast.Atom, bool]], steps: list[int | None]) -> bool:
    """One positive atom must fix the stage: the head's own, or the one below."""
    return any(positive and step in (0, -1) for (_atom, positive), step in zip(inside, steps, strict=True))


def _step(rule: Rule, atom: ast.Atom, columns: dict[str, int]) -> int | None:
    """Return how far below the head's stage an atom looks: 0, -1, or -2 for any lower one; None if not at all."""
    head_arg = rule.head.args[columns[rule.head.relation]]
    assert not isinstance(head_arg, ast.Aggregate)
    head = _linear(head_arg, rule)
    body = _linear(atom.args[columns[atom.relation]], rule)
    if head is None or body is None:
        return None
    (head_name, head_offset), (body_name, body_offset) = head, body
    if head_name == body_name:
        difference = body_offset - head_offset
        return difference if difference in (0, -1) else None
    for limit in _limits(rule, body_name, head_name):
        if limit + body_offset < head_offset:
            return -2
    return None


def _linear(expr: ast.Expr, rule: Rule) -> tuple[str, int] | None:
    """Return an expression as a variable plus a number, looking through equations such as `J1 = J + 1`."""
    if isinstance(expr, ast.Variable):
        for literal in rule.body:
            if isinstance(literal, Compare) and literal.operator == "=":
                for own, other in ((literal.left, literal.right), (literal.right, literal.left)):
                    if own == expr and isinstance(other, ast.Operation):
                        return _offset(other)
        return expr.name, 0
    return _offset(expr) if isinstance(expr, ast.Operation) else None


def _offset(expr: ast.Operation) -> tuple[str, int] | None:
    if len(expr.args) != 2 or expr.operator not in ("+", "-"):
        return None
    left, right = expr.args
    if expr.operator == "+" and isinstance(left, ast.Constant):
        left, right = right, left
    if isinstance(left, ast.Variable) and isinstance(right, ast.Constant) and type(right.value) is int:
        return left.name, right.value if expr.operator == "+" else -right.value
    return None


def _limits(rule: Rule, small: str, large: str) -> Iterator[int]:
    """Yield c for every condition that says small <= large + c."""
    for literal in rule.body:
        if not isinstance(literal, Compare):
            continue
        left, right = _linear(literal.left, rule), _linear(literal.right, rule)
        if left is None or right is None:
            continue
        if left[0] == small and right[0] == large and literal.operator in _UPPER:
            yield right[1] - left[1] + _UPPER[literal.operator]
        if left[0] == large and right[0] == small and literal.operator in _LOWER:
            yield left[1] - right[1] + _LOWER[literal.operator]


def _bound(columns: dict[str, int], members: tuple[str, ...], draft: Draft) -> int | None:
    """Return the highest stage that anybody asks for, None if somebody may see all."""
    highest: int | None = None
    for query in draft.queries:
        if query.relation in columns:
            stage = _constant(query.args[columns[query.relation]])
            if stage is None:
                return None
            highest = stage if highest is None else max(highest, stage)
    for rule in draft.rules:
        if rule.head.relation in members:
            continue
        for atom, _positive in rule.atoms():
            if atom.relation in columns:
                stage = _constant(atom.args[columns[atom.relation]])
                if stage is None:
                    return None
                highest = stage if highest is None else max(highest, stage)
    return highest


def _constant(expr: ast.Expr) -> int | None:
    return expr.value if isinstance(expr, ast.Constant) and type(expr.value) is int else None
