"""What keeps epochs short: counted, not timed."""

from __future__ import annotations

import gc
import random
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql.functions import udf

import whorl
from tests.spark.feeding import EPOCHS, REACH, Feed, reference, rows_of
from whorl.hosts.spark import bringing
from whorl.hosts.spark.deployment import Deployment
from whorl.hosts.spark.garbage import Rest
from whorl.hosts.spark.layout import Layout
from whorl.hosts.spark.shares import read_share
from whorl.hosts.spark.stepped import Stepped
from whorl.model.delta import Change

pytestmark = pytest.mark.xdist_group("spark")  # one process, and one session, for all


def test_workers_do_not_look_through_the_kernel_after_every_task(spark: Any) -> None:
    @whorl.function
    def resting(x: int) -> str:
        return f"{x} {gc.get_freeze_count()}"

    host = whorl.SparkHost(spark, partitions=1)  # others would count otherwise
    session = whorl.open("found(Y) :- start(X), Y = resting(X).", host=host, functions=[resting])
    session.insert("start", [(0,)])
    session.commit()
    session.insert("start", [(1,)])
    ((found,),) = session.commit()["found"].inserted
    who, frozen = str(found).split()
    assert who == "1"
    assert int(frozen) > 10_000


def test_a_partition_that_goes_is_garbage_like_any_other() -> None:
    class Cycle:
        def __init__(self) -> None:
            self.own = self

    rest, kept = Rest(), Cycle()
    seen = weakref.ref(kept)
    gc.collect()
    try:
        rest.begin()
        del kept
        gc.collect()
        assert seen() is not None, "the collector does not see it"
        rest.end()
        gc.collect()
        assert seen() is None
        assert gc.get_freeze_count() == 0
        rest.begin()
        assert gc.get_freeze_count() > 0
    finally:
        gc.unfreeze()


CHEAPEST = """
RELATION link(X: String KEY, Y: String KEY, Cost: Integer).
cheapest(X, Y, mmin<C>) :- link(X, Y, C).
cheapest(X, Z, mmin<C>) :- cheapest(X, Y, C1), link(Y, Z, C2), C = C1 + C2.
"""
REGIONS = """
RELATION hot(Id: Integer).
RELATION at(Id: Integer, Place: Integer).
region(R, S) :- hot(R), S = R.
region(R, T) :- region(R, S), at(S, P), hot(T), at(T, Q), distance([P], [Q]) < 20.
size(R, count<S>) :- region(R, S).
"""
PLACES = [(number, 12 * number) for number in range(8)]
WEIGHED = [
    [("+", "a", "b", 4), ("+", "b", "c", 3), ("+", "a", "c", 9)],
    [("+", "a", "c", 5), ("-", "b", "c", 3)],
    [("+", "b", "c", 0)],
]
HOT = [[("+", 0), ("+", 1), ("+", 3)], [("+", 2)], [("-", 1), ("+", 7)]]


@pytest.mark.parametrize(
    ("program", "epochs", "schema"),
    [
        (REACH, EPOCHS, "op string, x string, y string"),
        (CHEAPEST, WEIGHED, "op string, x string, y string, cost long"),
        (REGIONS, HOT, "op string, id long"),
    ],
    ids=["reachable", "cheapest", "regions"],
)
@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("way", ["few", "many"])
def test_an_epoch_is_one_job(
    spark: Any,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    program: str,
    epochs: Sequence[Sequence[Sequence[Any]]],
    schema: str,
    partitions: int,
    way: str,
) -> None:
    """Whatever the program, how many rows and partitions: one job, the source read once, the same workers."""
    monkeypatch.setattr(bringing, "SMALL_BYTES", 1 << 20 if way == "few" else 0)
    stepped = spy_on_steps(monkeypatch)
    still = {"at": spark.createDataFrame(PLACES, "id long, place long")} if program == REGIONS else {}
    name = "hot" if still else "link"
    feed = Feed(tmp_path / "in", [column.split()[0] for column in schema.split(", ")])
    query = whorl.stream(
        spark,
        program,
        {name: feed.frame(spark, schema), **still},
        checkpoint=tmp_path / "ckpt",
        partitions=partitions,
    )
    tracker = spark.sparkContext.statusTracker()
    first = [Change("at", row, 1) for row in PLACES] if still else []
    changes = [[Change(name, tuple(row[1:]), 1 if row[0] == "+" else -1) for row in rows] for rows in epochs]
    wanted = reference(program, [first, *changes] if still else changes)[-len(epochs) :]
    try:
        for number, (rows, after) in enumerate(zip(epochs, wanted, strict=True), 1):
            feed.put(rows)
            query.processAllAvailable()
            assert query.epoch == number + bool(still)
            assert len(tracker.getJobIdsForGroup(str(query.spark_query.runId))) == number
            assert numbers_of_rows(query)[-1] == len(rows)
            for view in query.views:
                assert rows_of(query.snapshot(view)) == after[view]
    finally:
        query.stop()
    assert not any(reply.caught_up or reply.restored for each in stepped for reply in each.replies)
    assert len({tuple(reply.process for reply in each.replies) for each in stepped}) == 1


@pytest.mark.filterwarnings("ignore:PySpark does not yet fully support pandas")
def test_partitions_agree_on_rows_that_are_different_each_time(spark: Any, tmp_path: Path) -> None:
    """The links are copied to all partitions, and random: had each read them for itself, the views would not fit."""
    feed = Feed(tmp_path / "in", ["x"])
    draw = udf(lambda x: f"{x}{random.random()}", "string").asNondeterministic()
    links = feed.frame(spark, "x string").select("x", draw("x").alias("y"))
    query = whorl.stream(spark, REACH, {"link": links}, checkpoint=tmp_path / "ckpt", partitions=3)
    try:
        feed.put([(f"n{number}",) for number in range(20)])
        query.processAllAvailable()
        (entry,) = (tmp_path / "ckpt" / "log").glob("*.entry")
        _time, batches = read_share(Layout(tmp_path / "ckpt"), entry.stem, 0, 1, 2)
        logged = {row for batch in batches for row in batch.rows()}
        assert len(logged) == 20
        assert rows_of(query.snapshot("reachable")) == logged
    finally:
        query.stop()


def numbers_of_rows(query: Any) -> list[int]:
    """Return how many rows Spark says that it has read, for each micro-batch."""
    return [each.numInputRows for each in query.spark_query.recentProgress if "addBatch" in each.durationMs]


def spy_on_steps(monkeypatch: pytest.MonkeyPatch) -> list[Stepped]:
    """Return a list to which every step of a stream is added."""
    found: list[Stepped] = []
    step = Deployment.step_with

    def spied(*args: Any, **options: Any) -> Stepped:
        found.append(step(*args, **options))
        return found[-1]

    monkeypatch.setattr(Deployment, "step_with", spied)
    return found
