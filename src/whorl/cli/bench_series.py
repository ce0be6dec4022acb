"""A table for each series of cases, as soon as all its points are measured."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from whorl.bench.results import CaseResult, by_name
from whorl.bench.series import Series, cell, contestants_of, notes_of, short_name


def series_tables(
    series: Sequence[Series], results: Sequence[CaseResult], waiting: Collection[str], *, quick: bool
) -> Iterator[RenderableType]:
    """Yield the series that the last result completes, and why figures in them are missing."""
    last = results[-1].name
    done = [each for each in series if last in each.points.values() and not {*waiting} & {*each.points.values()}]
    for each in done:
        yield Text(f"{each.title}, small data" if quick else each.title, style="italic")
        yield _series_table(each, by_name(results))
    for note in notes_of(done, results):
        yield Text(f"  {note}")


def _series_table(series: Series, results: Mapping[str, CaseResult]) -> Table:
    table = Table()
    table.add_column(series.varies, no_wrap=True)
    points = [point for point, case in series.points.items() if case in results]
    for point in points:
        table.add_column(point, justify="right", overflow="fold")
    who = contestants_of(series, results)
    for metric in series.metrics:
        table.add_section()
        table.add_row(f"[bold]{metric.text}[/bold]")
        for name in who:
            table.add_row(f"  {short_name(name)}", *(cell(series, point, name, metric, results) for point in points))
    return table
