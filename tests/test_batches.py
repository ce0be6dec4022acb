"""Changes as whole columns mean the same as row by row: deltas, counts, learnt types, refusals."""

from __future__ import annotations

from itertools import groupby

import pytest
from hypothesis import given, settings

from tests.generators import PLAIN, WINDOWED, GeneratedProgram, cases
from tests.golden_cases import Case as GoldenCase
from tests.golden_cases import cases as golden_cases
from whorl.cli.files import load_functions, read_source
from whorl.diagnostics.errors import ProgramErrors, UserError
from whorl.diagnostics.source import Source
from whorl.hosts.inprocess import InProcess
from whorl.logical.compile import compile_program
from whorl.model.batch import Batch, batch_of, values_of
from whorl.model.delta import Epoch
from whorl.model.functions import Function
from whorl.model.limits import Limits
from whorl.model.types import Type
from whorl.model.values import NIL, Term
from whorl.oracle.session import Oracle
from whorl.syntax.deltas import parse_deltas

Case = tuple[GeneratedProgram, tuple[Epoch, ...]]


def _by_column(epoch: Epoch) -> Epoch:
    """Return an epoch with its changes as batches: runs of one relation, one weight and one number of values."""
    runs = groupby(epoch.changes, key=lambda change: (change.relation, change.weight, len(change.row)))
    batches = []
    for (relation, weight, _length), changes in runs:
        rows = [change.row for change in changes]
        batches.append(batch_of(relation, rows, weight))
    return Epoch(epoch.number, (), epoch.time, batches=tuple(batches))


def _check(source: Source, functions: tuple[Function, ...], limits: Limits | None, epochs: tuple[Epoch, ...]) -> None:
    host = InProcess(lambda types: compile_program(source, functions, types), limits)
    other = Oracle(lambda types: compile_program(source, functions, types), limits)
    for epoch in epochs:
        try:
            expected = other.commit(epoch)
        except (UserError, ProgramErrors) as refused:
            with pytest.raises((UserError, ProgramErrors)) as also:
                host.commit(_by_column(epoch))
            assert str(also.value).split("\n")[0][:4] == str(refused)[:4]
            continue
        found = host.commit(_by_column(epoch))
        assert (dict(found.deltas), found.counts) == (dict(expected.deltas), expected.counts)
        assert host.time == other.time


@settings(max_examples=60)
@given(case=cases(PLAIN))
def test_random_programs(case: Case) -> None:
    program, epochs = case
    source = Source("generated", program.text)
    _check(source, (), None, epochs)


@settings(max_examples=60)
@given(case=cases(WINDOWED))
def test_random_windows(case: Case) -> None:
    program, epochs = case
    source = Source("generated", program.text)
    _check(source, (), None, epochs)


@pytest.mark.parametrize("case", golden_cases(), ids=lambda case: case.name)
def test_golden_input(case: GoldenCase) -> None:
    program = read_source(case.folder / "program.dl")
    epochs = parse_deltas(read_source(case.folder / "input.deltas"))
    _check(program, load_functions(case.functions_path()), Limits(**case.options()), epochs)


def test_the_oracle_takes_batches_row_by_row() -> None:
    oracle = Oracle(lambda types: compile_program(Source("p", "copy(X) :- item(X)."), data_types=types))
    oracle.commit(Epoch(1, (), batches=(batch_of("item", [("a",), ("b",)]),)))
    assert oracle.rows("copy") == {("a",), ("b",)}


@pytest.mark.parametrize(
    ("column", "kind"),
    [
        ([1, 2], Type.INTEGER),
        ([1.5, -0.0], Type.FLOAT),
        ([True, False], Type.BOOLEAN),
        (["a", "b", "a"], Type.STRING),
        ([NIL, Term("[]", (1,))], Type.LIST),
        ([Term("f", (1,))], Type.TERM),
        ([1, 1.5], Type.UNKNOWN),
        ([True, 1], Type.UNKNOWN),
        ([NIL, Term("f", ())], Type.UNKNOWN),
    ],
)
def test_values(column: list[object], kind: Type) -> None:
    values = values_of(column)  # type: ignore[arg-type]
    assert values.type is kind
    assert [(type(value), value) for value in values.to_list()] == [(type(value), value) for value in column]
    assert [values[at] for at in range(len(values))] == column


def test_rows_without_attributes() -> None:
    host = InProcess(lambda types: compile_program(Source("p", "alarm :- smoke."), data_types=types))
    report = host.commit(Epoch(1, (), batches=(Batch("smoke", (), 2),)))
    assert report.deltas["alarm"].inserted == ((),)
    assert (report.counts.inserted, report.counts.refreshed) == (1, 1)
