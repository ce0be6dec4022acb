"""Minimal proofs, smallest cuts, lives and critical facts: against brute force over subsets of the facts."""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Callable
from itertools import combinations
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whorl
from tests.command_line import whorl as run
from tests.generators import PLAIN, WINDOWED, GeneratedProgram, cases
from whorl.diagnostics.errors import UserError
from whorl.diagnostics.source import Source
from whorl.hosts.inprocess import InProcess
from whorl.kernel.proofs import ancestry, minimal
from whorl.kernel.proofs.ancestry import Ancestry
from whorl.logical.compile import compile_program
from whorl.model.delta import Epoch, difference
from whorl.model.limits import Limits
from whorl.model.values import Row as Plain
from whorl.model.values import row_key
from whorl.oracle.model import evaluate_plan
from whorl.oracle.session import Oracle
from whorl.physical.strategies import STRATEGIES
from whorl.views.answering import answer_critical, answer_cuts
from whorl.views.answers import Facts
from whorl.views.asking import Asked
from whorl.views.session import Session

Row = tuple[object, ...]
Rows = frozenset[Row]
View = Callable[[Rows], set[Row]]  # the rows of a view over some facts

REACHABLE = """
RELATION link(From: Integer, To: Integer).
reachable(X, Y) :- link(X, Y).
reachable(X, Y) :- link(X, Z), reachable(Z, Y).
"""
ROUND_TRIPS = f"""{REACHABLE}
RELATION closed(Place: Integer).
trip(X, Y) :- reachable(X, Y), reachable(Y, X), not closed(Y).
"""
ROUTES = """
RELATION link(From: Integer, To: Integer, Cost: Integer).
route(X, Y, mmin<C>) :- link(X, Y, C).
route(X, Y, mmin<C>) :- route(X, Z, A), link(Z, Y, B), C = A + B.
"""
DEGREES = """
RELATION link(From: Integer, To: Integer).
degree(X, count<Y>) :- link(X, Y).
farthest(X, max<Y>) :- link(X, Y).
"""


def _closure(links: Rows) -> set[Row]:
    found = set(links)
    while True:
        more = {(x, y) for x, z in links for other, y in found if z == other} - found
        if not more:
            return found
        found |= more


def _trips(links: Rows) -> set[Row]:
    found = _closure(links)
    return {(x, y) for x, y in found if (y, x) in found and y != 0}


def _routes(links: Rows) -> set[Row]:
    best: dict[tuple[object, object], int] = {}
    changed = True
    while changed:
        changed = False
        offers = [((x, y), cost) for x, y, cost in links]
        offers += [((x, y), a + cost) for (x, z), a in best.items() for other, y, cost in links if z == other]  # type: ignore[operator]
        for pair, cost in offers:
            if pair not in best or cost < best[pair]:  # type: ignore[operator]
                best[pair] = cost  # type: ignore[assignment]
                changed = True
    return {(*pair, cost) for pair, cost in best.items()}


def _degrees(links: Rows) -> set[Row]:
    return {(x, len({y for other, y in links if other == x})) for x, _y in links}


def _subsets(links: Rows) -> list[Rows]:
    return [frozenset(each) for size in range(len(links) + 1) for each in combinations(sorted(links), size)]


def _smallest(sets: list[Rows]) -> set[Rows]:
    return {one for one in sets if not any(other < one for other in sets)}


def _rows(sets: tuple[Facts, ...]) -> set[Rows]:
    return {frozenset(fact.row for fact in facts) for facts in sets}


def _session(text: str, links: Rows, strategy: str) -> Session:
    session = whorl.open(text, strategy=strategy)
    session.insert("link", sorted(links))
    if "closed" in text:
        session.insert("closed", [(0,)])
    session.commit()
    return session


GRAPHS = st.frozensets(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=1, max_size=8)
PRICED = st.dictionaries(st.tuples(st.integers(0, 3), st.integers(0, 3)), st.integers(1, 3), min_size=1, max_size=7)
CASES = st.one_of(
    st.tuples(st.just((REACHABLE, "reachable", _closure)), GRAPHS),
    st.tuples(st.just((ROUND_TRIPS, "trip", _trips)), GRAPHS),
    st.tuples(
        st.just((ROUTES, "route", _routes)),
        PRICED.map(lambda prices: frozenset((*pair, cost) for pair, cost in prices.items())),
    ),
    st.tuples(st.just((DEGREES, "degree", _degrees)), GRAPHS),
)


