"""The suites: cases that run together, and the targets of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from whorl.bench.case import Case
from whorl.bench.cases import CASES
from whorl.bench.real_networks import data_cases
from whorl.bench.region_cases import REGION_CASES, REGION_TARGETS
from whorl.bench.spark_cases import SPARK_CASES, SPARK_TARGETS
from whorl.bench.targets import TARGETS, Target


@dataclass(frozen=True, slots=True)
class Suite:
    """What one command runs."""

    cases: tuple[Case, ...]
    targets: tuple[Target, ...]


PEERS = Suite(CASES, TARGETS)
ON_SPARK = Suite(SPARK_CASES, SPARK_TARGETS)
REGIONS = Suite(REGION_CASES, REGION_TARGETS)
SUITES = (PEERS, ON_SPARK, REGIONS)


def find_case(name: str, data: str | None = None) -> Case:
    """Return the case of a name, from whichever suite, or one of real networks in the folder ``data``."""
    real = data_cases(Path(data)) if data is not None else ()
    own = (case for suite in SUITES for case in suite.cases)
    return next(case for case in (*real, *own) if case.name == name)
