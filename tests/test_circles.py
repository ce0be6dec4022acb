"""Derivations that lead back to their own row: which programs can tell, and that leaving them out changes no view."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.reference import follow_reference
from whorl.diagnostics.source import Source
from whorl.hosts.inprocess import InProcess
from whorl.hosts.simulated.host import Simulated
from whorl.hosts.simulated.network import Conditions
from whorl.kernel.labels.circles import Steps
from whorl.kernel.labels.conjunctions import Conjunctions
from whorl.kernel.labels.lazy import LazyLabels
from whorl.kernel.labels.naming import ByContent
from whorl.kernel.labels.variables import Present
from whorl.kernel.state.relation import Ints
from whorl.kernel.strategies.absorption import Absorption
from whorl.logical.compile import compile_program
from whorl.model.delta import Change, Epoch
from whorl.model.values import Row
from whorl.physical import lower
from whorl.physical.plan import Circles

RIGHT = "reach(X, Y) :- link(X, Y).\nreach(X, Y) :- link(X, Z), reach(Z, Y).\n"
LEFT = "reach(X, Y) :- link(X, Y).\nreach(X, Y) :- reach(X, Z), link(Z, Y).\n"
REGION = """\
region(R, X) :- main(R, X), hot(X).
region(R, Y) :- region(R, X), hot(X), hot(Y), near(X, Y).
"""
PAIRS = """\
meet(A, B, G) :- goal(A, B, G).
meet(A, B, G) :- move(A, B, C, D), meet(C, D, G).
"""
FLOATS = """\
RELATION link(X: Integer, Y: Integer).
RELATION start(X: Float).
reach(X) :- start(X).
reach(Y) :- reach(X), link(Z, Y), Z = X.
"""
LINK = "RELATION link(X: {0}, Y: {0}).\n"


def _circles(rules: str, placement: str = "apart", ship: str = "lazy") -> Circles | None:
    plan = lower.lower_plan(compile_program(Source("test.dl", rules)), "absorption", placement, ship)
    return plan.strata[0].circles


@pytest.mark.parametrize("placement", ["apart", "first", "join"])
@pytest.mark.parametrize(
    ("rules", "columns", "steps"),
    [
        (RIGHT, (0,), {"link": (0,)}),
        (LEFT, (1,), {"link": (1,)}),
        (REGION, (1,), {"main": (1,), "hot": (0,), "near": (1,)}),
        (PAIRS, (0, 1), {"goal": (0, 1), "move": (0, 1)}),
        (FLOATS, (0,), {"start": (0,)}),  # links hold the same numbers, but store them in another way
        (RIGHT.replace("Z), reach", "Z), not off(X), reach"), (0,), {"link": (0,)}),
    ],
)
def test_facts_that_tell_a_row_on_the_way(
    rules: str, columns: tuple[int, ...], steps: dict[str, tuple[int, ...]], placement: str
) -> None:
    found = _circles(rules, placement)
    assert found is not None
    own = {name: places for name, places in found.steps.items() if "^" not in name}
    assert (found.columns, own) == (columns, steps)
    assert all(places == own[name.partition("^")[0]] for name, places in found.steps.items())


@pytest.mark.parametrize(
    "rules",
    [
        RIGHT.replace("link(X, Z), reach", "reach(X, Z), reach"),  # not one chain
        RIGHT + "reach(X, Y) :- link(Y, X).\n",  # a link may lead to either of its ends
        RIGHT.replace("link(X, Z)", "link(X, W), link(W, Z)"),  # or to none
        "odd(X, Y) :- link(X, Y).\nodd(X, Y) :- link(X, Z), even(Z, Y).\neven(X, Y) :- link(X, Z), odd(Z, Y).\n",
        RIGHT + "reach(X, Y) :- reach(Y, X).\n",  # both columns change, and no fact has both
        "p(X, Y) :- link(X, Y).\nq(X) :- p(X, _).\n",  # no recursion
    ],
)
def test_programs_that_cannot_tell(rules: str) -> None:
    assert _circles(rules) is None


def test_who_tells_everything_tells_circles_too() -> None:
    assert _circles(RIGHT, "first", "plain") is None
    assert _circles(RIGHT, "first", "eager") is not None


# Views


def _changes(seed: int, relation: str, rows: list[Row], epochs: int) -> list[tuple[Change, ...]]:
    """Return random insertions and deletions, of half of the rows at the most at a time."""
    random, held = Random(seed), set[Row]()
    out: list[tuple[Change, ...]] = []
    for _epoch in range(epochs):
        chosen = random.sample(rows, random.randint(1, max(1, len(rows) // 2)))
        out.append(tuple(Change(relation, row, -1 if row in held else 1) for row in chosen))
        held ^= set(chosen)
    return out


def _named(kind: str, node: int) -> int | str:
    return node if kind == "Integer" else ("ab" if node % 2 else "a long name of node ") + str(node)


@settings(max_examples=60)
@given(
    seed=st.integers(0, 10_000),
    rules=st.sampled_from([RIGHT, LEFT, RIGHT + "reach(X, Y) :- link(Y, X).\n"]),
    kind=st.sampled_from(["Integer", "String"]),
    ship=st.sampled_from(["lazy", "eager"]),
    partitions=st.sampled_from([1, 3, 7]),
    placement=st.sampled_from(["first", "join"]),
)
def test_reachability_in_dense_networks(
    seed: int, rules: str, kind: str, ship: str, partitions: int, placement: str
) -> None:
    rows: list[Row] = [(_named(kind, x), _named(kind, y)) for x in range(5) for y in range(5)]
    text = LINK.format(kind) + rules
    epochs = [Epoch(at, changes) for at, changes in enumerate(_changes(seed, "link", rows, 6), 1)]
    source = Source("test.dl", text)
    host = Simulated(
        lambda types: compile_program(source, data_types=types),
        partitions,
        Conditions(jitter=0.01, seed=seed),
        strategy="absorption",
        placement=placement,
        ship=ship,
    )
    follow_reference(text, epochs, host)


@pytest.mark.parametrize(("placement", "rules"), [("apart", LEFT), ("join", LEFT), ("first", LEFT), ("first", RIGHT)])
def test_circles_are_seen_by_copies_too(placement: str, rules: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a ring with both directions, nodes are reached from both sides; then either side would tell the other."""
    dropped: list[int] = []
    straight = LazyLabels.straight

    def counted(self: LazyLabels, used: Conjunctions, steps: Steps, heads: Ints) -> tuple[Ints, Conjunctions]:
        lines, left = straight(self, used, steps, heads)
        dropped.append(len(heads) - len(lines))
        return lines, left

    monkeypatch.setattr(LazyLabels, "straight", counted)
    source = Source("test.dl", LINK.format("Integer") + rules)
    host = InProcess(lambda types: compile_program(source, data_types=types), None, "absorption", 3, placement)
    ends = [(x, (x + step) % 6) for x in range(6) for step in (1, 5)]
    report = host.commit(Epoch(1, tuple(Change("link", row, 1) for row in ends)))
    assert len(report.deltas["reach"].inserted) == 36
    assert sum(dropped) == 24


