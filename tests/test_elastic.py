"""What `auto` decides: by the clock, which these tests hold, and by how much of the inputs went."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count

import pytest

from tests.sweeping import check_new_numbers
from whorl.diagnostics.source import Source
from whorl.hosts.inprocess import InProcess
from whorl.kernel.state import relation
from whorl.kernel.strategies import elastic, fixpoint
from whorl.logical.compile import compile_program
from whorl.model.delta import Change, Epoch

CLOSURE = """\
RELATION edge(X: Integer, Y: Integer).
path(X, Y) :- edge(X, Y).
path(X, Z) :- path(X, Y), edge(Y, Z).
query path(X, Y).
"""
SIZE = 40
RING = [(node, (node + 1) % SIZE) for node in range(SIZE)]

Decide = Callable[[Iterable[tuple[int, int]], int], str]


@pytest.fixture
def decide(monkeypatch: pytest.MonkeyPatch) -> Decide:
    """Return a function that changes edges of a ring, and tells how its closure was brought up to date.

    Every step takes a second, so that following and deriving cost the same, and nothing is given up.
    """
    seconds = count()
    monkeypatch.setattr(elastic, "thread_time", lambda: float(next(seconds)))
    monkeypatch.setattr(fixpoint, "thread_time", lambda: 0.0)
    source = Source("ring", CLOSURE)
    host = InProcess(lambda types: compile_program(source, data_types=types), None, "auto")
    epochs = count(1)

    def change(edges: Iterable[tuple[int, int]], weight: int) -> str:
        report = host.commit(Epoch(next(epochs), tuple(Change("edge", edge, weight) for edge in edges)))
        (how,) = [cost.how for cost in report.strata if "path" in cost.relations]
        return how

    change(RING, 1)
    return change


def test_deletions_that_take_most_derivations_along_are_not_tried(decide: Decide) -> None:
    assert decide(RING[::4], -1) == "derived again"


def test_deletions_that_take_few_derivations_along_are_followed(decide: Decide) -> None:
    shortcuts = [(node, (node + far) % SIZE) for node in range(SIZE) for far in (2, 7)]
    decide(shortcuts, 1)
    assert decide(shortcuts[:1], -1) == "followed"


def test_what_was_guessed_is_tried_in_the_end(decide: Decide) -> None:
    hows = []
    for _turn in range(elastic._PATIENCE + 1):
        hows.append(decide(RING[::4], -1))
        decide(RING[::4], 1)
    assert hows == ["derived again"] * elastic._PATIENCE + ["followed"]


def test_a_way_that_is_taken_up_again_is_not_told_what_was_swept_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    """It derives everything again, and what it kept by number is from before."""
    text = "STREAM e(Ts: Timestamp, X: Integer, Y: Integer) WINDOW(1000).\nr(X, Y) :- e(_, X, Y).\n"
    source = Source("swept", text + "r(X, Z) :- r(X, Y), e(_, Y, Z).\nquery r(X, Y).\n")
    host = InProcess(lambda types: compile_program(source, data_types=types), None, "auto")
    (chosen,) = [each for each in host.partition.strategies if isinstance(each, elastic.Elastic)]
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 3.0 if chosen.strategy == "support" else 1.0  # so that a trial of it is not taken further
        return now

    check_new_numbers(monkeypatch)
    monkeypatch.setattr(relation, "SPARE", 0)
    monkeypatch.setattr(elastic, "thread_time", clock)
    monkeypatch.setattr(fixpoint, "thread_time", lambda: 0.0)
    monkeypatch.setattr(elastic, "_NEGLIGIBLE", 0.0)
    monkeypatch.setattr(elastic, "_WORTH_TRYING", 0.0)
    chain = [(1, at, at + 1) for at in range(200, 230)]
    single = [(time, 10 * time, 10 * time + 1) for time in (0, 2, 3, 4, 8, 10, 12, 1009)]
    steps = [
        (single[:1], 1),
        (chain, 1),
        *(([row], 1) for row in single[1:6]),
        (chain, -1),
        *(([row], 1) for row in single[6:]),
    ]
    ways = []
    for number, (rows, weight) in enumerate(steps, 1):
        time = max(row[0] for row in rows) if weight > 0 else 11
        host.commit(Epoch(number, tuple(Change("e", row, weight) for row in rows), time))
        ways.append(chosen.strategy)
    assert [way for at, way in enumerate(ways) if at == 0 or way != ways[at - 1]] == ["expiry", "support", "expiry"]
    assert host.rows("r") == {(10 * time, 10 * time + 1) for time in (10, 12, 1009)}
