"""The same views and deltas from partitions that live in Spark's workers."""

from __future__ import annotations

import gc
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import whorl
from tests.golden_cases import Case, cases
from whorl.diagnostics.errors import UserError
from whorl.hosts.spark import host
from whorl.hosts.spark.host import SparkHost
from whorl.hosts.spark.protocol import ROWS

pytestmark = pytest.mark.xdist_group("spark")  # one process, and one session, for all

SAMPLE = cases()[::6]


@pytest.mark.parametrize("case", SAMPLE, ids=lambda case: case.name)
def test_some_golden_cases_on_spark(case: Case, spark: Any) -> None:
    case.check(SparkHost(spark, partitions=3))


@pytest.mark.slow
@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_golden_cases_on_spark(case: Case, partitions: int, spark: Any) -> None:
    case.check(SparkHost(spark, partitions=partitions))


REACH = """
reachable(X, Y) :- link(X, Y).
reachable(X, Y) :- link(X, Z), reachable(Z, Y), not cut(X).
"""


def test_a_commit_is_one_job_and_comes_to_the_same_workers(spark: Any) -> None:
    context = spark.sparkContext
    context.setJobGroup("one-job", "count jobs")
    try:
        session = whorl.open(REACH, host=whorl.SparkHost(spark, partitions=3))
        processes = set()
        for number in range(1, 6):
            session.insert("link", [(number, number + 1)])
            session.insert("cut", [(0,)])
            changes = session.commit()
            assert len(changes["reachable"].inserted) == number
            assert len(context.statusTracker().getJobIdsForGroup("one-job")) == number
        for _again in range(5):
            replies = _replies(session)
            assert not any(reply.caught_up or reply.restored for reply in replies)
            processes.add(tuple(reply.process for reply in replies))
        (each,) = processes
        assert len(set(each)) == 3
    finally:
        context.setJobGroup("tests", "others")
        context.setLocalProperty("spark.jobGroup.id", None)


def _replies(session: Any) -> Any:
    """Ask all partitions for rows, and return what each answers."""
    deployment = session._host._deployment
    return deployment._anchors.ask(deployment._request(ROWS, view="reachable"), "a test")


def test_partitions_move_their_facts_when_data_tells_types(spark: Any) -> None:
    text = "p(X, Y) :- a(X, Y), not b(Y).\np(X, Z) :- p(X, Y), c(Y, Z)."
    wanted, found = whorl.open(text), whorl.open(text, host=whorl.SparkHost(spark, partitions=3))
    steps: list[dict[str, list[tuple[Any, ...]]]] = [
        {"a": [(1, "x"), (2, "y")]},
        {"c": [("x", "z"), ("y", "z")]},
        {"b": [("y",)], "a": [(3, "z")]},
    ]
    for step in steps:
        for session in (wanted, found):
            for name, rows in step.items():
                session.insert(name, rows)
        assert found.commit() == wanted.commit()
        assert found["p"].rows() == wanted["p"].rows()


def test_a_refused_epoch_leaves_no_trace_in_any_partition(spark: Any) -> None:
    text = "up(X, N) :- start(X, N).\nup(X, N + 1) :- up(X, N), N > 100."
    session = whorl.open(text, host=whorl.SparkHost(spark, partitions=3), limits=whorl.Limits(rounds=20))
    session.insert("start", [(at, at) for at in range(5)])
    session.commit()
    before = session["up"].rows()
    session.insert("start", [(7, 7), (8, 1000), (9, 9)])
    with pytest.raises(UserError) as refused:
        session.commit()
    assert refused.value.code == "E506"
    assert session["up"].rows() == before
    session.insert("start", [(9, 9)])
    assert session.commit()["up"].inserted == ((9, 9),)


def test_old_entries_go_when_states_are_saved(spark: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(host, "_SAVE_EVERY", 4)
    session = whorl.open(REACH, host=whorl.SparkHost(spark, partitions=2, folder=tmp_path))
    for number in range(14):
        session.insert("link", [(number, number + 1)])
        session.commit()
    (folder,) = tmp_path.iterdir()
    assert len(list((folder / "state").iterdir())) == 2
    assert len(list((folder / "log").iterdir())) < 10
    assert len(session["reachable"].rows()) == 14 * 15 // 2
    session.close()
    del session
    gc.collect()
    assert not folder.exists(), "it goes with the session"


def test_a_worker_whose_connection_is_closed_ends_without_a_word() -> None:
    lines = [
        "import os, socket",
        "from whorl.hosts.spark.ending import end_quietly",
        "end_quietly()",
        "ours, theirs = socket.socketpair()",
        "theirs.close()",
        "os.fdopen(ours.fileno(), 'wb').write(b'x' * 100_000)",
    ]
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGPIPE, "", "")
