"""What `auto` decides: by the clock, which these tests hold, and by how much of the inputs went."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import count

import pytest

from whorl.diagnostics.source import Source
from whorl.hosts.inprocess import InProcess
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
