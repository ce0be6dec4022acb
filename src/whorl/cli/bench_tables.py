"""What `whorl bench` prints: a table for each case, and one of the targets."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table

from whorl.bench.plot import format_seconds
from whorl.bench.report import choose_cases, open_folder, save_results
from whorl.bench.results import CaseResult, by_name
from whorl.bench.runner import Options, run_cases
from whorl.bench.suite import SUITES, Suite
from whorl.bench.targets import Verdict, judge
from whorl.diagnostics.errors import InternalError

_LOADS = {
    "load.engine": "engine CPU",
    "load.cpu": "load CPU",
    "load.wall": "load wall",
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
    "slide.worst": "worst",
    "expire.cpu": "expire CPU",
    "expire.probes": "expire probes",
    "epoch.wall": "epoch wall",
    "epoch.worst": "worst",
    "stream.wall": "all epochs",
}


def list_cases() -> None:
    """Print the cases with their contestants."""
    for case in (case for suite in SUITES for case in suite.cases):
        names = ", ".join(dict.fromkeys(entry.contestant.label for entry in case.entries))
        typer.echo(f"{case.name}\n  {case.title}\n  {names}")


def run_suite(suite: Suite, only: Sequence[str], options: Options, folder: Path) -> None:
    """Run cases, print a table for each as it is done, and write the files."""
    cases = choose_cases(only, suite.cases)
    open_folder(folder)
    console = Console()
    results: list[CaseResult] = []
    verdicts: list[Verdict] = []
    for result in run_cases(cases, options, lambda line: typer.echo(line, err=True)):
        results.append(result)
        verdicts = [] if options.quick else judge(by_name(results), suite.targets)
        save_results(folder, results, verdicts, options)
        console.print(_case_table(result, quick=options.quick))
        for note in _notes(result):
            console.print(f"  {note}", highlight=False, markup=False)
    if options.quick:
        console.print("A quick run has small data: it shows that everything works. Its figures mean nothing.")
    else:
        console.print(target_table(verdicts))
    console.print(f"wrote {folder / 'results.json'} and {folder / 'results.svg'}", highlight=False)
    check_answers(results)


def check_answers(results: Sequence[CaseResult]) -> None:
    """Raise if contestants gave different answers."""
    differing = [f"{result.name}, {text}" for result in results for text in result.disagreements()]
    if differing:
        message = "contestants gave different answers: " + "; ".join(differing)
        raise InternalError(message)


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


def target_table(verdicts: Sequence[Verdict]) -> Table:
    """Return the targets with what was measured."""
    table = Table(title="Targets", title_justify="left")
    for name in ("case", "what"):
        table.add_column(name, overflow="fold")
    for name in ("measured", "target"):
        table.add_column(name, justify="right")
    table.add_column("met")
    for verdict in verdicts:
        value = "not measured" if verdict.value is None else f"{verdict.value:.4g}"
        met = {True: "yes", False: "[bold]no[/bold]", None: ""}[verdict.passed]
        table.add_row(verdict.target.case, verdict.target.text, value, verdict.shown_bound, met)
    return table
