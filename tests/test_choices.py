"""A choice inside a recursion gives what all rows would have given, whatever stands beside the value chosen by."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whorl.diagnostics.errors import UserError
from whorl.diagnostics.source import Source
from whorl.logical.compile import compile_program
from whorl.logical.plan import LogicalPlan
from whorl.model.delta import Change, Epoch
from whorl.model.functions import describe
from whorl.model.values import Value, list_value
from whorl.oracle.session import Oracle

PROGRAM = """
RELATION road(X: Integer, Y: Integer, C: Integer, D: {kind}).
path(X, Y, D, C) :- road(X, Y, C, {first}).
path(X, Z, {column}, C) :- {body}C = A + B.
best(X, Y, {function}<C>) :- path(X, Y, _, C).
last(X, Y, D) :- path(X, Y, D, C), best(X, Y, C).
query best(X, Y, C).
query last(X, Y, D).
"""
# What the column beside the value is, and what is demanded of it: where the choice is made inside the recursion.
CHOSEN = {
    "Integer": [("D", ""), ("D + E", ""), ("0 - D", ""), ("F", "F = E - D, "), ("E", "")],
    "List": [("D", ""), ("[E]", ""), ("[D, E]", ""), ("[pair(D, [E])]", ""), ("concat(D, [E])", ""), ("[E | D]", "")],
}
# The same where it is not: some rows of a group may lead on, and others not.
LEFT = {
    "Integer": [
        ("D * E", ""),
        ("10 / (D - 1)", ""),
        ("F", "F = 7 % D, "),
        ("halved(D)", ""),
        ("E", "D > 0, "),
        ("E", "D = E, "),
        ("E", "E = D, "),
        ("F", "member(F, [D, E]), "),
    ],
    "List": [
        ("[halved(length(D))]", ""),
        ("[pair(D, sqrt(0 - length(D)))]", ""),
        ("F", "D = [F | _], "),
        ("E", "D != E, "),
    ],
}
CASES = [
    (kind, column, condition, chosen)
    for columns, chosen in ((CHOSEN, True), (LEFT, False))
    for kind, pairs in columns.items()
    for column, condition in pairs
]
NODE = st.integers(0, 4)
ROAD = st.tuples(st.sampled_from([(x, y) for y in range(5) for x in range(y)]), st.integers(0, 2), st.integers(0, 4))
Drawn = list[tuple[tuple[int, int], int, int]]
VALUES: dict[str, tuple[Value, ...]] = {
    "Integer": (0, 1, 2, 3, -4),
    "List": (
        list_value(()),
        list_value((1,)),
        list_value((1, 2)),
        list_value(("a", 1)),
        list_value((list_value((1,)),)),
    ),
    "any": (0, 1, True, "a", list_value((1,))),
}


def _halved(number: object) -> int | None:
    return number // 2 if isinstance(number, int) and number % 2 == 0 else None


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("function", ["min", "max"])
@pytest.mark.parametrize(("kind", "column", "condition", "chosen"), CASES)
@settings(max_examples=20)
@given(drawn=st.lists(ROAD, max_size=12))
def test_choices_change_no_answer(
    kind: str, column: str, condition: str, function: str, drawn: Drawn, *, chosen: bool, packed: bool, ahead: bool
) -> None:
    """Whether what stands beside is a column, or comes out of a list, of any type; wherever its conditions stand."""
    first, second = ("[D]", "[E]") if packed else ("D", "E")
    kinds = {"kind": "List" if packed else kind, "first": first}
    path, road = "path(X, Y, D, A)", f"road(Y, Z, B, {second})"
    body = f"{road}, {condition}{path}, " if ahead else f"{path}, {road}, {condition}"
    text = PROGRAM.format(column=column, body=body, function=function, **kinds)
    values = [list_value((value,)) for value in VALUES["any"]] if packed else VALUES[kind]
    epoch = Epoch(1, tuple(Change("road", (*road, cost, values[beside]), 1) for road, cost, beside in drawn))

    def oracle(*without: str) -> Oracle:
        def plan(types: object) -> LogicalPlan:
            return compile_program(Source("p.dl", text), [describe(_halved, "halved")], types, without)  # type: ignore[arg-type]

        return Oracle(plan)

    choosing = oracle()
    choices = any(stratum.selections for stratum in choosing.plan.strata)
    assert chosen >= choices if packed else choices is chosen
    try:
        found = dict(choosing.commit(epoch).deltas)
    except UserError as refused:
        assert (refused.code, packed) == ("E512", True)  # a calculation with what is no number
        return
    assert found == dict(oracle("select_in_recursion").commit(epoch).deltas)
