"""The indexes that a physical plan names are those that the kernel makes, and `explain` prints them."""

from __future__ import annotations

import pytest

from tests.golden_cases import Case, cases
from whorl.cli.files import load_functions, read_source
from whorl.diagnostics.errors import ProgramErrors, UserError
from whorl.diagnostics.source import Source
from whorl.hosts.inprocess import InProcess
from whorl.logical.compile import compile_program
from whorl.model.limits import Limits
from whorl.physical.explain import explain_physical
from whorl.physical.indexes import Need, find_indexes
from whorl.physical.lower import lower_plan
from whorl.physical.strategies import STRATEGIES
from whorl.syntax.deltas import parse_deltas

RULES = """\
RELATION link(X: Integer, Y: Integer).
RELATION shut(X: Integer).
near(X, Y) :- link(X, Y), not shut(Y).
far(X, Z) :- near(X, Y), near(Y, Z).
same(X, Y) :- link(Z, X), link(Z, Y), not link(X, _).
pair(X, Y) :- shut(X), shut(Y).
"""


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_the_kernel_makes_no_other_index(case: Case) -> None:
    program, functions = read_source(case.folder / "program.dl"), load_functions(case.functions_path())
    for strategy in STRATEGIES:
        try:
            host = InProcess(
                lambda types: compile_program(program, functions, types), Limits(**case.options()), strategy
            )
            for epoch in parse_deltas(read_source(case.folder / "input.deltas")):
                host.commit(epoch)
        except (UserError, ProgramErrors):
            continue  # not served, or refused as it should be
        named = {(need.relation, need.columns) for need in find_indexes(host.partition.plan)}
        relations = host.partition.state.relations
        made = {(name, columns) for name, relation in relations.items() for columns in relation._indexes}
        assert made <= named, strategy


def test_an_index_is_shared_by_all_who_look_things_up_by_its_columns() -> None:
    plan = lower_plan(compile_program(Source("shared", RULES)), "dred")
    assert find_indexes(plan) == (
        Need("link", (0,), ("line 5 on link", "line 5 on not link", "line 5 to derive a row")),
        Need("link", (1,), ("line 3 on not shut", "line 5 on not link", "line 5 to derive a row")),
        Need("near", (0,), ("line 4 on near", "line 4 to derive a row")),
        Need("near", (1,), ("line 4 on near",)),
        Need("shut", (), ("line 6 on shut",)),
    )


def test_explain_prints_them() -> None:
    lines = explain_physical(lower_plan(compile_program(Source("shared", RULES)), "counting")).splitlines()
    at = lines.index("Indexes")
    assert lines[at + 1 : at + 6] == [
        "  link by column 1 (X): line 5 on link; line 5 on not link",
        "  link by column 2 (Y): line 3 on not shut; line 5 on not link",
        "  near by column 1 (X): line 4 on near",
        "  near by column 2 (Y): line 4 on near",
        "  shut, all rows: line 6 on shut",
    ]
