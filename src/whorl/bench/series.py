"""Cases as points of a series: tables of one figure after the other, by what varies and by contestant."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from whorl.bench.plot import format_seconds
from whorl.bench.results import NOT_DONE, NOT_TRIED, CaseResult, Tally


@dataclass(frozen=True, slots=True)
class Metric:
    """A figure, what it is called, and its unit: bytes, seconds, or nothing."""

    name: str
    text: str
    unit: str = ""

    def show(self, value: float) -> str:
        """Return a value with its unit."""
        if self.unit == "s":
            return format_seconds(value) if value else "0 s"
        if self.unit == "B":
            return format_bytes(value)
        return f"{value:,.0f}"


@dataclass(frozen=True, slots=True)
class Series:
    """Points by what varies, each a case, and the figures that are shown of them."""

    name: str
    title: str
    varies: str
    points: Mapping[str, str]
    metrics: tuple[Metric, ...]


def metrics_of(kind: str) -> tuple[Metric, ...]:
    """Return what is shown of loads or deletions."""
    return (
        Metric(f"{kind}.label", "label bytes for each row shipped", "B"),
        Metric(f"{kind}.rows", "rows shipped"),
        Metric(f"{kind}.bytes", "bytes shipped", "B"),
        Metric(f"{kind}.state", "state of all partitions", "B"),
        Metric(f"{kind}.spread", "time to converge", "s"),
        Metric(f"{kind}.clock", "time on the network", "s"),
        Metric(f"{kind}.cpu", "CPU time of all partitions", "s"),
        Metric(f"{kind}.work", "derivations and label updates"),
    )


def format_bytes(value: float) -> str:
    """Return a number of bytes in a unit that suits it."""
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value:.3g} B"


def contestants_of(series: Series, results: Mapping[str, CaseResult]) -> list[str]:
    """Return who takes part in any of the points that ran."""
    ran = [results[name] for name in series.points.values() if name in results]
    return list(dict.fromkeys(tally.contestant for result in ran for tally in result.tallies))


def short_name(contestant: str) -> str:
    """Return what tells a contestant from others of its kind."""
    return contestant.removeprefix("whorl-net ")


def cell(series: Series, point: str, contestant: str, metric: Metric, results: Mapping[str, CaseResult]) -> str:
    """Return one figure as text; if there is none, say why in a word."""
    tally = _tally(series, point, contestant, results)
    if tally is None:
        return ""
    value = tally.figures.get(metric.name)
    return _why_not(tally) if value is None else metric.show(value)


def values_of(
    series: Series, contestant: str, metric: Metric, results: Mapping[str, CaseResult]
) -> list[tuple[int, float]]:
    """Return what was measured, by the number of the point."""
    found: list[tuple[int, float]] = []
    for at, point in enumerate(series.points):
        tally = _tally(series, point, contestant, results)
        if tally is not None and metric.name in tally.figures:
            found.append((at, tally.figures[metric.name]))
    return found


def notes_of(series: Sequence[Series], results: Iterable[CaseResult]) -> list[str]:
    """Return why figures are missing, each reason once with the cases that it holds for."""
    wanted = {name for each in series for name in each.points.values()}
    reasons: dict[str, list[str]] = {}
    for result in results:
        if result.name in wanted:
            for tally in result.tallies:
                if tally.note:
                    reasons.setdefault(f"{tally.contestant}: {tally.note}", []).append(result.name)
    return [f"{reason} ({', '.join(names)})" for reason, names in reasons.items()]


def _tally(series: Series, point: str, contestant: str, results: Mapping[str, CaseResult]) -> Tally | None:
    result = results.get(series.points[point])
    if result is None:
        return None
    return next((tally for tally in result.tallies if tally.contestant == contestant), None)


def _why_not(tally: Tally) -> str:
    for words in (NOT_TRIED, NOT_DONE):
        if words in tally.note:
            return words
    if "does not serve" in tally.note:
        return "not served"
    return "failed" if tally.note else ""
