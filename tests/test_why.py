"""`whorl why` on the command line, and `View.why` in Python: what a user sees."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

import whorl as whorl_package
from tests.command_line import whorl
from tests.golden_cases import GOLDEN
from whorl.views.proof import Proof
from whorl.views.proof_drawing import proof_dot, proof_svg
from whorl.views.proof_text import proof_text

REACH = """# Which places can be reached.
reachable(X, Y) :- link(X, Y).
reachable(X, Y) :- link(X, Z), reachable(Z, Y).
"""


@pytest.fixture(autouse=True)
def _files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("reach.dl").write_text(REACH)
    Path("net.deltas").write_text('@1\n+link("a", "b")\n+link("b", "c")\n@2\n+link("c", "d")\n@3\n-link("a", "b")\n')


def _why(*arguments: str) -> str:
    run = whorl("why", *arguments)
    assert (run.code, run.err) == (0, "")
    return run.out


def test_a_proof_as_text() -> None:
    assert _why("reach.dl", 'reachable("a", "d")', "--deltas", "net.deltas", "--epoch", "2") == (
        """reachable("a", "d")   by rule 2 (line 3)
├─ link("a", "b")
└─ reachable("b", "d")   by rule 2 (line 3)
   ├─ link("b", "c")
   └─ reachable("c", "d")   by rule 1 (line 2)
      └─ link("c", "d")

