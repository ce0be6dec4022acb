"""Functions that fail: an epoch is refused if they fail for rows that stand together after it, and only then."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.side_by_side import check_side_by_side
from whorl.model.delta import Change, Epoch
from whorl.model.functions import describe

# Functions come last in a body, on variables of its atoms: no other condition may keep an argument away from them.
DECLARATIONS = """
RELATION a(X: Integer, Y: Integer).
RELATION b(X: Integer, Y: Integer).
RELATION closed(X: Integer).
"""
RULES = {
    "join": "pair(X, V) :- a(X, Y), b(X, Z), V = share(Y, Z).",
    "sum": "total(X, sum<V>) :- a(X, Y), b(X, Z), V = share(Y, Z).",
    "best": "best(X, min<V>, max<V>) :- a(X, Y), b(X, Z), V = share(Y, Z).",
    "negation": """
open(X, Y) :- a(X, Y), not closed(X).
pair(X, V) :- open(X, Y), b(X, Z), V = share(Y, Z).
""",
    "recursion": """
reach(X, Y) :- a(X, Y).
reach(X, Z) :- reach(X, Y), b(Y, Z), share(X, Z) != 0.
""",
    "recursion that is not linear": """
reach(X, Y) :- a(X, Y), not closed(X).
reach(X, Z) :- reach(X, Y), reach(Y, Z), share(X, Z) < 50.
""",
    "best value in recursion": """
cost(X, Y, mmin<Y>) :- a(X, Y).
cost(X, Z, mmin<C>) :- cost(X, Y, A), b(Y, Z), C = A + 1, share(X, Z) != 0.
""",
    "selection": """
path(X, Y, 0) :- a(X, Y).
path(X, Z, C) :- path(X, Y, A), b(Y, Z), C = A + 1, share(X, Z) != 0.
cost(X, Y, min<C>) :- path(X, Y, C).
query cost(X, Y, C).
""",
    "stages": """
wave(X, 0) :- a(0, X).
next(Y, N) :- wave(X, N), b(X, Y), share(X, Y) != 0.
wave(Y, N + 1) :- next(Y, N), not known(Y, N).
known(X, N) :- wave(X, N).
known(X, N + 1) :- known(X, N), wave(_, N).
query wave(X, N).
""",
}
RELATIONS = ("a", "a", "b", "b", "closed")
# A fact comes, and one that is there may go for it: that brings together what came and what went.
MOVE = st.tuples(
    st.sampled_from(RELATIONS), st.integers(0, 2), st.integers(0, 5), st.sampled_from((None, 0, 1, 2, 3)), st.booleans()
)
Drawn = list[list[tuple[str, int, int, int | None, bool]]]


def _epochs(drawn: Drawn) -> Iterator[Epoch]:
    present: dict[str, list[tuple[int, ...]]] = {name: [] for name in RELATIONS}
    for number, moves in enumerate(drawn, 1):
        changes = []
        for name, first, second, leaving, comes in moves:
            facts = present[name]
            if facts and leaving is not None:
                changes.append(Change(name, facts.pop(leaving % len(facts)), -1))
            if comes:
                facts.append((first,) if name == "closed" else (first, second))
                changes.append(Change(name, facts[-1], 1))
        yield Epoch(number, tuple(changes))


def _share(left: int, right: int) -> int:
    return 100 // (left - right)


@pytest.mark.parametrize("name", RULES)
@settings(max_examples=60)
@given(drawn=st.lists(st.lists(MOVE, max_size=5), min_size=2, max_size=8))
def test_epochs_are_refused_for_what_fails_after_them(name: str, drawn: Drawn) -> None:
    check_side_by_side(DECLARATIONS + RULES[name], _epochs(drawn), ("E510",), [describe(_share, "share")])
