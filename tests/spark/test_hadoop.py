"""State in a file system that only Spark reaches: files go with jobs, and nothing else changes."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import whorl
from tests.spark.afar import mount
from tests.spark.feeding import EPOCHS, REACH, Feed, check, forget_workers, links, reference, rows_of
from tests.spark.test_recovery import MORE, check_told, drive, newest
from whorl.hosts.spark import deployment
from whorl.hosts.spark.faults import AFTER_LOG, HALF_MANIFEST, HALF_PUBLISHED, POINTS
from whorl.hosts.spark.hadoop import HadoopStore, Lease
from whorl.hosts.spark.host import SparkPartitions
from whorl.model.delta import Delta

pytestmark = pytest.mark.xdist_group("spark")  # one process, and one session, for all

ROWS = EPOCHS + MORE
WANTED = reference(REACH, [links(rows) for rows in ROWS])
SCHEMA = "op string, x string, y string"


@pytest.fixture(params=[pytest.param(1 << 20, id="small"), pytest.param(0, id="large", marks=pytest.mark.slow)])
def size(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> int:
    """Files that go with replies, or that Spark writes."""
    found: int = request.param
    monkeypatch.setattr(deployment, "MOST_BYTES", found)
    return found


@contextmanager
def running(spark: Any, folder: Path, program: str = REACH, **options: Any) -> Iterator[Any]:
    """A query over `FOLDER/in` whose state is in `FOLDER/ckpt`, which this process sees only through Spark."""
    frame = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder / "in"))
    chosen = {"partitions": 2, "snapshot_every": 2, **options}
    query = whorl.stream(spark, program, {"link": frame}, checkpoint=f"{mount(spark, folder)}/ckpt", **chosen)
    try:
        yield query
    finally:
        query.stop()


def follow(spark: Any, folder: Path, **options: Any) -> None:
    """Bring the views up to date with the files."""
    with running(spark, folder, trigger={"availableNow": True}, **options) as query:
        query.awaitTermination()
        assert rows_of(query.snapshot("reachable")) == WANTED[query.epoch - 1]["reachable"]
        check(spark, folder / "ckpt", WANTED[: query.epoch])


@pytest.mark.usefixtures("size")
def test_a_query_is_followed_stopped_and_goes_on(spark: Any, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in")
    for start in (0, 5):
        with running(spark, tmp_path) as query:
            for rows in ROWS[start : start + 5]:
                feed.put(rows)
                query.processAllAvailable()
            assert query.epoch == start + 5
            assert rows_of(query.snapshot("reachable")) == WANTED[query.epoch - 1]["reachable"]
            assert "link" in str(query.why("reachable", ("a", "b")))
            sink = query.changes("reachable").writeStream.format("memory").queryName(f"far{start}").start()
            sink.processAllAvailable()
            sink.stop()
            assert spark.table(f"far{start}").count() == sum(len(set(a) ^ set(b)) for a, b in _steps(query.epoch))
    check(spark, tmp_path / "ckpt", WANTED[:10])


def _steps(epochs: int) -> list[tuple[Any, Any]]:
    views = [set[Any](), *(each["reachable"] for each in WANTED[:epochs])]
    return list(pairwise(views))


def test_an_epoch_is_one_job_here_too(spark: Any, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in")
    tracker = spark.sparkContext.statusTracker()
    with running(spark, tmp_path, snapshot_every=50) as query:
        counts = []
        for rows in EPOCHS:
            feed.put(rows)
            query.processAllAvailable()
            counts.append(len(tracker.getJobIdsForGroup(str(query.spark_query.runId))))
    first = counts[0]  # workers are given the plan, and how to read the rows
    assert counts == [first, first + 1, first + 2, first + 3]
    assert first <= 5


@pytest.mark.usefixtures("size")
def test_a_worker_killed_in_mid_step(spark: Any, tmp_path: Path) -> None:
    flag = tmp_path / "die"

    @whorl.function
    def same(x: str) -> str:
        if flag.exists():
            flag.unlink()
            os.kill(os.getpid(), signal.SIGKILL)
        return x

    program = REACH.replace("reachable(X, Y) :- link(X, Y).", "reachable(X, Z) :- link(X, Y), Z = same(Y).")
    feed = Feed(tmp_path / "in")
    with running(spark, tmp_path, program, functions=[same]) as query:
        for number, rows in enumerate(EPOCHS):
            if number:
                flag.touch()
            feed.put(rows)
            query.processAllAvailable()
            assert number != 1 or not flag.exists(), "nobody died"
            flag.unlink(missing_ok=True)
    check(spark, tmp_path / "ckpt", WANTED[: len(EPOCHS)])


@pytest.mark.slow
def test_a_driver_killed_around_its_commit(spark: Any, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in")
    for rows in EPOCHS:
        feed.put(rows)
    for epoch, point in ((1, AFTER_LOG), (2, HALF_MANIFEST), (3, HALF_PUBLISHED)):
        assert drive(tmp_path, f"{point}:{epoch}", WHORL_TEST_AFAR=str(1 << 20)) == -signal.SIGKILL
    assert drive(tmp_path, WHORL_TEST_AFAR=str(1 << 20)) == 0
    check(spark, tmp_path / "ckpt", WANTED[: len(EPOCHS)])
    check_told(tmp_path, len(EPOCHS))


@pytest.mark.slow
@pytest.mark.parametrize("size", [1 << 20, 0])
def test_a_driver_killed_at_every_step(spark: Any, tmp_path: Path, size: int) -> None:
    feed = Feed(tmp_path / "in")
    for rows in ROWS:
        feed.put(rows)
    for epoch, point in enumerate(POINTS, 1):
        assert drive(tmp_path, f"{point}:{epoch}", WHORL_TEST_AFAR=str(size)) == -signal.SIGKILL, point
    assert drive(tmp_path, WHORL_TEST_AFAR=str(size)) == 0
    check(spark, tmp_path / "ckpt", WANTED)
    check_told(tmp_path, len(ROWS))


@pytest.mark.slow
def test_executors_in_processes_of_their_own(spark: Any, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in")
    for rows in ROWS[:6]:
        feed.put(rows)
    cluster = "local-cluster[2,1,1024]"
    assert drive(tmp_path, f"{HALF_PUBLISHED}:4", cluster, WHORL_TEST_AFAR="0") == -signal.SIGKILL
    assert drive(tmp_path, None, cluster, WHORL_TEST_AFAR="0") == 0
    check(spark, tmp_path / "ckpt", WANTED[:6])


# Files that are not whole


@pytest.fixture
def settled(spark: Any, tmp_path: Path, size: int) -> tuple[Path, int]:
    """Seven epochs, with states saved after the fourth and the sixth; an eighth is to come, from files alone."""
    feed = Feed(tmp_path / "in")
    for rows in ROWS[:7]:
        feed.put(rows)
    follow(spark, tmp_path)
    assert [path.name[:10] for path in sorted((tmp_path / "ckpt" / "state").iterdir())] == ["0000000004", "0000000006"]
    feed.put(ROWS[7])
    forget_workers(tmp_path / "ckpt")
    return tmp_path, size


def test_state_comes_back_from_files_alone(spark: Any, settled: tuple[Path, int]) -> None:
    follow(spark, settled[0])


def test_a_missing_state_is_made_from_the_one_before(spark: Any, settled: tuple[Path, int]) -> None:
    folder, size = settled
    state = newest(folder / "ckpt" / "state")
    shutil.rmtree(state / "partition-1" if size else state)
    follow(spark, folder)


def test_a_damaged_state_is_made_from_the_one_before(spark: Any, settled: tuple[Path, int]) -> None:
    folder, _size = settled
    for path in newest(folder / "ckpt" / "state").rglob("*"):
        if path.name == "dictionary.arrow" or path.name.endswith(".parquet"):
            path.write_bytes(path.read_bytes()[:-20])
        if path.name.startswith("."):
            path.unlink()  # a checksum of Hadoop's own
    follow(spark, folder)


def test_an_entry_that_counts_and_is_damaged_is_refused(spark: Any, settled: tuple[Path, int]) -> None:
    folder, _size = settled
    entry = max((folder / "ckpt" / "log").glob("*.entry"))
    entry.write_bytes(entry.read_bytes()[:40])
    with pytest.raises(whorl.UserError) as refused:
        follow(spark, folder)
    assert refused.value.code == "E821"
    assert f"{mount(spark, folder)}/ckpt/log/{entry.name}" in str(refused.value)


def test_another_number_of_partitions_takes_over(spark: Any, settled: tuple[Path, int]) -> None:
    follow(spark, settled[0], partitions=3, strategy="dred")


# Others that use a folder


def test_two_drivers_do_not_hold_one_folder(spark: Any, tmp_path: Path) -> None:
    Feed(tmp_path / "in")
    with running(spark, tmp_path), pytest.raises(whorl.UserError) as refused, running(spark, tmp_path):
        pass
    assert refused.value.code == "E813"
    with running(spark, tmp_path):
        pass


def test_whoever_loses_the_folder_commits_no_more(spark: Any, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in")
    with running(spark, tmp_path) as query:
        store = HadoopStore(spark, f"{mount(spark, tmp_path)}/ckpt")
        store.write(store.layout.run / "lock", b"another-machine 1 0 1")
        feed.put(EPOCHS[0])
        with pytest.raises(whorl.UserError) as refused:
            query.processAllAvailable()
    assert refused.value.code == "E813"
    assert not list((tmp_path / "ckpt" / "manifest").glob("*.json"))


def test_a_holder_that_is_gone_is_passed_over(spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("whorl.hosts.spark.hadoop._LEASE_S", 0.5)
    store = HadoopStore(spark, f"{mount(spark, tmp_path)}/ckpt")
    store.write(store.layout.run / "lock", b"another-machine 1 0 1")
    lease = Lease(store)
    lease.check()
    lease.close()
    assert store.names(store.layout.run) == []


def test_rows_that_do_not_fit_and_a_single_run(spark: Any, tmp_path: Path) -> None:
    there = mount(spark, tmp_path)
    frame = spark.createDataFrame([("a", "b"), ("b", "c")], "x string, y string")
    found = whorl.evaluate(spark, REACH, {"link": frame}, partitions=2, folder=there)
    assert rows_of(found["reachable"]) == {("a", "b"), ("b", "c"), ("a", "c")}
    odd = spark.createDataFrame([("a", "b"), ("b", None)], "x string, y string")
    with pytest.raises(whorl.UserError) as refused:
        whorl.evaluate(spark, REACH, {"link": odd}, partitions=2, folder=there)
    assert refused.value.code == "E809"


def test_partitions_that_exchange_rows(spark: Any, tmp_path: Path) -> None:
    program = "component(X, min<X>) :- edge(X, _).\ncomponent(Y, min<L>) :- component(X, L), edge(X, Y).\n"
    host = whorl.SparkHost(spark, partitions=3, folder=mount(spark, tmp_path))
    session = whorl.open(program, host=host)
    session.insert("edge", [(at, at + 1) for at in range(5)])
    session.commit()
    assert isinstance(session._host, SparkPartitions)
    started = session._host._deployment
    process = started._anchors.ask(started._request("idle"), "who is there")[1].process
    os.kill(process, signal.SIGKILL)
    session.delete("edge", [(2, 3)])
    apart, joined = tuple((at, 3) for at in range(3, 6)), tuple((at, 0) for at in range(3, 6))
    assert session.commit()["component"] == Delta(apart, joined)


@pytest.mark.parametrize("folder", ["s3://bucket/state", Path("nowhere://host/state")])
def test_file_systems_that_spark_does_not_reach(spark: Any, tmp_path: Path, folder: Any) -> None:
    frame = Feed(tmp_path / "in").frame(spark)
    with pytest.raises(whorl.UserError) as refused:
        whorl.stream(spark, REACH, {"link": frame}, checkpoint=folder)
    assert refused.value.code == "E828"
    assert "No FileSystem for scheme" in str(refused.value)