rule 1 (line 2): reachable(X, Y) :- link(X, Y).
rule 2 (line 3): reachable(X, Y) :- link(X, Z), reachable(Z, Y).
"""
    )


def test_input_files() -> None:
    Path("links.csv").write_text("From,To\na,b\nb,c\n")
    out = _why("reach.dl", 'reachable("a", _)', "--input", "link=links.csv")
    assert out.splitlines()[0] == 'reachable("a", "b")   by rule 1 (line 2)'


def test_a_gap_takes_the_first_row_in_order() -> None:
    out = _why("reach.dl", "reachable(From, To)", "--deltas", "net.deltas")
    assert out.splitlines()[0] == 'reachable("b", "c")   by rule 1 (line 2)'


def test_a_proof_as_json() -> None:
    out = json.loads(_why("reach.dl", 'reachable("b", "d")', "--deltas", "net.deltas", "--format", "json"))
    assert (out["row"], out["height"], out["shortest"]) == ('reachable("b", "d")', 2, True)
    assert out["rules"] == [
        {"number": 1, "line": 2, "text": "reachable(X, Y) :- link(X, Y)."},
        {"number": 2, "line": 3, "text": "reachable(X, Y) :- link(X, Z), reachable(Z, Y)."},
    ]
    assert out["nodes"] == [
        {
            "id": 0,
            "relation": "reachable",
            "row": ["b", "d"],
            "text": 'reachable("b", "d")',
            "kind": "rule",
            "uses": [{"rule": 2, "parts": [{"premise": 1}, {"premise": 2}]}],
        },
        {"id": 1, "relation": "link", "row": ["b", "c"], "text": 'link("b", "c")', "kind": "fact"},
        {
            "id": 2,
            "relation": "reachable",
            "row": ["c", "d"],
            "text": 'reachable("c", "d")',
            "kind": "rule",
            "uses": [{"rule": 1, "parts": [{"premise": 3}]}],
        },
        {"id": 3, "relation": "link", "row": ["c", "d"], "text": 'link("c", "d")', "kind": "fact"},
    ]


def test_a_proof_as_dot() -> None:
    assert _why("reach.dl", 'reachable("c", "d")', "--deltas", "net.deltas", "--format", "dot") == (
        """digraph proof {
  node [shape=box, fontname=monospace, style=filled];
  edge [arrowhead=none];
  n0 [label="reachable(\\"c\\", \\"d\\")\\nby rule 1 (line 2)", fillcolor="#eef2fb", color="#5573b5"];
  n1 [label="link(\\"c\\", \\"d\\")", fillcolor="#eef6ee", color="#5a8f5a"];
  n0 -> n1;
}
"""
    )


SVG = "{http://www.w3.org/2000/svg}"


def _texts(drawing: str) -> list[str]:
    return [each.text or "" for each in ElementTree.fromstring(drawing).iter(f"{SVG}text")]


def test_a_proof_as_a_drawing() -> None:
    arguments = ("--deltas", "net.deltas", "--format", "svg", "--output", "proof.svg")
    assert _why("reach.dl", 'reachable("b", "d")', *arguments) == "wrote proof.svg\n"
    drawing = Path("proof.svg").read_text()
    assert _texts(drawing) == [
        'reachable("b", "d")',
        "by rule 2 (line 3)",
        'link("b", "c")',
        'reachable("c", "d")',
        "by rule 1 (line 2)",
        'link("c", "d")',
    ]
    root = ElementTree.fromstring(drawing)
    boxes = [each for each in root.iter(f"{SVG}rect") if "rx" in each.attrib]
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for box in boxes:  # every box lies inside the drawing
        left, top = float(box.attrib["x"]), float(box.attrib["y"])
        assert 0 <= left <= left + float(box.attrib["width"]) <= width
        assert 0 <= top <= top + float(box.attrib["height"]) <= height
    level = sorted((float(box.attrib["x"]), float(box.attrib["width"])) for box in boxes[1:3])
    assert level[0][0] + level[0][1] <= level[1][0], "boxes of a level do not overlap"


def test_drawings_escape_what_rows_hold() -> None:
    session = whorl_package.open("p(X) :- q(X).")
    session.insert("q", [('<&"\x01\\>',)])
    session.commit()
    proof = session["p"].why((None,))
    assert _texts(proof_svg(proof))[2] == 'q("<&\\"\N{REPLACEMENT CHARACTER}\\\\>")'
    assert 'label="q(\\"<&\\\\\\"\x01\\\\\\\\>\\")"' in proof_dot(proof)


def _chain(length: int) -> Proof:
    session = whorl_package.open(REACH + "query reachable(0, Y).")
    session.insert("link", [(n, n + 1) for n in range(length)])
    session.commit()
    return session["reachable"].why((0, length))


def test_a_proof_three_thousand_steps_deep() -> None:
    proof = _chain(3_000)
    assert (proof.height, proof.shortest, len(proof.facts())) == (3_000, True, 3_000)
    cut = proof_text(proof).splitlines()
    assert len(cut) < 60
    assert cut[-1] == "5968 of 6000 rows are not shown."
    whole = proof_text(proof, None)
    assert all(f"link({n}, {n + 1})" in whole for n in range(3_000))
    assert "not shown" not in whole
    assert len(whole) < 1_000_000
    assert _texts(proof_svg(proof))[-1] == "5800 more rows not shown"
    assert len(list(ElementTree.fromstring(proof_svg(proof, None)).iter(f"{SVG}rect"))) == 6_001
    assert "5800 more rows" in proof_dot(proof)
    assert len(json.dumps(proof.to_json())) > 100_000


def test_a_row_used_twice_is_proved_once() -> None:
    session = whorl_package.open("a(X) :- f(X).\nb(X, Y) :- a(X), a(Y).\nc(X) :- b(X, X), a(X).")
    session.insert("f", [(1,)])
    session.commit()
    proof = session["c"].why((1,))
    assert str(proof).splitlines()[:5] == [
        "c(1)   by rule 3 (line 3)",
        "├─ b(1, 1)   by rule 2 (line 2)",
        "│  ├─ a(1)   by rule 1 (line 1)",
        "│  │  └─ f(1)",
        "│  └─ a(1)   shown above",
    ]
    assert "stroke-dasharray" in proof_svg(proof)
    assert "n1 -> n2 [style=dashed];" in proof_dot(proof)


def test_proofs_that_double_with_each_step_stay_small() -> None:
    rules = "".join(f"p{n + 1}(X) :- p{n}(X), p{n}(Y), X = Y.\n" for n in range(60))
    session = whorl_package.open(f"p0(X) :- f(X).\n{rules}")
    session.insert("f", [(1,)])
    session.commit()
    proof = session["p60"].why((1,))
    assert (proof.height, len(proof.nodes)) == (61, 62)


def test_conditions_negation_and_aggregates() -> None:
    Path("shop.dl").write_text(
        """sale("x", 3, "m"). sale("x", 4, "n"). sale("x", 4, "o"). banned("m").
