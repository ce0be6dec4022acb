"""After every fault, the change log replays to the reference's views: no epoch missing, none twice."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import whorl
from tests.golden_cases import HERE
from tests.spark.feeding import EPOCHS, REACH, Feed, check, forget_workers, links, reference, rows_of
from whorl.hosts.spark.faults import AFTER_CALLBACK, HALF_PUBLISHED, POINTS, VARIABLE

pytestmark = pytest.mark.xdist_group("spark")  # one process, and one session, for all

MORE = [[("+", f"n{at}", f"n{at + 1}"), ("-", f"n{at - 2}", f"n{at - 1}")] for at in range(8)]


def drive(folder: Path, fail_at: str | None = None, master: str = "local[2]", **variables: str) -> int:
    """Run a driver to its end, or to its death."""
    environment = {**os.environ, VARIABLE: fail_at or "", "WHORL_TEST_MASTER": master, **variables}
    command = [sys.executable, "-m", "tests.spark.driver", str(folder)]
    done = subprocess.run(
        command, env=environment, cwd=HERE.parent, timeout=300, capture_output=True, text=True, check=False
    )
    assert done.returncode in (0, -signal.SIGKILL), done.stderr
    return done.returncode


def check_told(folder: Path, epochs: int) -> None:
    """Listeners hear of every epoch in order, of the last before a death perhaps again."""
    told = [int(line) for line in (folder / "told").read_text().splitlines()]
    assert sorted(set(told)) == list(range(1, epochs + 1))
    assert told == sorted(told)


def test_a_driver_killed_between_manifest_and_readers(spark: Any, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in")
    for rows in EPOCHS:
        feed.put(rows)
    assert drive(tmp_path, f"{HALF_PUBLISHED}:2") == -signal.SIGKILL
    assert drive(tmp_path) == 0
    check(spark, tmp_path / "ckpt", reference(REACH, [links(rows) for rows in EPOCHS]))
    check_told(tmp_path, len(EPOCHS))


@pytest.mark.slow
def test_a_driver_killed_at_every_step(spark: Any, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in")
    rows = EPOCHS + MORE
    for each in rows:
        feed.put(each)
    for epoch, point in enumerate(POINTS, 1):
        assert drive(tmp_path, f"{point}:{epoch}") == -signal.SIGKILL, point
        counted = epoch if POINTS.index(point) > POINTS.index("half-manifest") else epoch - 1
        assert len(list((tmp_path / "ckpt" / "manifest").glob("[0-9]*.json"))) <= counted
    assert drive(tmp_path) == 0
    check(spark, tmp_path / "ckpt", reference(REACH, [links(each) for each in rows]))
    check_told(tmp_path, len(rows))
    told = (tmp_path / "told").read_text().splitlines()
    assert told.count(str(POINTS.index(AFTER_CALLBACK) + 1)) == 2


@pytest.mark.slow
def test_executors_in_processes_of_their_own(spark: Any, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in")
    for rows in EPOCHS:
        feed.put(rows)
    assert drive(tmp_path, f"{HALF_PUBLISHED}:2", "local-cluster[2,1,1024]") == -signal.SIGKILL
    assert drive(tmp_path, None, "local-cluster[2,1,1024]") == 0
    check(spark, tmp_path / "ckpt", reference(REACH, [links(rows) for rows in EPOCHS]))
    check_told(tmp_path, len(EPOCHS))


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
    query = whorl.stream(
        spark,
        program,
        {"link": feed.frame(spark)},
        checkpoint=tmp_path / "ckpt",
        functions=[same],
        partitions=2,
        snapshot_every=2,
    )
    try:
        for number, rows in enumerate(EPOCHS):
            if number:
                flag.touch()
            feed.put(rows)
            query.processAllAvailable()
            assert number != 1 or not flag.exists(), "nobody died"
            flag.unlink(missing_ok=True)
    finally:
        query.stop()
    check(spark, tmp_path / "ckpt", reference(REACH, [links(rows) for rows in EPOCHS]))


# Damaged files


def run(spark: Any, folder: Path, **options: Any) -> None:
    """Bring the views up to date with the files, from files alone."""
    if (folder / "ckpt" / "deployment.json").exists():
        forget_workers(folder / "ckpt")
    schema = "op string, x string, y string"
    frame = spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(folder / "in"))
    query = whorl.stream(
        spark,
        REACH,
        {"link": frame},
        checkpoint=folder / "ckpt",
        trigger={"availableNow": True},
        **{"partitions": 2, "snapshot_every": 2, **options},
    )
    try:
        query.awaitTermination()
        wanted = reference(REACH, [links(rows) for rows in EPOCHS + MORE][: query.epoch])
        assert rows_of(query.snapshot("reachable")) == wanted[-1]["reachable"]
    finally:
        query.stop()
    check(spark, folder / "ckpt", wanted)


@pytest.fixture
def settled(spark: Any, tmp_path: Path) -> tuple[Path, Feed]:
    """Seven epochs, with states saved after the fourth and the sixth."""
    feed = Feed(tmp_path / "in")
    for rows in (EPOCHS + MORE)[:7]:
        feed.put(rows)
    run(spark, tmp_path)
    saved = sorted(path.name[:10] for path in (tmp_path / "ckpt" / "state").iterdir())
    assert saved == ["0000000004", "0000000006"]
    logged = sorted(path.name[:10] for path in (tmp_path / "ckpt" / "log").glob("*.entry"))
    assert logged == ["0000000004", "0000000005", "0000000006", "0000000007"]
    return tmp_path, feed


def newest(folder: Path) -> Path:
    return max(folder.iterdir(), key=lambda path: path.name)


def test_state_comes_back_from_files_alone(spark: Any, settled: tuple[Path, Feed]) -> None:
    folder, feed = settled
    feed.put(MORE[3])
    run(spark, folder)


def test_a_missing_state_is_made_from_the_one_before(spark: Any, settled: tuple[Path, Feed]) -> None:
    folder, feed = settled
    shutil.rmtree(newest(folder / "ckpt" / "state") / "partition-1")
    feed.put(MORE[3])
    run(spark, folder)


def test_a_damaged_state_is_made_from_the_one_before(spark: Any, settled: tuple[Path, Feed]) -> None:
    folder, feed = settled
    damaged = newest(folder / "ckpt" / "state") / "partition-0" / "dictionary.arrow"
    damaged.write_bytes(damaged.read_bytes()[:-20])
    feed.put(MORE[3])
    run(spark, folder)


def test_a_truncated_entry_that_does_not_count_is_passed_over(spark: Any, settled: tuple[Path, Feed]) -> None:
    folder, feed = settled
    entry = newest(folder / "ckpt" / "log")
    (entry.parent / "0000000008-deadbeef.entry").write_bytes(entry.read_bytes()[:-5])
    feed.put(MORE[3])
    run(spark, folder)
    assert not (entry.parent / "0000000008-deadbeef.entry").exists()


def test_a_truncated_entry_that_counts_is_refused(spark: Any, settled: tuple[Path, Feed]) -> None:
    folder, feed = settled
    entry = newest(folder / "ckpt" / "log")
    entry.write_bytes(entry.read_bytes()[:-5])
    feed.put(MORE[3])
    with pytest.raises(whorl.UserError) as refused:
        run(spark, folder)
    assert refused.value.code == "E821"
    assert str(entry) in str(refused.value)
    check(spark, folder / "ckpt", reference(REACH, [links(rows) for rows in EPOCHS + MORE][:7]))


def test_without_any_state_the_query_is_refused(spark: Any, settled: tuple[Path, Feed]) -> None:
    folder, feed = settled
    shutil.rmtree(folder / "ckpt" / "state")
    feed.put(MORE[3])
    with pytest.raises(whorl.UserError) as refused:
        run(spark, folder)
    assert refused.value.code == "E822"
