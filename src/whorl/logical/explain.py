"""A logical plan as text: a tree of strata, rules and steps."""

from __future__ import annotations

from collections.abc import Iterator

from whorl.logical.plan import Contribution, Fixpoint, LogicalPlan, RulePlan
from whorl.syntax.printer import print_expr


def explain_plan(plan: LogicalPlan) -> str:
    """Return the plan as an indented tree."""
    lines: list[str] = []
    for number, stratum in enumerate(plan.strata, 1):
        lines.extend(_stratum(number, stratum))
    for output in plan.outputs:
        args = ", ".join(print_expr(arg) for arg in output.args)
        lines.append(f"Output {output.name} = {output.relation}({args})")
    return "\n".join(lines)


def _stratum(number: int, stratum: Fixpoint) -> Iterator[str]:
    kind = "Once"
    if stratum.stages is not None:
        bound = f" up to {stratum.stages.bound}" if stratum.stages.bound is not None else ""
        kind = f"Stages{bound}"
    elif stratum.recursive:
        kind = "Fixpoint"
    yield f"{kind} {number}: {', '.join(stratum.relations)}"
    for selection in stratum.selections:
        yield f"  keep in {selection.relation}: {selection}"
    for rule in stratum.rules:
        yield from _rule(rule)


def _rule(rule: RulePlan) -> Iterator[str]:
    args = ", ".join(str(arg) if isinstance(arg, Contribution) else print_expr(arg) for arg in rule.args)
    line = f"  # line {rule.span.line}" if rule.span else ""
    yield f"  {rule.relation}({args}){line}"
    for step in rule.steps:
        yield f"    {step}"