total(X, sum<P>) :- sale(X, P, S), not banned(S).
best(X, max<P>) :- sale(X, P, _).
large(X) :- total(X, T), best(X, B), T > 2 * B - 1.
"""
    )
    assert _why("shop.dl", 'large("x")') == (
        """large("x")   by rule 3 (line 4)
├─ total("x", 8)   sum of 2 contributions by rule 1 (line 2)
│  ├─ contributes 4
│  │  ├─ sale("x", 4, "n")
│  │  └─ not banned("n")
│  └─ contributes 4
│     ├─ sale("x", 4, "o")
│     └─ not banned("o")
├─ best("x", 4)   max, by rule 2 (line 3)
│  └─ sale("x", 4, "n")
└─ 8 > 2 * 4 - 1   (T > 2 * B - 1)

rule 1 (line 2): total(X, sum<P>) :- sale(X, P, S), not banned(S).
rule 2 (line 3): best(X, max<P>) :- sale(X, P, _).
rule 3 (line 4): large(X) :- total(X, T), best(X, B), T > 2 * B - 1.
"""
    )


def test_many_contributions_are_counted() -> None:
    session = whorl_package.open("n(count<X>) :- f(X).")
    session.insert("f", [(n,) for n in range(250)])
    session.commit()
    proof = session["n"].why((250,))
    assert (len(proof.root.uses), proof.root.left_out) == (100, 150)
    assert proof.root.reason == "count of 250 contributions by rule 1 (line 1)"
    assert "… 150 more contributions" in proof_text(proof, None)


def test_facts_say_how_long_they_live() -> None:
    Path("ride.dl").write_text(
        """STREAM ride(Ts: Timestamp, A: String, B: String) WINDOW(60, 20).
RELATION zone(A: String) TTL 50.
trip(Ts, A, B) <- ride(Ts, A, B), zone(A).
"""
    )
    Path("ride.deltas").write_text('@1\n+ride(5, "a", "b")\n+zone("a")\n@2 time=40\n')
    assert _why("ride.dl", 'trip("a", "b")', "--deltas", "ride.deltas").splitlines()[:3] == [
        'trip("a", "b")   by rule 1 (line 3)',
        '├─ ride("a", "b")   at 5, until 80',
        '└─ zone("a")   at 5, until 55',
    ]
    out = json.loads(_why("ride.dl", 'trip("a", "b")', "--deltas", "ride.deltas", "--format", "json"))
    assert out["until"] == 55


def test_restricted_copies_of_relations_are_not_shown() -> None:
    Path("reach.dl").write_text(REACH + 'query reachable("a", Y).\n')
    out = _why("reach.dl", 'reachable("a", "c")', "--deltas", "net.deltas", "--epoch", "1")
    assert "^" not in out
    # What the query does not ask for is computed for the question.
    out = _why("reach.dl", 'reachable("b", "c")', "--deltas", "net.deltas", "--epoch", "1")
    assert out.splitlines()[0] == 'reachable("b", "c")   by rule 1 (line 2)'


def test_a_query_that_hides_columns() -> None:
    Path("reach.dl").write_text(REACH + "query reachable(_, Y).\n")
    assert _why("reach.dl", 'reachable("c")', "--deltas", "net.deltas", "--epoch", "1").splitlines()[:2] == [
        'reachable("c")   by query (line 4)',
        '└─ reachable("b", "c")   by rule 1 (line 2)',
    ]
    assert whorl("why", "reach.dl", 'reachable("x")', "--deltas", "net.deltas", "--not").out.splitlines()[0] == (
        'reachable("x") is not there.'
    )


def test_why_not() -> None:
    assert _why("reach.dl", 'reachable("a", "x")', "--deltas", "net.deltas", "--epoch", "2", "--not") == (
        """reachable("a", "x") is not there.

rule 1 (line 2): reachable(X, Y) :- link(X, Y).
  fails  link("a", "x"): no row fits

rule 2 (line 3): reachable(X, Y) :- link(X, Z), reachable(Z, Y).
  holds  link("a", "b")
  fails  reachable("b", "x"): no row fits
