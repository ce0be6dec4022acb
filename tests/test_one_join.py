"""Rules that are one join, in one call: it ends early for room, wider rows, limits and the clock, and goes on."""

from __future__ import annotations

import random

import pytest

from tests.reference import follow_reference
from whorl.diagnostics.errors import UserError
from whorl.diagnostics.source import Source
from whorl.hosts.inprocess import InProcess
from whorl.kernel.arrays.index import CHAIN
from whorl.kernel.operators import joins
from whorl.kernel.strategies import one_join
from whorl.logical.compile import compile_program
from whorl.model.delta import Change, Epoch
from whorl.model.limits import Limits

PLAIN = """
RELATION link(X: Integer, Y: Integer).
reachable(X, Y) :- link(X, Y).
reachable(X, Y) :- link(X, Z), reachable(Z, Y).
"""
LEADING = """
RELATION link(X: Integer, Y: Integer).
reachable(X, Y) :- link(X, Y).
reachable(X, Y) :- reachable(X, Z), link(Z, Y).
"""
WINDOWED = """
STREAM link(Ts: Timestamp, X: Integer, Y: Integer) WINDOW(6).
reachable(Ts, X, Y) :- link(Ts, X, Y).
reachable(Ts, X, Y) :- link(Ts1, X, Z), reachable(Ts2, Z, Y), largest(Ts, Ts1, Ts2).
query reachable(_, X, Y).
"""
SQUARED = """
RELATION link(X: Integer, Y: Integer).
reachable(X, Y) :- link(X, Y).
reachable(X, Y) :- reachable(X, Z), reachable(Z, Y).
"""
SQUARED_WINDOWED = """
STREAM link(Ts: Timestamp, X: Integer, Y: Integer) WINDOW(6).
reachable(Ts, X, Y) :- link(Ts, X, Y).
reachable(Ts, X, Y) :- reachable(Ts1, X, Z), reachable(Ts2, Z, Y), largest(Ts, Ts1, Ts2).
query reachable(_, X, Y).
"""
WIDENED = """
RELATION start(X: Integer, Y: Integer).
RELATION link(X: Integer, Y: Integer).
reachable(X, Y) :- start(X, Y).
reachable(X, Y) :- reachable(X, Z), link(Z, Y).
"""
WIDENED_WINDOWED = """
RELATION start(X: Integer, Y: Integer).
STREAM link(Ts: Timestamp, X: Integer, Y: Integer) WINDOW(6).
reachable(X, Y) :- start(X, Y).
reachable(X, Y) :- reachable(X, Z), link(_, Z, Y).
query reachable(X, Y).
"""
WAYS = [
    (PLAIN, "recompute"),
    (PLAIN, "support"),
    (LEADING, "support"),
    (SQUARED, "recompute"),
    (WINDOWED, "expiry"),
    (SQUARED_WINDOWED, "expiry"),
]
FAR = 1 << 40  # no number of 32 bits


def _host(text: str, strategy: str, limits: Limits | None = None) -> InProcess:
    source = Source("test.dl", text)
    return InProcess(lambda types: compile_program(source, data_types=types), limits, strategy)


def _churn(text: str, nodes: list[int], seed: int) -> list[Epoch]:
    """Return epochs in which links come and go."""
    drawn = random.Random(seed)
    links = set[tuple[int, int]]()
    epochs: list[Epoch] = []
    for number in range(1, 9):
        come = {(drawn.choice(nodes), drawn.choice(nodes)) for _ in range(8)} - links
        gone = set(drawn.sample(sorted(links), min(len(links), 3)))
        links = (links | come) - gone
        stamp = (number,) if "STREAM" in text else ()
        changes = [Change("link", (*stamp, *link), 1) for link in sorted(come)]
        changes += [Change("link", (*stamp, *link), -1) for link in sorted(gone)]
        epochs.append(Epoch(number, tuple(changes), number if stamp else None))
    return epochs


