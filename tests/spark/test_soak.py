"""The soak can fail: what it looks for is found where it is, and differences end it."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.parquet as pq

from tests.spark.soak import PROGRAM, Checker, Course, changes_of, tenth, write_report
from whorl.diagnostics.source import Source
from whorl.logical.compile import compile_program
from whorl.model.delta import Epoch
from whorl.oracle.session import Oracle


def oracle() -> Oracle:
    return Oracle(lambda types: compile_program(Source("soak.dl", PROGRAM), (), types))


def test_drift_and_growth_are_found() -> None:
    steady, slower, larger = [0.1] * 100, [0.1] * 50 + [0.2] * 50, [int(1e6 * at) for at in range(100)]
    level = [int(1e8)] * 100
    assert tenth(list(range(100)), 10) == 94.5
    assert Course(steady, level).faults() == []
    assert Course(slower, level).faults() == ["an epoch takes 200 ms in the end, 100 ms near the start"]
    assert Course(steady, larger).faults() == ["workers take 94 MB in the end, 54 MB in the middle"]


def test_every_epoch_is_compared(tmp_path: Path) -> None:
    wanted, checker = oracle(), Checker(tmp_path, oracle())
    for number in range(1, 40):
        report = wanted.commit(Epoch(number, tuple(changes_of(number))))
        for view, delta in report.deltas.items():
            folder = tmp_path / "changes" / view / f"epoch-{number:010}"
            folder.mkdir(parents=True)
            rows = [(*row, number, op) for op, own in (("-", delta.deleted), ("+", delta.inserted)) for row in own]
            if number == 39:
                rows = rows[1:]
            columns = {str(at): list(values) for at, values in enumerate(zip(*rows, strict=True))}
            names = [*list(columns)[:-2], "_epoch", "_op"]
            if rows:
                pq.write_table(pa.table(list(map(pa.array, columns.values())), names=names), folder / "part.parquet")
        checker(SimpleNamespace(number=number))
        assert (checker.difference is None) is (number < 39)
    assert any(map(len, checker.rows.values()))
    write_report(tmp_path / "report.md", 1, checker, Course([0.1], [1]), [checker.difference or ""])
    assert "differs in epoch 39" in (tmp_path / "report.md").read_text()
