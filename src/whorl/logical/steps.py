"""What a step needs and binds: the questions that every rewrite asks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from whorl.analysis.expressions import Functions, is_watched, needs
from whorl.analysis.program import parts, variable_names
from whorl.logical.plan import (
    AntiJoin,
    Contribution,
    Extend,
    Filter,
    Fixpoint,
    Join,
    Lacks,
    LogicalPlan,
    Project,
    RulePlan,
    SemiJoin,
    Step,
    Unnest,
)
from whorl.syntax import ast

Names = frozenset[str]


def names_of(exprs: tuple[ast.Expr, ...]) -> Names:
    """Return the variables of several expressions."""
    return frozenset().union(*(variable_names(expr) for expr in exprs))


def step_uses(step: Step) -> Names:
    """Return every variable that a step mentions."""
    return frozenset(step.columns) if isinstance(step, Project) else names_of(_expressions(step))


def asks_user(step: Step, functions: Functions) -> bool:
    """Whether a step calculates with a function of the user's, which may fail."""
    waiting = [] if isinstance(step, Project) else list(_expressions(step))
    while waiting:
        expr = waiting.pop()
        function = functions.get(expr.name) if isinstance(expr, ast.Call) else None
        if function is not None and function.user:
            return True
        waiting.extend(parts(expr))
    return False


def runs_late(step: Step) -> bool:
    """Whether a step calculates what is watched: it refuses the epoch only where all else holds."""
    return not isinstance(step, Project) and any(is_watched(expr) for expr in _expressions(step))


def watched_last(steps: Sequence[Step], functions: Functions) -> tuple[list[Step], list[Step]]:
    """Return the steps of a body that is in order, and those that are watched or need what those bind."""
    first: list[Step] = []
    bound: Names = frozenset()
    for step in steps:
        if not runs_late(step) and step_requires(step, functions) <= bound:
            first.append(step)
            bound |= step_binds(step)
    return first, [step for step in steps if step not in first]


def _expressions(step: Join | SemiJoin | AntiJoin | Filter | Extend | Unnest | Lacks) -> tuple[ast.Expr, ...]:
    if isinstance(step, Join | SemiJoin | AntiJoin):
        return step.args
    if isinstance(step, Filter):
        return step.left, step.right
    return (step.pattern, step.value) if isinstance(step, Extend) else (step.item, step.items)


def step_requires(step: Step, functions: Functions) -> Names:
    """Return the variables that must be bound before a step can run."""
    if isinstance(step, Join):
        return frozenset().union(*(needs(arg, functions) for arg in step.args))
    if isinstance(step, Extend):
        return variable_names(step.value) | needs(step.pattern, functions)
    if isinstance(step, Unnest):
        return variable_names(step.items) | needs(step.item, functions)
    return step_uses(step)


def step_binds(step: Step) -> Names:
    """Return the variables that are bound after a step, if they were not before."""
    if isinstance(step, Join):
        return names_of(step.args)
    if isinstance(step, Extend):
        return variable_names(step.pattern)
    return variable_names(step.item) if isinstance(step, Unnest) else frozenset()


def head_uses(rule: RulePlan) -> Names:
    """Return the variables that the head needs: for its columns, and to tell contributions apart."""
    used: set[str] = set(rule.assignment) if rule.aggregating else set()
    for arg in rule.args:
        if isinstance(arg, Contribution):
            used |= variable_names(arg.value) | names_of(arg.key or ())
        else:
            used |= variable_names(arg)
    return frozenset(used)


def rewrite_rules(plan: LogicalPlan, rewrite: Callable[[RulePlan], RulePlan | None]) -> LogicalPlan:
    """Rewrite every rule of a plan; None drops the rule."""
    return replace(plan, strata=tuple(_rewrite_stratum(stratum, rewrite) for stratum in plan.strata))


def _rewrite_stratum(stratum: Fixpoint, rewrite: Callable[[RulePlan], RulePlan | None]) -> Fixpoint:
    rules = tuple(new for rule in stratum.rules if (new := rewrite(rule)) is not None)
    return replace(stratum, rules=rules)


def without_projections(steps: tuple[Step, ...]) -> tuple[Step, ...]:
    """Return steps without their projections, which hold for one order only."""
    return tuple(step for step in steps if not isinstance(step, Project))


def used_after(rule: RulePlan, steps: tuple[Step, ...]) -> list[Names]:
    """Return, for each step, the variables that later steps or the head use."""
    later = [head_uses(rule)]
    for step in reversed(steps[1:]):
        later.append(later[-1] | step_uses(step))
    return later[::-1] if steps else []
