"""Strata that run in rounds: sums in recursion, selections, stages. Rows, limits and errors are the reference's."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from whorl.diagnostics.errors import UserError
from whorl.diagnostics.source import Source
from whorl.hosts.inprocess import InProcess
from whorl.kernel.state.sums import FloatSums, IntegerSums
from whorl.logical.compile import compile_program
from whorl.model.delta import Change, Epoch
from whorl.model.limits import Limits
from whorl.model.values import Row
from whorl.oracle.session import Oracle

ROUTES = """
RELATION link(X: String, Y: String).
routes(X, Y, msum<(Y, 1)>) :- link(X, Y).
routes(X, Y, msum<(Z, N)>) :- link(X, Z), routes(Z, Y, N).
"""
SHARES = """
RELATION owns(X: String, Y: String, S: Float).
share(X, Y, S) :- owns(X, Y, S).
share(X, Y, msum<(Z, V)>) :- share(X, Z, S), owns(Z, Y, T), V = S * T.
"""
SPAN = """
RELATION link(X: String, Y: String).
span(X, mmin<Y>, mmax<Y>) :- link(X, Y).
span(X, mmin<L>, mmax<H>) :- link(X, Y), span(Y, L, H).
"""
MIXED = """
RELATION link(X: String, Y: String).
RELATION weight(X: String, N: Integer).
reach(X, mmin<X>, mcount<(X, 1)>) :- weight(X, _).
reach(X, mmin<L>, mcount<(Y, N)>) :- link(X, Y), reach(Y, L, N).
large(X) :- reach(X, _, N), N > 2.
query reach(X, L, N).
query large(X).
"""
PAIRS = """
RELATION link(X: String, Y: String).
size(X, msum<(X, 1)>) :- link(X, _).
size(X, msum<(Y, N)>) :- link(X, Y), size(Y, N), size(X, M), M >= 1.
"""
CHEAP = """
RELATION road(X: String, Y: String, C: Integer).
path(X, Y, P, C, L) :- road(X, Y, C), P = [X, Y], L = 1.
path(X, Y, P, C, L) :- road(X, Z, C0), path(Z, Y, P1, C1, L1), C = C0 + C1, P = concat([X], P1), L = 1 + L1.
cost(X, Y, min<C>) :- path(X, Y, P, C, L).
hops(X, Y, min<L>) :- path(X, Y, P, C, L).
cheapest(X, Y, P, C) :- path(X, Y, P, C, L), cost(X, Y, C).
shortest(X, Y, P, L) :- path(X, Y, P, C, L), hops(X, Y, L).
query cheapest(X, Y, P, C).
query shortest(X, Y, P, L).
"""
TREE = """
RELATION link(X: String, Y: String).
tree("a", "a", 0).
late(Y, D + 1) :- tree(_, Y, E), D + 1 > E, tree(_, X, D), link(X, Y).
tree(X, Y, D + 1) :- link(X, Y), tree(_, X, D), not late(Y, D + 1).
query tree(X, Y, D).
"""
MEANS = """
RELATION link(X: String, Y: String).
RELATION start(X: String, V: Float).
level(0, X, V) :- start(X, V).
level(T + 1, X, avg<V>) :- link(Y, X), level(T, Y, V).
query level(4, X, V).
"""
PROGRAMS = {
    "totals": (ROUTES, SHARES, SPAN, MIXED, PAIRS),
    "selected": (CHEAP,),
    "staged": (TREE, MEANS),
}
CASES = [(kind, text) for kind, texts in PROGRAMS.items() for text in texts]
Fact = tuple[str, Row]


def _hosts(text: str, limits: Limits | None = None) -> tuple[Oracle, InProcess]:
    source = Source("rounds", text)
    oracle = Oracle(lambda types: compile_program(source, data_types=types), limits)
    return oracle, InProcess(lambda types: compile_program(source, data_types=types), limits)


def _epoch(number: int, inserted: Sequence[Fact], deleted: Sequence[Fact] = ()) -> Epoch:
    changes = [Change(name, row, 1) for name, row in inserted] + [Change(name, row, -1) for name, row in deleted]
    return Epoch(number, tuple(changes), None)


def _outcome(host: Oracle | InProcess, epoch: Epoch) -> object:
    """Return the changes of an epoch, or the code of the error that refuses it."""
    try:
        return dict(host.commit(epoch).deltas)
    except UserError as refused:
        return refused.code


def _facts(text: str, size: int, chance: random.Random, *, acyclic: bool) -> list[Fact]:
    """Return facts for whatever relations a program declares."""
    names = "abcdefgh"
    facts: list[Fact] = []
    for _fact in range(size):
        low, high = sorted(chance.sample(range(len(names)), 2))
        x, y = (names[low], names[high]) if acyclic or chance.random() < 0.7 else (names[high], names[low])
        rows: dict[str, Row] = {
            "link(": (x, y),
            "road(": (x, y, chance.randint(1, 4)),
            "owns(": (x, y, chance.choice([0.1, 0.25, 0.3])),
            "weight(": (x, chance.randint(0, 3)),
            "start(": (x, chance.choice([0.5, 1.25])),
        }
        facts += [(name[:-1], row) for name, row in rows.items() if f"RELATION {name}" in text]
    return list(dict.fromkeys(facts))


@pytest.mark.parametrize(("kind", "text"), CASES)
def test_the_kernel_runs_them(kind: str, text: str) -> None:
    _oracle, kernel = _hosts(text)
    assert [stratum.kind for stratum in kernel.partition.plan.strata if stratum.recursive] == [kind]


@pytest.mark.parametrize(("_kind", "text"), CASES)
@pytest.mark.parametrize("seed", range(4))
def test_changes_equal_the_reference(_kind: str, text: str, seed: int) -> None:
    chance = random.Random(seed)
    oracle, kernel = _hosts(text, Limits(rounds=60))
    held: list[Fact] = []
    for number in range(1, 8):
        new = _facts(text, chance.choice([1, 3, 8]), chance, acyclic=seed % 2 == 0)
        gone = chance.sample(held, min(len(held), chance.choice([0, 1, 3])))
        epoch = _epoch(number, [fact for fact in new if fact not in gone], gone)
        expected = _outcome(oracle, epoch)
        assert _outcome(kernel, epoch) == expected, (seed, number)
        if not isinstance(expected, str):
            held = list(dict.fromkeys([fact for fact in held if fact not in gone] + new))
            held = [fact for fact in held if fact not in gone]
        for output in oracle.plan.outputs:
            assert kernel.rows(output.name) == oracle.rows(output.name)


@pytest.mark.parametrize(("_kind", "text"), CASES)
@pytest.mark.parametrize("acyclic", [True, False])
def test_limits_are_met_where_the_reference_meets_them(_kind: str, text: str, acyclic: bool) -> None:
    facts = _facts(text, 9, random.Random(5), acyclic=acyclic)
    limits = [Limits(rounds=rounds) for rounds in range(1, 12)]
    limits += [Limits(rounds=30, tuples=tuples) for tuples in (1, 3, 7, 12, 20, 40)]
    seen = set()
    for limit in limits:
        oracle, kernel = _hosts(text, limit)
        expected = _outcome(oracle, _epoch(1, facts))
        assert _outcome(kernel, _epoch(1, facts)) == expected, limit
        seen.add(expected if isinstance(expected, str) else "fine")
    assert "E506" in seen


def test_an_integer_sum_that_leaves_64_bits_is_refused() -> None:
    text = (
        "RELATION e(X: Integer, Y: Integer).\nt(X, msum<(X, N)>) :- e(X, N).\nt(X, msum<(Y, N)>) :- e(X, Y), t(Y, N)."
    )
    oracle, kernel = _hosts(text)
    facts: list[Fact] = [("e", (1, 2**62)), ("e", (2, 2**62)), ("e", (3, 1)), ("e", (3, 2))]
    assert _outcome(oracle, _epoch(1, facts)) == _outcome(kernel, _epoch(1, facts)) == "E509"
    assert _outcome(oracle, _epoch(2, facts[:2])) == _outcome(kernel, _epoch(2, facts[:2]))


def test_a_float_sum_that_is_not_finite_is_refused() -> None:
    oracle, kernel = _hosts(SHARES)
    facts: list[Fact] = [("owns", ("a", "b", 1.5e308)), ("owns", ("a", "c", 1.5e308)), ("owns", ("c", "b", 1.0))]
    assert _outcome(oracle, _epoch(1, facts)) == _outcome(kernel, _epoch(1, facts)) == "E509"


def test_keys_of_different_kinds_are_told_apart() -> None:
    text = """
