"""The suites: cases that run together, the targets of them, and how they are shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from whorl.bench.case import Case
from whorl.bench.cases import CASES
from whorl.bench.curves import draw_series
from whorl.bench.options import Options
from whorl.bench.plot import draw
from whorl.bench.real_networks import data_cases
from whorl.bench.region_cases import REGION_CASES, REGION_TARGETS
from whorl.bench.region_series import REGION_NOTES, REGION_SERIES, data_series
from whorl.bench.report import choose_cases
from whorl.bench.results import CaseResult, by_name
from whorl.bench.series import Series
from whorl.bench.spark_cases import SPARK_CASES, SPARK_TARGETS
from whorl.bench.targets import TARGETS, Target


@dataclass(frozen=True, slots=True)
class Suite:
    """What one command runs. With `series` there is a table for each of them, else one for each case."""

    cases: tuple[Case, ...]
    targets: tuple[Target, ...]
    series: tuple[Series, ...] = ()
    notes: tuple[str, ...] = ()
    runs: int = 5
    quick_runs: int = 2
    quick_seconds: float | None = None  # the most that a quick measurement may take
    quick_only: tuple[str, ...] = ()  # the cases that a quick run is content with
    data: str | None = None  # the folder that some cases come from

    def options(self, runs: int | None, seconds: float | None, seed: int, *, quick: bool, full: bool) -> Options:
        """Return how much to run, where what is not said is as usual for the suite."""
        usual = self.quick_runs if quick else self.runs
        cap = seconds or (self.quick_seconds if quick else None)
        return Options(runs or usual, seed, quick, full, cap, self.data)

    def choose(self, only: Sequence[str], options: Options) -> tuple[Case, ...]:
        """Return the cases that are asked for, by their names or how these start."""
        return choose_cases(only or (self.quick_only if options.quick else ()), self.cases)

    def with_data(self, folder: Path | None) -> Suite:
        """Return the suite with the real networks of a folder, if there is one."""
        if folder is None:
            return self
        real = data_cases(folder)
        series = (*self.series, *data_series(real))
        quick = (*self.quick_only, "regions-data")
        return replace(self, cases=(*self.cases, *real), series=series, data=str(folder), quick_only=quick)

    def draw(self, results: Sequence[CaseResult]) -> str:
        """Return the picture of what was measured."""
        return draw_series(self.series, by_name(results)) if self.series else draw(results)


SUITES: dict[str, Suite] = {
    "peers": Suite(CASES, TARGETS),
    "spark": Suite(SPARK_CASES, SPARK_TARGETS),
    "regions": Suite(
        REGION_CASES,
        REGION_TARGETS,
        REGION_SERIES,
        REGION_NOTES,
        runs=1,  # only CPU times differ
        quick_runs=1,
        quick_seconds=20.0,
        quick_only=(
            *(f"regions-{each}-100" for each in ("network", "sensors", "dense", "sparse")),
            "regions-partitions-24",
            "regions-select-small",
        ),
    ),
}


def find_case(name: str, data: str | None = None) -> Case:
    """Return the case of a name, from whichever suite, or one of real networks in the folder ``data``."""
    real = data_cases(Path(data)) if data is not None else ()
    own = (case for suite in SUITES.values() for case in suite.cases)
    return next(case for case in (*real, *own) if case.name == name)
