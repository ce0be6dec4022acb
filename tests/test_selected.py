"""Aggregate selection under changes: groups that lost their best row are filled from what is left."""

from __future__ import annotations

import random
from collections.abc import Collection
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sweeping import sweep_always
from whorl.diagnostics.source import Source
from whorl.hosts.inprocess import InProcess
from whorl.kernel.strategies import refill, selected
from whorl.logical.compile import compile_program
from whorl.logical.plan import LogicalPlan
from whorl.model.delta import Change, Epoch
from whorl.model.report import EpochReport
from whorl.model.values import Row
from whorl.oracle.session import Oracle

PROGRAMS = {
    "one choice": """
RELATION road(X: Integer, Y: Integer, C: Integer).
path(X, Y, C) :- road(X, Y, C).
path(X, Y, C) :- road(X, Z, A), path(Z, Y, B), C = A + B.
cost(X, Y, min<C>) :- path(X, Y, C).
query cost(X, Y, C).
""",
    "witnesses": """
RELATION road(X: Integer, Y: Integer, C: Integer).
path(X, Y, P, C) :- road(X, Y, C), P = [X, Y].
path(X, Y, P, C) :- path(X, Z, Q, A), road(Z, Y, B), C = A + B, P = concat(Q, [Y]).
cost(X, Y, min<C>) :- path(X, Y, P, C).
cheapest(X, Y, P, C) :- path(X, Y, P, C), cost(X, Y, C).
query cheapest(X, Y, P, C).
""",
    "two choices": """
RELATION road(X: Integer, Y: Integer, C: Integer).
path(X, Y, P, C, L) :- road(X, Y, C), P = [X, Y], L = 1.
path(X, Y, P, C, L) :- road(X, Z, C0), path(Z, Y, P1, C1, L1), C = C0 + C1, P = concat([X], P1), L = 1 + L1.
cost(X, Y, min<C>) :- path(X, Y, P, C, L).
hops(X, Y, min<L>) :- path(X, Y, P, C, L).
cheapest(X, Y, P, C) :- path(X, Y, P, C, L), cost(X, Y, C).
shortest(X, Y, P, L) :- path(X, Y, P, C, L), hops(X, Y, L).
query cheapest(X, Y, P, C).
query shortest(X, Y, P, L).
""",
    "groups that differ": """
RELATION road(X: Integer, Y: Integer, C: Integer).
from(X, X, Y, C) :- road(X, Y, C).
from(S, Y, Z, C) :- from(S, X, Y, A), road(Y, Z, B), C = A + B.
least(S, Y, Z, min<C>) :- from(S, Y, Z, C).
into(S, Z, min<C>) :- from(S, _, Z, C).
query least(S, Y, Z, C).
query into(S, Z, C).
""",
    "one group, what is not closed": """
RELATION road(X: Integer, Y: Integer, C: Integer).
RELATION closed(X: Integer, Y: Integer).
trip(C) :- road(0, Y, C), not closed(0, Y).
trip(C) :- trip(A), road(1, Y, B), not closed(1, Y), C = A + B, C < 12.
quickest(min<C>) :- trip(C).
query quickest(C).
""",
    "the largest, what is not closed": """
RELATION road(X: Integer, Y: Integer, C: Integer).
RELATION closed(X: Integer, Y: Integer).
height(X, Y, H) :- road(X, Y, C), not closed(X, Y), H = 9 - C.
height(X, Y, H) :- road(X, Z, C), height(Z, Y, G), not closed(X, Z), H = G - C.
highest(X, Y, max<H>) :- height(X, Y, H).
query highest(X, Y, H).
""",
    "rounded sums": """
RELATION road(X: Integer, Y: Integer, C: Integer).
path(X, Y, P, D) :- road(X, Y, C), P = [X, Y], D = C / 10.0.
path(X, Y, P, D) :- road(X, Z, C), path(Z, Y, Q, E), D = C / 10.0 + E, P = concat([X], Q).
cost(X, Y, min<D>) :- path(X, Y, P, D).
cheapest(X, Y, P, D) :- path(X, Y, P, D), cost(X, Y, D).
query cheapest(X, Y, P, D).
query cost(X, Y, D).
""",
    "rounded sums, two choices": """
RELATION road(X: Integer, Y: Integer, C: Integer).
path(X, Y, P, D, L) :- road(X, Y, C), P = [X, Y], D = C / 10.0, L = 1.
path(X, Y, P, D, L) :- path(X, Z, Q, E, M), road(Z, Y, C), R = C / 10.0, D = E + R, P = concat(Q, [Y]), L = M + 1.
cost(X, Y, min<D>) :- path(X, Y, P, D, L).
hops(X, Y, min<L>) :- path(X, Y, P, D, L).
cheapest(X, Y, P, D) :- path(X, Y, P, D, L), cost(X, Y, D).
shortest(X, Y, P, L) :- path(X, Y, P, D, L), hops(X, Y, L).
query cheapest(X, Y, P, D).
query shortest(X, Y, P, L).
""",
    "rounded sums in a column that holds other values": """
RELATION road(X: Integer, Y: Integer, C: Integer).
way(X, Y, N, D) :- road(X, Y, C), N = C, D = C / 10.0.
way(X + 0, Y, N, D) :- road(X, Z, C), way(Z, Y, M, E), D = E + C / 10.0, N = M + C.
least(X, Y, min<D>) :- way(X, Y, N, D).
winner(X, Y, N) :- way(X, Y, N, D), least(X, Y, D).
query winner(X, Y, N).
""",
    "halves of whole numbers": """
RELATION road(X: Integer, Y: Integer, C: Integer).
way(X, Y, D) :- road(X, Y, C), D = C + 0.5.
way(X + 0, Y, D) :- road(X, Z, C), way(Z, Y, E), D = E + C.
least(X, Y, min<D>) :- way(X, Y, D).
query least(X, Y, D).
""",
}
NODE = st.integers(0, 4)
FACT = st.one_of(
    st.tuples(st.just("road"), st.tuples(NODE, NODE, st.integers(1, 3))),
    st.tuples(st.just("closed"), st.tuples(NODE, NODE)),
)
DRAWN = st.lists(st.lists(st.tuples(FACT, st.sampled_from((1, -1))), max_size=8), max_size=8)
Fact = tuple[str, Row]
Drawn = list[list[tuple[Fact, int]]]


