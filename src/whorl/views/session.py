"""A session: changes in, by insert and delete; views out, brought up to date by commit.

Rows are checked when they are handed in: a row that does not fit is refused there, and the call leaves no trace.
`commit` takes everything handed in since the last one as one epoch. If the epoch is refused, it is dropped as a whole:
views stay as they were, and the next commit starts from nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Any, TypeAlias

from whorl.connectors.arrow import read_table, table_of
from whorl.connectors.programs import load_functions, open_program
from whorl.connectors.rows import read_rows, seconds_of
from whorl.connectors.target import Misfit, Target, target_of
from whorl.diagnostics.errors import ProgramErrors, UserError
from whorl.diagnostics.names import suggest
from whorl.diagnostics.source import Source
from whorl.hosts.inprocess import InProcess
from whorl.logical.compile import compile_program
from whorl.logical.intake import Compile
from whorl.logical.plan import LogicalPlan
from whorl.model.batch import Batch
from whorl.model.delta import Delta, Epoch
from whorl.model.functions import Function, describe
from whorl.model.limits import Limits
from whorl.model.report import EpochReport
from whorl.model.values import storable
from whorl.oracle.session import Oracle
from whorl.syntax import ast
from whorl.syntax.parser import parse_program
from whorl.views.answering import answer_critical
from whorl.views.answers import Critical
from whorl.views.explaining import ask_fact, partitions_of
from whorl.views.view import Host, View

HostFactory: TypeAlias = Callable[[Compile, Limits], Host]
Functions: TypeAlias = Iterable[Callable[..., Any] | Function] | str | PathLike[str]


def open_session(
    program: str | PathLike[str],
    *,
    functions: Functions = (),
    strategy: str = "auto",
    limits: Limits | None = None,
    partitions: int | None = None,
    placement: str = "auto",
    host: HostFactory | None = None,
    restore: str | PathLike[str] | None = None,
) -> Session:
    """Open a program, a path or its text; see `whorl.open`."""
    source = open_program(program)
    known = read_functions(functions)
    make = host or host_for(strategy, 1 if partitions is None else partitions, placement)
    if restore is not None:
        if host is not None or strategy == "reference":
            raise UserError("E611")
        folder = Path(restore)
        make = lambda plan, limits: InProcess.restore(folder, plan, limits, strategy, partitions, placement)  # noqa: E731
    return Session(source, make(lambda types: compile_program(source, known, types), limits or Limits()))


def host_for(strategy: str, partitions: int = 1, placement: str = "auto") -> HostFactory:
    """Return who maintains the views: the kernel in this process, or the reference evaluator."""
    if strategy == "reference":
        return Oracle
    return lambda compile_plan, limits: InProcess(compile_plan, limits, strategy, partitions, placement)


def read_functions(functions: Functions) -> tuple[Function, ...]:
    """Return Python functions as rules see them; a path names a file of marked ones."""
    if isinstance(functions, str | PathLike):
        return load_functions(Path(functions))
    found = []
    for each in functions:
        marked = each if isinstance(each, Function) else getattr(each, "whorl_function", None)
        found.append(marked if isinstance(marked, Function) else describe(each))  # type: ignore[arg-type]
    return tuple(found)


class Session:
    """One program with its facts and views."""

    def __init__(self, source: Source, host: Host) -> None:
        self._host = host
        self._names = declared_names(source)
        self._pending: list[Batch] = []
        self._views = {output.name: View(host, output.name) for output in host.plan.outputs}
        self._listeners: list[Callable[[EpochReport], None]] = []
        self._epochs = host.epoch if isinstance(host, InProcess) else 0
        self._closed = False
        self.report: EpochReport | None = None  # of the last commit that went well

    # Changes in

    def insert(self, relation: str, data: Any) -> None:
        """Insert rows with the next commit: tuples, dicts, an Arrow table, a pandas or Polars frame (hence Any)."""
        self._pending.append(self._read(relation, data, 1))

    def delete(self, relation: str, data: Any) -> None:
        """Delete rows with the next commit; the same kinds of data as `insert`."""
        self._pending.append(self._read(relation, data, -1))

    def _read(self, relation: str, data: Any, weight: int) -> Batch:
        target = self.target(relation)
        table = table_of(data)
        if table is not None:
            return read_table(target, table, weight)
        if isinstance(data, str | bytes | Mapping) or not isinstance(data, Iterable):
            raise UserError("E608", None, name=relation, found=type(data).__name__)
        return read_rows(target, data, weight)

    def target(self, relation: str) -> Target:
        """Return what rows of a base relation must look like; raise if there is none of that name."""
        self._check_open()
        program = self._host.plan.program
        found = program.relations.get(relation)
        if found is None:
            known = [each.name for each in program.base_relations()]
            hint = suggest(relation, known) or "Base relations: " + (", ".join(known) or "none") + "."
            raise UserError("E503", None, name=relation, hint=hint)
        if not found.base:
            raise UserError("E504", None, name=relation)
        return target_of(found, self._names.get(relation))

    def take(self, batch: Batch) -> None:
        """Hand in rows that are checked and in columns already."""
        self._check_open()
        self._pending.append(batch)

    # Epochs

    def commit(self, time: int | datetime | None = None, *, number: int | None = None) -> dict[str, Delta]:
        """Apply what was handed in as one epoch; return what it did to each view.

        ``time`` moves event time: seconds, or a `datetime`. If the epoch is refused, nothing of it is kept.
        """
        self._check_open()
        moment = _moment(time)
        batches, self._pending = tuple(self._pending), []
        number = self._epochs + 1 if number is None else number
        try:
            report = self._host.commit(Epoch(number, (), moment, batches=batches))
        except (UserError, ProgramErrors) as refused:
            for error in refused.errors if isinstance(refused, ProgramErrors) else (refused,):
                error.epoch = number
            raise
        self._epochs, self.report = number, report
        for name, view in self._views.items():
            view.follow(report.deltas.get(name, Delta()))
        for listener in self._listeners:
            listener(report)
        return {name: view.changes() for name, view in self._views.items()}

    def discard(self) -> None:
        """Forget what was handed in since the last commit."""
        self._pending = []

    def on_commit(self, listener: Callable[[EpochReport], None]) -> None:
        """Call ``listener`` with the report of every commit from now on."""
        self._listeners.append(listener)

    @property
    def plan(self) -> LogicalPlan:
        """The plan as far as types are known."""
        return self._host.plan

    @property
    def time(self) -> int | None:
        """The event time reached, None before the first."""
        return self._host.time

    # Views out

    @property
    def views(self) -> tuple[str, ...]:
        """The names of the views."""
        return tuple(self._views)

    def __getitem__(self, view: str) -> View:
        self._check_open()
        found = self._views.get(view)
        if found is None:
            hint = suggest(view, self._views) or f"Views: {', '.join(self._views) or 'none'}."
            raise UserError("E601", None, name=view, hint=hint)
        return found

    def critical(self, relation: str, fact: Sequence[object]) -> Critical:
        """Return what would change in the views if one fact of a base relation went."""
        self._check_open()
        partitions = partitions_of(self._host)
        return answer_critical(partitions, ask_fact(partitions[0].plan, relation, fact), list(self._views))

    def save(self, folder: str | PathLike[str]) -> None:
        """Write the state as of the last commit to a folder, for ``whorl.open(..., restore=folder)``.

        Until it is whole, what was saved there before stays. Changes that wait for a commit are not part of it.
        """
        self._check_open()
        if not isinstance(self._host, InProcess):
            raise UserError("E611")
        self._host.save(Path(folder))

    # Closing

    def close(self) -> None:
        """Let go of the state; the session takes nothing more."""
        self._closed = True
        self._pending, self._views = [], {}
        del self._host

    def _check_open(self) -> None:
        if self._closed:
            raise UserError("E606")

    def __enter__(self) -> Session:
        self._check_open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __repr__(self) -> str:
        if self._closed:
            return "<session, closed>"
        return f"<session of {', '.join(self._views)}; {self._epochs} epochs, {len(self._pending)} changes waiting>"


def _moment(time: int | datetime | None) -> int | None:
    """Return an event time in seconds; refuse what is none."""
    if time is None or (type(time) is int and storable(time)):
        return time
    try:
        if isinstance(time, datetime):
            return seconds_of(time, 0)
    except Misfit:
        pass
    raise UserError("E610", None, found=repr(time))


def declared_names(source: Source) -> dict[str, Sequence[str]]:
    """Return the attribute names of every declared input, the timestamp's too, which analysis may lift away."""
    found: dict[str, Sequence[str]] = {}
    for statement in parse_program(source).statements:
        group = (statement,) if isinstance(statement, ast.Declaration) else ()
        if isinstance(statement, ast.StreamGroup):
            group = statement.declarations  # type: ignore[assignment]
        for declaration in group:
            found[declaration.name] = [attribute.name for attribute in declaration.attributes]
    return found
