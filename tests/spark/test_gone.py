"""Why a row went, asked of the folder that a query leaves."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import whorl
from tests.command_line import whorl as command
from tests.spark.feeding import EPOCHS, REACH, Feed

pytestmark = pytest.mark.xdist_group("spark")  # one process, and one session, for all

WINDOW = """
STREAM link(Ts: Timestamp, X: Integer, Y: Integer) WINDOW(10, 1).
reachable(Ts, X, Y) :- link(Ts, X, Y).
reachable(Ts, X, Z) :- link(Ts1, X, Y), reachable(Ts2, Y, Z), largest(Ts, Ts1, Ts2).
"""


def leave(spark: Any, folder: Path, program: str, epochs: list[Any], schema: str, snapshot_every: int) -> None:
    """Run a query over epochs to its end."""
    (folder / "net.dl").write_text(program)
    feed = Feed(folder / "in", [each.split()[0] for each in schema.split(", ")])
    for rows in epochs:
        feed.put(rows)
    query = whorl.stream(
        spark,
        program,
        {"link": feed.frame(spark, schema)},
        checkpoint=folder / "ckpt",
        partitions=2,
        snapshot_every=snapshot_every,
        trigger={"availableNow": True},
    )
    query.awaitTermination()
    query.stop()


def gone(folder: Path, row: str, *more: str) -> str:
    told = command("why", str(folder / "net.dl"), row, "--checkpoint", str(folder / "ckpt"), "--gone", *more)
    return told.out or told.err


def test_a_folder_tells_which_facts_took_a_row_along(spark: Any, tmp_path: Path) -> None:
    leave(spark, tmp_path, REACH, EPOCHS, "op string, x string, y string", 2)
    row = 'reachable("a", "d")'
    assert gone(tmp_path, row) == f'{row} went in epoch 3.\n  link("b", "c") was deleted\n'
    assert gone(tmp_path, 'reachable("c", "d")') == (
        'reachable("c", "d") went in epoch 4.\n  link("c", "d") was deleted\n'
    )
    lost = [{"relation": "link", "row": ["b", "c"], "how": "was deleted"}]
    told = json.loads(gone(tmp_path, row, "--epoch", "3", "--format", "json"))
    assert told == {"row": row, "epoch": 3, "time": None, "lost": lost}
    assert gone(tmp_path, row, "--epoch", "2").startswith(f"E648 {row} is there\n")
    assert gone(tmp_path, 'reachable("e", "a")').startswith('E656 reachable("e", "a") is in no epoch')
    assert gone(tmp_path, row, "--epoch", "9").startswith("E827")
    assert gone(tmp_path / "none", row).startswith("E7")


def test_a_fact_that_expired_is_told_from_one_that_was_deleted(spark: Any, tmp_path: Path) -> None:
    epochs = [[("+", 1, 1, 2), ("+", 3, 2, 3)], [("+", 5, 8, 9)], [("-", 5, 8, 9), ("+", 11, 7, 8)]]
    leave(spark, tmp_path, WINDOW, epochs, "op string, ts long, x long, y long", 50)
    assert gone(tmp_path, "reachable(1, 3)") == "reachable(1, 3) went in epoch 3, at 11.\n  link(1, 2) expired at 11\n"
    assert gone(tmp_path, "reachable(8, 9)") == "reachable(8, 9) went in epoch 3, at 11.\n  link(8, 9) was deleted\n"
