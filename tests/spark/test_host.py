"""The same views and deltas from partitions that live in Spark's workers."""

from __future__ import annotations

from typing import Any

import pytest

from tests.golden_cases import Case, cases, expected
from whorl.cli.files import load_functions, read_source
from whorl.diagnostics.errors import ProgramErrors, UserError
from whorl.hosts.spark.host import SparkHost
from whorl.logical.compile import compile_program
from whorl.model.limits import Limits
from whorl.syntax.deltas import format_deltas, format_header, parse_deltas


@pytest.mark.parametrize("partitions", [1, 3])
@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_golden_cases_on_spark(case: Case, partitions: int, spark: Any) -> None:
    program, functions = read_source(case.folder / "program.dl"), load_functions(case.functions_path())
    output, code = "", ""
    try:
        make = SparkHost(spark, partitions=partitions)
        host = make(lambda types: compile_program(program, functions, types), Limits(**case.options()))
        for epoch in parse_deltas(read_source(case.folder / "input.deltas")):
            report = host.commit(epoch)
            lines = [format_header(report.number, report.time), *format_deltas(report.deltas)]
            output += "".join(f"{line}\n" for line in lines)
    except UserError as error:
        code = error.code
    except ProgramErrors as errors:
        code = errors.errors[0].code
    assert output == expected(case.folder / "expected.deltas")
    assert code == expected(case.folder / "expected.err").split(" ")[0]
