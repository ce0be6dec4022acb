"""`whorl run --host spark`: the same files as in one process; folders that are followed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from whorl.cli.follow import follow_program
from whorl.cli.run import RunOptions, run_program
from whorl.connectors.change_files import ChangeFile
from whorl.connectors.target import Target
from whorl.diagnostics.errors import UserError
from whorl.hosts.spark.following import follow_folder
from whorl.model.types import Type

pytestmark = pytest.mark.xdist_group("spark")  # one process, and one session, for all

PROGRAM = """
RELATION link(From: String, To: String).
STREAM ride(At: Timestamp, Name: String, Fare: Float) WINDOW(10).
reachable(X, Y) :- link(X, Y).
reachable(X, Y) :- link(X, Z), reachable(Z, Y).
fare(N, max<F>) :- ride(_, N, F).
"""


def put(path: Path, text: str, order: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    hidden = path.with_name(f".{path.name}")
    hidden.write_text(text)
    os.utime(hidden, (1_700_000_000 + order,) * 2)
    hidden.rename(path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "program.dl").write_text(PROGRAM)
    put(tmp_path / "links" / "1.csv", 'op,From,To\n+,a,b\n+,b,"c,d"\n', 1)
    put(tmp_path / "links" / "2.csv", 'op,From,To\n-,b,"c,d"\n+,b,e\n', 2)
    put(tmp_path / "rides" / "1.jsonl", '{"At": 3, "Name": "x", "Fare": 2}\n{"At": 9, "Name": "y", "Fare": 4.5}\n', 1)
    return tmp_path


def options(folder: Path, output: str, **more: Any) -> RunOptions:
    inputs = [f"link={folder / 'links'}", f"ride={folder / 'rides'}"]
    return RunOptions(folder / "program.dl", inputs, str(folder / output), host="spark", master="local[2]", **more)


def test_files_give_the_same_views_as_in_one_process(spark: Any, folder: Path) -> None:
    run_program(options(folder, "spark", emit="both", partitions=2, verify=True))
    local = RunOptions(folder / "program.dl", options(folder, "").inputs, str(folder / "local"), emit="both")
    run_program(local)
    names = sorted(path.name for path in (folder / "local").iterdir())
    assert names == ["fare.changes.csv", "fare.csv", "reachable.changes.csv", "reachable.csv"]
    for name in names:
        assert (folder / "spark" / name).read_text() == (folder / "local" / name).read_text()


def test_folders_are_followed_and_gone_on_from(spark: Any, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def follow() -> None:
        follow_program(options(folder, "out", emit="both", follow=True, once=True, checkpoint=folder / "ckpt"))

    follow()
    put(folder / "links" / "3.csv", "op,From,To\n+,e,f\n", 3)
    put(folder / "rides" / "2.jsonl", '{"At": "1970-01-01T00:00:14Z", "Name": "z", "Fare": 1}\n{"At": "?"}\n', 3)
    follow()
    assert (folder / "out" / "reachable.csv").read_text() == "X,Y\na,b\na,e\na,f\nb,e\nb,f\ne,f\n"
    assert (folder / "out" / "fare.csv").read_text() == "N,F\ny,4.5\nz,1.0\n"
    changes = (folder / "out" / "reachable.changes.csv").read_text()
    assert changes.startswith('epoch,op,X,Y\n1,+,a,b\n1,+,a,"c,d"\n1,+,b,"c,d"\n2,-,a,"c,d"\n2,-,b,"c,d"\n2,+,a,e\n')
    said = capsys.readouterr().err
    assert "epoch 1: 4 rows in; fare +2 -0, reachable +3 -0\n" in said
    assert "1 of ride set aside" in said


def test_a_change_file_holds_each_epoch_once(tmp_path: Path) -> None:
    path = tmp_path / "v.changes.csv"
    file = ChangeFile(path, ["X"])
    file.write(1, [["+", "a"]])
    file.write(2, [["+", "b, c"], ["-", "a"]])
    path.write_text(path.read_text() + "3,+")
    file.write(2, [["+", 'b"']])
    assert path.read_text() == 'epoch,op,X\n1,+,a\n2,+,"b"""\n'


def test_what_cannot_be_followed(spark: Any, tmp_path: Path) -> None:
    target = Target("link", (Type.STRING, Type.STRING), ("From", "To"))
    with pytest.raises(UserError) as refused:
        follow_folder(spark, tmp_path / "links.csv", target)
    assert refused.value.code == "E818"
    put(tmp_path / "in" / "1.jsonl", "[1, 2]\n", 1)
    with pytest.raises(UserError) as refused:
        follow_folder(spark, tmp_path / "in", target)
    assert refused.value.code == "E622"


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_the_query_in_order(folder: Path, number: int) -> None:
    command = [sys.executable, "-m", "whorl", "run", "program.dl", "--host", "spark", "--master", "local[2]"]
    command += ["--follow", "--checkpoint", "ckpt", "--output", "out", "--input", "link=links"]
    process = subprocess.Popen(command, cwd=folder, stderr=subprocess.PIPE, text=True, env={**os.environ})
    try:
        assert process.stderr is not None
        deadline = time.monotonic() + 240
        while "epoch 2:" not in process.stderr.readline():
            assert time.monotonic() < deadline
        process.send_signal(number)
        said = process.stderr.read()
        assert process.wait(120) == 0
    finally:
        process.kill()
    before, found, _after = said.partition("stopped\n2 epochs\n")  # Spark's own workers may trace their end after it
    assert found, said
    assert "Traceback" not in before
    assert "Exception" not in before
    assert (folder / "out" / "reachable.csv").read_text() == "X,Y\na,b\na,e\nb,e\n"
