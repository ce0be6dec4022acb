"""Compute what needs no data: `F = 2 * 3 + X` becomes `F = 6 + X`; a rule whose condition is always false goes."""

from __future__ import annotations

from dataclasses import replace

from whorl.analysis.expressions import Functions, compare, evaluate
from whorl.logical.plan import (
    AntiJoin,
    Contribution,
    Extend,
    Filter,
    Join,
    Lacks,
    LogicalPlan,
    Project,
    RulePlan,
    SemiJoin,
    Step,
    Unnest,
)
from whorl.logical.steps import rewrite_rules
from whorl.syntax import ast


class _Never(Exception):
    """The rule can never fire."""


def fold_constants(plan: LogicalPlan) -> LogicalPlan:
    """Fold constant expressions in every rule, and drop rules that can never fire."""
    functions = plan.program.functions

    def rewrite(rule: RulePlan) -> RulePlan | None:
        try:
            return _fold_rule(rule, functions)
        except _Never:
            return None

    return rewrite_rules(plan, rewrite)


def _fold_rule(rule: RulePlan, functions: Functions) -> RulePlan:
    steps = tuple(folded for step in rule.steps if (folded := _fold_step(step, functions)) is not None)
    args = tuple(_fold_head(arg, functions) for arg in rule.args)
    return replace(rule, steps=steps, args=args)


def _fold_head(arg: ast.Expr | Contribution, functions: Functions) -> ast.Expr | Contribution:
    if isinstance(arg, Contribution):
        return replace(arg, value=_fold(arg.value, functions))
    return _fold(arg, functions)


def _fold_step(step: Step, functions: Functions) -> Step | None:
    """Return the folded step; None if it always holds."""
    if isinstance(step, Join | SemiJoin | AntiJoin):
        return replace(step, args=tuple(_fold(arg, functions) for arg in step.args))
    if isinstance(step, Filter):
        left, right = _fold(step.left, functions), _fold(step.right, functions)
        if isinstance(left, ast.Constant) and isinstance(right, ast.Constant):
            if not compare(step.operator, left.value, right.value):
                raise _Never
            return None
        return Filter(step.operator, left, right)
    if isinstance(step, Extend):
        return Extend(step.pattern, _fold(step.value, functions))
    if isinstance(step, Unnest | Lacks):
        return replace(step, items=_fold(step.items, functions))
    assert isinstance(step, Project)
    return step


def _fold(expr: ast.Expr, functions: Functions) -> ast.Expr:
    """Replace constant parts by their values; where there is none, there is no assignment, also under a negation."""
    if isinstance(expr, ast.ListExpr):
        return replace(expr, items=tuple(_fold(item, functions) for item in expr.items))
    if not isinstance(expr, ast.Call | ast.Operation):
        return expr
    args = tuple(_fold(arg, functions) for arg in expr.args)
    folded = replace(expr, args=args)
    if not all(isinstance(arg, ast.Constant) for arg in args) or not _pure(expr, functions):
        return folded
    value = evaluate(folded, {}, functions)
    if value is None:
        raise _Never
    return ast.Constant(value, expr.span)


def _pure(expr: ast.Call | ast.Operation, functions: Functions) -> bool:
    """Operators and built-ins give the same value each time; a user's function is called when its rule runs."""
    if isinstance(expr, ast.Operation):
        return True
    return expr.name in functions and not functions[expr.name].user
