"""How a demo looks: tables for people, bare lines for logs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Protocol

from rich import box
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.status import Status
from rich.table import Table
from rich.text import Text

from whorl.cli.demos.scenario import DIM, Deltas, Step, Told
from whorl.model.delta import Change
from whorl.model.values import format_row
from whorl.syntax.deltas import format_deltas

_LINES = 10
_WIDEST = 100


class Shown(Protocol):
    """Whoever shows a run."""

    def program(self, title: str, text: str) -> None:
        """Show the rules."""

    def waiting(self) -> AbstractContextManager[object]:
        """Return what is open while something takes long."""

    def say(self, text: str) -> None:
        """Say what takes long."""

    def epoch(self, step: Step, told: Told, deltas: Deltas, took: str, why: str | None) -> None:
        """Show an epoch."""

    def note(self, text: str) -> None:
        """Show some lines at the end."""


class Tables:
    """In colour, a table for each epoch."""

    def __init__(self, console: Console, epochs: int) -> None:
        self._console, self._epochs = console, epochs
        self._width = min(console.width, _WIDEST)
        self._status: Status | None = None

    def program(self, title: str, text: str) -> None:
        """Show the rules in a frame."""
        lines = Text("\n").join(
            Text.assemble((f"{number:>2}  ", DIM), (line, DIM if line.startswith("#") else ""))
            for number, line in enumerate(text.strip().splitlines(), 1)
        )
        self._console.print(Text(title, style="bold"))
        self._console.print(Panel(lines, border_style=DIM, expand=False))

    def waiting(self) -> AbstractContextManager[object]:
        """Return a line that moves, on a terminal."""
        if not self._console.is_terminal:
            return nullcontext()
        self._status = self._console.status("")
        return self._status

    def say(self, text: str) -> None:
        """Say what takes long: in the line that moves, or on a line of its own."""
        if self._status is None:
            self._console.print(Text(f"{text} ...", style=DIM))
        else:
            self._status.update(Text(f"{text} ...", style=DIM))

    def epoch(self, step: Step, told: Told, deltas: Deltas, took: str, why: str | None) -> None:
        """Print what came in, what went out, and why."""
        head = Text.assemble(
            (f"epoch {step.epoch.number} of {self._epochs}", "bold"),
            (f"   {len(step.epoch.changes)} rows in, {_out(deltas)} rows out, {took}", DIM),
        )
        table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 3, 0, 0), show_edge=False)
        columns = {"in": step.incoming, **{f"out: {name}": lines for name, lines in told.columns.items()}}
        for name in columns:
            table.add_column(name, overflow="fold")
        table.add_row(*(_cell(lines) for lines in columns.values()))
        self._console.print(head, width=self._width)
        self._console.print(Padding(table, (0, 0, 0, 2)), width=self._width)
        grid = Table.grid(padding=(0, 1))
        if why is not None:
            grid.add_row(Text("why", style="bold"), Text(why))
        grid.add_row(Text("now", style="bold"), Text(told.totals))
        self._console.print(Padding(grid, (1, 0, 1, 2)), width=self._width)

    def note(self, text: str) -> None:
        """Print some lines."""
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


class Plain:
    """Bare lines, every row of them."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def program(self, title: str, text: str) -> None:
        """Show the rules."""
        self._line(title)
        for line in text.strip().splitlines():
            self._line(f"  {line}".rstrip())

    def waiting(self) -> AbstractContextManager[object]:
        """Return nothing to see."""
        return nullcontext()

    def say(self, text: str) -> None:
        """Say what takes long."""
        self._line(f"{text} ...")

    def epoch(self, step: Step, told: Told, deltas: Deltas, took: str, why: str | None) -> None:
        """Print every row that came in and went out."""
        self._line(f"epoch {step.epoch.number}")
        for change in step.epoch.changes:
            self._line(f"  in   {signed(change)}")
        for line in format_deltas(deltas):
            self._line(f"  out  {line}")
        self._line(f"  now  {told.totals}")
        if why is not None:
            self._line(f"  why  {why}")
        self._line(f"  took {took}")

    def note(self, text: str) -> None:
        """Print some lines."""
        self._line(text)

    def _line(self, text: str) -> None:
        self._console.print(text, markup=False, highlight=False, soft_wrap=True)


def signed(change: Change) -> str:
    """Return a change in delta notation."""
    return ("+" if change.weight > 0 else "-") + format_row(change.relation, change.row)


def duration(seconds: float) -> str:
    """Return a time that a person can read."""
    if seconds >= 2:
        return f"{seconds:.1f} s"
    return f"{seconds * 1000:.1f} ms" if seconds < 0.1 else f"{seconds * 1000:.0f} ms"


def _out(deltas: Deltas) -> str:
    appeared = sum(len(delta.inserted) for delta in deltas.values())
    vanished = sum(len(delta.deleted) for delta in deltas.values())
    return f"+{appeared} -{vanished}" if appeared or vanished else "no"


def _cell(lines: Sequence[Text]) -> RenderableType:
    if not lines:
        return Text("nothing", style=DIM)
    shown = list(lines[:_LINES])
    if len(lines) > _LINES + 1:
        shown.append(Text(f"and {len(lines) - _LINES} more", style=DIM))
    elif len(lines) > _LINES:
        shown.append(lines[_LINES])
    return Text("\n").join(shown)
