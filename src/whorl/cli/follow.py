"""`whorl run --host spark --follow`: folders in, views out, until somebody stops it."""

from __future__ import annotations

import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import typer

from whorl.cli.run import RunOptions, parse_input
from whorl.connectors.change_files import ChangeFile
from whorl.connectors.programs import load_functions, read_source
from whorl.connectors.sink import FolderSink, format_text
from whorl.connectors.target import target_of
from whorl.hosts.spark.epochs import CommittedEpoch
from whorl.hosts.spark.following import follow_folder
from whorl.hosts.spark.program import GivenProgram
from whorl.hosts.spark.session import spark_session
from whorl.hosts.spark.stream import StreamOptions, StreamQuery, start_stream
from whorl.hosts.spark.view_frames import find_output
from whorl.logical.intake import Intake
from whorl.logical.plan import LogicalPlan, Output
from whorl.model.types import Type
from whorl.model.values import row_key
from whorl.views.session import declared_names

_LOOK_S = 0.5  # seconds between two looks at a query
_PLAIN = (Type.INTEGER, Type.FLOAT, Type.BOOLEAN, Type.TIMESTAMP)


def follow_program(options: RunOptions) -> None:
    """Follow the inputs; say on standard error what each epoch did."""
    assert options.checkpoint is not None, "checked with the options"
    source = read_source(options.program)
    given = GivenProgram(source, load_functions(options.functions), declared_names(source), options.without)
    intake = Intake(given.compile)
    outputs = _outputs(intake.plan, options)
    folders = dict(parse_input(each) for each in options.inputs)
    targets = {name: target_of(intake.relation(name), given.names.get(name)) for name in folders}
    spark = spark_session(options.master)
    frames = {name: follow_folder(spark, folder, targets[name]) for name, folder in folders.items()}
    teller = _Teller(Path(options.output), outputs, changes=options.emit != "snapshot")
    settings = StreamOptions(
        options.checkpoint,
        options.strategy,
        options.limits,
        options.partitions,
        {"availableNow": True} if options.once else None,
        listeners=(teller,),
    )
    query = start_stream(spark, given, frames, {}, settings, StreamQuery)
    try:
        if _wait(query):
            typer.echo("stopped", err=True)
            spark.sparkContext.setLogLevel("OFF")  # Spark may tell at length of a micro-batch that was about to begin
    finally:
        query.stop()
    if options.emit != "changes":
        _write_views(query, outputs, Path(options.output))
    print(f"{query.epoch} epochs", file=sys.stderr)


def _outputs(plan: LogicalPlan, options: RunOptions) -> list[str]:
    return [find_output(plan, options.view).name] if options.view else [output.name for output in plan.outputs]


def _wait(query: StreamQuery) -> bool:
    """Wait until the query ends, or until somebody ends this process in an orderly way; tell whether somebody did.

    A signal is heard between two looks at the query: to break off a call to the JVM would break what others say to it.
    The next one has its usual meaning again.
    """
    wished = False

    def stop(_number: int, _frame: object) -> None:
        nonlocal wished
        wished = True

    before = {number: signal.signal(number, stop) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        while not query.awaitTermination(_LOOK_S):
            if wished:
                return True
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return False


class _Teller:
    """Writes the changes of epochs, and says what they did."""

    def __init__(self, folder: Path, views: Sequence[str], *, changes: bool) -> None:
        self._folder, self._views, self._changes = folder, views, changes

    def __call__(self, epoch: CommittedEpoch) -> None:
        for name in self._views if self._changes else ():
            output = find_output(epoch.plan, name)
            rows = sorted(epoch.changes(name).collect(), key=lambda row: (row[-1] == "+", row_key(tuple(row[:-2]))))
            texts = [[row[-1], *_texts(output, row)] for row in rows]
            ChangeFile(self._folder / f"{name}.changes.csv", output.columns).write(epoch.number, texts)
        parts = [f"{name} +{plus} -{minus}" for name, (plus, minus) in sorted(epoch.views.items())]
        parts += [f"{count} of {name} set aside" for name, count in sorted(epoch.quarantined.items())]
        print(f"epoch {epoch.number}: {epoch.rows} rows in; {', '.join(parts) or 'no change'}", file=sys.stderr)


def _texts(output: Output, row: Any) -> list[str]:
    """Return a row of a frame, Spark's (hence Any), as a file holds it; lists and terms are text already."""
    return [format_text(row[at], kind) if kind in _PLAIN else str(row[at]) for at, kind in enumerate(output.types)]


def _write_views(query: StreamQuery, views: Sequence[str], folder: Path) -> None:
    with FolderSink(folder) as sink:
        for name in views:
            output = find_output(query.plan, name)
            rows = sorted((tuple(row) for row in query.snapshot(name).collect()), key=row_key)
            types = [kind if kind in _PLAIN else Type.STRING for kind in output.types]
            sink.write_snapshot(name, output.columns, types, rows)
