"""Recursions that improve, with values near the ends of their range: what a better value leads to is never lost."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.side_by_side import check_side_by_side
from whorl.kernel.strategies import refill, selected
from whorl.model.delta import Change, Epoch

RULES = {
    "largest": """
best(X, Y, max<C>) :- road(X, Y, C).
best(X, Z, max<C>) :- best(X, Y, A), road(Y, Z, B), C = A + B.
query best(X, Y, C).
""",
    "smallest, where no gate is closed": """
best(X, Y, min<C>) :- road(X, Y, C).
best(X, Z, min<C>) :- best(X, Y, A), C = A + B, road(Y, Z, B), not closed(Y, Z).
query best(X, Y, C).
""",
    "a difference that rises, and a bound": """
best(X, Y, max<C>) :- road(X, Y, C).
best(X, Z, max<A - B>) :- best(X, Y, A), road(Y, Z, B), A - B > 0, not closed(Y, Z).
query best(X, Y, C).
""",
    "smallest, with what it came by": """
path(X, Y, X, C) :- road(X, Y, C).
path(X, Z, Y, C) :- path(X, Y, _, A), road(Y, Z, B), not closed(Y, Z), C = A + B.
best(X, Y, min<C>) :- path(X, Y, _, C).
last(X, Y, P) :- path(X, Y, P, C), best(X, Y, C).
query last(X, Y, P).
""",
    "largest, with what it came by": """
path(X, Y, X, C) :- road(X, Y, C).
path(X, Z, Y, C) :- road(Y, Z, B), path(X, Y, _, A), C = B + A.
best(X, Y, max<C>) :- path(X, Y, _, C).
last(X, Y, P) :- path(X, Y, P, C), best(X, Y, C).
query last(X, Y, P).
query best(X, Y, C).
""",
    "fewest steps, with what they cost": """
path(X, Y, 1, C) :- road(X, Y, C).
path(X, Z, N + 1, A + B) :- path(X, Y, N, A), road(Y, Z, B), not closed(Y, Z).
least(X, Y, min<N>) :- path(X, Y, N, _).
last(X, Y, C) :- path(X, Y, N, C), least(X, Y, N).
query last(X, Y, C).
""",
    "fewest steps, with their list and what they cost": """
path(X, Y, 1, C, [X, Y]) :- road(X, Y, C).
path(X, Z, N, C, P) :- path(X, Y, M, A, Q), road(Y, Z, B), N = M + 1, C = A + B, P = concat(Q, [Z]).
least(X, Y, min<N>) :- path(X, Y, N, _, _).
last(X, Y, C, P) :- path(X, Y, N, C, P), least(X, Y, N).
query last(X, Y, C, P).
""",
    "sums of products": """
best(X, Y, sum<C>) :- road(X, Y, C), C > 0.
best(X, Z, sum<C>) :- best(X, Y, A), road(Y, Z, B), B > 0, C = A * B, not closed(Y, Z).
query best(X, Y, C).
""",
}
FACTS = {
    "lasting": "RELATION road(X: Integer, Y: Integer, C: {kind}).\nRELATION closed(X: Integer, Y: Integer).\n",
    "windowed": """
STREAM seen(T: Timestamp, X: Integer, Y: Integer, C: {kind}) WINDOW(3).
RELATION closed(X: Integer, Y: Integer).
road(X, Y, C) :- seen(_, X, Y, C).
""",
}
COSTS = {
    "Float": (1.0, 0.65e308, 0.8e308, 0.9e308, 1.05e308, -1.0, -0.9e308, -1.05e308),
    "Integer": (1, 2**62, 2**62 + 2**60, 2**63 - 1, -1, -(2**62), -(2**62) - 2**60, -(2**63)),
}
# Roads lead upwards, so that nothing goes round and round up to the end of the range.
ROAD = st.sampled_from([(x, y) for y in range(5) for x in range(y)])
CHANGE = st.tuples(ROAD, st.integers(0, 7), st.sampled_from((1, 1, -1)), st.sampled_from(("road", "road", "closed")))
BEYOND = ("E509", "E512")
DRAWN = st.lists(st.lists(CHANGE, max_size=6), min_size=2, max_size=6)
Drawn = list[list[tuple[tuple[int, int], int, int, str]]]


def _epochs(facts: str, kind: str, drawn: Drawn) -> Iterator[Epoch]:
    for number, changes in enumerate(drawn, 1):
        made = []
        for road, cost, weight, relation in changes:
            if relation == "closed":
                made.append(Change("closed", road, weight))
            elif facts == "lasting":
                made.append(Change("road", (*road, COSTS[kind][cost]), weight))
            elif weight > 0:
                made.append(Change("seen", (number, *road, COSTS[kind][cost]), 1))
        yield Epoch(number, tuple(made), number if facts == "windowed" else None)


@pytest.mark.parametrize("kind", COSTS)
@pytest.mark.parametrize("facts", FACTS)
@pytest.mark.parametrize("name", RULES)
@settings(max_examples=25)
@given(drawn=DRAWN)
def test_views_and_refusals_are_those_of_the_reference(name: str, facts: str, kind: str, drawn: Drawn) -> None:
    with pytest.MonkeyPatch.context() as patch:  # so that selections follow changes, however many
        patch.setattr(selected, "_MUCH", 1000)
        patch.setattr(refill, "_MOST", 1)
        check_side_by_side(FACTS[facts].format(kind=kind) + RULES[name], _epochs(facts, kind, drawn), BEYOND)
