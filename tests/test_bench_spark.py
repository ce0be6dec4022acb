"""`whorl bench spark`: what it generates, what it compares with, and that everybody answers alike."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.command_line import whorl
from whorl.bench import graphs, on_spark
from whorl.bench.contestants import Contestant
from whorl.bench.contestants.spark import bound
from whorl.bench.graphs import Ints
from whorl.bench.on_spark import warmly
from whorl.bench.outcome import Outcome
from whorl.bench.plot import build_panel
from whorl.bench.results import CaseResult, Tally
from whorl.bench.runner import run_apart
from whorl.bench.spark_cases import CTE, EMPTY, EVALUATE, IN_PROCESS, LOOP, ONE, SPARK_CASES, SPARK_TARGETS, STREAM, TWO
from whorl.bench.suite import find_case
from whorl.bench.targets import judge
from whorl.bench.worker import Job, run_job
from whorl.bench.workload import CLOSURE, Batch, Workload

STREAMS = ("spark-epoch", "spark-partitions")


def _rows(rows: Ints) -> set[tuple[int, ...]]:
    return {tuple(row) for row in rows.tolist()}


# Generated data


@pytest.mark.parametrize("name", STREAMS)
@pytest.mark.parametrize("quick", [True, False])
def test_what_goes_is_there_and_what_comes_is_not(name: str, quick: bool) -> None:
    workload = find_case(name).build(5, quick=quick)
    ((relation, loaded),) = workload.load.inserts.items()
    now = _rows(loaded)
    assert len(now) == len(loaded)
    for step in workload.steps:
        gone, come = _rows(step.deletes[relation]), _rows(step.inserts[relation])
        assert gone <= now
        assert not come & now
        now = (now - gone) | come
        assert len(now) == len(loaded)


def test_an_epoch_has_a_hundred_changes_among_a_hundred_thousand_links() -> None:
    workload = find_case("spark-epoch").build(1, quick=False)
    assert len(workload.load.inserts["link"]) == 100_000
    assert {len(step.inserts["link"]) + len(step.deletes["link"]) for step in workload.steps} == {100}
    kinds = [step.kind for step in workload.steps]
    assert kinds == ["warm"] * 20 + ["epoch"] * 40


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_much_can_be_reached_from_the_start(seed: int) -> None:
    workload = find_case("spark-epoch").build(seed, quick=False)
    outcome = IN_PROCESS.measure(workload, workload.first(0))
    assert 35_000 < outcome.answers["load"].rows < 45_000
    assert 35_000 < outcome.answers["end"].rows < 45_000


def test_the_bound_of_the_table_expression_is_the_longest_way_and_only_for_cycles() -> None:
    assert bound(graphs.chain(6)) is None
    assert bound(np.array([[0, 1], [1, 2], [2, 0]])) == 3
    assert bound(np.array([[0, 1], [1, 0], [1, 2], [2, 3], [3, 4]])) == 4


_METERED = """
import subprocess, sys, time
from whorl.bench.measure import TreeMeter

burn = "import time\\nwhile time.process_time() < 0.3: pass"
below = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {burn!r}])"
with TreeMeter() as spent:
    subprocess.run([sys.executable, "-c", below], check=True)
