"""Random syntax trees: every kind of node, in every place where the parser can put it.

Not every tree can be written down. What the parser never builds is left out here: an empty or nested conjunction, a
minus before a bare number (that is a negative number), a list with a tail but no element, two list notations in one
program.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from whorl.model.values import INTEGER_MAX, INTEGER_MIN
from whorl.syntax import ast

_LETTERS = st.characters(categories=("Lu", "Ll", "Lt", "Lo"))
# Words that the grammar knows; in other places than their own they are names like any other.
_WORDS = ("STREAM", "RELATION", "WINDOW", "TTL", "KEY", "COUNT", "distinct", "query", "QUERY", "largest", "count")
_VALUE_WORDS = frozenset({"true", "false", "nil", "not", "NOT", "_"})
_STATEMENT_WORDS = frozenset({"STREAM", "RELATION", "query", "QUERY"})


_SPELLED = st.builds(
    lambda first, rest, primes: first + rest + primes,
    _LETTERS | st.just("_"),
    st.text(_LETTERS | st.sampled_from("_019"), max_size=4),
    st.sampled_from(("", "'", "''")),
)


def names(*taken: str) -> SearchStrategy[str]:
    """Return names, without those that mean something else in their place."""
    plain = st.sampled_from(("X", "Y", "edge", "path'", "_x"))
    every = plain | st.sampled_from(_WORDS) | _SPELLED
    return every.filter(lambda name: name not in _VALUE_WORDS and name not in taken)


def constants() -> SearchStrategy[ast.Constant]:
    """Return numbers, strings and Booleans."""
    floats = st.floats(allow_nan=False, allow_infinity=False)
    integers = st.integers(-3, 3) | st.integers(INTEGER_MIN, INTEGER_MAX) | st.just(INTEGER_MIN)
    return st.builds(ast.Constant, integers | floats | st.text(max_size=6) | st.booleans())


@dataclass(frozen=True)
class _Lists:
    """How a program writes lists: `[a | tail]`, or `[prefix | a]`."""

    prefix: bool

    def around(self, items: SearchStrategy[ast.Expr], ends: SearchStrategy[ast.Expr]) -> SearchStrategy[ast.ListExpr]:
        whole = st.builds(ast.ListExpr, st.lists(items, max_size=3).map(tuple))
        some = st.lists(items, min_size=1, max_size=3).map(tuple)
        open_ended = st.builds(
            lambda parts, end: ast.ListExpr(parts, **{"prefix" if self.prefix else "tail": end}), some, ends
        )
        return whole | open_ended


def expressions(lists: _Lists) -> SearchStrategy[ast.Expr]:
    """Return expressions of any depth; three dots only where arguments stand."""
    leaves = constants() | st.builds(ast.Variable, names()) | st.builds(ast.Anonymous)
    return st.recursive(leaves, lambda inner: _compound(inner, lists), max_leaves=8)


def _compound(inner: SearchStrategy[ast.Expr], lists: _Lists) -> SearchStrategy[ast.Expr]:
    items = inner | st.builds(ast.Rest)
    binary = st.builds(
        lambda operator, left, right: ast.Operation(operator, (left, right)),
        st.sampled_from("+-*/%^"),
        inner,
        inner,
    )
    return st.one_of(
        st.builds(ast.Call, names(), st.lists(items, max_size=3).map(tuple)),
        lists.around(items, items),
        binary,
        st.builds(lambda operand: ast.Operation("-", (operand,)), inner),
    )


def _formulas(exprs: SearchStrategy[ast.Expr]) -> SearchStrategy[ast.Formula]:
    args = st.lists(exprs | st.builds(ast.Rest), max_size=3).map(tuple)
    literals = st.recursive(
        st.builds(ast.Atom, names(), args) | _comparisons(exprs),
        lambda inner: st.builds(ast.Negation, inner),
        max_leaves=2,
    )
    return st.recursive(literals, _grouped, max_leaves=6)


def _comparisons(exprs: SearchStrategy[ast.Expr]) -> SearchStrategy[ast.Comparison]:
    links = st.lists(st.tuples(st.sampled_from(("=", "!=", "<", "<=", ">", ">=")), exprs), min_size=1, max_size=3)
    return st.builds(
        lambda first, rest: ast.Comparison((first, *(e for _, e in rest)), tuple(o for o, _ in rest)), exprs, links
    )


def _grouped(inner: SearchStrategy[ast.Formula]) -> SearchStrategy[ast.Formula]:
    def of(
        kind: Callable[[tuple[ast.Formula, ...]], ast.Formula], own: type[ast.Formula]
    ) -> SearchStrategy[ast.Formula]:
        parts = inner.filter(lambda part: not isinstance(part, own))
        return st.lists(parts, min_size=2, max_size=3).map(lambda chosen: kind(tuple(chosen)))

    return of(ast.Conjunction, ast.Conjunction) | of(ast.Alternatives, ast.Alternatives)


def _durations() -> SearchStrategy[ast.Duration]:
    amounts = st.integers(1, 90) | st.integers(-INTEGER_MAX, INTEGER_MAX)
    return st.builds(ast.Duration, amounts, st.sampled_from(("", "s", "minutes")) | names("WINDOW", "TTL"))


def _windows() -> SearchStrategy[ast.Window]:
    return st.builds(ast.Window, _durations(), st.none() | _durations(), st.booleans())


def _declarations(kinds: Sequence[str]) -> SearchStrategy[ast.Declaration]:
    attributes = st.lists(st.builds(ast.Attribute, names(), names(), st.booleans()), max_size=3).map(tuple)
    printed = kinds == ("printed",)
    return st.builds(
        ast.Declaration,
        st.sampled_from(kinds),
        names(),
        attributes,
        st.none() if printed else st.none() | _windows(),
        st.none() if printed else st.none() | _durations(),
    )


def _heads(exprs: SearchStrategy[ast.Expr]) -> SearchStrategy[ast.Head]:
    aggregates = st.builds(ast.Aggregate, names(), st.lists(exprs, min_size=1, max_size=2).map(tuple), st.booleans())
    args = st.lists(exprs | aggregates | st.builds(ast.Rest), max_size=3).map(tuple)
    return st.builds(ast.Head, names(*_STATEMENT_WORDS), args)


def _statements(lists: _Lists) -> SearchStrategy[ast.Statement]:
    exprs = expressions(lists)
    formulas = _formulas(exprs)
    heads = st.lists(_heads(exprs), min_size=1, max_size=2).map(tuple)
    atoms = st.builds(ast.Atom, names(), st.lists(exprs | st.builds(ast.Rest), max_size=3).map(tuple))
    group = st.lists(_declarations(("printed",)), min_size=1, max_size=2).map(tuple)
    return st.one_of(
        st.builds(ast.Rule, heads, st.none() | formulas),
        st.builds(ast.Query, atoms, st.none() | _windows()),
        _declarations(("stream", "relation")),
        st.builds(ast.StreamGroup, group),
    )


def _with_marker(statements: tuple[ast.Statement, ...]) -> tuple[ast.Statement, ...]:
    """Add the list by which a program shows that it uses the prefix notation."""
    item = ast.Variable("X")
    marker = ast.ListExpr((item, item), prefix=item)
    return (*statements, ast.Rule((ast.Head("marker", (marker,)),)))


def syntax_trees() -> SearchStrategy[ast.Program]:
    """Return whole programs as the parser can build them."""
    plain = st.lists(_statements(_Lists(prefix=False)), max_size=4).map(tuple)
    prefixed = st.lists(_statements(_Lists(prefix=True)), max_size=4).map(tuple).map(_with_marker)
    return (plain | prefixed).map(ast.Program)