"""
    )
    out = json.loads(_why("reach.dl", 'reachable("x", _)', "--deltas", "net.deltas", "--not", "--format", "json"))
    assert [(rule["failed"], rule["bound"]) for rule in out["rules"]] == [
        ('link("x", Y)', {"X": '"x"'}),
        ('link("x", Z)', {"X": '"x"'}),
    ]


def test_why_not_names_what_differs() -> None:
    Path("odd.dl").write_text(
        """f(1). f(2). g(2). w("a", 7). w("a", 9).
p(1, X) :- f(X), not g(X), X < 1.
p(2, X) :- f(X), not g(X).
p(X, X + 1) :- f(X).
best(X, min<C>) :- w(X, C).
"""
    )
    assert _why("odd.dl", "p(1, 1)", "--not").split("\n\n")[1:] == [
        "rule 1 (line 2): p(1, X) :- f(X), not g(X), X < 1.\n"
        "  holds  f(1)\n  holds  not g(1)\n  fails  1 < 1: it does not hold",
        "rule 2 (line 3): p(2, X) :- f(X), not g(X).\n  Its head does not fit: column 1 is 2, not 1.",
        "rule 3 (line 4): p(X, X + 1) :- f(X).\n  holds  f(1)\n  Everything holds, but gives p(1, 2).\n",
    ]
    assert "fails  not g(2): g(2) is there" in _why("odd.dl", "p(2, 2)", "--not")
    out = _why("odd.dl", 'best("a", 9)', "--not")
    assert 'Its group has another value: best("a", 7).' in out
    assert "contributes 9 to the group" in out


def test_why_not_tells_what_became_of_a_fact() -> None:
    Path("s.dl").write_text("STREAM s(Ts: Timestamp, A: Integer) WINDOW(10, 5).\np(Ts, A) <- s(Ts, A).\n")
    Path("s.deltas").write_text("@1\n+s(1, 1)\n@2 time=20\n@3\n+s(21, 2)\n")
    for row, note in (
        ("s(1)", "this one was there, and was deleted, replaced, or has expired."),
        ("s(2)", "this one has arrived, and views see it with the next slide."),
        ("s(3)", "this one has not arrived."),
        ("s(0, 3)", "this one has not arrived."),
    ):
        assert note in _why("s.dl", row, "--deltas", "s.deltas", "--not")
    assert "no fact there fits" in _why("s.dl", "s(_)", "--deltas", "s.deltas", "--not")


def test_why_not_bounds_its_work() -> None:
    session = whorl_package.open("p(X) :- f(X, Y), f(Y, Z), g(Z).\nq(X) :- g(X).")
    session.insert("f", [(x, y) for x in range(60) for y in range(60)])
    session.insert("g", [(99,)])
    session.commit()
    missing = session["p"].why_not((1,))
    assert (missing.rules[0].tried, missing.rules[0].complete) == (1_000, False)
    assert missing.rules[0].held == ("f(1, 0)", "f(0, 0)")
    assert missing.rules[0].failed == "g(0)"
    assert "first of 1000 ways that come so far and perhaps more" in str(missing)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (['reachable("a", "z")'], 1, 'E647 reachable("a", "z") is not there\n  Hint: Ask with --not why.'),
        (['reachable("b", "c")', "--not"], 1, 'E648 reachable("b", "c") is there\n  Hint: Leave out --not to see why.'),
        (["p(X) :- q(X)"], 1, 'E641 "p(X) :- q(X)" is not one row'),
        (['reachable("a", f(_))'], 1, "E642 a value is expected here"),
        (["reach(1, 2)"], 1, 'E643 the program has no relation or view "reach"'),
        (['reachable("a")'], 1, 'E644 "reachable" has 2 columns, not 1'),
        (['reachable("a", 2)'], 1, 'E645 column 2 of "reachable" holds a String, not an Integer'),
        (['reachable("a"'], 1, "E101"),
        (['reachable("b", "c")', "--output", "no/such/folder"], 1, 'E626 "no/such/folder" cannot be written'),
        (['reachable("b", "c")', "--format", "pdf"], 2, "pdf is none of text, json, dot, svg"),
        (['reachable("b", "c")', "--format", "svg", "--not"], 2, "only a proof can be drawn"),
        (['reachable("b", "c")', "--input", "link=x.csv"], 2, "not both"),
        (['reachable("b", "c")', "--strategy", "reference"], 2, "keeps nothing to explain"),
    ],
)
def test_questions_that_have_no_answer(arguments: list[str], code: int, message: str) -> None:
    run = whorl("why", "reach.dl", *arguments, "--deltas", "net.deltas")
    assert (run.code, run.out) == (code, "")
    assert message in " ".join(run.err.split("\n│")) or message in run.err


def test_a_malformed_input_option() -> None:
    run = whorl("why", "reach.dl", 'reachable("b", "c")', "--input", "links.csv")
    assert run.code == 2
    assert "REL=PATH" in run.err


def test_an_epoch_that_is_refused_says_where() -> None:
    Path("bad.deltas").write_text('@1\n+link("a", "b")\n@2\n+link("a")\n')
    run = whorl("why", "reach.dl", 'reachable("a", "b")', "--deltas", "bad.deltas")
    assert run.code == 1
    assert '  4 | +link("a")' in run.err


def test_python_sessions() -> None:
    session = whorl_package.open(REACH)
    session.insert("link", [("a", "b"), ("b", "c")])
    session.commit()
    view = session["reachable"]
    assert view.why(("a", "c")).height == 2
    assert view.why(["a", None]).root.row == ("a", "b")
    assert view.why_not(("c", None)).rules[0].failed == 'link("c", Y)'
    for row, code in ((("a",), "E644"), (("a", 3), "E645"), (("c", "a"), "E647"), ("a", "E644")):
        with pytest.raises(whorl_package.UserError) as refused:
            view.why(row)
        assert refused.value.code == code
    with pytest.raises(whorl_package.UserError) as there:
        view.why_not(("a", "b"))
    assert there.value.code == "E648"
    kept_none = whorl_package.open(REACH, strategy="reference")
    with pytest.raises(whorl_package.UserError) as unexplained:
        kept_none["reachable"].why(("a", "b"))
    assert unexplained.value.code == "E649"


def test_partitions_answer_together() -> None:
    session = whorl_package.open(REACH, partitions=3)
    session.insert("link", [(n, n + 1) for n in range(20)])
    session.commit()
    view = session["reachable"]
    assert view.why((0, 20)).height == 20
    assert view.why((None, None)).root.row == (0, 1)
    assert view.why_not((5, 5)).rules[1].held == ("link(5, 6)",)
    session.insert("link", [(20, 0)])  # the session goes on undisturbed
    assert len(session.commit()["reachable"].inserted) == 231


def _golden(case: str, row: str, *more: str) -> list[str]:
    folder = GOLDEN / case
    return _why(str(folder / "program.dl"), row, "--deltas", str(folder / "input.deltas"), *more).splitlines()


def test_examples_of_the_papers() -> None:
    # VIEWS: without e -> f, a reaches h by way of c and f, and e does not reach it.
    assert _golden("views/reach_right", 'reach("a", "h")', "--epoch", "2")[:6] == [
        'reach("a", "h")   by rule 2 (line 2)',
        '├─ edge("a", "c")',
        '└─ reach("c", "h")   by rule 2 (line 2)',
        '   ├─ edge("c", "f")',
        '   └─ reach("f", "h")   by rule 1 (line 1)',
        '      └─ edge("f", "h")',
    ]
    assert _golden("views/reach_right", 'reach("e", "h")', "--epoch", "2", "--not")[5:] == [
        "rule 2 (line 2): reach(Source, Destination) :- edge(Source, Intermediate), reach(Intermediate, Destination).",
        '  holds  edge("e", "d")',
        '  fails  reach("d", "h"): no row fits',
    ]
    assert _golden("views/peer", 'peer("ann", _)', "--epoch", "1")[3:5] == [
        '├─ not supervisor("ann", "ann")',
        '└─ not supervisor("ann", "ann")',
    ]
    # REGIONS: C -> B is redundant. With it the proof is one step, without it two.
    assert _golden("regions/reachability", 'reachable("C", "B")', "--epoch", "1")[0].endswith("by rule 1 (line 1)")
    assert _golden("regions/reachability", 'reachable("C", "B")', "--epoch", "2")[:4] == [
        'reachable("C", "B")   by rule 2 (line 2)',
        '├─ link("C", "A")',
        '└─ reachable("A", "B")   by rule 1 (line 1)',
        '   └─ link("A", "B")',
    ]
