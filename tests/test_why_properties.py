"""Every row of every view has a proof that holds, and that no other is shorter than, whatever the strategy."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings

from tests.generators import PLAIN, WINDOWED, GeneratedProgram, Shape, cases
from tests.golden_cases import CONFIGS
from tests.golden_cases import Case as Golden
from tests.golden_cases import cases as golden_cases
from tests.proof_checks import check_proof, full_database, smallest_heights
from whorl.cli.files import load_functions, read_source
from whorl.diagnostics.errors import ProgramErrors, UserError
from whorl.diagnostics.source import Source
from whorl.hosts.inprocess import InProcess
from whorl.logical.compile import compile_program
from whorl.logical.intake import Compile
from whorl.model.delta import Epoch
from whorl.model.limits import Limits
from whorl.model.values import row_key
from whorl.oracle.session import Oracle
from whorl.syntax.deltas import parse_deltas
from whorl.views.asking import Asked, locate, resolve
from whorl.views.proof import Proof
from whorl.views.proving import prove

Case = tuple[GeneratedProgram, tuple[Epoch, ...]]
ROWS = 12  # of each view
EPOCHS = {"streamlog/lloyd_clustering": 1}  # the reference evaluator takes seconds for each


def _prove(kernel: InProcess, view: str, row: tuple[object, ...]) -> Proof:
    target = resolve(kernel.partition, Asked(view, row))  # type: ignore[arg-type]
    key = locate(kernel.partition, target)
    assert key is not None, (view, row)
    return prove(kernel.partition, key, target.view)


def _check(compile_plan: Compile, epochs: tuple[Epoch, ...], strategy: str, limits: Limits | None = None) -> int:
    """Check proofs after the last epoch that succeeds; return how many."""
    oracle, kernel = Oracle(compile_plan, limits), InProcess(compile_plan, limits, strategy)
    for epoch in epochs:
        try:
            oracle.commit(epoch)
        except (UserError, ProgramErrors):
            break
        kernel.commit(epoch)
    try:
        plan, database = full_database(oracle)
    except UserError:
        return 0  # without rewrites it does not end
    heights = smallest_heights(plan, database)
    checked = 0
    for output in plan.outputs:
        for row in sorted(oracle.rows(output.name), key=row_key)[:ROWS]:
            proof = _prove(kernel, output.name, row)
            check_proof(proof, oracle, database)
            root = proof.nodes[proof.root.premises()[0]] if proof.root.kind == "query" else proof.root
            lowest = heights[root.relation, root.row] + (proof.root.kind == "query")
            improved = any(node.improved for node in proof.nodes)
            assert proof.height == lowest if lowest < math.inf else improved, (proof.height, lowest, str(proof))
            assert proof.shortest
            checked += 1
    return checked


@pytest.mark.parametrize("strategy", ["auto", "dred"])
@pytest.mark.parametrize("shape", [PLAIN, WINDOWED], ids=["plain", "windowed"])
def test_proofs_of_random_programs(shape: Shape, strategy: str) -> None:
    checked: list[int] = []

    @settings(max_examples=60)
    @given(case=cases(shape))
    def check(case: Case) -> None:
        program, epochs = case
        source = Source("generated", program.text)
        checked.append(_check(lambda types: compile_program(source, data_types=types), epochs, strategy))

    check()
    assert sum(checked) > 100


@pytest.mark.parametrize("config", [name for name in CONFIGS if name.startswith("kernel")])
@pytest.mark.parametrize("case", golden_cases(), ids=lambda case: case.name)
def test_proofs_of_golden_cases(case: Golden, config: str) -> None:
    source, functions = read_source(case.folder / "program.dl"), load_functions(case.functions_path())
    epochs = parse_deltas(read_source(case.folder / "input.deltas"))[: EPOCHS.get(case.name)]
    without = CONFIGS[config].without
    limits = Limits(**case.options())
    _check(
        lambda types: compile_program(source, functions, types, without=without),
        epochs,
        CONFIGS[config].strategy,
        limits,
    )
