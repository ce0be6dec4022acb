"""Whorl in partitions on a simulated network, with one strategy; for labels also how they are shipped.

All partitions run in this process, one after the other, so CPU time is that of all together. `clock` is the time that
messages took on the network, with nothing for the work in between; `spread` adds the CPU time divided by the number of
partitions, as if each had a core of its own and all had as much to do. Facts that are loaded in portions count as one
load. Of deletions the mean is shown: what many of them ship is what counts, and they differ much. State is what there
is at the end, after loading or after the last deletion.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from statistics import fmean

import numpy as np

import whorl
from whorl.bench.answer import Answer, answer_of
from whorl.bench.contestants.whorl import build_epochs, compiler, refusal
from whorl.bench.measure import Meter
from whorl.bench.outcome import Outcome
from whorl.bench.workload import Spread, Workload
from whorl.hosts.simulated.host import Simulated
from whorl.hosts.simulated.network import Conditions
from whorl.model.delta import Epoch
from whorl.model.limits import Limits
from whorl.model.report import EpochReport

_LIMITS = Limits(rounds=1_000_000, tuples=1_000_000)


def missing() -> str:
    """Whorl is always there."""
    return ""


def measure(workload: Workload, warm_up: Workload, variant: str, *, rows_out: bool) -> Outcome:
    """Measure a strategy such as `dred`, or `absorption eager`."""
    assert not rows_out, "rows stay in their partitions here"
    assert isinstance(workload, Spread), "partitions need a network"
    assert isinstance(warm_up, Spread), "partitions need a network"
    strategy = variant.split(maxsplit=1)[0]
    reason = refusal(workload.rules, strategy)
    if reason:
        return Outcome(skipped=reason)
    _run(warm_up, variant)
    return _run(workload, variant)


@dataclass(frozen=True, slots=True)
class _Cost:
    """What one epoch took."""

    rows: float
    bytes: float
    labels: float
    work: float
    clock: float
    cpu: float
    spread: float


def _run(workload: Spread, variant: str) -> Outcome:
    strategy, _, ship = variant.partition(" ")
    conditions = Conditions(latency=lambda sender, receiver: workload.latencies[sender][receiver])
    host = Simulated(
        compiler(workload.rules, outputs=False),
        workload.partitions,
        conditions,
        strategy=strategy,
        placement=workload.placement,
        ship=ship or "lazy",
        limits=_LIMITS,
    )
    kinds = [workload.load.kind, *(step.kind for step in workload.steps)]
    loads = len([kind for kind in kinds if kind == "load"])
    assert kinds[:loads] == ["load"] * loads, "facts are loaded before anything else happens"
    costs: list[_Cost] = []
    figures: dict[str, float] = {}
    answers: dict[str, Answer] = {}
    for number, epoch in enumerate(build_epochs(workload), 1):
        cost, report = _commit(host, epoch)
        costs.append(cost)
        changed = [f"{each.relations[0]}: {each.how}" for each in report.strata if "since labels" in each.how]
        if changed:
            return Outcome(failed=changed[0])
        if number == loads:
            figures = _load_figures(costs)
            answers["load"] = _answer(host, workload.rules.view)
        figures[f"{kinds[number - 1]}.state"] = float(report.state_bytes or 0)
    for kind in dict.fromkeys(kinds[loads:]):
        figures |= _step_figures(kind, [cost for cost, own in zip(costs, kinds, strict=True) if own == kind])
    if loads < len(kinds):
        answers["end"] = _answer(host, workload.rules.view)
    return Outcome(figures, answers, whorl.__version__)


def _commit(host: Simulated, epoch: Epoch) -> tuple[_Cost, EpochReport]:
    before = host.network.clock
    with Meter() as spent:
        report = host.commit(epoch)
    sent, work = report.shipped, report.work
    done = 0 if work is None else work.derivations + work.labels
    return _Cost(
        sum(each.rows for each in sent),
        sum(each.bytes for each in sent),
        sum(each.label_bytes for each in sent),
        done,
        clock := host.network.clock - before,
        spent.cpu,
        clock + spent.cpu / len(host.partitions),
    ), report


def _load_figures(costs: Iterable[_Cost]) -> dict[str, float]:
    return _figures("load", _Cost(*(sum(values) for values in zip(*map(_values, costs), strict=True))))


def _step_figures(kind: str, costs: Iterable[_Cost]) -> dict[str, float]:
    values = list(zip(*map(_values, costs), strict=True))
    return _figures(kind, _Cost(*map(fmean, values))) | {f"{kind}.worst": max(values[-2])}


def _values(cost: _Cost) -> tuple[float, ...]:
    return cost.rows, cost.bytes, cost.labels, cost.work, cost.clock, cost.cpu, cost.spread


def _figures(kind: str, cost: _Cost) -> dict[str, float]:
    return {
        f"{kind}.rows": cost.rows,
        f"{kind}.bytes": cost.bytes,
        f"{kind}.label": cost.labels / cost.rows if cost.rows else 0.0,
        f"{kind}.work": cost.work,
        f"{kind}.clock": cost.clock,
        f"{kind}.cpu": cost.cpu,
        f"{kind}.spread": cost.spread,
    }


def _answer(host: Simulated, view: str) -> Answer:
    """Return the answer from the arrays of the partitions that hold the view, each row once."""
    split = host.partition.plan.split_column(view) is not None
    holders = host.partitions if split else host.partitions[:1]
    relations = [partition.state.relations[view] for partition in holders]
    width = len(host.partition.plan.relations[view].columns)
    return answer_of(np.concatenate([each.read(each.alive())[:, :width] for each in relations]))
