"""The label of a row, as a view tells it."""

from __future__ import annotations

from pathlib import Path

import pytest

import whorl
from whorl.diagnostics.errors import UserError

REACHABLE = "reachable(X, Y) :- link(X, Y).\nreachable(X, Y) :- link(X, Z), reachable(Z, Y).\n"
LINKS = [("a", "b"), ("b", "c"), ("c", "a"), ("a", "c")]


@pytest.mark.parametrize(
    ("strategy", "text"),
    [
        ("recompute", "recompute keeps no label"),
        ("pf", "pf keeps no label"),
        ("dred", "0 derivations without recursion"),
        ("support", "rank 1"),
        ("derivations", "1 derivation"),
    ],
)
def test_labels_of_a_row_that_follows_by_recursion(strategy: str, text: str) -> None:
    session = whorl.open(REACHABLE, strategy=strategy)
    session.insert("link", LINKS)
    session.commit()
    assert str(session["reachable"].label(("b", "a"))) == text


def test_a_row_of_a_stage_is_told_by_its_derivations(tmp_path: Path) -> None:
    text = """
RELATION link(X: String, Y: String).
wave("a", 0).
wave(Y, N + 1) :- wave(X, N), link(X, Y), not known(Y, N).
known(X, N) :- wave(X, N).
known(X, N + 1) :- known(X, N), wave(_, N).
"""
    session = whorl.open(text, strategy="derivations")
    session.insert("link", [("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")])
    session.commit()
    assert str(session["wave"].label(("d", 2))) == "2 derivations"
    session.save(tmp_path / "saved")
    session.delete("link", [("b", "d")])
    session.commit()
    assert str(session["wave"].label(("d", 2))) == "1 derivation"
    again = whorl.open(text, strategy="derivations", restore=tmp_path / "saved")
    assert str(again["wave"].label(("d", 2))) == "2 derivations"


def test_a_boolean_function_is_told_by_its_alternatives() -> None:
    session = whorl.open(REACHABLE, strategy="absorption")
    session.insert("link", LINKS)
    session.commit()
    assert session["reachable"].label(("b", "b")).value == (
        frozenset({'link("a", "b")', 'link("b", "c")', 'link("c", "a")'}),
    )
    assert str(session["reachable"].label(("a", "c"))) == 'link("a", "c") or link("a", "b") and link("b", "c")'


def test_counts_and_deaths() -> None:
    session = whorl.open("two(X) :- link(X, _).\nquery two(X).\n")
    session.insert("link", [("a", "b"), ("a", "c")])
    session.commit()
    assert str(session["two"].label(("a",))) == "2 derivations"
    session = whorl.open("STREAM seen(T: Timestamp, X: Integer) WINDOW(10).\nlately(T, X) <- seen(T, X).\n")
    session.insert("seen", [(5, 1)])
    session.commit()
    assert session["lately"].label((1,)).value == 15


def test_a_row_that_is_not_there_has_no_label() -> None:
    session = whorl.open(REACHABLE)
    with pytest.raises(UserError) as refused:
        session["reachable"].label(("a", "b"))
    assert refused.value.code == "E647"
