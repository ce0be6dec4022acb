"""What the figures should be. A target compares a figure with a bound, or its ratio to another figure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from whorl.bench.results import CaseResult


@dataclass(frozen=True, slots=True)
class Figure:
    """Where to find a number: a case, a contestant (`*` is the best of Whorl's strategies), a name."""

    case: str
    contestant: str
    name: str

    @property
    def of_load(self) -> bool:
        """Whether it is CPU time of the first thing that a contestant does."""
        return self.name in ("load.cpu", "load.engine")


@dataclass(frozen=True, slots=True)
class Target:
    """The value of ``over`` divided by ``under`` (by one, if there is none), and the bound that it should keep."""

    text: str
    over: Figure
    under: Figure | None
    bound: float
    least: bool = False  # whether the bound is the least that is wanted, not the most

    @property
    def case(self) -> str:
        """The case it belongs to."""
        return self.over.case


@dataclass(frozen=True, slots=True)
class Verdict:
    """A target with what was measured; None where something for it was not.

    The value is one that is surely exceeded where somebody was not done in its time.
    """

    target: Target
    value: float | None
    exceeded: bool = False

    @property
    def passed(self) -> bool | None:
        """Whether the target is met, None if nobody knows."""
        if self.value is None or (self.exceeded and not (self.target.least and self.value >= self.target.bound)):
            return None
        return self.value >= self.target.bound if self.target.least else self.value <= self.target.bound

    @property
    def shown_value(self) -> str:
        """The value in words."""
        if self.value is None:
            return "not measured"
        return f"{'over ' if self.exceeded else ''}{self.value:.4g}"

    @property
    def shown_bound(self) -> str:
        """The bound in words."""
        return f"at {'least' if self.target.least else 'most'} {self.target.bound:g}"

    def to_json(self) -> dict[str, object]:
        """Return plain data."""
        return {
            "case": self.target.case,
            "target": self.target.text,
            "bound": self.shown_bound,
            "value": self.value,
            "exceeded": self.exceeded,
            "passed": self.passed,
        }


def judge(results: Mapping[str, CaseResult], targets: Sequence[Target]) -> list[Verdict]:
    """Return a verdict for every target of a case that ran."""
    return [_judge(target, results) for target in targets if target.case in results]


def _judge(target: Target, results: Mapping[str, CaseResult]) -> Verdict:
    over = _find(target.over, results)
    spent = results[target.case].spent(target.over.contestant) if over is None and target.over.of_load else 0.0
    over = over if over is not None else spent or None
    if target.under is None or over is None:
        return Verdict(target, over, exceeded=spent > 0)
    under = _find(target.under, results)
    return Verdict(target, over / under if under else None, exceeded=spent > 0)


def _find(figure: Figure, results: Mapping[str, CaseResult]) -> float | None:
    result = results.get(figure.case)
    return result.figure(figure.contestant, figure.name) if result is not None else None


def _targets() -> Iterator[Target]:
    for case in ("closure-random", "closure-chain", "closure-grid", "closure-local"):
        yield from _closure(case)
    yield from _changes()
    for case in ("paths-grid", "paths-random"):
        for kind in ("delete", "insert"):
            own, other = Figure(case, "whorl auto", f"{kind}.cpu"), Figure(case, "pathway", f"{kind}.cpu")
            yield Target(f"CPU time of one {kind} against Pathway's", own, other, 1.0)
    for name in ("containment", "cheapest", "components", "ranking"):
        for density in ("sparse", "dense"):
            yield from _window(f"window-{name}-{density}", often=name in ("containment", "components"))
    for kind in ("insert", "delete"):
        large, small = (Figure(f"growth-{size}", "whorl auto", f"{kind}.cpu") for size in ("10m", "100k"))
        yield Target(f"CPU time of one {kind} in 10 million rows against 0.1 million", large, small, 2.0)


def _closure(case: str) -> Iterator[Target]:
    own = Figure(case, "whorl recompute", "load.engine")
    yield Target("CPU speed against DuckDB's", Figure(case, "duckdb", "load.engine"), own, 1.5, least=True)
    yield Target("CPU speed against Pathway's", Figure(case, "pathway", "load.engine"), own, 50.0, least=True)
    for strategy, most in (("recompute", 64.0), ("support", 100.0)):
        for name, what in (("state.row", "bytes of state"), ("rss.row", "bytes of memory growth")):
            yield Target(f"{what} for each row, {strategy}", Figure(case, f"whorl {strategy}", name), None, most)


def _changes() -> Iterator[Target]:
    for kind in ("delete", "insert"):
        own, again = (Figure("edge", who, f"{kind}.cpu") for who in ("whorl auto", "whorl recompute"))
        yield Target(f"CPU seconds of one {kind}", own, None, 0.002)
        yield Target(f"CPU time of one {kind} against recompute's", own, again, 0.01)
        small, other = (Figure("edge-small", who, f"{kind}.cpu") for who in ("whorl auto", "pathway"))
        yield Target(f"CPU time of one {kind} against Pathway's", small, other, 0.02)
        for case in ("edges-100", "edges-1000"):
            many, all_again = (Figure(case, who, f"{kind}.cpu") for who in ("whorl auto", "whorl recompute"))
            yield Target(f"CPU time of one {kind} against recompute's", many, all_again, 1.2)


def _window(case: str, *, often: bool) -> Iterator[Target]:
    """Yield the targets of a window; it slides ``often`` if a slide is at most a twentieth of it."""
    own, again = Figure(case, "whorl auto", "slide.cpu"), Figure(case, "whorl recompute", "slide.cpu")
    yield Target("CPU time of a slide, auto against the best strategy", own, Figure(case, "*", "slide.cpu"), 1.3)
    yield Target("throughput, auto against recompute", again, own, 0.8, least=True)
    if often and case.endswith("sparse"):
        yield Target("throughput in sparse data, auto against recompute", again, own, 5.0, least=True)
    yield Target("probes when facts only expire, expiry", Figure(case, "whorl expiry", "expire.probes"), None, 0.0)


TARGETS: tuple[Target, ...] = tuple(_targets())
