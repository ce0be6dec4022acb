"""Join first what is bound best: constants and bound variables narrow a relation, free ones widen the result."""

from __future__ import annotations

from dataclasses import replace

from whorl.analysis.expressions import Functions
from whorl.analysis.program import variable_names
from whorl.logical.plan import AntiJoin, Join, LogicalPlan, RulePlan, SemiJoin, Step
from whorl.logical.steps import rewrite_rules, runs_late, step_binds, step_requires, without_projections
from whorl.syntax import ast


def order_joins(plan: LogicalPlan) -> LogicalPlan:
    """Reorder the joins of every rule by how many of their arguments are bound."""
    functions = plan.program.functions
    return rewrite_rules(plan, lambda rule: order_rule(rule, functions))


def order_rule(rule: RulePlan, functions: Functions) -> RulePlan:
    """Order the steps of one rule."""
    return replace(rule, steps=order_steps(rule.steps, functions, frozenset()))


def order_steps(
    steps: tuple[Step, ...], functions: Functions, bound: frozenset[str], large: frozenset[str] = frozenset()
) -> tuple[Step, ...]:
    """Take the runnable join with most bound arguments each time, other steps as soon as they can run.

    Of joins that are bound alike, those with ``large`` relations come last. What is watched waits for all else.
    """
    waiting = list(without_projections(steps))
    ordered: list[Step] = []
    while waiting:
        ready = [step for step in waiting if step_requires(step, functions) <= bound]
        assert ready, "a rule that was safe before stays safe"
        chosen = min(ready, key=lambda step: (runs_late(step), _rank(step, bound, large)))
        waiting.remove(chosen)
        ordered.append(chosen)
        bound |= step_binds(chosen)
    return tuple(ordered)


def _rank(step: Step, bound: frozenset[str], large: frozenset[str]) -> tuple[int, int, int, int]:
    """Smaller is earlier: calculations and conditions, then the joins, best bound first, in the order of the text."""
    if not isinstance(step, Join):
        return (0, int(isinstance(step, SemiJoin | AntiJoin)), 0, 0)
    fixed = sum(1 for arg in step.args if _fixed(arg, bound))
    free = sum(1 for arg in step.args if not _fixed(arg, bound) and not isinstance(arg, ast.Anonymous))
    return (1, -fixed, free, int(step.relation in large))


def _fixed(arg: ast.Expr, bound: frozenset[str]) -> bool:
    return not isinstance(arg, ast.Anonymous) and variable_names(arg) <= bound
