"""Whorl itself, in this process, with one strategy.

Facts enter as columns of numbers, and the clock stops when the epoch is done: checking and encoding the facts is in,
turning the rows of the view into Python tuples is not, save with ``rows_out``. `engine` is the part of the CPU time
that maintaining took, without the way in and out. Slides follow each other without a break: what a window holds in
between is compared in a run before, since to read all of it leaves the next slide with empty caches. So they are
measured in a process that has had its memory for a while, as a stream's has.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import whorl
from whorl.bench.answer import Answer, answer_of
from whorl.bench.measure import Memory, Meter
from whorl.bench.outcome import Outcome, Steps
from whorl.bench.workload import Batch, Rules, Workload
from whorl.diagnostics.errors import UserError
from whorl.diagnostics.source import Source
from whorl.hosts.inprocess import InProcess
from whorl.logical.compile import compile_program
from whorl.logical.intake import Compile
from whorl.model.batch import Batch as Columns
from whorl.model.batch import Values
from whorl.model.delta import Epoch
from whorl.model.limits import Limits
from whorl.model.report import EpochReport
from whorl.model.types import Type
from whorl.physical.lower import lower_plan

_LIMITS = Limits(rounds=1_000_000, tuples=1_000_000_000)


def missing() -> str:
    """Whorl is always there."""
    return ""


def measure(workload: Workload, warm_up: Workload, variant: str, *, rows_out: bool) -> Outcome:
    """Measure one strategy."""
    reason = refusal(workload.rules, variant)
    if reason:
        return Outcome(skipped=reason)
    run = _hand_out if rows_out else _maintain
    run(warm_up, variant)
    return run(workload, variant)


def refusal(rules: Rules, strategy: str) -> str:
    """Say why a program does not admit a strategy, or nothing."""
    try:
        lower_plan(compile_program(Source(rules.name, rules.text)), strategy)
    except UserError as error:
        if error.code != "E402":
            raise
        return f"does not serve this program: {error.facts['reason']}"
    return ""


def compiler(rules: Rules, *, outputs: bool) -> Compile:
    """Return the program's compiler; without outputs nobody decodes the rows of the view."""
    source = Source(rules.name, rules.text)
    if outputs:
        return lambda types: compile_program(source, data_types=types)
    return lambda types: replace(compile_program(source, data_types=types), outputs=())


def build_epochs(workload: Workload) -> tuple[Epoch, ...]:
    """Return the batches as epochs of columns."""
    batches = (workload.load, *workload.steps)
    return tuple(Epoch(number, (), batch.time, batches=_columns(batch)) for number, batch in enumerate(batches, 1))


def _columns(batch: Batch) -> tuple[Columns, ...]:
    signed = ((batch.deletes, -1), (batch.inserts, 1))
    return tuple(
        Columns(name, tuple(Values(Type.INTEGER, np.ascontiguousarray(column)) for column in rows.T), len(rows), weight)
        for rows_of, weight in signed
        for name, rows in rows_of.items()
    )


def _maintain(workload: Workload, strategy: str) -> Outcome:
    epochs = build_epochs(workload)
    answers: dict[str, Answer] = {}
    if workload.load.time is not None:
        answers["slides"] = _slide_before(workload, strategy, epochs)
    host = InProcess(compiler(workload.rules, outputs=False), _LIMITS, strategy)
    memory = Memory.watch()
    with Meter() as load:
        report = host.commit(epochs[0])
    figures = {"load.cpu": load.cpu, "load.wall": load.wall}
    figures["load.engine"] = _engine(load, report)
    if memory is not None:
        figures["rss"] = memory.growth
    answers["load"] = _answer(host, workload.rules.view)
    if report.state_bytes is not None:
        figures["state"] = report.state_bytes
    steps = Steps()
    for batch, epoch in zip(workload.steps, epochs[1:], strict=True):
        with Meter() as spent:
            report = host.commit(epoch)
        probes = report.work.probes if report.work is not None else 0
        steps.add(batch.kind, cpu=spent.cpu, wall=spent.wall, engine=_engine(spent, report), probes=probes)
    if workload.steps:
        answers["end"] = _answer(host, workload.rules.view)
    return Outcome(figures | steps.figures(), answers, whorl.__version__)


def _slide_before(workload: Workload, strategy: str, epochs: tuple[Epoch, ...]) -> Answer:
    """Return what the window holds after each slide, all together."""
    host = InProcess(compiler(workload.rules, outputs=False), _LIMITS, strategy)
    host.commit(epochs[0])
    slides: Answer | None = None
    for epoch in epochs[1:]:
        host.commit(epoch)
        now = _answer(host, workload.rules.view)
        slides = now if slides is None else slides.plus(now)
    assert slides is not None, "a window slides"
    return slides


def _engine(spent: Meter, report: EpochReport) -> float:
    """Return the CPU time that maintaining took, by its share of the wall time: phases are told in wall time."""
    return spent.cpu * report.phases["maintain"] / report.seconds if report.seconds else spent.cpu


def _hand_out(workload: Workload, strategy: str) -> Outcome:
    host = InProcess(compiler(workload.rules, outputs=True), _LIMITS, strategy)
    (epoch,) = build_epochs(Workload(workload.rules, workload.load))
    with Meter() as spent:
        report = host.commit(epoch)
    figures = {"load.cpu": spent.cpu, "load.wall": spent.wall}
    rows = np.array(report.deltas[workload.rules.view].inserted, np.int64)
    return Outcome(figures, {"load": answer_of(rows)}, whorl.__version__)


def _answer(host: InProcess, view: str) -> Answer:
    """Return the answer from the kernel's own arrays: a fast way to see all rows."""
    relation = host.partition.state.relations[view]
    rows = relation.read(relation.alive())
    real = [at for at, kind in enumerate(relation.types) if kind is Type.FLOAT]
    whole = [at for at in range(relation.width) if at not in real]
    floats = np.ascontiguousarray(rows[:, real]).view(np.float64) if real else None
    return answer_of(rows[:, whole], floats)