RELATION e(X: Integer, Y: Integer).
RELATION f(X: Integer, S: String).
n(X, mcount<(Y, 1)>) :- e(X, Y).
n(X, mcount<(S, 1)>) :- f(X, S).
n(X, mcount<(Y, N)>) :- e(X, Y), n(Y, N).
"""
    oracle, kernel = _hosts(text)
    facts: list[Fact] = [("e", (1, 2)), ("e", (2, 3)), ("f", (3, "2")), ("f", (1, "3")), ("f", (1, "2"))]
    assert "reference" not in {stratum.kind for stratum in kernel.partition.plan.strata}
    assert _outcome(kernel, _epoch(1, facts)) == _outcome(oracle, _epoch(1, facts))
    assert kernel.rows("n") == {(1, 3), (2, 1), (3, 1)}


def test_stages_below_a_change_stay_as_they_are() -> None:
    chain: list[Fact] = [("link", ("a" if at == 0 else f"n{at}", f"n{at + 1}")) for at in range(200)]
    oracle, kernel = _hosts(TREE)
    assert _outcome(kernel, _epoch(1, chain)) == _outcome(oracle, _epoch(1, chain))
    derivations: list[int] = []
    for number, link in ((2, ("a", "n1x")), (3, ("n198", "n200"))):
        report = kernel.commit(_epoch(number, [("link", link)]))
        assert dict(report.deltas) == dict(oracle.commit(_epoch(number, [("link", link)])).deltas)
        assert report.work is not None
        derivations.append(report.work.derivations)
    assert 20 * derivations[1] < derivations[0]


def _roads(chance: random.Random, size: int) -> list[Fact]:
    """Return roads between 30 places, some of them in circles."""
    pairs = [chance.sample(range(30), 2) for _road in range(size)]
    return [("road", (f"n{x}", f"n{y}", chance.randint(1, 9))) for x, y in pairs]


def test_a_selection_follows_a_few_rows_that_arrive(tmp_path: Path) -> None:
    chance = random.Random(3)
    facts = list(dict.fromkeys(_roads(chance, 45)))
    oracle, kernel = _hosts(CHEAP)
    derivations: list[int] = []
    for number in range(1, 14):
        new = facts if number == 1 else _roads(chance, chance.choice([0, 1, 2]))
        gone = chance.sample(facts, 1) if number % 6 == 0 else []
        epoch = _epoch(number, [fact for fact in new if fact not in gone], gone)
        report = kernel.commit(epoch)
        assert dict(report.deltas) == dict(oracle.commit(epoch).deltas), number
        assert report.work is not None
        derivations += [report.work.derivations] if new and not gone else []
        if number % 5 == 0:
            kernel.save(tmp_path / str(number))
            kernel = InProcess.restore(
                tmp_path / str(number), lambda types: compile_program(Source("rounds", CHEAP), data_types=types)
            )
    assert 3 * sorted(derivations[1:])[len(derivations) // 2] < derivations[0]


def _forest(text: str, chance: random.Random, size: int) -> list[Fact]:
    """Return facts of a sparse graph, in which a change reaches few groups."""
    facts: list[Fact] = []
    for at in range(1, size):
        parent = f"n{chance.randrange(max(0, at - 6), at)}"
        facts += [("link", (parent, f"n{at}"))] if "RELATION link" in text else []
        facts += [("owns", (parent, f"n{at}", chance.choice([0.1, 0.3, 0.7])))] if "RELATION owns" in text else []
        facts += [("weight", (f"n{at}", 1))] if "RELATION weight" in text and at % 3 == 0 else []
    return facts


@pytest.mark.parametrize("text", PROGRAMS["totals"])
@pytest.mark.parametrize("cycle", [False, True])
def test_sums_follow_changes_in_sparse_data(text: str, cycle: bool) -> None:
    chance = random.Random(11)
    facts = _forest(text, chance, 40)
    if cycle and text in (SPAN, MIXED):  # the others grow for ever on a cycle
        facts.append(("link", ("n20", "n3")))
    oracle, kernel = _hosts(text, Limits(rounds=100))
    assert _outcome(kernel, _epoch(1, facts)) == _outcome(oracle, _epoch(1, facts))
    for number in range(2, 26):
        gone = chance.sample(facts, chance.choice([0, 1, 2]))
        back = [fact for fact in _forest(text, chance, 40)[:: chance.choice([7, 13])] if fact not in gone]
        epoch = _epoch(number, back, gone)
        expected = _outcome(oracle, epoch)
        assert _outcome(kernel, epoch) == expected, number
        if not isinstance(expected, str):
            facts = [fact for fact in dict.fromkeys(facts + back) if fact not in gone]


def test_a_change_fills_few_groups() -> None:
    """Of a sum over a long chain, the groups below the change stay as they are."""
    chain: list[Fact] = [("owns", (f"n{at}", f"n{at + 1}", 0.5)) for at in range(60)]
    oracle, kernel = _hosts(SHARES)
    derivations: list[int] = []
    for number, epoch in enumerate((_epoch(1, chain), _epoch(2, [], chain[-2:-1]), _epoch(3, chain[-2:-1])), 1):
        report = kernel.commit(epoch)
        assert dict(report.deltas) == dict(oracle.commit(epoch).deltas), number
        assert report.work is not None
        derivations.append(report.work.derivations)
    assert 3 * max(derivations[1:]) < derivations[0]


def test_sums_with_negative_contributions_are_those_of_the_rounds() -> None:
    text = """
