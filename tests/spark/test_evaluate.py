"""Frames in, views out, once."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

import whorl
from tests.golden_cases import Case, cases
from tests.spark.feeding import REACH, rows_of
from whorl.cli.files import read_source
from whorl.diagnostics.errors import UserError
from whorl.hosts.spark import residents
from whorl.hosts.spark.anchors import anchors_for
from whorl.logical.compile import compile_program
from whorl.model.delta import Change, Epoch
from whorl.model.limits import Limits
from whorl.model.values import format_value
from whorl.oracle.session import Oracle
from whorl.syntax.deltas import parse_deltas

pytestmark = pytest.mark.xdist_group("spark")  # one process, and one session, for all


@pytest.mark.parametrize("partitions", [1, 3])
def test_evaluate_gives_views_as_frames(spark: Any, partitions: int) -> None:
    frame = spark.createDataFrame([("a", "b"), ("b", "c"), ("c", "a")], "x string, y string")
    found = whorl.evaluate(spark, REACH, {"link": frame}, partitions=partitions)
    assert found["reachable"].columns == ["X", "Y"]
    assert rows_of(found["reachable"]) == {(x, y) for x in "abc" for y in "abc"}


def test_types_come_from_the_frame_and_columns_go_by_name(spark: Any) -> None:
    program = """
    STREAM reading(At: Timestamp, Sensor: String, Value: Float).
    RELATION broken(Name: String).
    hot(S, max<V>) :- reading(_, S, V), not broken(S).
    later(T + 1) :- reading(T, _, _).
    """
    readings = spark.sql(
        "select cast(value as int) value, sensor, timestamp_seconds(at) taken "
        "from values (5, 's', 10), (7, 's', 11), (9, 't', 12) as v(value, sensor, at)"
    )
    broken = spark.createDataFrame([("t",)], "name string")
    found = whorl.evaluate(
        spark, program, {"reading": readings, "broken": broken}, event_time={"reading": "taken"}, partitions=2
    )
    assert dict(found["hot"].dtypes) == {"S": "string", "V": "double"}
    assert rows_of(found["hot"]) == {("s", 7.0)}
    assert rows_of(found["later"]) == {(11,), (12,), (13,)}


def test_lists_and_terms_are_text_in_views(spark: Any) -> None:
    program = "RELATION at(X: String, Where: Term).\nstep(X, [X, W]) :- at(X, W)."
    frame = spark.createDataFrame([("a", "p(1, 2)")], "x string, where string")
    found = whorl.evaluate(spark, program, {"at": frame})
    assert rows_of(found["step"]) == {("a", '["a", p(1, 2)]')}


def test_facts_of_the_program_count_without_any_frame(spark: Any) -> None:
    found = whorl.evaluate(spark, 'e("a", "b").\nt(X) :- e(X, _).\ngone(X) :- t(X), e(_, X).', {})
    assert rows_of(found["t"]) == {("a",)}
    assert rows_of(found["gone"]) == set()


def test_a_large_frame_goes_past_the_driver(spark: Any) -> None:
    program = "same(X, Y) :- edge(X, Y).\nsame(X, Z) :- same(X, Y), edge(Y, Z)."
    edges = spark.range(0, 3_000, 1, 4).selectExpr("id", "id + 1 - int(id % 10 = 9) * 10 as next")
    found = whorl.evaluate(spark, program, {"edge": edges}, partitions=3)
    assert found["same"].count() == 3_000 * 10


def _plain(case: Case) -> bool:
    """Whether a case only inserts, into columns of a frame, which have one type each, and ends without an error."""
    epochs = parse_deltas(read_source(case.folder / "input.deltas"))
    changes = [change for epoch in epochs for change in epoch.changes]
    kinds = {(c.relation, at, type(value)) for c in changes for at, value in enumerate(c.row)}
    typed = {kind for *_column, kind in kinds} <= {int, float, str, bool}
    single = len(kinds) == len({kind[:2] for kind in kinds})
    return typed and single and all(c.weight > 0 for c in changes) and not (case.folder / "expected.err").exists()


SAMPLE = [case for case in cases() if _plain(case) and case.functions_path() is None][::4]


@pytest.mark.parametrize("case", SAMPLE, ids=lambda case: case.name)
def test_golden_inputs_at_once(case: Case, spark: Any) -> None:
    """All insertions of a case as frames give what one epoch of the reference gives."""
    source = read_source(case.folder / "program.dl")
    epochs = parse_deltas(read_source(case.folder / "input.deltas"))
    rows: dict[str, list[tuple[Any, ...]]] = {}
    for change in (change for epoch in epochs for change in epoch.changes):
        rows.setdefault(change.relation, []).append(change.row)
    oracle = Oracle(lambda types: compile_program(source, data_types=types), Limits(**case.options()))
    changes = tuple(Change(name, row, 1) for name, own in rows.items() for row in own)
    oracle.commit(Epoch(1, changes))
    frames = {name: spark.createDataFrame(own, [f"c{at}" for at in range(len(own[0]))]) for name, own in rows.items()}
    found = whorl.evaluate(spark, case.folder / "program.dl", frames, partitions=2, limits=Limits(**case.options()))
    for view, frame in found.items():
        assert rows_of(frame) == {tuple(map(_shown, row)) for row in oracle.rows(view)}


def _shown(value: Any) -> Any:
    return format_value(value) if isinstance(value, whorl.Term) else value


def _kept(spark: Any) -> set[tuple[str, int]]:
    """Return the partitions that the workers of two partitions keep: their deployment, and which one."""
    anchors = anchors_for(spark.sparkContext, 2)
    found: set[tuple[str, int]] = set()
    for number in range(2):
        with anchors._environment(number):
            row = spark.sparkContext.parallelize([number], 1)
            found |= set(row.mapPartitions(_residents).collect())
    return found


def _residents(rows: Iterable[int]) -> list[tuple[str, int]]:
    assert len(list(rows)) == 1  # Spark ends workers that leave rows
    return list(residents._RESIDENTS)


def test_nothing_stays_in_the_workers(spark: Any) -> None:
    before = _kept(spark)
    session = whorl.open(REACH, host=whorl.SparkHost(spark, partitions=2))
    session.insert("link", [("a", "b"), ("b", "c")])
    session.commit()
    session_keeps = _kept(spark) - before
    assert {number for _deployment, number in session_keeps} == {0, 1}
    frame = spark.createDataFrame([("a", "b"), ("b", "c")], "x string, y string")
    found = whorl.evaluate(spark, REACH, {"link": frame}, partitions=2)
    assert rows_of(found["reachable"]) == {("a", "b"), ("b", "c"), ("a", "c")}
    with pytest.raises(UserError, match="E507"):
        whorl.evaluate(spark, REACH, {"link": frame}, partitions=2, limits=Limits(tuples=1))
    assert _kept(spark) - before == session_keeps
    session.close()
