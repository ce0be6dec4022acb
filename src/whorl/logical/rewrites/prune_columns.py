"""Drop variables as soon as nobody needs them, so that equal bindings meet early.

Rules that sum, count or average are left alone: there every assignment of the body's variables counts.
"""

from __future__ import annotations

from dataclasses import replace

from whorl.logical.plan import Join, LogicalPlan, Project, RulePlan, Step, Unnest
from whorl.logical.steps import Names, rewrite_rules, step_binds, used_after, without_projections


def prune_columns(plan: LogicalPlan) -> LogicalPlan:
    """Project after each join to what later steps and the head use."""
    return rewrite_rules(plan, _prune)


def _prune(rule: RulePlan) -> RulePlan:
    if rule.aggregating:
        return rule
    steps = without_projections(rule.steps)
    bound: Names = frozenset()
    out: list[Step] = []
    for step, needed in zip(steps, used_after(rule, steps), strict=True):
        out.append(step)
        bound |= step_binds(step)
        kept = bound & needed
        if isinstance(step, Join | Unnest) and kept < bound and step is not steps[-1]:
            out.append(Project(tuple(sorted(kept))))
            bound = kept
    return replace(rule, steps=tuple(out))
