"""A demo on Spark's Structured Streaming: each epoch is a file of JSON lines that a streaming query follows.

What happened in an epoch is read from the change log of the checkpoint, as any other reader of it would. Sessions and
queries of Spark are typed Any here: pyspark belongs to `whorl.hosts.spark`.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from queue import Empty, SimpleQueue
from signal import SIGINT, default_int_handler, signal
from threading import current_thread, main_thread
from time import perf_counter
from types import FrameType
from typing import Any, Self

import pyarrow.parquet as pq

import whorl
from whorl.cli.demos.engines import Outcome
from whorl.connectors.target import Target
from whorl.diagnostics.errors import UserError
from whorl.hosts.spark.layout import Layout
from whorl.model.delta import Change, Delta, Epoch
from whorl.model.types import Type
from whorl.model.values import row_key
from whorl.views.session import Session

MASTER = "local[2]"
# A demo is short: one compiler starts sooner, and small epochs need little memory.
_SETTINGS = {
    "spark.driver.memory": "700m",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}
_TYPES = {Type.INTEGER: "bigint", Type.TIMESTAMP: "bigint", Type.FLOAT: "double", Type.STRING: "string"}
_WAIT_S = 0.2


class OnSpark:
    """A streaming query on a Spark session of this process, with its input, checkpoint and log in one folder."""

    def __init__(self, program: Path, targets: Mapping[str, Target], folder: Path, say: Callable[[str], None]) -> None:
        """Start Spark. ``targets`` are the base relations of the program; ``say`` is told what takes long."""
        self._program, self._targets, self._say = program, targets, say
        self._folder = folder
        self._committed: SimpleQueue[Any] = SimpleQueue()
        self._query: Any = None
        self.log = folder / "spark.log"
        say(f"starting Spark ({MASTER}, on 127.0.0.1 only)")
        for relation in targets:
            (folder / "input" / relation).mkdir(parents=True)
        self._spark = _start_spark(self.log)

    def commit(self, epoch: Epoch) -> Outcome:
        """Write the changes of an epoch as files, and wait until the query has committed them."""
        started = perf_counter()
        self._write(epoch)
        if self._query is None:
            self._say("starting the streaming query")
            self._query = self._start()
            self._say("first epoch: Spark's Python workers start")
        committed = self._await(epoch)
        seconds = perf_counter() - started
        return Outcome({view: self._read(view, epoch.number) for view in committed.views}, seconds)

    def _write(self, epoch: Epoch) -> None:
        """Write a file for each relation; it takes its name when it is whole, so that Spark sees no half of it."""
        for relation, group in groupby(epoch.changes, key=lambda change: change.relation):
            folder = self._folder / "input" / relation
            hidden = folder / f".{epoch.number:05}.json"
            hidden.write_text("".join(f"{self._line(change)}\n" for change in group), encoding="utf-8")
            hidden.rename(folder / f"{epoch.number:05}.json")

    def _line(self, change: Change) -> str:
        names = self._targets[change.relation].names
        assert names is not None, "the programs of demos declare their inputs"
        return json.dumps({"op": "+" if change.weight > 0 else "-", **dict(zip(names, change.row, strict=True))})

    def _start(self) -> Any:
        frames = {relation: self._frame(target) for relation, target in self._targets.items()}
        return whorl.stream(
            self._spark, self._program, frames, checkpoint=self._folder / "checkpoint", on_epoch=self._committed.put
        )

    def _frame(self, target: Target) -> Any:
        assert target.names is not None, "the programs of demos declare their inputs"
        columns = zip(target.names, target.types, strict=True)
        schema = ", ".join(["op string", *(f"`{name}` {_TYPES[kind]}" for name, kind in columns)])
        reader = self._spark.readStream.schema(schema).option("maxFilesPerTrigger", 1)
        return reader.json(str(self._folder / "input" / target.relation))

    def _await(self, epoch: Epoch) -> Any:
        while True:
            try:
                committed = self._committed.get(timeout=_WAIT_S)
            except Empty:
                if not self._query.isActive:
                    self._query.awaitTermination()  # raises what ended it
                    raise UserError("E825", None, reason="It ended by itself") from None
                continue
            if committed.number == epoch.number:
                return committed

    def _read(self, view: str, epoch: int) -> Delta:
        """Return what an epoch did to a view, from the change log."""
        table = pq.read_table(Layout(self._folder / "checkpoint").epoch_changes(view, epoch))
        rows: dict[str, list[tuple[Any, ...]]] = {"+": [], "-": []}
        for *values, _number, sign in zip(*(column.to_pylist() for column in table.columns), strict=True):
            rows[sign].append(tuple(values))
        return Delta(tuple(sorted(rows["+"], key=row_key)), tuple(sorted(rows["-"], key=row_key)))

    def close(self) -> None:
        """Stop the query and Spark."""
        if self._query is not None:
            self._query.stop()
        self._spark.stop()


def targets_of(session: Session) -> dict[str, Target]:
    """Return the base relations of a program, as rows see them."""
    return {each.name: session.target(each.name) for each in session.plan.program.base_relations()}


def _start_spark(log: Path) -> Any:
    """Start Spark, and let its words go to a file; raise an error that also says how to do without."""
    logging.getLogger("py4j").setLevel(logging.CRITICAL)  # it logs an interrupt as an error
    try:
        with _errors_to(log), _Patience() as patience:
            spark = whorl.spark_session(MASTER, _SETTINGS)
    except UserError as error:
        if error.code not in ("E800", "E801", "E802"):
            raise
        raise UserError("E843", None, reason=error.message, detail=error.detail, hint=error.hint) from None
    if patience.interrupted:
        spark.stop()
        raise KeyboardInterrupt
    return spark


class _Patience:
    """Holds a first Ctrl-C back until Spark is up: an interrupted start would leave its Java process behind.

    At the end the usual way with Ctrl-C is back; that of Spark makes the epoch at hand fail first.
    """

    def __init__(self) -> None:
        self.interrupted = False
        self._own = current_thread() is main_thread()  # others cannot change it, and need not

    def __enter__(self) -> Self:
        if self._own:
            signal(SIGINT, self._hold)
        return self

    def _hold(self, number: int, frame: FrameType | None) -> None:
        if self.interrupted:
            default_int_handler(number, frame)
        self.interrupted = True

    def __exit__(self, *_error: object) -> None:
        if self._own:
            signal(SIGINT, default_int_handler)


@contextmanager
def _errors_to(path: Path) -> Iterator[None]:
    """Let what this process and its children write to standard error go to a file; children keep it so."""
    kept = os.dup(2)
    with path.open("ab") as file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            os.dup2(kept, 2)
            os.close(kept)
