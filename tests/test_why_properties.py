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
from whorl.kernel.proofs.search import BUDGET
from whorl.logical.compile import compile_program
from whorl.logical.intake import Compile
from whorl.model.delta import Epoch
from whorl.model.limits import Limits
from whorl.model.values import row_key
from whorl.oracle.session import Oracle
from whorl.physical.strategies import STRATEGIES
from whorl.syntax.deltas import parse_deltas
from whorl.views.asking import Asked, locate, resolve
from whorl.views.proof import Proof
from whorl.views.proving import prove

Case = tuple[GeneratedProgram, tuple[Epoch, ...]]
ROWS = 12  # of each view
EPOCHS = {"streamlog/lloyd_clustering": 1}  # the reference evaluator takes seconds for each


def _prove(kernel: InProcess, view: str, row: tuple[object, ...], budget: int = BUDGET) -> Proof:
    target = resolve(kernel.partition, Asked(view, row))  # type: ignore[arg-type]
    key = locate(kernel.partition, target)
    assert key is not None, (view, row)
    return prove(kernel.partition, key, target.view, budget)


def _check(compile_plan: Compile, epochs: tuple[Epoch, ...], strategy: str, limits: Limits | None = None) -> int:
    """Check proofs after the last epoch that succeeds; return how many."""
    oracle = Oracle(compile_plan, limits)
    try:
        kernel = InProcess(compile_plan, limits, strategy)
        for epoch in epochs:
            try:
                oracle.commit(epoch)
            except (UserError, ProgramErrors):
                break
            kernel.commit(epoch)
    except UserError as refused:
        assert refused.code == "E402", "a strategy may refuse what it does not serve"
        return 0
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
            if not improved:
                quick = _prove(kernel, output.name, row, budget=0)
                check_proof(quick, oracle, database)
                assert quick.height >= proof.height
                assert not quick.shortest or quick.height == 0
            checked += 1
    return checked


@pytest.mark.parametrize("strategy", ["auto", "dred", "expiry"])
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
    assert sum(checked) > 50


@pytest.mark.slow
@pytest.mark.parametrize("strategy", [name for name in STRATEGIES if name != "counting"])
@pytest.mark.parametrize("shape", [PLAIN, WINDOWED], ids=["plain", "windowed"])
def test_proofs_of_random_programs_at_length(shape: Shape, strategy: str) -> None:
    @settings(max_examples=500)
    @given(case=cases(shape))
    def check(case: Case) -> None:
        program, epochs = case
        source = Source("generated", program.text)
        _check(lambda types: compile_program(source, data_types=types), epochs, strategy)

    check()


def test_a_value_improved_through_itself() -> None:
    """No row alive proves a = 0: it needs b = 3, which needs a = 0. The proof goes through the values before."""
    source = Source(
        "itself.dl", "a(min<5>) :- f(_).\na(min<D>) :- b(C), D = max(C - 3, 0).\nb(min<D>) :- a(C), D = max(C, 3)."
    )
    epochs = parse_deltas(Source("in.deltas", "@1\n+f(1)\n"))
    for strategy in ("auto", "recompute"):
        kernel = InProcess(lambda types: compile_program(source, data_types=types), None, strategy)
        oracle = Oracle(lambda types: compile_program(source, data_types=types))
        for epoch in epochs:
            oracle.commit(epoch)
            kernel.commit(epoch)
        proof = _prove(kernel, "a", (0,))
        check_proof(proof, oracle, full_database(oracle)[1])
        rows = [(node.text, node.improved) for node in proof.nodes]
        assert rows == [
            ("a(0)", False),
            ("b(3)", False),
            ("a(2)", True),
            ("b(5)", True),
            ("a(5)", True),
            ("f(1)", False),
        ]


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
