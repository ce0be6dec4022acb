"""Which columns can never be negative: what makes a sum in recursion monotone.

Start by believing every derived column positive, and give beliefs up until the rules contradict none.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Mapping

from whorl.analysis.draft import Draft
from whorl.analysis.program import MONOTONE_SPELLINGS, Compare, Rule
from whorl.syntax import ast

POSITIVE, NONNEGATIVE, ANY = 2, 1, 0
Signs = Mapping[tuple[str, int], int]

_NONNEGATIVE_FUNCTIONS = frozenset({"abs", "sqrt", "distance", "dist", "length", "strlen"})


def infer_signs(draft: Draft) -> Signs:
    """Return the sign of every derived column."""
    signs = {
        (name, position): POSITIVE
        for name, relation in draft.relations.items()
        if not relation.base
        for position in range(len(relation.columns))
    }
    readers: dict[str, list[Rule]] = defaultdict(list)
    for rule in draft.rules:
        for name in {atom.relation for atom, _positive in rule.atoms()}:
            readers[name].append(rule)
    waiting = deque(draft.rules)
    while waiting:
        rule = waiting.popleft()
        env = variable_signs(rule, signs, draft)
        for position, arg in enumerate(rule.head.args):
            key = (rule.head.relation, position)
            sign = _aggregate_sign(arg, env) if isinstance(arg, ast.Aggregate) else expr_sign(arg, env)
            if sign < signs[key]:
                signs[key] = sign
                waiting.extend(readers[rule.head.relation])
    return signs


def variable_signs(rule: Rule, signs: Signs, draft: Draft) -> dict[str, int]:
    """Return the sign of each variable of a rule."""
    env: dict[str, int] = {}
    for atom, positive in rule.atoms():
        for position, arg in enumerate(atom.args):
            if positive and isinstance(arg, ast.Variable):
                env[arg.name] = max(env.get(arg.name, ANY), signs.get((atom.relation, position), ANY))
    for literal in rule.body:
        if isinstance(literal, Compare):
            _learn(literal, env)
    return env


def _learn(literal: Compare, env: dict[str, int]) -> None:
    flipped = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
    for operator, own, other in (
        (literal.operator, literal.left, literal.right),
        (flipped.get(literal.operator, ""), literal.right, literal.left),
    ):
        if not isinstance(own, ast.Variable):
            continue
        sign = expr_sign(other, env)
        if operator == ">" and sign >= NONNEGATIVE:
            sign = POSITIVE
        if operator in (">", ">=", "="):
            env[own.name] = max(env.get(own.name, ANY), sign)


def _aggregate_sign(aggregate: ast.Aggregate, env: Mapping[str, int]) -> int:
    function = MONOTONE_SPELLINGS.get(aggregate.function, aggregate.function)
    if function == "count" and len(aggregate.args) == 1:
        return POSITIVE
    return expr_sign(aggregate.args[-1], env)


def expr_sign(expr: ast.Expr, env: Mapping[str, int]) -> int:
    """Return the sign of an expression, given those of its variables."""
    if isinstance(expr, ast.Constant):
        if isinstance(expr.value, bool | str) or not isinstance(expr.value, int | float):
            return ANY
        return POSITIVE if expr.value > 0 else NONNEGATIVE if expr.value == 0 else ANY
    if isinstance(expr, ast.Variable):
        return env.get(expr.name, ANY)
    if isinstance(expr, ast.Operation):
        return _operation_sign(expr, [expr_sign(arg, env) for arg in expr.args])
    if isinstance(expr, ast.Call):
        args = [expr_sign(arg, env) for arg in expr.args]
        if expr.name in _NONNEGATIVE_FUNCTIONS:
            return NONNEGATIVE
        if expr.name in ("min", "max"):
            return max(args) if expr.name == "max" else min(args)
    return ANY


def _operation_sign(expr: ast.Operation, args: list[int]) -> int:
    if len(args) == 1 or ANY in args:
        square = expr.operator in ("*", "^") and len(args) == 2 and expr.args[0] == expr.args[1]
        return NONNEGATIVE if square and expr.operator == "*" else ANY
    if expr.operator == "+":
        return max(args)
    if expr.operator == "*":
        return min(args)
    return NONNEGATIVE if expr.operator in ("/", "%", "^") else ANY
