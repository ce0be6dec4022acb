"""`min` and `max` in recursion, on small dense graphs under inserts and deletes: the kernel equals the reference."""

from __future__ import annotations

import random

import pytest

from whorl.diagnostics.source import Source
from whorl.hosts.inprocess import InProcess
from whorl.kernel.state.relation import StoredRelation
from whorl.logical.compile import compile_program
from whorl.model.delta import Change, Epoch
from whorl.model.values import Row
from whorl.oracle.session import Oracle

EDGES = "RELATION edge(X: Integer, Y: Integer, C: Integer).\n"
PROGRAMS = {
    "cheapest from one node": """
        cheapest(0, mmin<0>) :- edge(_, _, _).
        cheapest(Y, mmin<D>) :- cheapest(X, E), edge(X, Y, C), D = E + C.
    """,
    "cheapest between all": """
        cheapest(X, Y, mmin<C>) :- edge(X, Y, C).
        cheapest(X, Y, mmin<C>) :- cheapest(X, Z, A), cheapest(Z, Y, B), C = A + B.
    """,
    "components": """
        component(X, min<X>) :- edge(X, _, _).
        component(Y, min<Y>) :- edge(_, Y, _).
        component(Y, min<L>) :- component(X, L), edge(X, Y, _).
        component(X, min<L>) :- component(Y, L), edge(X, Y, _).
    """,
    "widest": """
        widest(X, Y, mmax<C>) :- edge(X, Y, C).
        widest(X, Y, mmax<C>) :- widest(X, Z, A), edge(Z, Y, B), C = min(A, B).
        wide(Y) :- widest(0, Y, C), C > 2.
        top(max<C>) :- widest(_, _, C).
    """,
}


def _epochs(seed: int) -> list[Epoch]:
    """Return epochs that insert and delete edges of a small, dense graph."""
    chance = random.Random(seed)
    alive: set[Row] = set()
    epochs: list[Epoch] = []
    for number in range(1, 9):
        changes: list[Change] = []
        for _ in range(chance.randint(0, 6)):
            if alive and chance.random() < 0.45:
                row = chance.choice(sorted(alive))
                alive.discard(row)
                changes.append(Change("edge", row, -1))
            else:
                row = (chance.randint(0, 5), chance.randint(0, 5), chance.randint(1, 4))
                alive.add(row)
                changes.append(Change("edge", row, 1))
        epochs.append(Epoch(number, tuple(changes)))
    return epochs


@pytest.mark.parametrize("strategy", ["dred", "recompute"])
@pytest.mark.parametrize("name", PROGRAMS)
def test_best_rows_equal_the_reference(name: str, strategy: str) -> None:
    source = Source(name, EDGES + PROGRAMS[name])
    for seed in range(25):
        oracle = Oracle(lambda types: compile_program(source, data_types=types))
        kernel = InProcess(lambda types: compile_program(source, data_types=types), None, strategy)
        assert kernel.partition.plan.strata[0].kind == "best"
        for epoch in _epochs(seed):
            assert dict(kernel.commit(epoch).deltas) == dict(oracle.commit(epoch).deltas), (seed, epoch.number)


RIDES = """
STREAM ride(Ts: Timestamp, From: Integer, To: Integer, Fare: Integer) WINDOW(40, 4).
best(Ts, P, D, mmin<F>) :- ride(Ts, P, D, F).
best(Ts, P, D, mmin<F>) :- ride(Ts1, P, Q, F1), best(Ts2, Q, D, F2), F = F1 + F2, largest(Ts, Ts1, Ts2).
query best(_, P, D, F).
"""


@pytest.mark.parametrize("strategy", ["auto", "expiry"])
def test_the_best_of_a_window_stays_right_when_only_facts_are_swept(
    strategy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is swept gets other numbers, and then the groups of frontiers do too: their best rows are shown anew."""
    monkeypatch.setattr(
        StoredRelation, "wasteful", lambda stored, needed: stored.name == "ride" and stored.count > needed
    )
    chance = random.Random(3)
    source = Source("test.dl", RIDES)
    host = InProcess(lambda types: compile_program(source, data_types=types), None, strategy)
    oracle = Oracle(lambda types: compile_program(source, data_types=types))
    for time in range(4, 160, 4):
        rides = [(time, chance.randrange(12), chance.randrange(12), chance.randrange(1, 9)) for _ in range(3)]
        epoch = Epoch(time // 4, tuple(Change("ride", row, 1) for row in rides), time=time)
        assert dict(host.commit(epoch).deltas) == dict(oracle.commit(epoch).deltas)
        assert host.rows("best") == oracle.rows("best")
