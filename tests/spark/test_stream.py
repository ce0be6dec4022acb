"""Views that follow streaming frames: the change log replays to the reference's views, epoch by epoch."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import functions

import whorl
from tests.spark.feeding import EPOCHS, REACH, Feed, Rows, check, links, reference, replay, rows_of
from whorl.hosts.spark import bringing
from whorl.model.delta import Change

pytestmark = pytest.mark.xdist_group("spark")  # one process, and one session, for all


@pytest.mark.parametrize("way", ["driver", "tasks"])
def test_a_stream_follows_inserts_and_deletes(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(bringing, "SMALL_ROWS", 1_000 if way == "driver" else -1)
    monkeypatch.setattr(bringing, "estimate", lambda _frame: None)
    feed = Feed(tmp_path / "in")
    told: list[tuple[int, int]] = []

    def listen(epoch: Any) -> None:
        told.append((epoch.number, epoch.changes("reachable").count()))

    query = whorl.stream(
        spark, REACH, {"link": feed.frame(spark)}, checkpoint=tmp_path / "ckpt", partitions=3, on_epoch=listen
    )
    followed = query.changes("reachable").writeStream.format("memory").queryName(f"followed_{way}").start()
    wanted = reference(REACH, [links(rows) for rows in EPOCHS])
    before: Rows = set()
    try:
        for rows, after in zip(EPOCHS, wanted, strict=True):
            feed.put(rows)
            query.processAllAvailable()
            assert rows_of(query.snapshot("reachable")) == after["reachable"]
            assert told[-1] == (query.epoch, len(before ^ after["reachable"]))
            before = after["reachable"]
        followed.processAllAvailable()
        assert list(replay(spark.table(f"followed_{way}"), len(EPOCHS))) == [each["reachable"] for each in wanted]
        assert query.lastProgress is not None
        assert query.lastProgress["whorl"]["rows"] == len(EPOCHS[-1])
        assert query.report is not None
        assert (query.report.counts.inserted, query.report.counts.deleted) == (2, 1)
    finally:
        followed.stop()
        query.stop()
    check(spark, tmp_path / "ckpt", wanted)


def test_a_query_goes_on_where_it_was(spark: Any, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in")
    for rows in EPOCHS:
        feed.put(rows)
        query = whorl.stream(
            spark,
            REACH,
            {"link": feed.frame(spark)},
            checkpoint=tmp_path / "ckpt",
            partitions=2,
            trigger={"availableNow": True},
        )
        query.awaitTermination()
        query.stop()
    check(spark, tmp_path / "ckpt", reference(REACH, [links(rows) for rows in EPOCHS]))


def test_messages_as_kafka_gives_them_are_links(spark: Any, tmp_path: Path) -> None:
    """The line of the documentation that takes rows out of messages, on a stream with the columns of Kafka's source."""
    text = (Path(__file__).parents[2] / "docs" / "connectors.md").read_text(encoding="utf-8")
    (line,) = [line for line in text.splitlines() if line.startswith("links = messages.")]
    feed = Feed(tmp_path / "in")
    messages = feed.frame(spark).selectExpr(
        "CAST(x AS BINARY) AS key",
        "CAST(to_json(struct(op, x, y)) AS BINARY) AS value",
        "'links' AS topic",
        "0 AS partition",
        "0L AS offset",
        "current_timestamp() AS timestamp",
        "0 AS timestampType",
    )
    given: dict[str, Any] = {"messages": messages}
    exec(line, given)
    query = whorl.stream(spark, REACH, {"link": given["links"]}, checkpoint=tmp_path / "ckpt", partitions=2)
    try:
        for rows in EPOCHS:
            feed.put(rows)
            query.processAllAvailable()
    finally:
        query.stop()
    check(spark, tmp_path / "ckpt", reference(REACH, [links(rows) for rows in EPOCHS]))


WINDOWED = """
STREAM call(Ts: Timestamp, From: String, To: String) WINDOW(10).
RELATION person(Name: String, Age: Integer).
heard(A, B) :- call(_, A, B), person(A, _).
heard(A, C) :- heard(A, B), call(_, B, C).
"""