_PROGRAM = """\
RELATION e(A: Integer, B: Integer).
RELATION f(A: Integer, B: Integer, C: Integer).
RELATION g(A: Integer).
"""


def _linear(random: Random) -> str:
    """Return random rules for p(., .), each of which reads it once at the most."""

    def rule(inner: bool) -> str:
        variables = ["A", "B", "C", "D"][: random.randint(2, 4)]
        inputs = random.choices([("e", 2), ("f", 3), ("g", 1)], k=random.randint(1, 2))
        atoms = [(name, random.choices([*variables, "_"], k=width)) for name, width in [*inputs, *([("p", 2)] * inner)]]
        bound = sorted({each for _name, args in atoms for each in args} - {"_"}) or ["0"]
        kept = atoms[-1][1] if inner else ["_", "_"]
        head = [old if old != "_" and random.random() < 0.5 else random.choice(bound) for old in kept]
        body = [f"{name}({', '.join(args)})" for name, args in atoms]
        if random.random() < 0.2:
            body.append(f"not g({random.choice(bound)})")
        if random.random() < 0.2:
            body.append(f"{bound[0]} != {bound[-1]}" if len(bound) > 1 else f"{bound[0]} < 2")
        return f"p({', '.join(head)}) :- {', '.join(body)}.\n"

    return _PROGRAM + "".join(rule(inner) for inner in (False, True, random.random() < 0.5))


