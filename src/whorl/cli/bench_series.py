"""What `whorl bench regions` prints: a table for each series of cases, as soon as all its points are measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table

from whorl.bench.curves import draw_series
from whorl.bench.real_networks import data_cases
from whorl.bench.region_series import REGION_SERIES, data_series
from whorl.bench.report import choose_cases, open_folder, save_results
from whorl.bench.results import CaseResult, by_name
from whorl.bench.runner import Options, run_cases
from whorl.bench.series import Series, cell, contestants_of, notes_of
from whorl.bench.suite import REGIONS
from whorl.bench.targets import Verdict, judge
from whorl.cli.bench_tables import check_answers, target_table

_NOTES = (
    "Rows, bytes, work, CPU time and state are those of all partitions together. A deletion is the mean of several.",
    "Time on the network is that of messages alone; CPU time that of all partitions, one after the other.",
    "Our DRed keeps counts, and a sender remembers what it has told: one that does neither may ship more.",
    "recompute ships what a system without maintenance would: everything again, after each change.",
)


def run_regions(only: Sequence[str], options: Options, folder: Path) -> None:
    """Run cases, print each series as it is done, and write the files."""
    real = data_cases(Path(options.data)) if options.data is not None else ()
    cases = choose_cases(only, (*REGIONS.cases, *real))
    series = (*REGION_SERIES, *data_series(real))
    open_folder(folder)
    console = Console()
    results: list[CaseResult] = []
    verdicts: list[Verdict] = []
    waiting = {case.name for case in cases}
    for result in run_cases(cases, options, lambda line: typer.echo(line, err=True)):
        results.append(result)
        waiting.discard(result.name)
        verdicts = [] if options.quick else judge(by_name(results), REGIONS.targets)
        save_results(folder, results, verdicts, options, lambda found: draw_series(series, by_name(found)))
        done = [
            each for each in series if result.name in each.points.values() and not waiting & {*each.points.values()}
        ]
        _print(console, done, results, quick=options.quick)
    for note in _NOTES:
        console.print(note, highlight=False)
    if options.quick:
        console.print("A quick run has small data: it shows that everything works. Its figures mean nothing.")
    else:
        console.print(target_table(verdicts))
    console.print(f"wrote {folder / 'results.json'} and {folder / 'results.svg'}", highlight=False)
    check_answers(results)


def _print(console: Console, done: Sequence[Series], results: Sequence[CaseResult], *, quick: bool) -> None:
    for each in done:
        console.print(f"{each.title}, small data" if quick else each.title, style="italic", highlight=False)
        console.print(_series_table(each, by_name(results)))
    for note in notes_of(done, results):
        console.print(f"  {note}", highlight=False, markup=False)


def _series_table(series: Series, results: Mapping[str, CaseResult]) -> Table:
    table = Table()
    table.add_column(series.varies, no_wrap=True)
    points = [point for point, case in series.points.items() if case in results]
    for point in points:
        table.add_column(point, justify="right")
    who = contestants_of(series, results)
    for metric in series.metrics:
        table.add_section()
        table.add_row(f"[bold]{metric.text}[/bold]")
        for name in who:
            table.add_row(f"  {name}", *(cell(series, point, name, metric, results) for point in points))
    return table
