"""`whorl replay`: apply the epochs of a file one after the other."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from whorl.cli.reports import epoch_lines, report_json
from whorl.diagnostics.errors import ProgramErrors, UserError
from whorl.diagnostics.source import Source, line_span
from whorl.hosts.verified import Host, Verified
from whorl.logical.compile import compile_program
from whorl.logical.intake import Compile, DataTypes
from whorl.logical.plan import LogicalPlan
from whorl.model.delta import Delta
from whorl.model.functions import Function
from whorl.model.limits import Limits
from whorl.model.report import EpochReport
from whorl.model.values import LIST, Term, Value, format_value
from whorl.oracle.session import Oracle
from whorl.syntax.deltas import format_deltas, format_header, parse_deltas


def replay_epochs(
    program: Source,
    deltas: Source,
    functions: Sequence[Function],
    limits: Limits,
    without: Sequence[str],
    strategy: str = "auto",
    partitions: int = 1,
    placement: str = "auto",
    *,
    verify: bool = False,
    as_json: bool,
    report: bool,
) -> Iterator[str]:
    """Yield the lines of the output, epoch by epoch."""
    epochs = parse_deltas(deltas)

    def compile_plan(types: DataTypes) -> LogicalPlan:
        return compile_program(program, functions, types, without=without)

    host = _open(compile_plan, limits, strategy, partitions, placement, verify=verify)
    for epoch in epochs:
        try:
            result = host.commit(epoch)
        except (UserError, ProgramErrors) as refused:
            for error in refused.errors if isinstance(refused, ProgramErrors) else (refused,):
                error.epoch = epoch.number
                error.span = error.span or line_span(deltas, error.line or epoch.line)
            raise
        if as_json:
            yield json.dumps(_to_json(result))
            continue
        yield format_header(result.number, result.time)
        yield from format_deltas(result.deltas)
        if report:
            yield from (f"# {line}" for line in epoch_lines(result))


def _open(
    compile_plan: Compile, limits: Limits, strategy: str, partitions: int, placement: str, *, verify: bool
) -> Host:
    """Return who maintains the views. The kernel is loaded only now, and only if it is needed."""
    if strategy == "reference":
        return Oracle(compile_plan, limits)
    from whorl.cli.compiling import load_kernel

    load_kernel()
    from whorl.hosts.inprocess import InProcess

    host = InProcess(compile_plan, limits, strategy, partitions, placement)
    return Verified(host, compile_plan, limits) if verify else host


def _to_json(result: EpochReport) -> dict[str, object]:
    return {
        "epoch": result.number,
        "time": result.time,
        "changes": {view: _delta_json(delta) for view, delta in sorted(result.deltas.items())},
    } | report_json(result)


def _delta_json(delta: Delta) -> dict[str, list[list[object]]]:
    return {
        "inserted": [[_value_json(value) for value in row] for row in delta.inserted],
        "deleted": [[_value_json(value) for value in row] for row in delta.deleted],
    }


def _value_json(value: Value) -> object:
    if isinstance(value, Term):
        return [_value_json(arg) for arg in value.args] if value.name == LIST else format_value(value)
    return value