@settings(max_examples=100)
@given(
    seed=st.integers(0, 1_000_000),
    ship=st.sampled_from(["lazy", "eager"]),
    partitions=st.sampled_from([1, 3]),
    placement=st.sampled_from(["first", "join"]),
)
def test_random_rules_that_read_themselves_once(seed: int, ship: str, partitions: int, placement: str) -> None:
    random = Random(seed)
    text = _linear(random)
    epochs: list[Epoch] = []
    held: set[tuple[str, Row]] = set()
    for number in range(1, 6):
        chosen = {
            (name, tuple(random.randint(0, 2) for _ in range(width)))
            for name, width in (("e", 2), ("e", 2), ("f", 3), ("f", 3), ("g", 1))
            for _ in range(2)
        }
        epochs.append(Epoch(number, tuple(Change(*fact, -1 if fact in held else 1) for fact in sorted(chosen))))
        held ^= chosen
    source = Source("test.dl", text)
    where = placement if partitions > 1 else "apart"
    compiler = lambda types: compile_program(source, data_types=types)  # noqa: E731
    follow_reference(text, epochs, InProcess(compiler, None, "absorption", partitions, where, ship))


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000), ship=st.sampled_from(["lazy", "eager"]), partitions=st.sampled_from([1, 3]))
def test_two_columns_that_change(seed: int, ship: str, partitions: int) -> None:
    random = Random(seed)
    text = "RELATION goal(A: Integer, B: Integer, G: Integer).\n"
    text += "RELATION move(A: Integer, B: Integer, C: Integer, D: Integer).\n" + PAIRS
    moves: list[Row] = [tuple(random.randint(0, 2) for _ in range(4)) for _ in range(16)]
    goals = tuple(Change("goal", (at, at, 7), 1) for at in range(2))
    first, *rest = _changes(seed, "move", list(dict.fromkeys(moves)), 6)
    epochs = [Epoch(at, changes) for at, changes in enumerate([goals + first, *rest], 1)]
    source = Source("test.dl", text)
    placement = "first" if partitions > 1 else "apart"
    compiler = lambda types: compile_program(source, data_types=types)  # noqa: E731
    follow_reference(text, epochs, InProcess(compiler, None, "absorption", partitions, placement, ship))


def test_lazy_labels_ship_less_than_sets(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a network where links go both ways, whoever hears of a node from its neighbour does not tell it back."""
    random = np.random.default_rng(1)
    ends = {(int(x), int(y)) for x, y in random.integers(0, 30, (60, 2)) if x != y}
    links = tuple(Change("link", row, 1) for x, y in sorted(ends) for row in ((x, y), (y, x)))
    source = Source("test.dl", LINK.format("Integer") + RIGHT)

    def shipped(strategy: str) -> tuple[int, int]:
        host = Simulated(lambda types: compile_program(source, data_types=types), 6, strategy=strategy)
        report = host.commit(Epoch(1, links))
        return sum(each.rows for each in report.shipped), sum(each.bytes for each in report.shipped)

    sets, labels = shipped("dred"), shipped("absorption")
    assert labels[0] < 0.85 * sets[0]
    assert labels[1] < 1.05 * sets[1]
    monkeypatch.setattr(lower, "with_circles", lambda plan: plan)
    assert shipped("absorption")[0] == pytest.approx(sets[0], rel=0.02)


# Names that tell what they stand for

FACTS = """\
RELATION edge(X: Integer, Y: Integer, Name: String, Up: Boolean, Cost: {0}).
path(X, Y) :- edge(X, Y, _, _, _).
path(X, Y) :- edge(X, Z, _, _, _), path(Z, Y).
"""


@settings(max_examples=40)
@given(
    rows=st.lists(
        st.tuples(
            st.integers(-2, 300),
            st.integers(-2, 1 << 40),
            st.text(st.characters(), max_size=5),
            st.booleans(),
            st.integers(0, 9),
        ),
        min_size=1,
        max_size=8,
    ),
    cost=st.sampled_from(["Integer", "Float"]),
)
def test_partitions_agree_about_names_however_they_are_spelt(rows: list[Row], cost: str) -> None:
    source = Source("test.dl", FACTS.format(cost))
    host = InProcess(lambda types: compile_program(source, data_types=types), None, "absorption", 2, "first")
    facts = [(*row[:4], row[4] if cost == "Integer" else float(row[4])) for row in rows]  # type: ignore[arg-type]
    host.commit(Epoch(1, tuple(Change("edge", row, 1) for row in dict.fromkeys(facts))))
    (here,), (there,) = (partition.strategies for partition in host.partitions)
    assert isinstance(here, Absorption)
    assert isinstance(there, Absorption)
    assert isinstance(here._naming, ByContent)
    assert isinstance(there._naming, ByContent)
    own = [name for name, meaning in here.variables.meanings.items() if isinstance(meaning, Present)]
    for name in own:
        spelt = here._naming.spell(here.variables, here.variables.names.index(name))
        assert len(spelt) <= 9
        assert there._naming.end(b"x" + spelt + b"y", 1) == 1 + len(spelt)
        read, fact = there._naming.read(spelt)
        assert read == name
        assert (fact is None) == (spelt[0] == 0)
        if fact is not None:
            stored = there.stratum.state.relations["edge"]
            decoded = there.stratum.state.dictionary.decode_rows(np.array([fact.row]), stored.types)
            assert decoded[0] in facts
            assert cost == "Integer"
