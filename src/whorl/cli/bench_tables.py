"""A table for each case, with what there is to say below it."""

from __future__ import annotations

import re
from collections.abc import Iterator

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from whorl.bench.plot import format_seconds
from whorl.bench.results import CaseResult

_LOADS = {
    "load.engine": "engine CPU",
    "load.cpu": "load CPU",
    "load.wall": "load wall",
    "first.wall": "first time",
    "state.row": "state B/row",
    "rss.row": "memory B/row",
}
_STEPS = {
    "load.cpu": "load CPU",
    "delete.cpu": "delete CPU",
    "delete.worst": "worst",
    "insert.cpu": "insert CPU",
    "insert.worst": "worst",
    "slide.engine": "slide engine",
    "slide.cpu": "slide CPU",
    "slide.mean": "mean",
    "slide.worst": "worst",
    "expire.cpu": "expire CPU",
    "expire.probes": "expire probes",
    "epoch.wall": "epoch wall",
    "epoch.worst": "worst",
    "stream.wall": "all epochs",
}


def case_tables(result: CaseResult, *, quick: bool) -> Iterator[RenderableType]:
    """Yield the table of a case, and what stands below it."""
    yield _case_table(result, quick=quick)
    for note in _notes(result):
        yield Text(f"  {note}")


def _case_table(result: CaseResult, *, quick: bool) -> Table:
    shown = {name for tally in result.tallies for name in tally.figures}
    columns = _STEPS if any(name in shown for name in list(_STEPS)[1:]) else _LOADS
    title = f"{result.name}, small data" if quick else f"{result.name}: {result.title}"
    table = Table(title=title, title_justify="left")
    table.add_column("contestant", no_wrap=True)
    table.add_column("runs", justify="right")
    names = [name for name in columns if name in shown]
    for name in names:
        table.add_column(columns[name], justify="right")
    for tally in result.tallies:
        if tally.outcomes:
            cells = [_figure(name, tally.figures.get(name)) for name in names]
            table.add_row(tally.contestant, str(len(tally.outcomes)), *cells)
    return table


def _notes(result: CaseResult) -> Iterator[str]:
    """Yield what stands below a table: how many rows all agree on, the versions, and who was not measured."""
    answers = [outcome.answers for tally in result.tallies for outcome in tally.outcomes]
    agreed = "answers differ" if result.disagreements() else "all answers agree"
    for moment, words in (("load", "after loading"), ("end", "at the end")):
        rows = next((answer[moment].rows for answer in answers if moment in answer), None)
        if rows is not None:
            yield f"{rows:,} rows {words}; {agreed}"
            break
    versions: dict[str, str] = {}
    for tally in result.tallies:
        versions |= {re.split("[ ,]", tally.contestant)[0]: each.version for each in tally.outcomes}
    if versions:
        yield ", ".join(f"{name} {version}" for name, version in versions.items())
    yield from (f"{tally.contestant}: {tally.note}" for tally in result.tallies if tally.note)


def _figure(name: str, value: float | None) -> str:
    if value is None:
        return ""
    if name.endswith((".row", ".probes")):
        return f"{value:,.0f}"
    return format_seconds(value)
