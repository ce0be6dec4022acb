"""Types of columns: what receives parts of terms or lists holds values of every type, in whatever order rules stand."""

from __future__ import annotations

from itertools import permutations

import pytest

from whorl.diagnostics.errors import ProgramErrors
from whorl.diagnostics.source import Source
from whorl.logical.compile import compile_program
from whorl.model.values import ExactRow

INPUTS = """\
RELATION n(X: Integer).
RELATION a(X: Float).
RELATION s(X: String).
RELATION t(X: Term).
"""


def _types(rules: tuple[str, ...]) -> dict[str, list[str]] | str:
    """Return the types of derived columns, or the code of the first error."""
    try:
        plan = compile_program(Source("types", INPUTS + "\n".join(rules)))
    except ProgramErrors as errors:
        return errors.errors[0].code
    derived = [relation for relation in plan.program.relations.values() if not relation.base]
    return {relation.name: [str(column.type) for column in relation.columns] for relation in derived}


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        (("p(X) :- n(X).", "h(X) :- p(X), s(X).", "p(Y) :- t(f(Y))."), {"p": ["unknown"], "h": ["String"]}),
        (("p(X) :- a(X).", "h(X) :- p(X), n(X).", "p(Y) :- t(f(Y))."), {"p": ["unknown"], "h": ["Integer"]}),
        (("p(X) :- n(X).", "p(X) :- a(X)."), {"p": ["Float"]}),
        (("p(X) :- t(f(X)), n(X).", "q(X + 1) :- p(X)."), {"p": ["Integer"], "q": ["Integer"]}),
        (("p(X + 1) :- t(f(X)).", "p(X) :- n(X).", "q(count<X>) :- p(X)."), {"p": ["unknown"], "q": ["Integer"]}),
        (("p(X + 0.5) :- t(f(X)).", "p(X) :- n(X)."), {"p": ["Float"]}),
        (("p(X + Z) :- t(f(Z)), a(X).", "p(X) :- n(X)."), {"p": ["Float"]}),
        (
            ("p(Y, Z) :- n(X), Y = X + 1, Z = f(Y).", "q(Y) :- p(Y, _), n(Y)."),
            {"p": ["Integer", "Term"], "q": ["Integer"]},
        ),
        (("p(Y) :- n(X), Y = X + 1, not member(Y, [2]).",), {"p": ["Integer"]}),
        (("p(Y) :- t(Z), Z = f(Y).", "p(X) :- n(X)."), {"p": ["unknown"]}),
        (("p(X) :- t(f([X | _])).", "q(T) :- t(f([_ | T]))."), {"p": ["unknown"], "q": ["List"]}),
        (("p(max(X, Y)) :- n(X), t(f(Y)).", "q(max(X, 1)) :- n(X)."), {"p": ["unknown"], "q": ["Integer"]}),
        (("p(X) :- n(X).", "p(X) :- s(X)."), "E226"),
    ],
)
def test_the_order_of_rules_does_not_matter(rules: tuple[str, ...], expected: dict[str, list[str]] | str) -> None:
    for order in permutations(rules):
        assert _types(order) == expected


@pytest.mark.parametrize(
    ("body", "more", "expected"),
    [
        (("t(f(X))", "n(X)", "Y = X + 1"), "h(X) :- s(X).", "E226"),
        (("t(f(X))", "Y = X + 1"), "h(X) :- s(X).", {"h": ["unknown"]}),
        (("t(f(Y))", "Y = 3"), "h(X) :- s(X).", {"h": ["unknown"]}),
        (("n(Y)", "Y = 3"), "", {"h": ["Integer"]}),
    ],
)
def test_the_order_of_literals_does_not_matter(
    body: tuple[str, ...], more: str, expected: dict[str, list[str]] | str
) -> None:
    for order in permutations(body):
        assert _types((f"h(Y) :- {', '.join(order)}.", more)) == expected


def test_exact_rows_tell_values_of_different_types_apart() -> None:
    rows = {ExactRow((1,)), ExactRow((1.0,)), ExactRow((True,)), ExactRow((1,))}
    assert len(rows) == 3
    assert ExactRow((1, "a")) == (1, "a")
    assert ExactRow((1, "a")) == (1, "a")
    assert ExactRow((1,)) != (1.0,)
    assert ExactRow((1,)) != (True,)
    assert ExactRow((1,)) != (1, 2)
