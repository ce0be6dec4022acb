"""`whorl replay`: apply the epochs of a file one after the other."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Protocol

from whorl.diagnostics.errors import ProgramErrors, UserError
from whorl.diagnostics.source import Source, line_span
from whorl.logical.compile import compile_program
from whorl.logical.intake import Compile
from whorl.model.delta import Delta, Epoch
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
    strategy: str = "reference",
    *,
    as_json: bool,
    report: bool,
) -> Iterator[str]:
    """Yield the lines of the output, epoch by epoch."""
    epochs = parse_deltas(deltas)
    host = _open(lambda types: compile_program(program, functions, types, without=without), limits, strategy)
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
            yield f"# {_report(result)}"


class Host(Protocol):
    """Whoever maintains the views."""

    def commit(self, epoch: Epoch) -> EpochReport:
        """Apply one epoch."""


def _open(compile_plan: Compile, limits: Limits, strategy: str) -> Host:
    if strategy == "reference":
        return Oracle(compile_plan, limits)
    from whorl.hosts.inprocess import InProcess

    return InProcess(compile_plan, limits, strategy)


def _report(result: EpochReport) -> str:
    counts = result.counts
    out = sum(len(delta.inserted) + len(delta.deleted) for delta in result.deltas.values())
    parts = [f"{counts.inserted} inserted", f"{counts.deleted} deleted"]
    for name in ("refreshed", "absent", "late", "expired"):
        if getattr(counts, name):
            parts.append(f"{getattr(counts, name)} {name}")
    return f"epoch {result.number}: {', '.join(parts)}; {out} changes out; {result.seconds * 1000:.1f} ms"


def _to_json(result: EpochReport) -> dict[str, object]:
    return {
        "epoch": result.number,
        "time": result.time,
        "changes": {view: _delta_json(delta) for view, delta in sorted(result.deltas.items())},
        "input": {name: getattr(result.counts, name) for name in result.counts.__slots__},
        "seconds": result.seconds,
    }


def _delta_json(delta: Delta) -> dict[str, list[list[object]]]:
    return {
        "inserted": [[_value_json(value) for value in row] for row in delta.inserted],
        "deleted": [[_value_json(value) for value in row] for row in delta.deleted],
    }


def _value_json(value: Value) -> object:
    if isinstance(value, Term):
        return [_value_json(arg) for arg in value.args] if value.name == LIST else format_value(value)
    return value