RELATION e(X: Integer, Y: Integer, N: Integer).
t(X, msum<(X, N)>) :- e(X, X, N).
t(X, msum<(Y, V)>) :- e(X, Y, N), t(Y, M), V = M + N.
"""
    oracle, kernel = _hosts(text)
    facts: list[Fact] = [("e", (at, at, 5 - at)) for at in range(9)]
    facts += [("e", (at, at + 1, at - 4)) for at in range(8)] + [("e", (at, at + 2, -1)) for at in range(7)]
    for number, (new, gone) in enumerate(((facts[:14], []), (facts[14:], facts[:2]), (facts[:2], facts[3:5])), 1):
        epoch = _epoch(number, new, gone)
        assert _outcome(kernel, epoch) == _outcome(oracle, epoch), number


FLOATS = st.floats(allow_nan=False, allow_infinity=False, min_value=-1e300, max_value=1e300)


@given(held=st.lists(st.tuples(st.integers(0, 3), FLOATS)), gone=st.lists(st.tuples(st.integers(0, 3), FLOATS)))
def test_float_sums_are_rounded_once(held: list[tuple[int, float]], gone: list[tuple[int, float]]) -> None:
    sums = FloatSums()
    sums.reserve(4)
    for pairs, sign in ((gone, 1), (held, 1), (gone, -1)):
        groups, values = [group for group, _value in pairs], [value for _group, value in pairs]
        sums.add(np.array(groups, np.int64), np.array(values, np.float64).view(np.int64), sign)
    found, finite = sums.read(np.arange(4))
    assert finite.all()
    expected = [math.fsum(value for own, value in held if own == group) for group in range(4)]
    assert found.view(np.float64).tolist() == expected


@given(held=st.lists(st.tuples(st.integers(0, 3), st.integers(-(2**63), 2**63 - 1))))
def test_integer_sums_know_whether_they_fit(held: list[tuple[int, int]]) -> None:
    sums = IntegerSums()
    sums.reserve(4)
    sums.add(np.array([group for group, _ in held], np.int64), np.array([value for _, value in held], np.int64))
    found, fits = sums.read(np.arange(4))
    for group in range(4):
        total = sum(value for own, value in held if own == group)
        assert bool(fits[group]) is (-(2**63) <= total < 2**63)
        assert not fits[group] or found[group] == total