@settings(max_examples=120, deadline=None)
@given(case=CASES, strategy=st.sampled_from(("auto", "recompute", "dred", "absorption")), diagrams=st.booleans())
def test_answers_equal_brute_force(
    case: tuple[tuple[str, str, View], frozenset[Row]], strategy: str, diagrams: bool
) -> None:
    """Without diagrams, sets are found by trying."""
    (text, name, view), links = case
    views = {each: view(each) for each in _subsets(links)}
    with pytest.MonkeyPatch.context() as patch:
        if not diagrams:
            patch.setattr(minimal, "_FACTS", 0)
        session = _session(text, links, strategy)
        for row in sorted(view(links))[:6]:
            proving = [each for each, rows in views.items() if row in rows]
            missing = [links - each for each, rows in views.items() if row not in rows]
            proofs = session[name].proofs(row)
            assert proofs.complete
            if name != "degree":  # a count needs all of its facts, and no others
                assert _rows(proofs.sets) == _smallest(proving)
            cuts = session[name].cuts(row)
            least = min(map(len, missing))
            assert cuts.size == least
            assert _rows(cuts.sets) == {each for each in missing if len(each) == least}


@settings(max_examples=60, deadline=None)
@given(case=CASES, strategy=st.sampled_from(STRATEGIES), seed=st.integers(0, 1000))
def test_what_is_critical_goes_and_the_question_leaves_no_trace(
    case: tuple[tuple[str, str, View], frozenset[Row]], strategy: str, seed: int
) -> None:
    (text, name, view), links = case
    try:
        session = _session(text, links, strategy)
    except UserError as refused:
        assert refused.code == "E402"
        return
    left = set(links)
    luck = random.Random(seed)
    for _ in range(3):
        for fact in sorted(left)[:4]:
            gone = view(frozenset(left)) - view(frozenset(left - {fact}))
            found = session[name].critical("link", fact).deltas
            assert set(found[name].deleted if name in found else ()) == gone
        if not left:
            break
        fact = luck.choice(sorted(left))
        left.discard(fact)
        session.delete("link", [fact])
        session.commit()
        assert set(session[name].rows()) == view(frozenset(left))


@settings(max_examples=60, deadline=None)
@given(case=st.one_of(cases(PLAIN), cases(WINDOWED)))
def test_answers_about_random_programs_hold(case: tuple[GeneratedProgram, tuple[Epoch, ...]]) -> None:
    """Whatever is not refused is so, by the reference evaluator: each cut takes the row, and no smaller set does."""
    program, epochs = case
    source = Source("generated", program.text)
    oracle = Oracle(lambda types: compile_program(source, data_types=types))
    kernel = InProcess(lambda types: compile_program(source, data_types=types))
    for epoch in epochs:
        try:
            oracle.commit(epoch)
        except UserError:
            return
        kernel.commit(epoch)
    facts = [(name, row) for name, base in oracle._base.items() for row in sorted(base.visible, key=row_key)]
    for output in oracle.plan.outputs:
        for row in sorted(oracle.rows(output.name), key=row_key)[:2]:
            try:
                cuts = answer_cuts(kernel.partitions, Asked(output.name, row), hint="")
            except UserError as refused:
                assert refused.code == "E651"
                continue
            named = [{(fact.relation, fact.row) for fact in cut} for cut in cuts]
            assert all(row not in _without(oracle, cut)[output.name] for cut in named[:3])
            for fact in facts:
                assert (row not in _without(oracle, {fact})[output.name]) is ({fact} in named)
    for fact in facts[:2]:
        after = _without(oracle, {fact})
        deltas = answer_critical(kernel.partitions, Asked(*fact), after).deltas
        assert deltas == {view: d for view, rows in after.items() if (d := difference(oracle.rows(view), rows))}


