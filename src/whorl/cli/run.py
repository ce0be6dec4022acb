"""`whorl run`: files in, views out."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from time import perf_counter

import typer

import whorl
from whorl.analysis.durations import UNITS
from whorl.cli.bars import progress_bar
from whorl.cli.reports import Totals
from whorl.connectors.epochs import Cut, common_slide, cut_by_number, cut_by_time
from whorl.connectors.files import Feed, find_files, read_file
from whorl.connectors.programs import load_functions, read_source
from whorl.connectors.sink import FolderSink, Sink, TextSink
from whorl.connectors.target import Target
from whorl.hosts.verified import verified
from whorl.logical.compile import compile_program
from whorl.model.limits import Limits
from whorl.model.types import Type
from whorl.views.session import HostFactory, Session, host_for

PHASES = ("compile", "read", "input", "maintain", "output", "evaluate", "write")
EMITS = ("snapshot", "changes", "both")
HOSTS = ("local", "spark")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """What the command line asks for."""

    program: Path
    inputs: Sequence[str]
    output: str
    emit: str = "snapshot"
    view: str | None = None
    every: str | None = None
    strategy: str = "auto"
    partitions: int | None = None
    verify: bool = False
    functions: Path | None = None
    limits: Limits = field(default_factory=Limits)
    without: Sequence[str] = ()
    as_json: bool = False
    host: str = "local"
    master: str = "local[*]"
    follow: bool = False
    checkpoint: Path | None = None
    once: bool = False
    placement: str = "auto"

    def __post_init__(self) -> None:
        if self.host not in HOSTS:
            message = f"{self.host} is none of {', '.join(HOSTS)}"
            raise typer.BadParameter(message, param_hint="--host")
        if self.follow and (self.host != "spark" or self.checkpoint is None):
            message = "to follow inputs takes --host spark, and a --checkpoint for the state"
            raise typer.BadParameter(message, param_hint="--follow")
        if self.follow and (self.output == "-" or self.every or self.verify or self.as_json):
            message = "it does not go with --output -, --every, --verify or --json"
            raise typer.BadParameter(message, param_hint="--follow")
        if not self.follow and (self.once or self.checkpoint is not None):
            message = "--checkpoint and --once go with --follow"
            raise typer.BadParameter(message, param_hint="--follow")
        if self.emit not in EMITS:
            message = f"{self.emit} is none of {', '.join(EMITS)}"
            raise typer.BadParameter(message, param_hint="--emit")
        if self.output == "-" and self.emit == "both":
            message = "standard output takes a snapshot or changes, not both"
            raise typer.BadParameter(message, param_hint="--emit")


def run_program(options: RunOptions) -> None:
    """Read the inputs, apply them epoch by epoch, write the views, and say on standard error what it took."""
    clock = _Clock()
    session = _open(options)
    views = _views(session, options)
    totals = Totals()
    totals.spend({"compile": clock.lap()})
    cuts = _cut(_read(session, options.inputs), session, options)
    totals.spend({"read": clock.lap()})
    with _sink(options) as sink:
        _apply(session, cuts, views, sink, totals, changes=options.emit != "snapshot")
        clock.lap()
        if options.emit != "changes":
            for name in views:
                view = session[name]
                sink.write_snapshot(name, view.columns, view.types, view.rows())
    totals.spend({"write": clock.lap()})
    rows = sum(feed.batch.count for feed in {id(feed): feed for cut in cuts for feed, _at in cut.parts}.values())
    _summarize(totals, rows, {name: len(session[name]) for name in session.views}, options)


class _Clock:
    """A watch that tells the time since it was last asked."""

    def __init__(self) -> None:
        self._last = perf_counter()

    def lap(self) -> float:
        before, self._last = self._last, perf_counter()
        return self._last - before


def _open(options: RunOptions) -> Session:
    source, functions = read_source(options.program), load_functions(options.functions)
    make = _host(options)
    make = verified(make) if options.verify else make
    host = make(lambda types: compile_program(source, functions, types, without=options.without), options.limits)
    return Session(source, host)


def _host(options: RunOptions) -> HostFactory:
    if options.host == "local":
        return host_for(options.strategy, options.partitions or 1, options.placement)
    spark = whorl.spark_session(options.master)
    return whorl.SparkHost(spark, partitions=options.partitions, strategy=options.strategy)


def _views(session: Session, options: RunOptions) -> list[str]:
    """Return the views to write; standard output takes one."""
    if options.view is not None:
        return [session[options.view].name]
    if options.output == "-" and len(session.views) != 1:
        message = f"standard output takes one view; choose from {', '.join(session.views) or 'none'}"
        raise typer.BadParameter(message, param_hint="--view")
    return list(session.views)


def _sink(options: RunOptions) -> Sink:
    if options.output == "-":
        return TextSink(lambda text: typer.echo(text, nl=False))
    return FolderSink(Path(options.output))


# Reading


def _read(session: Session, inputs: Sequence[str]) -> list[Feed]:
    """Read all inputs; the first file of an undeclared relation tells the types to those after it."""
    targets: dict[str, Target] = {}
    files: list[tuple[str, Path]] = []
    for each in inputs:
        relation, path = parse_input(each)
        targets[relation] = session.target(relation)
        files.extend((relation, file) for file in find_files(path))
    feeds = []
    with progress_bar("reading", sum(file.stat().st_size for _relation, file in files), "bytes") as advance:
        for relation, file in files:
            feed = read_file(file, targets[relation], advance)
            targets[relation] = _learn(targets[relation], feed)
            feeds.append(feed)
    return feeds


def parse_input(text: str) -> tuple[str, Path]:
    """Return the relation and the path that an input names."""
    relation, equals, path = text.partition("=")
    if not equals or not relation or not path:
        message = f'{text} does not read as REL=PATH, such as "link=links.csv"'
        raise typer.BadParameter(message, param_hint="--input")
    return relation, Path(path)


def _learn(target: Target, feed: Feed) -> Target:
    pairs = zip(target.types, feed.batch.columns, strict=True)
    return replace(target, types=tuple(v.type if kind is Type.UNKNOWN and len(v) else kind for kind, v in pairs))


def _cut(feeds: Sequence[Feed], session: Session, options: RunOptions) -> list[Cut]:
    if options.every is None:
        return cut_by_number(feeds)
    relations = session.plan.program.relations
    step = common_slide(relations.values()) if options.every == "slide" else _seconds(options.every)
    if step is None:
        message = "no stream of the program has a slide; give a time, such as 5 minutes"
        raise typer.BadParameter(message, param_hint="--every")
    return cut_by_time(feeds, relations, step)


def _seconds(text: str) -> int:
    """Read a duration: a whole number, and a unit unless it counts seconds."""
    found = re.fullmatch(r"\s*(\d{1,12})\s*([A-Za-z]*)\s*", text)
    unit = UNITS.get(found[2].lower()) if found and found[2] else 1
    if not found or not unit or int(found[1]) == 0:
        message = f'{text} is no time; write "slide", or a number and a unit, such as "5 minutes"'
        raise typer.BadParameter(message, param_hint="--every")
    return int(found[1]) * unit


# Applying


def _apply(
    session: Session, cuts: Sequence[Cut], views: Sequence[str], sink: Sink, totals: Totals, *, changes: bool
) -> None:
    for name in views if changes else ():
        sink.open_changes(name, session[name].columns)
    with progress_bar("epochs", len(cuts), "epochs") as advance:
        for cut in cuts:
            for batch in cut.batches():
                session.take(batch)
            deltas = session.commit(cut.time, number=cut.number)
            assert session.report is not None, "the commit went well"
            totals.add(session.report)
            for name in views if changes else ():
                sink.write_changes(name, session[name].types, cut.number, deltas[name])
            advance(1)


def _summarize(totals: Totals, rows: int, views: dict[str, int], options: RunOptions) -> None:
    if options.as_json:
        typer.echo(json.dumps(totals.to_json(rows, views)), err=options.output == "-")
        return
    for line in totals.lines(rows, views, PHASES):
        print(line, file=sys.stderr)
