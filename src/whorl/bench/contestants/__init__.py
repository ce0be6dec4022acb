"""Who takes part. Each file knows one engine; nothing of an engine is imported before it is asked to run."""

from __future__ import annotations

from dataclasses import dataclass
from types import ModuleType
from typing import Protocol

from whorl.bench.contestants import clingo, duckdb, pathway, spark, swipl, whorl, whorl_net, whorl_spark
from whorl.bench.outcome import Outcome
from whorl.bench.workload import Workload

FAMILIES: dict[str, ModuleType] = {
    "whorl": whorl,
    "duckdb": duckdb,
    "pathway": pathway,
    "clingo": clingo,
    "swipl": swipl,
    "whorl-spark": whorl_spark,
    "whorl-net": whorl_net,
    "spark": spark,
}


class Measure(Protocol):
    """How a contestant is measured; each module has a function `measure` like this, and `missing`."""

    def __call__(self, workload: Workload, warm_up: Workload, variant: str, *, rows_out: bool) -> Outcome:
        """Run a small workload to warm up, then the one that counts."""


@dataclass(frozen=True, slots=True)
class Contestant:
    """An engine, for Whorl with a strategy; with ``rows_out`` it also hands every row to Python."""

    family: str
    variant: str = ""
    rows_out: bool = False

    @property
    def label(self) -> str:
        """Its name in tables."""
        name = f"{self.family} {self.variant}".strip()
        return f"{name}, rows out" if self.rows_out else name

    @property
    def alone(self) -> bool:
        """Whether all its work is in one process, so that CPU time bounds it."""
        return self.family in ("pathway", "whorl-net")

    @property
    def in_turns(self) -> bool:
        """Whether its threads work one at a time."""
        return self.family == "whorl-net"

    def missing(self) -> str:
        """Say why the engine cannot run here, or nothing."""
        found: str = FAMILIES[self.family].missing()
        return found

    def measure(self, workload: Workload, warm_up: Workload) -> Outcome:
        """Measure in this process."""
        run: Measure = FAMILIES[self.family].measure
        return run(workload, warm_up, self.variant, rows_out=self.rows_out)
