"""Boolean functions as labels: diagrams by themselves, the labels of a published example, and what becomes of them."""

from __future__ import annotations

import random
from functools import partial
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whorl
from whorl.diagnostics.source import Source
from whorl.hosts.inprocess import InProcess
from whorl.kernel import strategies
from whorl.kernel.labels.conjunctions import Conjunctions
from whorl.kernel.labels.diagrams import CAP, Diagrams, Function, TooManyNodes
from whorl.kernel.labels.minimal import minimal_cuts, minimal_sets
from whorl.kernel.labels.variables import Absent, Present
from whorl.kernel.strategies.absorption import Absorption
from whorl.logical.compile import compile_program
from whorl.model.delta import Change, Epoch

Sums = list[frozenset[int]]  # alternatives, each a set of variables that hold together
SUMS = st.lists(st.frozensets(st.integers(0, 5), max_size=4), max_size=6)


def _build(diagrams: Diagrams, alternatives: Sums) -> Function:
    function = diagrams.false
    for names in alternatives:
        product = diagrams.products([[diagrams.true], *([diagrams.variable(name)] for name in sorted(names))])[0]
        function = diagrams.plus(function, product)
    return function


def _minimal(sets: Sums) -> set[frozenset[int]]:
    return {one for one in sets if not any(other < one for other in sets)}


def _holds(alternatives: Sums, held: frozenset[int]) -> bool:
    return any(names <= held for names in alternatives)


# Diagrams


@given(alternatives=SUMS)
def test_minimal_sets_are_what_absorption_leaves(alternatives: Sums) -> None:
    diagrams = Diagrams()
    found = list(minimal_sets(diagrams, _build(diagrams, alternatives)))
    assert set(found) == _minimal(alternatives)
    assert [len(names) for names in found] == sorted(len(names) for names in found)


@given(alternatives=SUMS)
def test_minimal_cuts_hit_every_alternative(alternatives: Sums) -> None:
    diagrams = Diagrams()
    function = _build(diagrams, alternatives)
    every = frozenset(range(6))
    cuts = [frozenset(c) for n in range(7) for c in combinations(range(6), n) if not _holds(alternatives, every - {*c})]
    assert set(minimal_cuts(diagrams, function)) == _minimal(cuts)
    assert set(diagrams.variables(function)) == frozenset().union(*_minimal(alternatives))


@given(alternatives=SUMS, gone=st.frozensets(st.integers(0, 5)))
def test_what_is_set_to_false_takes_its_alternatives_along(alternatives: Sums, gone: frozenset[int]) -> None:
    diagrams = Diagrams()
    left = diagrams.without(_build(diagrams, alternatives), diagrams.cube(gone))
    assert left == _build(diagrams, [names for names in alternatives if not names & gone])


@given(alternatives=SUMS, order=st.permutations(range(6)))
def test_functions_travel_between_managers(alternatives: Sums, order: list[int]) -> None:
    here, there = Diagrams(), Diagrams()
    names = {at: (1 << 62) + at for at in range(6)}
    there.variables_named(names[at] for at in order)
    far = [frozenset(names[at] for at in each) for each in alternatives]
    function = _build(here, far)
    nodes, wanted = here.dump([function, here.true, function])
    assert there.load(nodes, wanted) == [_build(there, far), there.true, _build(there, far)]
    assert len(nodes) == here.size(function)


def test_garbage_is_collected_and_the_cap_holds() -> None:
    diagrams = Diagrams(4_000)
    variables = diagrams.variables_named(range(300))
    for _ in range(200):  # each round makes more than fits beside the next
        for at in range(298):
            diagrams.plus(diagrams.times(variables[at], variables[at + 1]), variables[at + 2])
    held: list[Function] = []
    with pytest.raises(TooManyNodes) as full:
        for low, high in combinations(range(300), 2):
            held.append(diagrams.times(variables[low], variables[high]))
    assert full.value.cap == 4_000
    assert 1_500 < len(held) <= 4_000
    held.clear()
    assert diagrams.variables(diagrams.times(variables[0], variables[299])) == [0, 299]


# Labels

REACHABLE = "reachable(X, Y) :- link(X, Y). reachable(X, Y) :- link(X, Z), reachable(Z, Y)."
LINKS = {"p1": ("A", "B"), "p2": ("B", "C"), "p3": ("C", "A"), "p4": ("C", "B")}


def _host(text: str, *, lazy: bool, cap: int = CAP) -> tuple[InProcess, Absorption]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(strategies._STRATEGIES, "absorption", partial(Absorption, lazy=lazy, cap=cap))
        host = InProcess(lambda types: compile_program(Source("test", text), data_types=types), None, "absorption")
        host.commit(Epoch(1, ()))
    (strategy,) = host.partition.strategies
    assert isinstance(strategy, Absorption)
    return host, strategy


