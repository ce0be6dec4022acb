"""Pathway: `pw.iterate`, fed batch by batch; the next batch waits until the last one is through.

One worker, its default. The answer is summed up inside the dataflow and only the sum is handed out; a marker row comes
along with each batch, so that there is an output to wait for even if the answer did not change.
"""

from __future__ import annotations

import threading
from importlib.metadata import version
from importlib.util import find_spec
from typing import Any  # Pathway's tables are not typed

from whorl.bench.answer import FOLD, PRIME, Answer
from whorl.bench.measure import Memory, Meter
from whorl.bench.outcome import Outcome, Steps
from whorl.bench.workload import Batch, Workload


def missing() -> str:
    """Say if it is not installed."""
    return "" if find_spec("pathway") else "pathway is not installed"


def measure(workload: Workload, warm_up: Workload, variant: str, *, rows_out: bool) -> Outcome:
    """Measure the load, and the steps if there are any."""
    import pathway as pw

    arrived = threading.Event()
    memory = Memory.watch()
    feed = _build_feed(workload, arrived)
    edges = pw.io.python.read(feed, schema=_schema(workload), autocommit_duration_ms=None)
    marks, real = edges.filter(edges.x < 0), edges.filter(edges.x >= 0)
    view = _closure(real, steady=bool(workload.steps)) if workload.rules.name == "closure" else _shortest(real)
    found: dict[str, int] = {}

    def note(key: object, row: dict[str, Any], time: int, is_addition: bool) -> None:  # noqa: FBT001  # their signature
        if is_addition and not row["mark"]:
            found.update(row)

    pw.io.subscribe(_summary(view, marks), on_change=note, on_time_end=lambda _time: arrived.set())
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    figures = feed.steps.figures()
    if memory is not None:
        figures["rss"] = memory.growth
    figures["load.engine"] = figures["load.cpu"]
    moment = "end" if workload.steps else "load"
    return Outcome(figures, {moment: Answer(found["rows"], found["check"])}, version("pathway"))


def _schema(workload: Workload) -> Any:
    import pathway as pw

    names = ("x", "y", "cost")[: workload.load.inserts["edge"].shape[1]]
    columns = {name: pw.column_definition(dtype=int, primary_key=True) for name in names}
    return pw.schema_builder(columns=columns, name="Edge")


def _build_feed(workload: Workload, arrived: threading.Event) -> Any:
    import pathway as pw

    class Feed(pw.io.python.ConnectorSubject):  # type: ignore[misc]  # an untyped class
        """Sends a batch, and waits for its answer."""

        def __init__(self) -> None:
            super().__init__()
            self.steps = Steps()

        def run(self) -> None:
            for number, batch in enumerate((workload.load, *workload.steps), 1):
                self._send(batch, number)

        def _send(self, batch: Batch, number: int) -> None:
            deletes, inserts = _rows(batch.deletes), _rows(batch.inserts)
            arrived.clear()
            with Meter() as spent:
                for row in deletes:
                    self.delete(**row)
                for row in inserts:
                    self.next(**row)
                self.next(**dict.fromkeys(inserts[0] if inserts else deletes[0], 0) | {"x": -number})
                self.commit()
                arrived.wait()
            self.steps.add(batch.kind, cpu=spent.cpu, wall=spent.wall)

    return Feed()


def _rows(rows_of: Any) -> list[dict[str, int]]:
    if "edge" not in rows_of:
        return []
    return [dict(zip(("x", "y", "cost"), row, strict=False)) for row in rows_of["edge"].tolist()]


def _closure(edges: Any, *, steady: bool) -> Any:
    """Return the closure, in the form that measured best: one for loading, one for being ``steady`` under changes."""
    import pathway as pw

    def by_ends(edges: Any) -> Any:
        return edges.select(edges.x, edges.y).with_id_from(edges.x, edges.y)

    def step(path: Any, edges: Any) -> dict[str, Any]:
        longer = path.join(edges, path.y == edges.x)
        if steady:
            rows = longer.select(path.x, edges.y)
            grouped = rows.groupby(rows.x, rows.y).reduce(rows.x, rows.y)
        else:
            grouped = longer.groupby(path.x, edges.y).reduce(x=path.x, y=edges.y)
        return {"path": by_ends(edges).update_rows(grouped)}

    return pw.iterate(step, path=pw.iterate_universe(by_ends(edges)), edges=edges).path


def _shortest(edges: Any) -> Any:
    """Return the distances from node 0; the columns are called as those of the closure."""
    import pathway as pw

    start = pw.debug.table_from_rows(pw.schema_from_types(x=int, y=int), [(0, 0)]).with_id_from(pw.this.x)

    def step(dist: Any, edges: Any, start: Any) -> dict[str, Any]:
        longer = dist.join(edges, dist.x == edges.x).select(x=edges.y, y=dist.y + edges.cost)
        reached = pw.Table.concat_reindex(start, longer)
        return {"dist": reached.groupby(reached.x).reduce(reached.x, y=pw.reducers.min(reached.y))}

    return pw.iterate(step, dist=pw.iterate_universe(start), edges=edges, start=start).dist


def _summary(view: Any, marks: Any) -> Any:
    """Return one row with the answer and one with the number of markers."""
    import pathway as pw

    folded = view.select(number=((view.x % PRIME) * FOLD + view.y) % PRIME)
    squares = folded.select(number=folded.number * folded.number % PRIME)
    answer = squares.reduce(rows=pw.reducers.count(), check=pw.reducers.sum(squares.number), mark=0)
    marked = marks.reduce(rows=0, check=0, mark=pw.reducers.count())
    return pw.Table.concat_reindex(answer, marked)
