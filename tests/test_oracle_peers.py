"""The oracle agrees with what others wrote: clingo, DuckDB, and networkx on shortest paths."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import networkx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.generators import GeneratedProgram, Shape, cases
from tests.peers import asp
from tests.peers.sql import Database
from whorl.analysis.program import Program
from whorl.diagnostics.source import Source
from whorl.logical.compile import compile_program
from whorl.model.delta import Change, Epoch
from whorl.model.values import Row
from whorl.oracle.session import Oracle

Case = tuple[GeneratedProgram, tuple[Epoch, ...]]
Solve = Callable[[Program, Mapping[str, set[Row]]], dict[str, set[Row]]]

LOGIC = Shape(
    types=frozenset({"Integer", "String"}), kinds=frozenset({"join", "recursion", "aggregate", "stages", "choice"})
)
RELATIONAL = Shape(kinds=frozenset({"join", "recursion", "aggregate"}), linear=True)


def _check(case: Case, solve: Solve) -> None:
    program, epochs = case
    source = Source("generated", program.text)
    oracle = Oracle(lambda types: compile_program(source, data_types=types))
    base: dict[str, set[Row]] = {relation.name: set() for relation in program.base}
    for fact in oracle.plan.program.facts:
        base[fact.relation].add(fact.row)
    for epoch in epochs:
        oracle.commit(epoch)
        for change in epoch.changes:
            (base[change.relation].add if change.weight > 0 else base[change.relation].discard)(change.row)
        expected = solve(oracle.plan.program, base)
        found = {output.name: oracle.rows(output.name) for output in oracle.plan.outputs}
        assert found == expected, program.text


@settings(max_examples=250)
@given(cases(LOGIC))
def test_clingo_finds_the_same_views(case: Case) -> None:
    _check(case, asp.solve)


@settings(max_examples=100)
@given(cases(RELATIONAL))
def test_duckdb_finds_the_same_views(case: Case) -> None:
    _check(case, Database().solve)


@pytest.mark.slow
def test_clingo_finds_the_same_views_at_length() -> None:
    @settings(max_examples=3_000)
    @given(cases(LOGIC))
    def check(case: Case) -> None:
        _check(case, asp.solve)

    check()


STEPS = (
    "path(X, Z, C1), edge(Z, Y, C2)",
    "edge(X, Z, C1), path(Z, Y, C2)",
    "path(X, Z, C1), path(Z, Y, C2)",
)
EDGES = st.dictionaries(st.tuples(st.integers(0, 5), st.integers(0, 5)), st.integers(1, 9), max_size=14)


@settings(max_examples=60)
@given(st.sampled_from(STEPS), st.sampled_from(("min", "mmin")), EDGES, EDGES)
def test_networkx_finds_the_same_shortest_paths(
    step: str, function: str, before: dict[tuple[int, int], int], after: dict[tuple[int, int], int]
) -> None:
    head = f"path(X, Y, {function}<C>)"
    source = Source("paths", f"{head} :- edge(X, Y, C).\n{head} :- {step}, C = C1 + C2.\n")
    oracle = Oracle(lambda types: compile_program(source, data_types=types))
    old: dict[tuple[int, int], int] = {}
    for number, edges in enumerate((before, after), 1):
        deletes = [Change("edge", (*ends, cost), -1) for ends, cost in old.items()]
        inserts = [Change("edge", (*ends, cost), 1) for ends, cost in edges.items()]
        oracle.commit(Epoch(number, (*deletes, *inserts)))
        assert oracle.rows("path") == _shortest(edges)
        old = edges


def _shortest(edges: dict[tuple[int, int], int]) -> set[Row]:
    """Return the cost of the best path of at least one edge between any two nodes."""
    graph = networkx.DiGraph()
    graph.add_weighted_edges_from((start, stop, cost) for (start, stop), cost in edges.items())
    costs = dict(networkx.all_pairs_dijkstra_path_length(graph))
    found: dict[tuple[int, int], int] = {}
    for (start, middle), cost in edges.items():
        for stop, rest in costs[middle].items():
            found[start, stop] = min(found.get((start, stop), cost + rest), cost + rest)
    return {(start, stop, cost) for (start, stop), cost in found.items()}


TOTALS = ("count<X>", "mcount<X>", "sum<C>", "msum<(X, C)>")


@settings(max_examples=60)
@given(st.sampled_from(TOTALS), st.integers(1, 12), st.frozensets(st.integers(0, 5), max_size=3), EDGES)
def test_a_plain_loop_finds_who_is_switched_on(
    total: str, enough: int, start: frozenset[int], edges: dict[tuple[int, int], int]
) -> None:
    rules = f"""
        on(X) :- start(X).
        on(Y) :- reached(Y, N), N >= {enough}.
        reached(Y, {total}) :- on(X), edge(X, Y, C), C > 0.
    """
    oracle = Oracle(lambda types: compile_program(Source("switches", rules), data_types=types))
    changes = [Change("start", (node,), 1) for node in start]
    changes += [Change("edge", (*ends, cost), 1) for ends, cost in edges.items()]
    oracle.commit(Epoch(1, tuple(changes)))
    on: set[int] = set(start)
    reached: dict[int, int] = {}
    for _ in range(len(edges) + 1):
        reached = {}
        for (source, target), cost in edges.items():
            if source in on:
                reached[target] = reached.get(target, 0) + (1 if "count" in total else cost)
        on |= {node for node, weight in reached.items() if weight >= enough}
    assert oracle.rows("on") == {(node,) for node in on}
    assert oracle.rows("reached") == set(reached.items())
