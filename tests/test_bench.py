"""The benchmark measures what it says: generated data, equal answers, figures, targets, files."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import duckdb
import numpy as np
import pytest

from tests.command_line import whorl
from whorl.bench import graphs
from whorl.bench.answer import Answer, answer_of, differing, sql_number
from whorl.bench.case import Case, Entry
from whorl.bench.cases import AUTO, CASES, CLINGO, DUCKDB, PATHWAY, RECOMPUTE, SUPPORT, SWIPL
from whorl.bench.contestants import Contestant
from whorl.bench.contestants.whorl import build_epochs, refusal
from whorl.bench.graphs import Ints
from whorl.bench.options import Options
from whorl.bench.outcome import Outcome, Steps
from whorl.bench.plot import build_panel, draw, format_seconds
from whorl.bench.region_cases import REGION_CASES
from whorl.bench.results import CaseResult, Tally, disagreements
from whorl.bench.runner import run_apart, run_cases
from whorl.bench.spark_cases import SPARK_CASES
from whorl.bench.spreading import LAZY
from whorl.bench.targets import TARGETS, Figure, Target, Verdict, judge
from whorl.bench.worker import Job, run_job
from whorl.bench.workload import CLOSURE, SHORTEST, Workload
from whorl.diagnostics.source import Source
from whorl.logical.compile import compile_program
from whorl.oracle.session import Oracle
from whorl.physical.strategies import STRATEGIES

BY_NAME = {case.name: case for case in CASES}


def _job(case: str, contestant: Contestant) -> Job:
    return Job(case, contestant, seed=3, quick=True)


# Generated data


def test_graphs_have_the_size_and_the_shape_they_promise() -> None:
    rows = graphs.random_graph(50, 200, seed=1)
    assert len(np.unique(rows, axis=0)) == 200
    assert (rows[:, 0] != rows[:, 1]).all()
    assert rows.max() < 50
    upwards = graphs.random_graph(50, 200, seed=1, acyclic=True)
    assert (upwards[:, 0] < upwards[:, 1]).all()
    assert graphs.chain(4).tolist() == [[0, 1], [1, 2], [2, 3]]
    assert graphs.chains(2, 3).tolist() == [[0, 1], [1, 2], [3, 4], [4, 5]]
    assert sorted(graphs.grid(2).tolist()) == [[0, 1], [0, 2], [1, 3], [2, 3]]
    assert len(graphs.grid(2, both_ways=True)) == 8
    local = graphs.local_graph(300, 1.5, 7, 20, seed=2)
    assert (local[:, 0] // 20 == local[:, 1] // 20).all()
    assert ((local[:, 1] - local[:, 0] >= 1) & (local[:, 1] - local[:, 0] <= 7)).all()


@pytest.mark.parametrize("name", BY_NAME)
def test_the_seed_decides_the_workload(name: str) -> None:
    def rows(seed: int) -> list[tuple[object, ...]]:
        epochs = build_epochs(BY_NAME[name].build(seed, quick=True))
        return [row for epoch in epochs for batch in epoch.batches for row in batch.rows()]

    assert rows(1) == rows(1)
    if name not in ("closure-chain", "closure-grid"):
        assert rows(1) != rows(2)


def test_windows_are_full_then_slide_then_only_expire() -> None:
    workload = BY_NAME["window-components-sparse"].build(1, quick=True)
    assert [step.kind for step in workload.steps] == ["slide"] * 3 + ["expire"] * 3
    assert workload.load.time == 320  # forty slides of eight facts
    assert [step.time for step in workload.steps] == [328, 336, 344, 352, 360, 368]
    assert all(not step.inserts for step in workload.steps[3:])


# Answers


ROWS: Ints = np.array([[1, 2], [3, 4], [2_000_000_000, 7]])


def test_an_answer_does_not_depend_on_the_order_of_rows() -> None:
    assert answer_of(ROWS[::-1]) == answer_of(ROWS)


def test_an_answer_tells_rows_apart() -> None:
    swapped = np.array([[1, 4], [3, 2], [2_000_000_000, 7]])
    assert answer_of(swapped) != answer_of(ROWS)
    assert answer_of(ROWS[:2]) != answer_of(ROWS)


def test_sql_calculates_the_same_answer() -> None:
    values = ", ".join(f"({x}::BIGINT, {y}::BIGINT)" for x, y in ROWS.tolist())
    number = sql_number(("x", "y"))
    query = f"SELECT count(*), sum({number}) FROM (VALUES {values}) AS row(x, y)"
    (found,) = duckdb.connect().execute(query).fetchall()
    assert Answer(int(found[0]), int(found[1])) == answer_of(ROWS)


def test_float_columns_agree_within_rounding() -> None:
    exact = answer_of(ROWS, np.array([[0.1], [0.2], [0.3]]))
    assert exact.agrees(replace(exact, total=exact.total + 1e-15))
    assert not exact.agrees(replace(exact, total=exact.total + 1e-3))


def test_who_differs_is_named() -> None:
    right, wrong = Answer(3, 10), Answer(3, 11)
    answers = {"whorl auto": {"load": right, "end": right}, "duckdb": {"load": right}, "pathway": {"end": wrong}}
    (text,) = differing(answers)
    assert text.startswith("end: whorl auto has Answer(rows=3, check=10")
    assert "pathway has Answer(rows=3, check=11" in text


# Contestants, on small data


def _expected(workload: Workload) -> Answer:
    """Return the last answer as the reference evaluator finds it."""
    source = Source(workload.rules.name, workload.rules.text)
    oracle = Oracle(lambda types: compile_program(source, data_types=types))
    for epoch in build_epochs(workload):
        oracle.commit(epoch)
    rows = sorted(oracle.rows(workload.rules.view))
    if workload.rules.name != "ranking":
        return answer_of(np.array(rows, np.int64))
    return answer_of(np.array([[row[0]] for row in rows]), np.array([[row[1]] for row in rows], np.float64))


@pytest.mark.parametrize("name", BY_NAME)
def test_whorl_answers_as_the_oracle(name: str) -> None:
    case = BY_NAME[name]
    outcome = run_job(_job(name, AUTO))
    workload = case.build(3, quick=True)
    assert outcome.answers["end" if workload.steps else "load"].agrees(_expected(workload))


@pytest.mark.parametrize("name", ["closure-random", "closure-local"])
@pytest.mark.parametrize("contestant", [RECOMPUTE, SUPPORT, DUCKDB, CLINGO, Contestant("duckdb", rows_out=True)])
def test_contestants_agree_on_the_closure(name: str, contestant: Contestant) -> None:
    outcome = run_job(_job(name, contestant))
    assert outcome.answers == {"load": _expected(BY_NAME[name].build(3, quick=True))}
    assert outcome.figures["load.cpu"] > 0
    assert outcome.version


def test_rows_handed_out_by_whorl() -> None:
    outcome = run_job(_job("closure-grid", Contestant("whorl", "auto", rows_out=True)))
    assert outcome.answers == {"load": _expected(BY_NAME["closure-grid"].build(3, quick=True))}


@pytest.mark.parametrize("name", ["edge-small", "paths-grid"])
def test_pathway_agrees_after_changes(name: str) -> None:
    pytest.importorskip("pathway")
    other = run_apart(_job(name, PATHWAY), seconds=120)
    assert not other.failed
    assert other.answers["end"] == run_job(_job(name, AUTO)).answers["end"]
    assert {"load.cpu", "delete.cpu", "insert.cpu"} <= set(other.figures)


def test_swi_prolog_agrees() -> None:
    if SWIPL.missing():
        pytest.skip(SWIPL.missing())
    assert run_job(_job("closure-random", SWIPL)).answers == run_job(_job("closure-random", RECOMPUTE)).answers


def test_figures_of_steps_are_medians_by_kind() -> None:
    steps = Steps()
    for cpu in (1.0, 9.0, 2.0):
        steps.add("delete", cpu=cpu, wall=cpu)
    steps.add("insert", cpu=5.0)
    for probes in (0, 0, 7):
        steps.add("expire", probes=probes)
    expected = {"delete.cpu": 2.0, "delete.wall": 2.0, "insert.cpu": 5.0, "expire.probes": 7.0}
    assert steps.figures() == expected | {"delete.mean": 4.0, "delete.worst": 9.0}


def test_a_strategy_that_a_program_does_not_admit_is_refused_with_the_reason() -> None:
    assert refusal(CLOSURE, "support") == ""
    assert refusal(CLOSURE, "counting").startswith("does not serve this program: it is recursive")
    assert refusal(SHORTEST, "auto") == ""


# Runs


def test_a_process_of_its_own_gives_the_same_answer() -> None:
    job = _job("edge", AUTO)
    apart = run_apart(job, seconds=120)
    assert apart.answers == run_job(job).answers
    assert apart.figures["rss"] >= 0
    assert apart.figures["state"] > 0


def test_a_cap_ends_a_measurement() -> None:
    assert run_apart(_job("edge", AUTO), seconds=0.05).failed == "not done after 0.05 s"


def test_a_cap_of_cpu_time_ends_a_measurement() -> None:
    job = Job("regions-dense-800", LAZY, seed=1, cpu_s=2)
    assert run_apart(job, seconds=2).failed == "not done after 2 s of CPU time"


def test_a_failure_is_told_in_one_line() -> None:
    assert run_apart(_job("edge", Contestant("whorl", "magic")), seconds=120).failed == 'E401 "magic" is no strategy'


def test_contestants_take_turns_and_the_missing_are_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    entries = (Entry(RECOMPUTE), Entry(CLINGO, runs=1), Entry(SWIPL), Entry(DUCKDB, on_demand=True))
    case = Case("closure-chain", "a chain", BY_NAME["closure-chain"].build, entries)
    lines: list[str] = []
    (result,) = run_cases([case], Options(runs=2, quick=True), lines.append)
    assert [re.sub(r"load.cpu .*", "load.cpu", line) for line in lines] == [
        "closure-chain: a chain",
        "  run 1 of 2, whorl recompute: load.cpu",
        "  run 1 of 1, clingo: load.cpu",
        "  run 2 of 2, whorl recompute: load.cpu",
    ]
    assert [len(tally.outcomes) for tally in result.tallies] == [2, 1, 0, 0]
    assert [tally.note for tally in result.tallies[2:]] == ["swipl is not on the path", "only with --full"]
    assert result.disagreements() == []


def test_who_is_not_done_is_not_tried_with_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "whorl.bench.runner.run_apart", lambda _job, seconds: Outcome(failed=f"not done after {seconds}")
    )
    build = BY_NAME["edge"].build
    small = Case("small", "", build, (Entry(AUTO, seconds=3),))
    large = Case(
        "large", "", build, (Entry(AUTO, seconds=3), Entry(SUPPORT, hopeless="it has no end")), harder_than="small"
    )
    larger = replace(large, name="larger", harder_than="large")
    results = list(run_cases([small, large, larger], Options(runs=1), lambda _line: None))
    assert [[tally.note for tally in result.tallies] for result in results] == [
        ["failed: not done after 3"],
        ["not tried: it was not done with small", "not tried: it has no end"],
        ["not tried: it was not done with large", "not tried: it has no end"],
    ]
    tried = list(run_cases([small, large], Options(runs=1, full=True), lambda _line: None))[1]
    assert [tally.note for tally in tried.tallies] == ["failed: not done after 3", "failed: not done after 300.0"]


def test_cases_that_are_alike_have_the_same_answers() -> None:
    def result(name: str, rows: int, alike: str) -> CaseResult:
        return CaseResult(name, "", [Tally("whorl auto", [Outcome({}, {"load": Answer(rows, 7)})])], alike)

    assert disagreements([result("a", 1, "same"), result("b", 1, "same"), result("c", 2, ""), result("d", 3, "")]) == []
    (told,) = disagreements([result("a", 1, "same"), result("b", 2, "same")])
    assert told.startswith("load: a has Answer(rows=1")


# Targets


def _result(name: str, **figures: dict[str, float]) -> CaseResult:
    tallies = [Tally(who.replace("_", " "), [Outcome(own)]) for who, own in figures.items()]
    return CaseResult(name, "", tallies)


def test_targets_compare_a_figure_or_a_ratio() -> None:
    slides = {"whorl_auto": 6.0, "whorl_recompute": 18.0, "whorl_dred": 4.0, "pathway": 1.0}
    result = _result("window-ranking-dense", **{who: {"slide.cpu": cpu} for who, cpu in slides.items()})
    found = {verdict.target.text: (verdict.value, verdict.passed) for verdict in judge({result.name: result}, TARGETS)}
    assert found == {
        "CPU time of a slide, auto against the best strategy": (1.5, False),
        "throughput, auto against recompute": (3.0, True),
        "probes when facts only expire, expiry": (None, None),
    }


@pytest.mark.parametrize(("spent", "passed"), [(120.0, True), (40.0, None)])
def test_who_is_not_done_is_slower_than_that(spent: float, passed: bool | None) -> None:
    result = _result("closure-random", whorl_recompute={"load.engine": 1.0})
    result.tallies.append(Tally("pathway", note="failed: not done", spent=spent))
    verdicts = {verdict.target.text: verdict for verdict in judge({result.name: result}, TARGETS)}
    verdict = verdicts["CPU speed against Pathway's"]
    assert (verdict.shown_value, verdict.passed) == (f"over {spent:g}", passed)
    assert verdicts["CPU speed against DuckDB's"].value is None


def test_bounds_in_words() -> None:
    figure = Figure("edge", "whorl auto", "delete.cpu")
    assert Verdict(Target("time", figure, None, 0.002), 0.001).shown_bound == "at most 0.002"
    assert Verdict(Target("speed", figure, None, 1.5, least=True), 1.0).shown_bound == "at least 1.5"


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: f"{target.case}: {target.text}")
def test_targets_name_figures_that_are_measured(target: Target) -> None:
    for figure in (target.over, target.under):
        if figure is None:
            continue
        labels = {entry.contestant.label for entry in BY_NAME[figure.case].entries}
        assert figure.contestant in labels | {"*", "whorl expiry"}
        kinds = {"load", *(step.kind for step in BY_NAME[figure.case].build(1, quick=True).steps)}
        assert figure.name.split(".")[0] in kinds | {"state", "rss"}


def test_bytes_for_each_row() -> None:
    tally = Tally("whorl auto", [Outcome({"state": 640.0, "rss": 1_000.0}, {"load": Answer(10, 1)})])
    assert tally.figures == {"state": 640.0, "rss": 1_000.0, "state.row": 64.0, "rss.row": 100.0}


# Pictures, files, the command line


def test_the_picture_has_a_bar_for_each_contestant() -> None:
    measured = _result("edge", whorl_auto={"delete.cpu": 0.002, "load.cpu": 3.0}, pathway={"delete.cpu": 0.2})
    nothing = CaseResult("paths-grid", "", [Tally("pathway", note="pathway is not installed")])
    assert build_panel(nothing) is None
    root = ElementTree.fromstring(draw([measured, nothing]))
    texts = [element.text for element in root if element.tag.endswith("text")]
    assert texts == ["edge", "CPU time of one delete, logarithmic", "whorl auto", "2 ms", "pathway", "200 ms"]
    widths = [float(element.attrib["width"]) for element in root if element.tag.endswith("rect")][1:]
    assert 0 < widths[0] < widths[1]


def test_seconds_have_a_unit_that_suits_them() -> None:
    assert [format_seconds(value) for value in (12.0, 0.5, 2e-5, 3e-8)] == ["12 s", "500 ms", "20 µs", "0.03 µs"]


def test_list() -> None:
    run = whorl("bench", "list")
    assert run.code == 0
    others = [case.name for case in (*SPARK_CASES, *REGION_CASES)]
    assert re.findall(r"^\S+$", run.out, re.MULTILINE) == [*BY_NAME, *others]
    assert "  " + ", ".join(f"whorl {name}" for name in STRATEGIES) in run.out.splitlines()


def test_peers_prints_a_table_and_writes_files(tmp_path: Path) -> None:
    run = whorl("bench", "peers", "--quick", "--runs", "1", "--only", "growth-100k", "--output", str(tmp_path / "out"))
    assert run.code == 0
    assert "growth-100k, small data" in run.out
    assert "its figures mean nothing" in run.out.lower()
    assert run.err.splitlines()[0].startswith("growth-100k: one edge")
    data = json.loads((tmp_path / "out" / "results.json").read_text(encoding="utf-8"))
    (case,) = data["cases"]
    (own,) = case["contestants"]
    assert (case["case"], own["contestant"], own["rows"]) == ("growth-100k", "whorl auto", 135)
    assert own["median"]["insert.cpu"] == own["runs"][0]["insert.cpu"] > 0
    assert data["options"]["quick"] is True
    assert ElementTree.parse(tmp_path / "out" / "results.svg").getroot().tag.endswith("svg")