def _without(oracle: Oracle, gone: set[tuple[str, Plain]]) -> dict[str, set[Plain]]:
    """Return all views, were some facts not there."""
    left = {name: {row for row in base.visible if (name, row) not in gone} for name, base in oracle._base.items()}
    return evaluate_plan(oracle.plan, left, Limits())


WINDOW = """
STREAM link(At: Timestamp, From: Integer, To: Integer) WINDOW(10).
reachable(T, X, Y) :- link(T, X, Y).
reachable(T, X, Y) :- link(T1, X, Z), reachable(T2, Z, Y), largest(T, T1, T2).
"""


@settings(max_examples=40, deadline=None)
@given(
    links=st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=10),
    strategy=st.sampled_from(("auto", "expiry", "support", "absorption")),
)
def test_rows_go_when_their_life_ends(links: list[tuple[int, int, int]], strategy: str) -> None:
    session = whorl.open(WINDOW, strategy=strategy)
    session.insert("link", links)
    session.commit(time=9)
    lives = {row: session["reachable"].lifetime(row) for row in session["reachable"].rows()}
    assert all(life.exact and life.bounds for life in lives.values())
    assert all({fact.until for fact in life.bounds} == {life.until} for life in lives.values())
    for now in range(10, 21):
        session.commit(time=now)
        assert set(session["reachable"].rows()) == {row for row, life in lives.items() if (life.until or 0) > now}


# By hand


def test_the_published_network() -> None:
    session = whorl.open(REACHABLE.replace("Integer", "String"))
    session.insert("link", [("A", "B"), ("B", "C"), ("C", "A"), ("C", "B")])
    session.commit()
    view = session["reachable"]
    assert str(view.proofs(("B", "B"))) == (
        'reachable("B", "B") follows from any of:\n'
        '  link("B", "C") and link("C", "B")\n'
        '  link("A", "B"), link("B", "C") and link("C", "A")'
    )
    assert str(view.cuts(("C", "B"))) == (
        'reachable("C", "B") goes with any of:\n'
        '  link("A", "B") and link("C", "B")\n'
        '  link("C", "A") and link("C", "B")'
    )
    assert str(view.cuts(("A", "B"))) == 'reachable("A", "B") goes with:\n  link("A", "B")'
    assert str(view.critical("link", ("C", "B"))) == 'Without link("C", "B") nothing changes.'
    assert view.critical("link", ("B", "C")).deltas["reachable"].deleted == (
        ("A", "A"), ("A", "C"), ("B", "A"), ("B", "B"), ("B", "C"), ("C", "C"),
    )  # fmt: skip
    assert str(view.lifetime(("A", "B"))) == 'reachable("A", "B") does not expire.'
    assert [len(view.proofs(("B", "B"), limit=limit).sets) for limit in (1, 2)] == [1, 2]
    assert [view.proofs(("B", "B"), limit=limit).complete for limit in (1, 2)] == [False, True]
    assert str(view.proofs(("B", "B"), limit=1)).endswith("\n  and from other facts.")


def test_rows_that_need_no_facts() -> None:
    session = whorl.open("start(1). reach(X) :- start(X). reach(Y) :- reach(X), link(X, Y).")
    session.insert("link", [(1, 2), (2, 1)])
    session.commit()
    assert str(session["reach"].cuts((1,))) == "reach(1) goes with:\n  start(1)"
    session = whorl.open("top(1). top(X) :- link(X, _). RELATION link(A: Integer, B: Integer).")
    session.insert("link", [(1, 2)])
    session.commit()
    assert str(session["top"].proofs((1,))) == "top(1) follows from the rules alone."
    assert str(session["top"].cuts((1,))) == "top(1) stays whatever facts are lost."


def test_a_loss_may_let_rows_come() -> None:
    session = whorl.open("RELATION n(X: Integer). RELATION off(X: Integer). on(X) :- n(X), not off(X).")
    session.insert("n", [(1,)])
    session.insert("off", [(1,)])
    session.commit()
    assert str(session.critical("off", (1,))) == "Without off(1):\n  +on(1)"


