"""The suites: cases that run together, and the targets of them."""

from __future__ import annotations

from dataclasses import dataclass

from whorl.bench.case import Case
from whorl.bench.cases import CASES
from whorl.bench.spark_cases import SPARK_CASES, SPARK_TARGETS
from whorl.bench.targets import TARGETS, Target


@dataclass(frozen=True, slots=True)
class Suite:
    """What one command runs."""

    cases: tuple[Case, ...]
    targets: tuple[Target, ...]


PEERS = Suite(CASES, TARGETS)
ON_SPARK = Suite(SPARK_CASES, SPARK_TARGETS)
SUITES = (PEERS, ON_SPARK)


def find_case(name: str) -> Case:
    """Return the case of a name, from whichever suite."""
    return next(case for suite in SUITES for case in suite.cases if case.name == name)
