"""Executors in processes of their own: the same views, whichever of them is killed, and when."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.spark.cluster_settings import LOCAL_CLUSTER
from tests.spark.feeding import EPOCHS, REACH, Feed, check, links, reference
from tests.spark.processes import await_, below, driver, executor_above, executors_of, finish, standalone
from tests.spark.sampler import SAMPLE

pytestmark = pytest.mark.xdist_group("spark")  # one process, and one session, for all


@pytest.mark.slow
def test_executors_killed_between_epochs_and_in_the_middle_of_one(spark: Any, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in")
    with driver("tests.spark.follower", str(tmp_path), LOCAL_CLUSTER) as process:
        _put(feed, tmp_path, 1)
        await_(lambda: len(executors_of(process.pid)) == 2, "both executors")
        first = executors_of(process.pid)
        os.kill(first[0], signal.SIGKILL)
        _put(feed, tmp_path, 2)
        (tmp_path / "hold").touch()
        feed.put(EPOCHS[2])
        feed.put(EPOCHS[3])
        await_((tmp_path / "held").exists, "a worker in the middle of epoch 3")
        busy = executor_above(int((tmp_path / "held").read_text()))
        os.kill(busy, signal.SIGKILL)
        (tmp_path / "hold").unlink()
        _await_epoch(tmp_path, 4)
        await_(lambda: len(executors_of(process.pid)) == 2, "a new executor")
        assert first[0] not in below(process.pid)
        assert busy not in below(process.pid)
        (tmp_path / "stop").touch()
        finish(process)
    check(spark, tmp_path / "ckpt", reference(REACH, [links(rows) for rows in EPOCHS]))


@pytest.mark.slow
def test_golden_cases_and_a_stream_on_executors_of_their_own(spark: Any, tmp_path: Path) -> None:
    _check_sample(spark, tmp_path, LOCAL_CLUSTER)


@pytest.mark.slow
def test_golden_cases_and_a_stream_on_a_standalone_cluster(spark: Any, tmp_path: Path) -> None:
    with standalone(tmp_path / "cluster") as address:
        _check_sample(spark, tmp_path, address)


def _check_sample(spark: Any, folder: Path, master: str) -> None:
    feed = Feed(folder / "in")
    for rows in EPOCHS:
        feed.put(rows)
    with driver("tests.spark.sampler", str(folder), master) as process:
        said = finish(process)
    assert said.count("golden ") == len(SAMPLE)
    check(spark, folder / "ckpt", reference(REACH, [links(rows) for rows in EPOCHS]))


def _put(feed: Feed, folder: Path, epoch: int) -> None:
    feed.put(EPOCHS[epoch - 1])
    _await_epoch(folder, epoch)


def _await_epoch(folder: Path, epoch: int) -> None:
    await_((folder / "ckpt" / "manifest" / f"{epoch:010}.json").exists, f"epoch {epoch}")
