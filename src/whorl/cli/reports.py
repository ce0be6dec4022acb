"""Reports of epochs, for people and for machines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict

from whorl.model.report import EpochReport, InputCounts, Shipment, StratumCost, Work

_WORK = {
    "rounds": "rounds",
    "derivations": "derivations",
    "probes": "probes",
    "matches": "matches",
    "labels": "label updates",
}


def epoch_lines(report: EpochReport) -> list[str]:
    """Return what an epoch did, and below it what it cost."""
    out = sum(len(delta.inserted) + len(delta.deleted) for delta in report.deltas.values())
    head = f"epoch {report.number}: {counts_text(report.counts)}; {out} changes out; {report.seconds * 1000:.1f} ms"
    if report.work is None:
        return [head]
    parts = [work_text(report.work)]
    if report.state_bytes is not None:
        parts.append(f"state {bytes_text(report.state_bytes)}")
    parts.append(", ".join(f"{name} {seconds * 1000:.1f} ms" for name, seconds in report.phases.items()))
    lines = [head, "  " + "; ".join(part for part in parts if part)]
    lines += [f"  {_stratum(each)}" for each in report.strata]
    return lines + [f"  {line}" for line in shipped_lines(report.shipped)]


def shipped_lines(shipped: Sequence[Shipment]) -> list[str]:
    """Return what partitions sent each other, channel by channel."""
    totals: dict[str, list[int]] = {}
    for each in shipped:
        total = totals.setdefault(each.channel, [0, 0, 0, 0])
        for at, more in enumerate((each.rows, each.bytes, each.label_bytes, 1)):
            total[at] += more
    return [
        f"{channel}: {rows} rows shipped between {pairs} pair{'' if pairs == 1 else 's'} of partitions, "
        f"{bytes_text(size)}" + (f", {bytes_text(labels)} of them labels" if labels else "")
        for channel, (rows, size, labels, pairs) in totals.items()
    ]


def _stratum(cost: StratumCost) -> str:
    """Return how a stratum was brought up to date."""
    how = f"{cost.strategy}, {cost.how}" if cost.how else cost.strategy
    predicted = "" if cost.predicted is None else f", predicted {cost.predicted * 1000:.1f} ms"
    return f"{', '.join(cost.relations)}: {how}; {cost.actual * 1000:.1f} ms{predicted}"


def counts_text(counts: InputCounts) -> str:
    """Return what happened to the input."""
    parts = [f"{counts.inserted} inserted", f"{counts.deleted} deleted"]
    for name in ("refreshed", "absent", "late", "expired"):
        if getattr(counts, name):
            parts.append(f"{getattr(counts, name)} {name}")
    return ", ".join(parts)


def work_text(work: Work) -> str:
    """Return what maintaining the views took; what deletion did only where there was any."""
    parts = [f"{getattr(work, field)} {name}" for field, name in _WORK.items()]
    if work.doubted:
        parts.append(f"{work.doubted} doubted, {work.fallen} fallen, {work.returned} returned")
    return ", ".join(parts)


def bytes_text(count: int) -> str:
    """Return a number of bytes in a unit that reads well."""
    size = float(count)
    for unit in ("bytes", "kB", "MB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} GB"


def report_json(report: EpochReport) -> dict[str, object]:
    """Return the costs of an epoch as plain data."""
    return {
        "input": asdict(report.counts),
        "seconds": report.seconds,
        "work": None if report.work is None else asdict(report.work),
        "phases": dict(report.phases),
        "state_bytes": report.state_bytes,
        "strata": [asdict(cost) for cost in report.strata],
        "shipped": [asdict(each) for each in report.shipped],
    }


class Totals:
    """The reports of many epochs, added up."""

    def __init__(self) -> None:
        self.epochs = 0
        self.counts = InputCounts()
        self.work: Work | None = None
        self.phases: dict[str, float] = {}
        self.state_bytes: int | None = None
        self.changes: dict[str, int] = {}

    def add(self, report: EpochReport) -> None:
        """Add one epoch."""
        self.epochs += 1
        self.counts.add(report.counts)
        if report.work is not None:
            self.work = self.work or Work()
            self.work.add(report.work)
        self.spend(report.phases or {"evaluate": report.seconds})
        self.state_bytes = report.state_bytes
        for view, delta in report.deltas.items():
            self.changes[view] = self.changes.get(view, 0) + len(delta.inserted) + len(delta.deleted)

    def spend(self, phases: Mapping[str, float]) -> None:
        """Add the time of some phases."""
        for name, seconds in phases.items():
            self.phases[name] = self.phases.get(name, 0.0) + seconds

    def lines(self, rows_in: int, rows_out: Mapping[str, int], order: Iterable[str]) -> list[str]:
        """Return the summary of a run."""
        views = [f"{view} {count} rows, {self.changes.get(view, 0)} changes" for view, count in rows_out.items()]
        spent = [f"{name} {self.phases[name]:.2f} s" for name in order if name in self.phases]
        lines = [
            f"in     {rows_in} rows, {self.epochs} epoch{'' if self.epochs == 1 else 's'}: {counts_text(self.counts)}",
            f"out    {'; '.join(views) or 'no view'}",
            f"time   {', '.join(spent)}",
        ]
        if self.work is not None:
            lines.insert(2, f"work   {work_text(self.work)}")
        if self.state_bytes is not None:
            lines.insert(-1, f"state  {bytes_text(self.state_bytes)}")
        return lines

    def to_json(self, rows_in: int, rows_out: Mapping[str, int]) -> dict[str, object]:
        """Return the summary as plain data."""
        views = {view: {"rows": count, "changes": self.changes.get(view, 0)} for view, count in rows_out.items()}
        return {
            "rows": rows_in,
            "epochs": self.epochs,
            "input": asdict(self.counts),
            "views": views,
            "work": None if self.work is None else asdict(self.work),
            "state_bytes": self.state_bytes,
            "seconds": self.phases,
        }