def test_frames_that_do_not_stream_come_first_and_event_time_moves_windows(spark: Any, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in", ("caller", "callee", "at"))
    people = spark.createDataFrame([(30, "a"), (31, "b")], "age int, name string")
    calls = feed.frame(spark, "caller string, callee string, at timestamp")
    calls = calls.withColumnsRenamed({"caller": "from", "callee": "to"})
    query = whorl.stream(
        spark,
        WINDOWED,
        {"call": calls, "person": people},
        checkpoint=tmp_path / "ckpt",
        event_time={"call": "at"},
        partitions=2,
    )
    try:
        assert (query.epoch, query.time) == (1, None)
        feed.put([("a", "b", "1970-01-01T00:00:05.250Z"), ("b", "c", "1970-01-01T00:00:09Z")])
        query.processAllAvailable()
        assert rows_of(query.snapshot("heard")) == {("a", "b"), ("a", "c"), ("b", "c")}
        feed.put([("c", "d", "1970-01-01T00:00:17Z")])
        query.processAllAvailable()
        assert (query.epoch, query.time) == (3, 17)
        assert rows_of(query.snapshot("heard")) == {("b", "c"), ("b", "d")}
    finally:
        query.stop()


@pytest.mark.parametrize("way", ["driver", "tasks"])
def test_rows_that_do_not_fit_are_set_aside(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    monkeypatch.setattr(bringing, "SMALL_ROWS", 1_000 if way == "driver" else -1)
    monkeypatch.setattr(bringing, "estimate", lambda _frame: None)
    program = "RELATION at(X: String, Where: Term, Height: Float).\nhigh(X) :- at(X, _, H), H > 1."
    feed = Feed(tmp_path / "in", ("op", "x", "where", "height"))
    frame = feed.frame(spark, "op string, x string, where string, height double")
    query = whorl.stream(spark, program, {"at": frame}, checkpoint=tmp_path / "ckpt", partitions=2)
    try:
        feed.put([("+", "a", "p(1)", 2.0)])
        query.processAllAvailable()
        feed.put(
            [
                ("+", "b", "p(2)", 3.5),
                ("+", None, "p(2)", 3.5),
                ("*", "c", "p(2)", 3.5),
                ("+", "d", "p(", 3.5),
                ("-", "a", "p(1)", 2),
            ]
        )
        query.processAllAvailable()
        assert rows_of(query.snapshot("high")) == {("b",)}
        assert query.lastProgress is not None
        assert query.lastProgress["whorl"]["quarantined"] == {"at": 3}
        (aside,) = (tmp_path / "ckpt" / "quarantine" / "epoch-0000000002").iterdir()
        told = [json.loads(line) for line in aside.read_text().splitlines()]
        assert [each["reason"] for each in told] == [
            'column "X" has no value',
            'the operation is "*"',
            'column "Where" holds "p(", not a Term',
        ]
        assert told[2]["row"] == {"X": "d", "Where": "p(", "Height": 3.5}
    finally:
        query.stop()


def test_a_refused_epoch_ends_the_query_and_leaves_the_views(spark: Any, tmp_path: Path) -> None:
    program = "RELATION n(X: Integer).\nup(X) :- n(X).\nup(X + 1) :- up(X), X > 1."
    feed = Feed(tmp_path / "in", ("op", "x"))
    query = whorl.stream(
        spark,
        program,
        {"n": feed.frame(spark, "op string, x long")},
        checkpoint=tmp_path / "ckpt",
        limits=whorl.Limits(rounds=50),
    )
    try:
        feed.put([("+", 1)])
        query.processAllAvailable()
        feed.put([("+", 2)])
        with pytest.raises(whorl.UserError) as refused:
            query.processAllAvailable()
        assert refused.value.code == "E506"
        assert rows_of(query.snapshot("up")) == {(1,)}
        assert query.epoch == 1
    finally:
        query.stop()


def test_the_console_shows_epochs(spark: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    feed = Feed(tmp_path / "in")
    query = whorl.stream(
        spark, REACH, {"link": feed.frame(spark)}, checkpoint=tmp_path / "ckpt", on_epoch="console", partitions=1
    )
    try:
        feed.put([("+", "a", "b")])
        query.processAllAvailable()
    finally:
        query.stop()
    shown = capsys.readouterr().out
    assert shown.startswith("@1\nreachable: +1 -0\n")
    assert "|a  |b  |1     |+  |" in shown


def test_changes_as_catalogs_tell_them(spark: Any, tmp_path: Path) -> None:
    """Rows of the form that `readStream.changes` has; no catalog that Spark brings makes them."""
    feed = Feed(tmp_path / "in", ("x", "y", "_change_type", "_commit_version"))
    found = feed.frame(spark, "x string, y string, _change_type string, _commit_version bigint")
    gone = functions.col("_change_type").isin("delete", "update_preimage")
    changes = found.withColumn("op", functions.when(gone, "-").otherwise("+"))
    frame = changes.drop("_change_type", "_commit_version")
    query = whorl.stream(spark, REACH, {"link": frame}, checkpoint=tmp_path / "ckpt", partitions=2)
    try:
        feed.put([("a", "b", "insert", 1), ("b", "c", "insert", 1)])
        query.processAllAvailable()
        feed.put([("b", "c", "update_preimage", 2), ("b", "d", "update_postimage", 2), ("a", "b", "delete", 3)])
        query.processAllAvailable()
        assert rows_of(query.snapshot("reachable")) == {("b", "d")}
    finally:
        query.stop()


def test_links_of_the_feed() -> None:
    assert links([("-", "a", "b")]) == [Change("link", ("a", "b"), -1)]
