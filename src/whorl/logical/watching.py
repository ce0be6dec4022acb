"""Calculations along a recursion that improves: they must not leave their range at the end where better values are.

A calculation without a value makes no row (ADR 2). Where a worse value has none, nothing is lost. Where a better one
has none, the worse one that it replaced would have led to a row, so that the answer would depend on which came first.
There the calculation is watched, and refuses the epoch: E512.

The *ways* of a variable are the directions in which its value may change while the recursion runs: -1 down, 1 up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from whorl.analysis.expressions import Functions, joint_ways
from whorl.logical.plan import Contribution, Extend, Filter, RulePlan, Step
from whorl.logical.steps import watched_last
from whorl.model.builtins import RANGED
from whorl.syntax import ast

Ways = frozenset[int]
SETTLED: Ways = frozenset()
EITHER: Ways = frozenset({-1, 1})


def watch_rule(rule: RulePlan, ways: Mapping[str, Ways], functions: Functions) -> RulePlan:
    """Watch all that a rule calculates from variables that may change; such steps come after the others."""
    known = dict(ways)
    steps: list[Step] = []
    for step in rule.steps:
        if isinstance(step, Extend):
            value = _watch(step.value, known)
            if isinstance(step.pattern, ast.Variable):
                known[step.pattern.name] = _ways(value, known)
            steps.append(replace(step, value=value))
        elif isinstance(step, Filter):
            steps.append(replace(step, left=_watch(step.left, known), right=_watch(step.right, known)))
        else:
            steps.append(step)
    args = tuple(
        replace(arg, value=_watch(arg.value, known)) if isinstance(arg, Contribution) else _watch(arg, known)
        for arg in rule.args
    )
    first, last = watched_last(steps, functions)
    return replace(rule, steps=(*first, *last), args=args)


def _watch(expr: ast.Expr, ways: Mapping[str, Ways]) -> ast.Expr:
    if isinstance(expr, ast.ListExpr):
        return replace(expr, items=tuple(_watch(item, ways) for item in expr.items))
    if not isinstance(expr, ast.Operation | ast.Call):
        return expr
    args = tuple(_watch(arg, ways) for arg in expr.args)
    ranged = isinstance(expr, ast.Operation) or expr.name in RANGED
    watched = tuple(_ways(arg, ways) for arg in args) if ranged else ()
    return replace(expr, args=args, watched=watched if any(watched) else ())


def _ways(expr: ast.Expr, ways: Mapping[str, Ways]) -> Ways:
    """Return the ways of an expression that keeps order: factors and divisors are not negative, and do not change."""
    if isinstance(expr, ast.Variable):
        return ways.get(expr.name, SETTLED)
    if not isinstance(expr, ast.Operation | ast.Call):
        return SETTLED
    return joint_ways(expr, [_ways(arg, ways) for arg in expr.args])
