"""A checkpoint goes on with another number of partitions, and with another strategy; nothing is lost or told twice."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import whorl
from tests.spark.feeding import EPOCHS, REACH, Feed, check, links, reference, rows_of
from whorl.hosts.spark import checkpoint as checkpoints
from whorl.hosts.spark.checkpoint import Identity, read_identity
from whorl.hosts.spark.store import PathStore
from whorl.model.delta import Change

pytestmark = pytest.mark.xdist_group("spark")  # one process, and one session, for all

MORE = EPOCHS + [[("+", f"n{at}", f"n{at + 1}"), ("-", f"n{at - 2}", f"n{at - 1}")] for at in range(6)]


def _identity(folder: Path) -> Identity:
    return read_identity(PathStore(folder))


def run(spark: Any, folder: Path, **options: Any) -> None:
    """Bring the views up to date with the files."""
    frame = spark.readStream.schema("op string, x string, y string").option("maxFilesPerTrigger", 1)
    query = whorl.stream(
        spark,
        REACH,
        {"link": frame.json(str(folder / "in"))},
        checkpoint=folder / "ckpt",
        trigger={"availableNow": True},
        snapshot_every=2,
        **options,
    )
    try:
        started = rows_of(query.snapshot("reachable"))
        query.awaitTermination()
        wanted = reference(REACH, [links(rows) for rows in MORE][: query.epoch])
        assert rows_of(query.snapshot("reachable")) == wanted[-1]["reachable"]
        assert started in [set(), *(each["reachable"] for each in wanted)]
    finally:
        query.stop()
    check(spark, folder / "ckpt", wanted)


def test_a_checkpoint_goes_on_with_other_partitions_and_strategies(spark: Any, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in")
    changes: list[dict[str, Any]] = [
        {"partitions": 2},
        {"partitions": 3},  # more of them
        {"partitions": 1, "strategy": "dred"},  # all in one, and otherwise
        {},  # as many as there are, and the usual strategy again
    ]
    for at, options in enumerate(changes):
        for rows in MORE[2 * at : 2 * at + 2]:
            feed.put(rows)
        run(spark, tmp_path, **options)
        wanted = options.get("partitions", 1)
        assert _identity(tmp_path / "ckpt").partitions == wanted
        for state in (tmp_path / "ckpt").glob("state/*"):
            assert len(list(state.iterdir())) == wanted, "others have gone"


def test_a_checkpoint_without_epochs_takes_any_number(spark: Any, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in")
    frame = feed.frame(spark)
    for partitions in (2, 3):
        whorl.stream(spark, REACH, {"link": frame}, checkpoint=tmp_path / "ckpt", partitions=partitions).stop()
    feed.put(EPOCHS[0])
    run(spark, tmp_path)
    assert _identity(tmp_path / "ckpt").partitions == 3


def test_a_driver_that_fails_on_the_way_leaves_the_checkpoint_as_it_was(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    feed = Feed(tmp_path / "in")
    for rows in MORE[:3]:
        feed.put(rows)
    run(spark, tmp_path, partitions=2)
    before = (tmp_path / "ckpt" / "deployment.json").read_text()

    def fail(*_given: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(checkpoints, "_write", fail)
        with pytest.raises(KeyboardInterrupt):
            run(spark, tmp_path, partitions=3)
    assert (tmp_path / "ckpt" / "deployment.json").read_text() == before
    run(spark, tmp_path, partitions=3)
    feed.put(MORE[3])
    run(spark, tmp_path, partitions=2)  # once more, before any epoch


WINDOWED = """
STREAM call(At: Timestamp, A: String, B: String) WINDOW(5).
STREAM last(At: Timestamp, A: String) WINDOW(COUNT 3).
path(X, Y) :- call(_, X, Y).
path(X, Y) :- call(_, X, Z), path(Z, Y).
seen(A) :- last(_, A).
"""


def test_windows_go_on_where_they_were(spark: Any, tmp_path: Path) -> None:
    rows = [[(at, f"c{at}", f"c{at + 1}"), (at, f"c{at + 1}", f"c{at % 3}")] for at in range(1, 9)]
    feed = Feed(tmp_path / "in", ("at", "a", "b"))
    for at, partitions in enumerate((1, 3, 2, 2)):
        for each in rows[2 * at : 2 * at + 2]:
            feed.put(each)
        frame = spark.readStream.schema("at timestamp, a string, b string").option("maxFilesPerTrigger", 1)
        frame = frame.json(str(tmp_path / "in")).selectExpr("at", "a", "b")
        query = whorl.stream(
            spark,
            WINDOWED,
            {"call": frame, "last": frame.select("at", "a")},
            checkpoint=tmp_path / "ckpt",
            partitions=partitions,
            trigger={"availableNow": True},
            snapshot_every=3,
        )
        query.awaitTermination()
        query.stop()
    epochs = [[Change("call", row, 1) for row in each] + [Change("last", row[:2], 1) for row in each] for each in rows]
    wanted = reference(WINDOWED, epochs)
    for view in ("path", "seen"):
        check(spark, tmp_path / "ckpt", wanted, view)