def test_in_several_partitions() -> None:
    session = whorl.open(REACHABLE, partitions=3)
    session.insert("link", [(1, 2), (2, 3), (1, 3)])
    session.commit()
    assert session["reachable"].cuts((1, 3)).size == 2
    assert session.critical("link", (1, 2)).deltas["reachable"].deleted == ((1, 2),)
    session.delete("link", [(1, 2)])
    assert session.commit()["reachable"].deleted == ((1, 2),)


@pytest.mark.parametrize(
    ("text", "view", "row", "reason"),
    [
        (
            "n(X) :- e(X). m(X) :- e(X), not o(X). o(X) :- f(X), not e(X). q(X) :- n(X), not m(X). e(1). e(2). f(3).",
            "m",
            (1,),
            'losing a fact of "e" may also let rows appear: it stands below a negation',
        ),
        ("s(X, sum<Y>) :- e(X, Y). e(1, 2).", "s", (1, 2), "sum may come to the same from other values"),
        (
            "s(X, count<Y>) :- e(X, Y). big(X) :- s(X, N), N > 1. e(1, 2). e(1, 3). e(1, 4).",
            "big",
            (1,),
            '"s" is aggregated, and would show other values',
        ),
        (
            "w(X, Y, mmax<C>) :- e(X, Y, C). w(X, Y, mmax<C>) :- w(X, Z, A), e(Z, Y, B), C = min(A, B). e(1, 2, 3).",
            "w",
            (1, 2, 3),
            "its value may also follow from values that are not the best",
        ),
        (
            "p(X, Y, C) :- e(X, Y, C), C >= 0. p(X, Y, C) :- p(X, Z, A), e(Z, Y, B), B >= 0, C = A + B."
            "c(X, Y, min<C>) :- p(X, Y, C). query c(X, Y, C). e(1, 2, 3).",
            "c",
            (1, 2, 3),
            '"p" is aggregated, and would show other values',
        ),
    ],
    ids=["negation", "sum", "above", "best", "selected"],
)
def test_cuts_that_rows_do_not_tell(text: str, view: str, row: Row, reason: str) -> None:
    session = whorl.open(text)
    session.commit()
    with pytest.raises(UserError) as refused:
        session[view].cuts(row)
    assert (refused.value.code, refused.value.facts["reason"]) == ("E651", reason)
    assert session[view].proofs(row).sets


def test_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    session = _session(REACHABLE, frozenset((x, y) for x in range(5) for y in range(5)), "auto")
    view = session["reachable"]
    monkeypatch.setattr(minimal, "_FACTS", 0)
    monkeypatch.setattr(minimal, "_STEPS", 20)
    with pytest.raises(UserError, match="E653"):
        view.cuts((0, 1))
    monkeypatch.undo()
    assert view.cuts((0, 1)).size == 4
    tight: Callable[..., Ancestry] = ancestry.gather

    def gather(*asked: object) -> Ancestry:
        return tight(*asked, budget=10)

    monkeypatch.setattr("whorl.views.answering.gather", gather)
    with pytest.raises(UserError, match="E652"):
        view.proofs((0, 1))


def test_what_cannot_be_asked() -> None:
    session = _session(REACHABLE, frozenset({(1, 2)}), "auto")
    for code, ask in (
        ("E647", lambda: session["reachable"].cuts((2, 1))),
        ("E647", lambda: session.critical("link", (2, 1))),
        ("E654", lambda: session.critical("reachable", (1, 2))),
        ("E654", lambda: session.critical("links", (1, 2))),
        ("E644", lambda: session.critical("link", (1,))),
    ):
        with pytest.raises(UserError) as refused:
            ask()
        assert refused.value.code == code


# The command line


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    program, deltas = tmp_path / "reach.dl", tmp_path / "net.deltas"
    program.write_text(REACHABLE, encoding="utf-8")
    deltas.write_text("@1\n+link(1, 2)\n+link(2, 3)\n+link(1, 3)\n", encoding="utf-8")
    return [str(program), str(deltas)]