@pytest.mark.parametrize(("text", "strategy"), WAYS)
@pytest.mark.parametrize("seed", range(4))
def test_rounds_that_end_early_go_on(text: str, strategy: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in (("_LINES", 3), ("_ROOM", CHAIN), ("_SMALL", CHAIN), ("_PAUSE", 5)):
        monkeypatch.setattr(one_join, name, size)
    nodes = list(range(12))
    if seed % 2:  # later numbers need wider rows, in the midst of a round
        nodes += [FAR + node for node in range(4)]
    follow_reference(text, _churn(text, nodes, seed), _host(text, strategy))


@pytest.mark.parametrize(
    ("text", "strategy"), [(WIDENED, "recompute"), (WIDENED, "support"), (WIDENED_WINDOWED, "expiry")]
)
def test_a_join_is_the_first_to_bring_wide_rows(text: str, strategy: str) -> None:
    """Those of a block that were entered before stay, and the rest follows, with labels that still serve."""
    stamp = (1,) if "STREAM" in text else ()
    near = [(at, at + 1) for at in range(1, 40)] + [(at, 100 + at) for at in range(1, 40)]
    far = [(20, FAR), (FAR, 5), (FAR, FAR + 1), (41, FAR)]
    come = [Change("link", (*stamp, *link), 1) for link in near + far]
    epochs = [
        Epoch(1, (Change("start", (0, 1), 1), Change("start", (0, 15), 1)), 1 if stamp else None),
        Epoch(2, tuple(come), 2 if stamp else None),
        Epoch(3, tuple(Change("link", change.row, -1) for change in come[10:12]), 3 if stamp else None),
        Epoch(4, (Change("start", (0, 15), -1),), 4 if stamp else None),
    ]
    follow_reference(text, epochs, _host(text, strategy))


@pytest.mark.parametrize("others", [0, 100], ids=["often", "seldom"])
def test_labels_are_raised_twice_in_a_round(others: int) -> None:
    """A row that lives longer, and longer still: among many it may be followed twice, which changes nothing."""
    first = [(1, 1, 4), (1, 0, 9), *((1, 3000 + at, 1000 + at) for at in range(others))]
    second = [(4, 1, 2), (4, 1, 3), (4, 0, 1)]
    third = [(2, 2, 4), (3, 3, 4), *((5, 1000 + at, 2000 + at) for at in range(others))]
    epochs = [
        Epoch(number, tuple(Change("link", link, 1) for link in links), time)
        for number, (time, links) in enumerate(((1, first), (4, second), (5, third), (7, []), (8, []), (9, [])), 1)
    ]
    follow_reference(WINDOWED, epochs, _host(WINDOWED, "expiry"))


@pytest.mark.parametrize("strategy", ["recompute", "dred", "pf", "support", "derivations", "absorption", "expiry"])
@pytest.mark.parametrize("text", [PLAIN, SQUARED], ids=["linear", "squared"])
def test_rows_enter_what_is_being_joined(text: str, strategy: str) -> None:
    # Between two chunks, node 1 gets more rows than a chain holds; none of those it had may be left out.
    leaves = [(1, 100 + at) for at in range(CHAIN - 1)] + [(2, 1000 + at) for at in range(500)]
    epochs = [
        Epoch(number, tuple(Change("link", link, 1) for link in links))
        for number, links in enumerate((leaves, [(1, 2), (3, 1)]), 1)
    ]
    follow_reference(text, epochs, _host(text, strategy))


@pytest.mark.parametrize("strategy", ["recompute", "dred", "support", "derivations"])
@pytest.mark.parametrize("seed", range(3))
def test_rows_enter_what_is_being_joined_in_small_chunks(
    strategy: str, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(joins, "CHUNK", CHAIN)
    monkeypatch.setattr(joins, "_SMALL", CHAIN)
    follow_reference(SQUARED, _churn(SQUARED, list(range(30)), seed), _host(SQUARED, strategy))


@pytest.mark.parametrize("strategy", ["recompute", "support"])
def test_limits_end_the_rounds(strategy: str) -> None:
    chain = tuple(Change("link", (at, at + 1), 1) for at in range(30))
    for limits, code in ((Limits(rounds=10), "E506"), (Limits(tuples=200), "E507")):
        host = _host(PLAIN, strategy, limits)
        with pytest.raises(UserError) as refused:
            host.commit(Epoch(1, chain))
        assert refused.value.code == code
        assert host.rows("reachable") == set()
        assert len(host.commit(Epoch(1, chain[:3])).deltas["reachable"].inserted) == 6
