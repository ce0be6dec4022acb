"""`whorl bench` at work: the cases of a suite, tables as soon as they are full, then the targets."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

import typer
from rich.console import Console, RenderableType
from rich.table import Table

from whorl.bench.options import Options
from whorl.bench.report import open_folder, save_results
from whorl.bench.results import CaseResult, by_name, disagreements, spent_seconds
from whorl.bench.runner import run_cases
from whorl.bench.suite import SUITES, Suite
from whorl.bench.targets import Verdict, judge
from whorl.cli.bench_series import series_tables
from whorl.cli.bench_tables import case_tables
from whorl.diagnostics.errors import InternalError

_WIDTH = 140  # of tables that go to a file

# Yields what can be shown after a case: given the results so far, and the names of the cases that are still to run.
Tables = Callable[[Sequence[CaseResult], Collection[str]], Iterator[RenderableType]]


def list_cases() -> None:
    """Print the cases with their contestants."""
    for case in (case for suite in SUITES.values() for case in suite.cases):
        names = ", ".join(dict.fromkeys(entry.contestant.label for entry in case.entries))
        typer.echo(f"{case.name}\n  {case.title}\n  {names}")


def run_suite(suite: Suite, only: Sequence[str], options: Options, folder: Path) -> None:
    """Run cases, print tables as soon as they are full, and write the files."""
    cases = suite.choose(only, options)
    open_folder(folder)
    console = Console(highlight=False, width=None if sys.stdout.isatty() else _WIDTH)
    tables = _tables(suite, quick=options.quick)
    results: list[CaseResult] = []
    verdicts: list[Verdict] = []
    for at, result in enumerate(run_cases(cases, options, lambda line: typer.echo(line, err=True)), 1):
        results.append(result)
        verdicts = [] if options.quick else judge(by_name(results), suite.targets)
        save_results(folder, results, verdicts, options, suite.draw)
        for shown in tables(results, {case.name for case in cases[at:]}):
            console.print(shown)
    for note in suite.notes:
        console.print(note)
    if options.quick:
        console.print("A quick run has small data: it shows that everything works. Its figures mean nothing.")
    elif verdicts:
        console.print(_target_table(verdicts))
    console.print(f"All measurements together took {spent_seconds():,.0f} s of CPU time.")
    console.print(f"wrote {folder / 'results.json'} and {folder / 'results.svg'}")
    _check_answers(results)


def _tables(suite: Suite, *, quick: bool) -> Tables:
    if suite.series:
        return lambda results, waiting: series_tables(suite.series, results, waiting, quick=quick)
    return lambda results, _waiting: case_tables(results[-1], quick=quick)


def _check_answers(results: Sequence[CaseResult]) -> None:
    """Raise if contestants gave different answers."""
    found = disagreements(results)
    if found:
        message = "contestants gave different answers: " + "; ".join(found)
        raise InternalError(message)


def _target_table(verdicts: Sequence[Verdict]) -> Table:
    """Return the targets with what was measured."""
    table = Table(title="Targets", title_justify="left")
    for name in ("case", "what"):
        table.add_column(name, overflow="fold")
    for name in ("measured", "target"):
        table.add_column(name, justify="right")
    table.add_column("met")
    for verdict in verdicts:
        met = {True: "yes", False: "[bold]no[/bold]", None: ""}[verdict.passed]
        table.add_row(verdict.target.case, verdict.target.text, verdict.shown_value, verdict.shown_bound, met)
    return table