@pytest.mark.parametrize("question", ["proofs", "cuts", "lifetime", "critical"])
def test_the_command_line_prints_what_python_says(files: list[str], question: str) -> None:
    session = _session(REACHABLE, frozenset({(1, 2), (2, 3), (1, 3)}), "auto")
    answer = (
        session.critical("link", (1, 2)) if question == "critical" else getattr(session["reachable"], question)((1, 3))
    )
    row = "link(1, 2)" if question == "critical" else "reachable(1, _)"
    row = row.replace("_", "3")
    told = run("why", files[0], row, "--deltas", files[1], f"--{question}")
    assert (told.code, told.out) == (0, f"{answer}\n")
    plain = run("why", files[0], row, "--deltas", files[1], f"--{question}", "--format", "json")
    assert json.loads(plain.out) == answer.to_json()


def test_the_facts_that_took_a_row_along(tmp_path: Path) -> None:
    program, deltas = tmp_path / "net.dl", tmp_path / "net.deltas"
    program.write_text(f"{WINDOW} RELATION closed(X: Integer). open(T, X, Y) :- reachable(T, X, Y), not closed(Y).")
    deltas.write_text(
        "@1 time=5\n+link(1, 1, 2)\n+link(2, 2, 3)\n+link(3, 1, 3)\n+link(5, 3, 4)\n+link(5, 7, 8)\n"
        "@2 time=6\n-link(3, 1, 3)\n@3 time=11\n@4 time=12\n+closed(4)\n"
    )

    def gone(row: str, *more: str) -> str:
        told = run("why", str(program), row, "--deltas", str(deltas), "--gone", *more)
        return told.out or told.err

    assert gone("open(1, 3)") == "open(1, 3) went in epoch 3, at 11.\n  link(1, 2) expired at 11\n"
    assert gone("open(2, 3)") == "open(2, 3) went in epoch 4, at 12.\n  link(2, 3) expired at 12\n"
    assert gone("link(1, 3)") == "link(1, 3) went in epoch 2, at 6.\n  link(1, 3) was deleted\n"
    assert gone("open(3, 4)").startswith("open(3, 4) went in epoch 4, at 12.\nopen(3, 4) is not there.\n")
    assert "fails  not closed(4): closed(4) is there" in gone("open(3, 4)")
    lost = [{"relation": "link", "row": [1, 2], "until": 11, "how": "expired at 11"}]
    plain = {"row": "open(1, 3)", "epoch": 3, "time": 11, "lost": lost}
    assert json.loads(gone("open(1, 3)", "--format", "json")) == plain
    assert gone("open(7, 8)").startswith("E648 open(7, 8) is there\n")
    assert gone("open(8, 7)").startswith("E655 open(8, 7) was never there\n")
    assert gone("open(1, 3)", "--epoch", "2").startswith("E648 open(1, 3) is there\n")


def test_one_question_at_a_time(files: list[str]) -> None:
    both = run("why", files[0], "reachable(1, 3)", "--deltas", files[1], "--cuts", "--proofs")
    assert both.code == 2
    assert "it does not go with --proofs" in re.sub(r"[│\s]+", " ", both.err)
    drawn = run("why", files[0], "reachable(1, 3)", "--deltas", files[1], "--cuts", "--format", "svg")
    assert drawn.code == 2
    assert "only a proof can be drawn" in re.sub(r"[│\s]+", " ", drawn.err)
    gone = run("why", files[0], "link(9, 9)", "--deltas", files[1], "--critical")
    assert (gone.code, gone.err.splitlines()[0]) == (1, "E647 link(9, 9) is not there")


# Speed


@pytest.mark.slow
def test_a_row_of_a_million_is_answered_in_a_second() -> None:
    """Of a view of about a million rows, only what the row follows from is looked at."""
    luck = random.Random(11)
    links = frozenset((luck.randrange(1_050), luck.randrange(1_050)) for _ in range(3_400))
    session = _session(REACHABLE, links, "auto")
    assert len(session["reachable"]) > 950_000
    rows = luck.sample(session["reachable"].rows(), 5)
    for question in ("why", "cuts", "lifetime"):
        ask = getattr(session["reachable"], question)
        ask(rows[0])
        took = []
        for row in rows:
            started = time.process_time()
            ask(row)
            took.append(time.process_time() - started)
        assert max(took) < 1, (question, took)