def _hosts(text: str) -> tuple[Oracle, InProcess]:
    return Oracle(lambda types: _compile(text, types)), InProcess(lambda types: _compile(text, types))


def _compile(text: str, types: object = None) -> LogicalPlan:
    return compile_program(Source("selected.dl", text), data_types=types)  # type: ignore[arg-type]


def _epochs(text: str, drawn: Drawn) -> list[Epoch]:
    """Return a first epoch of some roads, and those drawn."""
    held: list[tuple[Fact, int]] = [(("road", (x, (x * 3 + 1) % 5, 1 + x % 3)), 1) for x in range(5)]
    kept = [[each for each in changes if f"RELATION {each[0][0]}(" in text] for changes in (held, *drawn)]
    return [
        Epoch(number, tuple(Change(name, row, weight) for (name, row), weight in changes))
        for number, changes in enumerate(kept, 1)
    ]


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
def test_the_kernel_selects(text: str) -> None:
    _oracle, kernel = _hosts(text)
    assert [stratum.kind for stratum in kernel.partition.plan.strata if stratum.recursive] == ["selected"]


def _selected(kernel: InProcess) -> set[Row]:
    """Return the rows alive of the recursion, whether they are shown or not."""
    (name,) = (stratum.relations[0] for stratum in kernel.partition.plan.strata if stratum.recursive)
    state = kernel.partition.state
    relation = state.relations[name]
    return set(state.dictionary.decode_rows(relation.read(relation.alive()), relation.types))


def _from_nothing(text: str, facts: Collection[Fact]) -> InProcess:
    _oracle, kernel = _hosts(text)
    kernel.commit(Epoch(1, tuple(Change(name, row, 1) for name, row in facts)))
    return kernel


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
@settings(max_examples=30)
@given(drawn=DRAWN, stop=st.integers(1, 9), sweeps=st.booleans())
def test_views_are_those_of_the_reference(text: str, drawn: Drawn, stop: int, *, sweeps: bool) -> None:
    oracle, kernel = _hosts(text)
    facts: dict[Fact, bool] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selected, "_MUCH", 1000)
        patch.setattr(refill, "_MOST", 1)
        if sweeps:
            sweep_always(patch)
        for epoch in _epochs(text, drawn):
            if epoch.number == stop:
                with TemporaryDirectory() as folder:
                    kernel.save(folder)
                    kernel = InProcess.restore(folder, lambda types: _compile(text, types))
            assert dict(kernel.commit(epoch).deltas) == dict(oracle.commit(epoch).deltas)
            for output in oracle.plan.outputs:
                assert kernel.rows(output.name) == oracle.rows(output.name)
            facts |= {(change.relation, change.row): change.weight > 0 for change in epoch.changes}
            held = [fact for fact, there in facts.items() if there]
            assert _selected(kernel) == _selected(_from_nothing(text, held))


@pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)
@settings(max_examples=10)
@given(drawn=DRAWN, partitions=st.integers(2, 3), placement=st.sampled_from(("apart", "join", "first", "auto")))
def test_in_several_partitions(text: str, drawn: Drawn, partitions: int, placement: str) -> None:
    oracle = Oracle(lambda types: _compile(text, types))
    kernel = InProcess(lambda types: _compile(text, types), partitions=partitions, placement=placement)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selected, "_MUCH", 1000)
        patch.setattr(refill, "_MOST", 1)
        for epoch in _epochs(text, drawn):
            assert dict(kernel.commit(epoch).deltas) == dict(oracle.commit(epoch).deltas)


def _derivations(result: EpochReport) -> int:
    assert result.work is not None
    return result.work.derivations


@pytest.mark.parametrize("name", ["one choice", "witnesses", "two choices"])
def test_a_road_that_goes_costs_what_it_led_to(name: str) -> None:
    """Of many towns with roads of their own, the change of one derives nothing in the others."""
    chance = random.Random(5)
    towns = 40
    roads = [
        (10 * town + x, 10 * town + y, chance.randint(1, 9))
        for town in range(towns)
        for x, y in (chance.sample(range(10), 2) for _road in range(20))
    ]
    oracle, kernel = _hosts(PROGRAMS[name])
    changes = [Change("road", road, 1) for road in dict.fromkeys(roads)]
    first = Epoch(1, tuple(changes))
    everything = _derivations(kernel.commit(first))
    oracle.commit(first)
    for number, change in enumerate(chance.sample(changes, 8), 2):
        epoch = Epoch(number, (Change("road", change.row, -1),))
        result = kernel.commit(epoch)
        assert dict(result.deltas) == dict(oracle.commit(epoch).deltas)
        assert _derivations(result) * towns < 4 * everything
