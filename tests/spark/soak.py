"""Random churn with windows on Spark for as long as you like: `python -m tests.spark.soak --minutes 30`.

Roads come and go, trips die with their window, and views follow. Every epoch is compared with the reference evaluator,
through the log of changes. In the end, the memory of the Python workers must have levelled off, and an epoch must not
take longer than near the start. A short report says what was found.

The rows are numbers that Spark's own source gives, so they can be computed here as well.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import pyarrow.dataset as ds

import whorl
from tests.spark.conftest import SETTINGS
from tests.spark.processes import below, command_of
from whorl.diagnostics.source import Source
from whorl.logical.compile import compile_program
from whorl.model.delta import Change, Epoch
from whorl.oracle.session import Oracle

PROGRAM = """
RELATION road(X: Integer, Y: Integer).
STREAM trip(At: Timestamp, X: Integer, Y: Integer) WINDOW(20 seconds).
reachable(X, Y) :- road(X, Y).
reachable(X, Y) :- road(X, Z), reachable(Z, Y).
travelled(X, Y) :- trip(_, X, Y).
travelled(X, Y) :- travelled(X, Z), trip(_, Z, Y).
busy(X, count<Y>) :- trip(_, X, Y).
"""
VIEWS = ("reachable", "travelled", "busy")
ROADS, TRIPS = 6, 3  # rows in an epoch
TOWNS, STOPS = 12, 60
DRIFT, GROWTH = 1.5, 1.1  # how much slower, and how much larger, the end may be
_MIX = "((value * 48271 + 11) % 2147483647) * 16807 % 2147483647"


def mix(value: int) -> int:
    """Return what `_MIX` gives in SQL: a number that looks random."""
    return ((value * 48271 + 11) % 2147483647) * 16807 % 2147483647


def changes_of(epoch: int) -> list[Change]:
    """Return the rows of an epoch."""
    roads = [mix(value) for value in range((epoch - 1) * ROADS, epoch * ROADS)]
    trips = [mix(value) for value in range((epoch - 1) * TRIPS, epoch * TRIPS)]
    found = [
        Change("road", (each % TOWNS, each // TOWNS % TOWNS), 1 if each // TOWNS**2 % TOWNS == 0 else -1)
        for each in roads
    ]
    return found + [Change("trip", (epoch - 1, each % STOPS, each // STOPS % STOPS), 1) for each in trips]


def frames(spark: Any) -> dict[str, Any]:
    """Return the same rows as frames that stream, an epoch each second of event time."""

    def numbers(rows: int) -> Any:
        reader = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows).option("numPartitions", 1)
        source = reader.option("startTimestamp", 0).option("advanceMillisPerBatch", 1000).load()
        return source.selectExpr("timestamp", f"{_MIX} AS m")

    roads = numbers(ROADS).selectExpr(
        f"IF(floor(m / {TOWNS**2}) % {TOWNS} = 0, '+', '-') AS op",
        f"m % {TOWNS} AS x",
        f"floor(m / {TOWNS}) % {TOWNS} AS y",
    )
    trips = numbers(TRIPS).selectExpr("timestamp AS at", f"m % {STOPS} AS x", f"floor(m / {STOPS}) % {STOPS} AS y")
    return {"road": roads, "trip": trips}


@dataclass(slots=True)
class Checker:
    """Replays the log of changes beside the reference evaluator."""

    checkpoint: Path
    oracle: Oracle
    rows: dict[str, set[tuple[Any, ...]]] = field(default_factory=lambda: {view: set() for view in VIEWS})
    epochs: int = 0
    difference: str | None = None

    def __call__(self, epoch: Any) -> None:
        """Take an epoch that counts."""
        self.epochs += 1
        self.oracle.commit(Epoch(epoch.number, tuple(changes_of(epoch.number))))
        for view, rows in self.rows.items():
            folder = self.checkpoint / "changes" / view / f"epoch-{epoch.number:010}"
            for change in ds.dataset(folder, format="parquet").to_table().to_pylist() if folder.is_dir() else ():
                row = tuple(list(change.values())[:-2])
                if (row in rows) is (change["_op"] == "+"):
                    self.difference = f"{view}{row} came or went twice in epoch {epoch.number}"
                (rows.add if change["_op"] == "+" else rows.discard)(row)
            if rows != self.oracle.rows(view) or self.epochs != epoch.number:
                self.difference = self.difference or f"{view} differs in epoch {epoch.number}"


@dataclass(slots=True)
class Course:
    """What was measured on the way: the seconds of each epoch, and the memory of the workers from time to time."""

    seconds: list[float] = field(default_factory=list)
    memory: list[int] = field(default_factory=list)

    def faults(self) -> list[str]:
        """Return what is not as it should be."""
        found = []
        early, late = tenth(self.seconds, 2), tenth(self.seconds, 10)
        if late > DRIFT * early:
            found.append(f"an epoch takes {late * 1000:.0f} ms in the end, {early * 1000:.0f} ms near the start")
        middle, end = tenth(self.memory, 6), tenth(self.memory, 10)
        if end > GROWTH * middle:
            found.append(f"workers take {end / 1e6:.0f} MB in the end, {middle / 1e6:.0f} MB in the middle")
        return found


def tenth(values: Sequence[float], number: int) -> float:
    """Return the median of a tenth of values, the first of which has the number 1."""
    return median(values[len(values) * (number - 1) // 10 : max(len(values) * number // 10, 1)] or values[-1:])


def worker_memory() -> int:
    """Return the bytes that the Python workers take, shared ones shared out among them."""
    total = 0
    for process in below(os.getpid()):
        if "pyspark" in command_of(process) and "java" not in command_of(process).split(" ")[0]:
            try:
                lines = Path(f"/proc/{process}/smaps_rollup").read_text().splitlines()
            except OSError:
                continue
            total += sum(int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:"))
    return total


def soak(folder: Path, minutes: float, say: Callable[[str], None]) -> tuple[Checker, Course]:
    """Run the query so long; return what was found."""
    spark = whorl.spark_session("local[2]", SETTINGS)
    checker = Checker(folder / "ckpt", Oracle(lambda types: compile_program(Source("soak.dl", PROGRAM), (), types)))
    course = Course()
    query = whorl.stream(
        spark, PROGRAM, frames(spark), checkpoint=checker.checkpoint, partitions=2, on_epoch=checker, snapshot_every=50
    )
    while query.epoch < 1:  # processes start, and the first epoch waits for them
        query.awaitTermination(0.1)
    started = said = time.monotonic()
    seen = 1
    while time.monotonic() - started < minutes * 60 and checker.difference is None:
        query.awaitTermination(0.02)
        if query.epoch > seen and query.report is not None:
            seen = query.epoch
            course.seconds.append(query.report.seconds)
        if len(course.memory) < (time.monotonic() - started):
            course.memory.append(worker_memory())
        if time.monotonic() - said > max(minutes * 60 / 20, 5):
            said = time.monotonic()
            rows = ", ".join(f"{len(own)} {view}" for view, own in checker.rows.items())
            recent = median(course.seconds[-50:] or [0.0]) * 1000
            memory = course.memory[-1] / 1e6
            say(f"{(said - started) / 60:5.1f} min  {seen} epochs  {recent:.0f} ms  workers {memory:.0f} MB  {rows}")
    query.stop()
    spark.stop()
    return checker, course


def write_report(path: Path, minutes: float, checker: Checker, course: Course, faults: Sequence[str]) -> None:
    tenths = [
        f"| {n} | {tenth(course.seconds, n) * 1000:.0f} | {tenth(course.memory, n) / 1e6:.0f} |" for n in range(1, 11)
    ]
    lines = [
        f"# Soak of {minutes:g} minutes",
        "",
        f"{checker.epochs} epochs, each compared with the reference evaluator.",
        "",
        *([f"- {fault}" for fault in faults] or ["Nothing differs, nothing drifts, nothing grows."]),
        "",
        "| Tenth | Epoch in ms, median | Python workers in MB, median |",
        "|---|---|---|",
        *tenths,
    ]
    path.write_text("\n".join(lines) + "\n")


def main() -> int:
    parser = argparse.ArgumentParser(description="Random churn with windows on Spark, compared in every epoch.")
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--report", type=Path, default=Path("soak-report.md"))
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="whorl-soak-"))
    try:
        checker, course = soak(folder, options.minutes, lambda line: print(line, flush=True))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    faults = [checker.difference] if checker.difference is not None else []
    faults += course.faults()
    write_report(options.report, options.minutes, checker, course, faults)
    print(options.report.read_text())
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
