"""Rewrites keep the answer: whichever of them run, every epoch emits the same deltas."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.generators import PLAIN, WINDOWED, GeneratedProgram, Shape, cases
from whorl.analysis.passes import analyze
from whorl.diagnostics.source import Source
from whorl.logical.intake import DataTypes
from whorl.logical.lower import lower_program
from whorl.logical.plan import LogicalPlan
from whorl.logical.rewrites import NAMES, rewrite_plan
from whorl.model.delta import Delta, Epoch
from whorl.oracle.session import Oracle
from whorl.syntax.parser import parse_program

Case = tuple[GeneratedProgram, tuple[Epoch, ...]]
Deltas = list[Mapping[str, Delta]]


class _Lowered:
    """The plan of a program before any rewrite, made once for each typing of its inputs."""

    def __init__(self, program: GeneratedProgram) -> None:
        self._tree = parse_program(Source("generated", program.text))
        self._plans: dict[str, LogicalPlan] = {}

    def plan(self, types: DataTypes) -> LogicalPlan:
        key = repr(types)
        if key not in self._plans:
            self._plans[key] = lower_program(analyze(self._tree, data_types=types))
        return self._plans[key]

    def replay(self, epochs: tuple[Epoch, ...], without: Sequence[str]) -> Deltas:
        oracle = Oracle(lambda types: rewrite_plan(self.plan(types), without))
        return [oracle.commit(epoch).deltas for epoch in epochs]


def _check(case: Case, subsets: Iterable[frozenset[str]]) -> None:
    program, epochs = case
    lowered = _Lowered(program)
    plain = lowered.replay(epochs, NAMES)
    for without in (NONE, *subsets):
        assert lowered.replay(epochs, sorted(without)) == plain, f"without {sorted(without)}:\n{program.text}"


NONE = frozenset[str]()
SINGLE = tuple(frozenset({name}) for name in NAMES)
SUBSETS = st.lists(st.frozensets(st.sampled_from(NAMES), min_size=2), max_size=2)


def _only(name: str) -> frozenset[str]:
    return frozenset(NAMES) - {name}


@settings(max_examples=80)
@given(cases(PLAIN), SUBSETS)
def test_any_rewrites_give_the_same_deltas(case: Case, subsets: list[frozenset[str]]) -> None:
    _check(case, (*SINGLE, *subsets))


@settings(max_examples=60)
@given(cases(WINDOWED), SUBSETS)
def test_any_rewrites_give_the_same_deltas_over_windows(case: Case, subsets: list[frozenset[str]]) -> None:
    _check(case, (*SINGLE, *subsets))


# Programs in which these two rewrites fire, or nearly do, are rare among all.
CHOICES = Shape(kinds=frozenset({"choice"}), max_strata=1)
QUERIES = Shape(kinds=frozenset({"join", "recursion", "aggregate", "best"}), queried=True)


@settings(max_examples=300)
@given(cases(CHOICES))
def test_selection_in_recursion_gives_the_same_deltas(case: Case) -> None:
    _check(case, [_only("select_in_recursion")])


@settings(max_examples=200)
@given(cases(QUERIES))
def test_magic_sets_give_the_same_deltas(case: Case) -> None:
    _check(case, [_only("magic_sets")])


@pytest.mark.slow
@pytest.mark.parametrize("shape", [PLAIN, WINDOWED, CHOICES, QUERIES], ids=["plain", "windowed", "choices", "queries"])
def test_any_rewrites_give_the_same_deltas_at_length(shape: Shape) -> None:
    @settings(max_examples=1_000)
    @given(cases(shape), SUBSETS)
    def check(case: Case, subsets: list[frozenset[str]]) -> None:
        _check(case, (*SINGLE, *subsets))

    check()
