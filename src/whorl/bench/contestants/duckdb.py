"""DuckDB: a recursive common table expression, counted, over a table that is already loaded.

It may use every core; CPU time counts all of them.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

from whorl.bench.answer import Answer, answer_of, sql_number
from whorl.bench.measure import Memory, Meter
from whorl.bench.outcome import Outcome
from whorl.bench.workload import Workload

if TYPE_CHECKING:
    import duckdb

_CLOSURE = """\
WITH RECURSIVE path(x, y) AS (
    SELECT x, y FROM edge UNION SELECT path.x, edge.y FROM path JOIN edge ON path.y = edge.x
) """


def missing() -> str:
    """Say if it is not installed."""
    return "" if find_spec("duckdb") else "duckdb is not installed"


def measure(workload: Workload, warm_up: Workload, variant: str, *, rows_out: bool) -> Outcome:
    """Measure the closure from scratch."""
    assert workload.rules.name == "closure", "other programs are not written in SQL here"
    run = _hand_out if rows_out else _count
    run(warm_up)
    return run(workload)


def _count(workload: Workload) -> Outcome:
    import duckdb

    connection = duckdb.connect()
    _fill(connection, workload)
    memory = Memory.watch()
    with Meter() as spent:
        connection.execute(f"{_CLOSURE} SELECT count(*) FROM path").fetchall()
    figures = {"load.cpu": spent.cpu, "load.engine": spent.cpu, "load.wall": spent.wall}
    if memory is not None:
        figures["rss"] = memory.growth
    number = sql_number(("x", "y"))
    (found,) = connection.execute(f"{_CLOSURE} SELECT count(*), coalesce(sum({number}), 0) FROM path").fetchall()
    return Outcome(figures, {"load": Answer(int(found[0]), int(found[1]))}, duckdb.__version__)


def _hand_out(workload: Workload) -> Outcome:
    import duckdb
    import numpy as np

    connection = duckdb.connect()
    with Meter() as spent:
        _fill(connection, workload)
        rows = connection.execute(f"{_CLOSURE} SELECT x, y FROM path").fetchall()
    figures = {"load.cpu": spent.cpu, "load.wall": spent.wall}
    return Outcome(figures, {"load": answer_of(np.array(rows, np.int64))}, duckdb.__version__)


def _fill(connection: duckdb.DuckDBPyConnection, workload: Workload) -> None:
    edges = workload.load.inserts["edge"]
    connection.execute("CREATE TABLE edge (x BIGINT, y BIGINT)")
    connection.register("edges", {"x": edges[:, 0].copy(), "y": edges[:, 1].copy()})
    connection.execute("INSERT INTO edge SELECT x, y FROM edges")