def _label(host: InProcess, strategy: Absorption, row: tuple[str, str]) -> str:
    """Return a label as the minimal proofs it stands for."""
    relation = host.partition.state.relations["reachable"]
    numbers = dict(zip(_decode(host, "reachable"), relation.alive().tolist(), strict=True))
    links = host.partition.state.relations["link"]
    names = dict(enumerate(_names(host, links.count)))
    found: list[list[str]] = []
    for proof in minimal_sets(strategy.diagrams, strategy.label("reachable", numbers[row])):
        meanings = [strategy.meaning(variable) for variable in proof]
        found.append(sorted(names[m.number] for m in meanings if isinstance(m, Present)))
    return " | ".join("&".join(proof) for proof in sorted(found, key=lambda each: (len(each), each)))


def _decode(host: InProcess, name: str) -> list[tuple[object, ...]]:
    relation = host.partition.state.relations[name]
    return list(host.partition.state.dictionary.decode_rows(relation.read(relation.alive()), list(relation.types)))


def _names(host: InProcess, count: int) -> list[str]:
    relation = host.partition.state.relations["link"]
    rows = host.partition.state.dictionary.decode_rows(relation.read(np.arange(count)), list(relation.types))
    known = {row: name for name, row in LINKS.items()}
    return [known[row] for row in rows]  # type: ignore[index]


def _change(host: InProcess, number: int, names: str, weight: int) -> object:
    changes = tuple(Change("link", LINKS[name], weight) for name in names.split())
    return dict(host.commit(Epoch(number, changes)).deltas)


DECLARED = "RELATION link(From: String, To: String). " + REACHABLE


def test_labels_of_the_published_network() -> None:
    """The nine tuples of a network of four links, each with its minimal proofs."""
    host, strategy = _host(DECLARED, lazy=False)
    _change(host, 2, "p1 p2 p3 p4", 1)
    assert {row: _label(host, strategy, row) for row in sorted(host.rows("reachable"))} == {  # type: ignore[arg-type]
        ("A", "A"): "p1&p2&p3",
        ("A", "B"): "p1",
        ("A", "C"): "p1&p2",
        ("B", "A"): "p2&p3",
        ("B", "B"): "p2&p4 | p1&p2&p3",
        ("B", "C"): "p2",
        ("C", "A"): "p3",
        ("C", "B"): "p4 | p1&p3",
        ("C", "C"): "p2&p4 | p1&p2&p3",
    }


@pytest.mark.parametrize("lazy", [True, False], ids=["lazy", "eager"])
def test_a_link_that_goes_takes_no_row_along(lazy: bool) -> None:
    host, strategy = _host(DECLARED, lazy=lazy)
    _change(host, 2, "p1 p2 p3 p4", 1)
    assert _change(host, 3, "p4", -1) == {}
    assert _label(host, strategy, ("C", "B")) == "p1&p3"
    deltas = _change(host, 4, "p3", -1)
    assert isinstance(deltas, dict)
    assert deltas["reachable"].deleted == (
        ("A", "A"), ("B", "A"), ("B", "B"), ("C", "A"), ("C", "B"), ("C", "C"),
    )  # fmt: skip


def test_lazy_labels_tell_the_first_derivation_only() -> None:
    host, strategy = _host(DECLARED, lazy=True)
    _change(host, 2, "p1 p2 p3", 1)
    _change(host, 3, "p4", 1)
    relation = host.partition.state.relations["reachable"]
    number = dict(zip(_decode(host, "reachable"), relation.alive().tolist(), strict=True))[("C", "B")]
    diagrams = strategy.diagrams
    assert len(diagrams.variables(strategy.sent("reachable", number))) == 2  # p1 and p3
    assert len(diagrams.variables(strategy.label("reachable", number))) == 3
    _change(host, 4, "p1", -1)
    assert strategy.sent("reachable", number) == strategy.label("reachable", number)
    assert len(diagrams.variables(strategy.sent("reachable", number))) == 1


def test_what_was_told_may_depend_on_what_the_label_has_absorbed() -> None:
    """The label of p(1) is a(2): its first derivation, by a(1) and a(2), was absorbed, but p(2) was told of it."""
    text = "RELATION a(X: Integer). RELATION e(X: Integer, Y: Integer). p(1) :- a(X), a(2). p(Y) :- p(X), e(X, Y)."
    host, strategy = _host(text, lazy=True)
    facts = (("a", (2,)), ("a", (1,)), ("e", (1, 2)))  # a join meets the last row first
    host.commit(Epoch(2, tuple(Change(name, row, 1) for name, row in facts)))
    assert len(strategy.diagrams.variables(strategy.label("p", 0))) == 1
    assert len(strategy.diagrams.variables(strategy.sent("p", 0))) == 2
    assert not host.commit(Epoch(3, (Change("a", (1,), -1),))).deltas
    assert host.rows("p") == {(1,), (2,)}


