"""Inputs for streaming queries, the reference's views for them, and change logs replayed."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from whorl.diagnostics.source import Source
from whorl.hosts.spark.manifest import read_sealed, write_sealed
from whorl.hosts.spark.store import PathStore
from whorl.logical.compile import compile_program
from whorl.model.delta import Change, Epoch
from whorl.oracle.session import Oracle

REACH = """
RELATION link(X: String, Y: String).
reachable(X, Y) :- link(X, Y).
reachable(X, Y) :- link(X, Z), reachable(Z, Y).
"""
EPOCHS = [
    [("+", "a", "b"), ("+", "b", "c")],
    [("+", "c", "a"), ("+", "c", "d")],
    [("-", "b", "c")],
    [("+", "b", "c"), ("-", "c", "d"), ("+", "d", "e")],
]
Rows = set[tuple[Any, ...]]


class Feed:
    """A folder of JSON lines that a query follows, one file a micro-batch."""

    def __init__(self, folder: Path, names: Sequence[str] = ("op", "x", "y")) -> None:
        self.folder, self._names, self._count = folder, names, 0
        folder.mkdir(parents=True)

    def put(self, rows: Sequence[Sequence[Any]]) -> None:
        self._count += 1
        lines = [json.dumps(dict(zip(self._names, row, strict=True))) for row in rows]
        hidden = self.folder / f".{self._count:05}.json"
        hidden.write_text("".join(f"{line}\n" for line in lines))
        os.utime(hidden, (1_700_000_000 + self._count,) * 2)  # Spark takes files in the order of their times
        hidden.rename(self.folder / f"{self._count:05}.json")

    def frame(self, spark: Any, schema: str = "op string, x string, y string") -> Any:
        return spark.readStream.schema(schema).option("maxFilesPerTrigger", 1).json(str(self.folder))


def reference(program: str, epochs: Sequence[Sequence[Change]]) -> list[dict[str, Rows]]:
    """Return the views after each epoch."""
    oracle = Oracle(lambda types: compile_program(Source("test.dl", program), data_types=types))
    found = []
    for number, changes in enumerate(epochs, 1):
        oracle.commit(Epoch(number, tuple(changes)))
        found.append({output.name: set(oracle.rows(output.name)) for output in oracle.plan.outputs})
    return found


def links(rows: Sequence[Sequence[Any]]) -> list[Change]:
    return [Change("link", tuple(row[1:]), 1 if row[0] == "+" else -1) for row in rows]


def replay(changes: Any, epochs: int) -> Iterator[Rows]:
    """Apply a change log epoch by epoch; a row may only appear while absent, and vanish while present."""
    by_epoch: dict[int, list[Any]] = {}
    for row in changes.collect():
        by_epoch.setdefault(row["_epoch"], []).append(row)
    assert set(by_epoch) <= set(range(1, epochs + 1))
    rows: Rows = set()
    for number in range(1, epochs + 1):
        for row in sorted(by_epoch.get(number, ()), key=lambda row: row["_op"], reverse=True):
            plain = tuple(row[:-2])
            assert (plain in rows) is (row["_op"] == "-"), f"epoch {number}: {row}"
            (rows.remove if row["_op"] == "-" else rows.add)(plain)
        yield set(rows)


def rows_of(frame: Any) -> Rows:
    found = [tuple(row) for row in frame.collect()]
    assert len(found) == len(set(found))
    return set(found)


def changes_of(spark: Any, checkpoint: Path, view: str) -> Any:
    folder = checkpoint / "changes" / view
    return spark.read.option("recursiveFileLookup", "true").parquet(str(folder))


def check(spark: Any, checkpoint: Path, wanted: Sequence[Mapping[str, Rows]], view: str = "reachable") -> None:
    found = list(replay(changes_of(spark, checkpoint, view), len(wanted)))
    assert found == [each[view] for each in wanted]


def forget_workers(checkpoint: Path) -> None:
    """Give a checkpoint another identity, so that no worker has its state in memory."""
    store = PathStore(checkpoint)
    content = read_sealed(store, store.layout.identity)
    write_sealed(store, store.layout.identity, {**content, "identity": f"{content['identity']}+"})