with TreeMeter() as idle:
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    time.sleep(0.01)
child.communicate(b"\\n")
print(spent.cpu, idle.cpu)
"""


def test_cpu_time_of_processes_below_counts() -> None:
    # In a process of its own, as it is used: below this one Spark may run, whose workers take their time along.
    told = subprocess.run([sys.executable, "-c", _METERED], check=True, capture_output=True, text=True).stdout
    spent, idle = map(float, told.split())
    assert spent >= 0.3
    assert idle < spent


# Targets and pictures


def test_targets_compare_wall_times() -> None:
    figures = {
        "spark-closure": {LOOP: {"load.wall": 40.0}, EVALUATE: {"load.wall": 0.5}},
        "spark-epoch": {STREAM: {"epoch.wall": 0.3}, EMPTY: {"epoch.wall": 0.1}},
        "spark-partitions": {ONE: {"stream.wall": 9.0}, TWO: {"stream.wall": 5.0}},
    }
    results = {
        name: CaseResult(name, "", [Tally(who.label, [Outcome(own)]) for who, own in found.items()])
        for name, found in figures.items()
    }
    found = [(verdict.target.case, verdict.value, verdict.passed) for verdict in judge(results, SPARK_TARGETS)]
    assert found == [
        ("spark-closure", 80.0, True),
        ("spark-epoch", pytest.approx(3.0), False),
        ("spark-partitions", 1.8, True),
    ]
    captions = [panel.caption for name in figures if (panel := build_panel(results[name])) is not None]
    assert captions == ["wall time of one load", "wall time of one epoch"]


def test_targets_name_who_takes_part() -> None:
    for target in SPARK_TARGETS:
        for figure in (target.over, target.under):
            assert figure is not None
            assert figure.contestant in {entry.contestant.label for entry in find_case(figure.case).entries}


def test_without_java_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("whorl.bench.on_spark.find_spec", lambda name: name == "pyspark" or None)
    assert EVALUATE.missing() == LOOP.missing() == "there is no Java"
    monkeypatch.setattr("whorl.bench.on_spark.find_spec", lambda _name: None)
    assert EVALUATE.missing() == "pyspark is not installed"


def test_a_case_of_the_other_suite_is_not_run() -> None:
    run = whorl("bench", "spark", "--only", "edge")
    assert run.code == 1
    assert 'E661 there is no benchmark case "edge"' in run.err


@pytest.mark.parametrize(("rows", "repeats"), [(1, 2), (2, 4)])
def test_a_load_is_measured_once_it_has_been_done_for_a_while(
    rows: int, repeats: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    small, large = (Workload(CLOSURE, Batch("load", {"edge": np.zeros((many, 2), np.int64)})) for many in (1, rows))
    monkeypatch.setattr(on_spark, "perf_counter", iter((0.0, 10.0, 29.0, 30.0)).__next__)
    done: list[Workload] = []

    def run(workload: Workload) -> Outcome:
        done.append(workload)
        return Outcome({"load.wall": 10.0 / len(done)})

    outcome = warmly(run, small, large)
    assert [each is large for each in done] == [False] + [True] * repeats
    assert outcome.figures == {"load.wall": 10.0 / len(done), "first.wall": 5.0}


# Contestants, on small data; each starts a Spark of its own


def _job(case: str, contestant: Contestant) -> Job:
    return Job(case, contestant, seed=3, quick=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["spark-closure", "spark-closure-acyclic"])
@pytest.mark.parametrize("contestant", [EVALUATE, LOOP, CTE])
def test_contestants_agree_on_the_closure(name: str, contestant: Contestant) -> None:
    outcome = run_apart(_job(name, contestant), seconds=300)
    assert not outcome.failed
    assert outcome.answers == run_job(_job(name, IN_PROCESS)).answers
    assert outcome.figures["load.wall"] > 0


@pytest.mark.slow
@pytest.mark.parametrize(("name", "contestant"), [("spark-epoch", STREAM), ("spark-partitions", TWO)])
def test_streams_end_where_the_process_ends(name: str, contestant: Contestant) -> None:
    outcome = run_apart(_job(name, contestant), seconds=300)
    assert not outcome.failed
    assert outcome.answers["end"] == run_job(_job(name, IN_PROCESS)).answers["end"]
    assert {"epoch.wall", "epoch.worst", "stream.wall"} <= set(outcome.figures)


@pytest.mark.slow
def test_the_command_prints_a_table_and_writes_files(tmp_path: Path) -> None:
    run = whorl("bench", "spark", "--quick", "--runs", "1", "--only", "spark-epoch", "--output", str(tmp_path))
    assert run.code == 0
    (case,) = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))["cases"]
    assert [own["contestant"] for own in case["contestants"]] == [
        entry.contestant.label for entry in SPARK_CASES[2].entries
    ]
    assert all(own["median"]["epoch.wall"] > 0 for own in case["contestants"])
