"""Why and why not on Spark: asked of a session, of a running query, and of the folder that it leaves."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import whorl
from tests.proof_checks import check_proof, full_database
from tests.spark.feeding import EPOCHS, REACH, Feed, links
from whorl.cli.why import WhyOptions, explain_asked
from whorl.diagnostics.source import Source
from whorl.hosts.spark.reading import read_state
from whorl.logical.compile import compile_program
from whorl.model.delta import Epoch
from whorl.model.limits import Limits
from whorl.oracle.session import Oracle

pytestmark = pytest.mark.xdist_group("spark")  # one process, and one session, for all

UNTYPED = "p(X, Y) :- a(X, Y), not b(Y).\np(X, Z) :- p(X, Y), c(Y, Z)."


def test_a_session_on_spark_explains_as_in_one_process(spark: Any) -> None:
    wanted, found = whorl.open(UNTYPED), whorl.open(UNTYPED, host=whorl.SparkHost(spark, partitions=3))
    steps: list[tuple[dict[str, list[tuple[Any, ...]]], tuple[Any, ...]]] = [
        ({"a": [(1, "x"), (2, "y")]}, (1, "x")),
        ({"c": [("x", "z"), ("y", "z")]}, (2, "z")),  # the types of c are new: partitions move their facts
        ({"c": [("z", "u")], "b": [("y",)]}, (1, "u")),
    ]
    for step, row in steps:
        for session in (wanted, found):
            for name, rows in step.items():
                session.insert(name, rows)
            session.commit()
        assert str(found["p"].why(row)) == str(wanted["p"].why(row))
        assert str(found["p"].why((None, None))) == str(wanted["p"].why((None, None)))
    assert str(found["p"].why_not((2, "u"))) == str(wanted["p"].why_not((2, "u")))
    for asked, code in (((2, "u"), "E647"), ((1,), "E644"), (("1", "x"), "E645")):
        with pytest.raises(whorl.UserError) as refused:
            found["p"].why(asked)
        assert refused.value.code == code


def test_a_running_query_explains_its_rows(spark: Any, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in")
    query = whorl.stream(
        spark, REACH, {"link": feed.frame(spark)}, checkpoint=tmp_path / "ckpt", partitions=2, snapshot_every=2
    )
    oracle = Oracle(lambda types: compile_program(Source("test.dl", REACH), data_types=types))
    try:
        for number, rows in enumerate(EPOCHS, 1):
            feed.put(rows)
            query.processAllAvailable()
            oracle.commit(Epoch(number, tuple(links(rows))))
            check_proofs(query, oracle)
        assert [len(each) for each in query.proofs("reachable", ("a", "c")).sets] == [2]
        assert len(query.cuts("reachable", ("a", "c")).sets) == 2
        assert query.lifetime("reachable", ("a", "c")).until is None
        assert query.critical("link", ("d", "e")).deltas == {"reachable": whorl.Delta((), (("d", "e"),))}
        with pytest.raises(whorl.UserError) as refused:
            query.why("reach", ("a", "b"))
        assert refused.value.code == "E601"
    finally:
        query.stop()


def check_proofs(query: Any, oracle: Oracle) -> None:
    _plan, database = full_database(oracle)
    for row in sorted(oracle.rows("reachable")):
        check_proof(query.why("reachable", row), oracle, database)
    with pytest.raises(whorl.UserError) as refused:
        query.why("reachable", ("b", "zz"))
    assert refused.value.code == "E647"
    assert "zz" in str(query.why_not("reachable", ("b", "zz")))


@pytest.fixture(scope="module")
def kept(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The program of a query, and the folder that it left after four epochs."""
    folder = tmp_path_factory.mktemp("kept")
    (folder / "reach.dl").write_text(REACH)
    feed = Feed(folder / "in")
    for rows in EPOCHS:
        feed.put(rows)
    query = whorl.stream(
        spark,
        REACH,
        {"link": feed.frame(spark)},
        checkpoint=folder / "ckpt",
        partitions=2,
        snapshot_every=2,
        trigger={"availableNow": True},
    )
    query.awaitTermination()
    query.stop()
    return folder


def ask(folder: Path, row: str, capsys: pytest.CaptureFixture[str], **options: Any) -> str:
    explain_asked(WhyOptions(folder / "reach.dl", row, checkpoint=folder / "ckpt", **options))
    return capsys.readouterr().out


def test_a_folder_answers_for_each_epoch_that_it_keeps(kept: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(ask(kept, 'reachable("a", "c")', capsys, format="json"))
    assert told == json.loads(ask(kept, 'reachable("a", "c")', capsys, format="json", epoch=4))
    assert "reachable(a, d)" in ask(kept, 'reachable("a", "d")', capsys, question="missing").replace('"', "")
    assert 'link("b", "c")' in ask(kept, 'reachable("a", "c")', capsys, epoch=2)
    assert 'fails  reachable("b", "c")' in ask(kept, 'reachable("a", "c")', capsys, epoch=3, question="missing")


def test_folders_and_epochs_that_cannot_be_asked(kept: Path, tmp_path: Path) -> None:
    def refused(folder: Path, program: str = REACH, epoch: int | None = None) -> str:
        source = Source("test.dl", program)
        with pytest.raises(whorl.UserError) as error:
            read_state(folder, lambda types: compile_program(source, data_types=types), Limits(), epoch=epoch)
        return str(error.value)

    assert refused(tmp_path).startswith("E819")
    assert refused(kept / "ckpt", epoch=9).splitlines()[0].endswith("has no state of epoch 9")
    assert refused(kept / "ckpt", epoch=9).startswith("E827")
    assert refused(kept / "ckpt", "RELATION link(X: String, Y: String).\nreachable(X, Y) :- link(Y, X).").startswith(
        "E810"
    )


def test_frames_tell_the_types_of_a_folder(spark: Any, tmp_path: Path) -> None:
    feed = Feed(tmp_path / "in", ("x", "y"))
    program = "far(X, Y) :- hop(X, Y).\nfar(X, Z) :- far(X, Y), hop(Y, Z)."
    (tmp_path / "far.dl").write_text(program)
    query = whorl.stream(spark, program, {"hop": feed.frame(spark, "x long, y long")}, checkpoint=tmp_path / "ckpt")
    feed.put([(1, 2), (2, 3)])
    query.processAllAvailable()
    # While the query runs, from another process, without Spark.
    command = [sys.executable, "-m", "whorl", "why", "far.dl", "far(1, 3)", "--checkpoint", "ckpt"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    query.stop()
    assert done.returncode == 0, done.stderr
    assert "hop(2, 3)" in done.stdout
