"""Where a join's new variables are never used again, ask only whether a row exists."""

from __future__ import annotations

from dataclasses import replace

from whorl.analysis.program import variables
from whorl.logical.plan import Join, LogicalPlan, RulePlan, SemiJoin, Step
from whorl.logical.steps import Names, rewrite_rules, step_binds, used_after, without_projections
from whorl.syntax import ast


def join_as_semijoin(plan: LogicalPlan) -> LogicalPlan:
    """Turn joins into semi-joins where that loses nothing."""
    return rewrite_rules(plan, _rewrite)


def _rewrite(rule: RulePlan) -> RulePlan:
    steps = without_projections(rule.steps)
    bound: Names = frozenset()
    out: list[Step] = []
    for step, needed in zip(steps, used_after(rule, steps), strict=True):
        out.append(_narrow(step, bound, needed))
        bound |= step_binds(step)
    return replace(rule, steps=tuple(out))


def _narrow(step: Step, bound: Names, used_later: Names) -> Step:
    if not isinstance(step, Join):
        return step
    new = step_binds(step) - bound
    if new & used_later:
        return step
    # A new variable that stands twice, or inside a pattern, still restricts the row: keep such joins as they are.
    occurrences = [variable.name for arg in step.args for variable in variables(arg)]
    plain = {arg.name for arg in step.args if isinstance(arg, ast.Variable)}
    if any(occurrences.count(name) > 1 or name not in plain for name in new):
        return step
    args = tuple(
        ast.Anonymous(arg.span) if isinstance(arg, ast.Variable) and arg.name in new else arg for arg in step.args
    )
    return SemiJoin(step.relation, args)
