"""`whorl check`: what a program holds, and which strategy would maintain each stratum. Nothing runs."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from whorl.analysis.passes import PassTime, analyze
from whorl.analysis.program import Program
from whorl.analysis.report import report_json, report_text
from whorl.diagnostics.source import Source
from whorl.logical.lower import lower_program
from whorl.logical.rewrites import rewrite_plan
from whorl.model.functions import Function
from whorl.model.types import Type
from whorl.physical.lower import lower_plan
from whorl.physical.plan import PhysicalPlan, PhysicalStratum
from whorl.syntax.parser import parse_program

_PLANNED_UNASKED = 500  # rules; to plan many more takes as long as all other checks together


def check_program(
    source: Source, functions: Sequence[Function], strategy: str | None, *, as_json: bool, times: bool
) -> Iterator[str]:
    """Yield what is found, as lines for people or as one text for machines.

    Without a ``strategy`` it is auto, and a very large program is not planned.
    """
    spent: list[PassTime] = []
    with _no_collection():
        checked = analyze(parse_program(source), functions, times=spent)
        plan = None
        if strategy is not None or len(checked.rules) <= _PLANNED_UNASKED:
            plan = plan_strata(checked, strategy or "auto")
    if as_json:
        report = report_json(checked, None if plan is None else strategies_json(plan))
        if times:
            report["passes"] = [{"name": each.name, "seconds": each.seconds} for each in spent]
        yield json.dumps(report, indent=2)
        return
    unplanned = [f"not planned for more than {_PLANNED_UNASKED} rules; --strategy auto shows them"]
    yield report_text(checked, unplanned if plan is None else list(strategy_lines(plan)))
    if times:
        yield "Passes"
        yield from (f"  {each.seconds * 1000:7.2f} ms  {each.name}" for each in spent)


@contextmanager
def _no_collection() -> Iterator[None]:
    """Hold garbage collection off: trees and plans live to the end, and going through them again takes long."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def plan_strata(program: Program, strategy: str) -> PhysicalPlan:
    """Return the plan that a strategy gives; raise if it does not serve the program."""
    return lower_plan(rewrite_plan(lower_program(program)), strategy)


def strategy_lines(plan: PhysicalPlan) -> Iterator[str]:
    """Yield the strategy of each stratum of the plan and the reason; names are those of `whorl explain`."""
    for stratum in plan.strata:
        yield f"{', '.join(stratum.relations)}: {stratum.strategy} ({stratum.reason})"
        if stratum.arms:
            others = "".join(f", or {name}" for name in stratum.arms[1:])
            yield f"  each epoch: changes are followed{others}, or everything is derived again, whichever costs less"
        if _waits_for_types(stratum, plan):
            yield "  data that tells the types of its columns may change this"


def strategies_json(plan: PhysicalPlan) -> list[dict[str, object]]:
    """Return the same as plain data."""
    return [
        {
            "relations": list(stratum.relations),
            "kind": stratum.kind,
            "recursive": stratum.recursive,
            "strategy": stratum.strategy,
            "reason": stratum.reason,
            "arms": list(stratum.arms),
        }
        for stratum in plan.strata
    ]


def _waits_for_types(stratum: PhysicalStratum, plan: PhysicalPlan) -> bool:
    """Whether a stratum may be computed anew in each epoch only because its columns have no type yet."""
    columns = [column for name in stratum.relations for column in plan.relations[name].columns]
    return stratum.kind in ("reference", "totals") and any(column.type is Type.UNKNOWN for column in columns)
