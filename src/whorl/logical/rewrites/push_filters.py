"""Test conditions as soon as their variables are bound, and calculate just in time for that; what is watched last."""

from __future__ import annotations

from dataclasses import replace

from whorl.analysis.expressions import Functions
from whorl.logical.plan import AntiJoin, Extend, Filter, Lacks, LogicalPlan, RulePlan, SemiJoin, Step
from whorl.logical.steps import Names, rewrite_rules, step_binds, step_requires, watched_last, without_projections

_CONDITIONS = (Filter, Lacks, SemiJoin, AntiJoin, Extend)


def push_filters(plan: LogicalPlan) -> LogicalPlan:
    """Move every condition of every rule to the first place where it can be tested."""
    functions = plan.program.functions
    return rewrite_rules(plan, lambda rule: _push(rule, functions))


def _push(rule: RulePlan, functions: Functions) -> RulePlan:
    steps, late = watched_last(without_projections(rule.steps), functions)
    conditions: list[Step] = [step for step in steps if isinstance(step, _CONDITIONS)]
    bound: Names = frozenset()
    placed: list[Step] = []
    for step in steps:
        if isinstance(step, _CONDITIONS):
            continue
        bound = _place_ready(conditions, placed, bound, functions)
        placed.append(step)
        bound |= step_binds(step)
    _place_ready(conditions, placed, bound, functions)
    assert not conditions, "a rule that was safe before stays safe"
    return replace(rule, steps=(*placed, *late))


def _place_ready(conditions: list[Step], placed: list[Step], bound: Names, functions: Functions) -> Names:
    """Place every condition that can run, cheap ones first, until none is left that can."""
    progress = True
    while progress:
        progress = False
        ready = [step for step in conditions if step_requires(step, functions) <= bound]
        for step in sorted(ready, key=_cost):
            conditions.remove(step)
            placed.append(step)
            bound |= step_binds(step)
            progress = True
    return bound


def _cost(step: Step) -> int:
    return 0 if isinstance(step, Filter) else 1 if isinstance(step, Extend | Lacks) else 2