def test_what_must_be_absent_has_a_variable_too() -> None:
    text = "RELATION n(X: Integer). RELATION off(X: Integer, W: String). on(X) :- n(X), not off(X, _)."
    host, strategy = _host(text, lazy=True)
    host.commit(Epoch(2, (Change("n", (1,), 1), Change("n", (2,), 1))))
    variables = strategy.diagrams.variables(strategy.label("on", 0))
    assert [type(strategy.meaning(variable)) for variable in variables] == [Present, Absent]
    assert host.commit(Epoch(3, (Change("off", (1, "x"), 1),))).deltas["on"].deleted == ((1,),)
    assert not host.commit(Epoch(4, (Change("off", (1, "y"), 1), Change("off", (1, "x"), -1)))).deltas
    assert host.commit(Epoch(5, (Change("off", (1, "y"), -1),))).deltas["on"].inserted == ((1,),)


def test_labels_from_elsewhere_count_like_derivations() -> None:
    """What another partition would tell: a label over its own variables, and later that one of them is false."""
    host, strategy = _host(DECLARED, lazy=True)
    _change(host, 2, "p1", 1)
    far = Conjunctions.single(strategy.variables.places([1 << 40]))
    encode = host.partition.state.dictionary.encode_rows
    types = list(host.partition.state.relations["reachable"].types)
    grown = strategy.nothing()
    grown["reachable"].append(strategy.take_over("reachable", encode([("B", "Z")], types), far))
    strategy.grow(grown)
    assert set(_decode(host, "reachable")) == {("A", "B"), ("B", "Z"), ("A", "Z")}
    row = int(host.partition.state.relations["reachable"].find(encode([("A", "Z")], types))[0])
    assert 1 << 40 in strategy.diagrams.variables(strategy.sent("reachable", row))
    assert strategy.meaning(1 << 40) is None
    grown = strategy.nothing()
    strategy.forget([1 << 40], grown)
    strategy.grow(grown)
    assert set(_decode(host, "reachable")) == {("A", "B")}
    assert np.concatenate(grown["reachable"]).tolist() == []


# Too large


def test_beyond_the_cap_the_stratum_goes_on_by_deriving_again() -> None:
    host, _strategy = _host(DECLARED.replace("String", "Integer"), lazy=False, cap=2_000)
    luck = random.Random(5)
    links = {(luck.randrange(12), luck.randrange(12)) for _ in range(40)}
    plain = whorl.open(DECLARED.replace("String", "Integer"), strategy="dred")
    plain.insert("link", sorted(links))
    plain.commit()
    report = host.commit(Epoch(2, tuple(Change("link", link, 1) for link in sorted(links))))
    assert (report.strata[0].strategy, report.strata[0].how) == ("dred", "since labels took more than 2000 nodes")
    assert host.rows("reachable") == set(plain["reachable"].rows())
    for number, link in enumerate(sorted(links)[:10], 3):
        plain.delete("link", [link])
        changes = plain.commit()
        deltas = host.commit(Epoch(number, (Change("link", link, -1),))).deltas
        assert dict(deltas) == {view: delta for view, delta in changes.items() if delta.inserted or delta.deleted}


@settings(max_examples=40)
@given(seed=st.integers(0, 10_000), lazy=st.booleans())
def test_best_values_fall_back_on_the_next_label(seed: int, lazy: bool) -> None:
    """Shortest routes under insertions and deletions in one epoch, against deriving everything again."""
    text = (
        "RELATION link(From: Integer, To: Integer, Cost: Integer)."
        "route(X, Y, mmin<C>) :- link(X, Y, C). route(X, Y, mmin<C>) :- route(X, Z, A), link(Z, Y, B), C = A + B."
    )
    host, _strategy = _host(text, lazy=lazy)
    plain = whorl.open(text, strategy="recompute")
    plain.commit()
    luck = random.Random(seed)
    there: set[tuple[int, int, int]] = set()
    for number in range(2, 12):
        gone = {link for link in sorted(there) if luck.random() < 0.25}
        come = {(luck.randrange(5), luck.randrange(5), luck.randrange(1, 6)) for _ in range(3)} - there
        there = (there - gone) | come
        changes = [Change("link", link, -1) for link in sorted(gone)] + [
            Change("link", link, 1) for link in sorted(come)
        ]
        plain.delete("link", sorted(gone))
        plain.insert("link", sorted(come))
        expected = plain.commit()
        found = host.commit(Epoch(number, tuple(changes))).deltas
        assert dict(found) == {view: delta for view, delta in expected.items() if delta.inserted or delta.deleted}
