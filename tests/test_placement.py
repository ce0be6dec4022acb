"""Where relations live: the classic programs, with the placement that `explain` prints."""

from __future__ import annotations

import pytest

from tests.golden_cases import GOLDEN
from whorl.diagnostics.source import Source
from whorl.logical.compile import compile_program
from whorl.physical.explain import explain_physical, explain_placement
from whorl.physical.lower import lower_plan
from whorl.physical.plan import PhysicalPlan

LINK = "RELATION link(X: Integer, Y: Integer).\n"
EDGE = "RELATION edge(X: Integer, Y: Integer, C: Integer).\n"
RIGHT = "reach(X, Y) :- link(X, Y).\nreach(X, Y) :- link(X, Z), reach(Z, Y).\n"
LEFT = "reach(X, Y) :- link(X, Y).\nreach(X, Y) :- reach(X, Z), link(Z, Y).\n"

PLACEMENTS = {
    "reachability keeps its target": (
        LINK + RIGHT,
        """
  link: copied: no column of it serves reach (rules at lines 2 and 3)
  reach: split by column 2 (Y): the recursion keeps it""",
    ),
    "from the left it keeps its source": (
        LINK + LEFT,
        """
  link: copied: no column of it serves reach (rules at lines 2 and 3)
  reach: split by column 1 (X): the recursion keeps it""",
    ),
    "both sides recursive keep nothing": (
        LINK + "reach(X, Y) :- link(X, Y).\nreach(X, Y) :- reach(X, Z), reach(Z, Y).\n",
        """
  link: copied: reach (rule at line 2) needs all of it
  reach: copied: no argument is preserved by the rule at line 3""",
    ),
    "cheapest paths keep their source": (
        EDGE + "cheap(X, Y, mmin<C>) :- edge(X, Y, C).\n"
        "cheap(X, Y, mmin<C>) :- cheap(X, Z, A), edge(Z, Y, B), C = A + B.\n",
        """
  cheap: split by column 1 (X): the recursion keeps it
  edge: copied: no column of it serves cheap (rules at lines 2 and 3)""",
    ),
    "same generation keeps nothing": (
        "RELATION parent(X: Integer, Y: Integer).\nsame(X, Y) :- parent(X, P), parent(Y, P).\n"
        "same(X, Y) :- parent(X, P), same(P, Q), parent(Y, Q).\n",
        """
  parent: copied: same (rule at line 2) needs all of it
  same: copied: no argument is preserved by the rule at line 3""",
    ),
    "components keep nothing but the value that is chosen": (
        LINK + "part(X, min<X>) :- link(X, _).\npart(Y, min<L>) :- part(X, L), link(X, Y).\n",
        """
  link: copied: part (rule at line 2) needs all of it
  part: copied: no argument is preserved by the rule at line 3""",
    ),
    "negation is aligned": (
        LINK + RIGHT + "RELATION node(X: Integer).\ncut(X, Y) :- node(X), node(Y), not reach(X, Y).\n",
        """
  cut: split by column 2 (Y): nothing else reads it
  link: copied: no column of it serves reach (rules at lines 2 and 3)
  node: copied: no column of it serves cut (rule at line 5)
  reach: split by column 2 (Y): the recursion keeps it""",
    ),
    "groups that the recursion keeps": (
        LINK + LEFT + "many(X, count<Y>) :- reach(X, Y).\n",
        """
  link: copied: no column of it serves reach (rules at lines 2 and 3)
  many: split by column 1 (X): nothing else reads it
  many^2^2: split by column 1 (X): its readers are split alike
  reach: split by column 1 (X): the recursion keeps it""",
    ),
    "groups that it does not keep": (
        LINK + RIGHT + "many(X, count<Y>) :- reach(X, Y).\nquery many(X, N).\n",
        """
  link: copied: reach (rule at line 2) needs all of it
  many: split by column 1 (X): nothing else reads it
  many^2^2: split by column 1 (X): its readers are split alike
  reach: copied: no column of it serves many (rule at line 4)""",
    ),
    "base relations are split with their readers": (
        "RELATION stock(Item: String, N: Integer).\nRELATION price(Item: String, P: Integer).\n"
        "worth(I, sum<W>) :- stock(I, N), price(I, P), W = N * P.\n",
        """
  price: split by column 1 (Item): its readers are split alike
  stock: split by column 1 (Item): its readers are split alike
  worth: split by column 1 (I): nothing else reads it
  worth^2^0: split by column 1 (I): its readers are split alike""",
    ),
    "a key must hold the column": (
        "RELATION zone(Id: String KEY, Place: String).\nin_place(P, Z) :- zone(Z, P).\nat(P) :- zone(_, P).\n",
        """
  at: split by column 1 (P): nothing else reads it
  in_place: split by column 2 (Z): nothing else reads it
  zone: copied: no column of it serves at (rule at line 3)""",
    ),
    "a key may be the column": (
        "RELATION zone(Id: String KEY, Place: String).\nin_place(Z, P) :- zone(Z, P).\n",
        """
  in_place: split by column 1 (Z): nothing else reads it
  zone: split by column 1 (Id): its readers are split alike""",
    ),
    "a window may count all arrivals": (
        "STREAM seen(T: Timestamp, X: Integer) WINDOW(COUNT 5).\nlast(X) :- seen(_, X).\n",
        """
  last: split by column 1 (X): nothing else reads it
  seen: copied: its window counts all arrivals""",
    ),
    "Booleans come last": (
        "RELATION flag(On: Boolean, X: Integer).\nshown(On, X) :- flag(On, X).\n",
        """
  flag: split by column 2 (X): its readers are split alike
  shown: split by column 2 (X): nothing else reads it""",
    ),
    "nothing to split by": (
        "RELATION ready().\ngo() :- ready().\n",
        """
  go: copied: it has no column to split by
  ready: copied: it has no column to split by""",
    ),
    "an Integer that becomes a Float has another owner": (
        "RELATION a(X: Integer).\nRELATION b(X: Float).\nboth(X) :- a(X).\nboth(X) :- b(X).\n",
        """
  a: copied: no column of it serves both (rule at line 3)
  b: split by column 1 (X): its readers are split alike
  both: split by column 1 (X): nothing else reads it""",
    ),
    "equal variables carry the value": (
        LINK + "loop(Y) :- link(X, Y), X = Y.\n",
        """
  link: split by column 1 (X): its readers are split alike
  loop: split by column 1 (Y): nothing else reads it""",
    ),
}


def _plan(text: str) -> PhysicalPlan:
    return lower_plan(compile_program(Source("test.dl", text)))


@pytest.mark.parametrize("name", PLACEMENTS)
def test_placement(name: str) -> None:
    text, expected = PLACEMENTS[name]
    assert "\n".join(explain_placement(_plan(text))) == f"Placement{expected}"


def test_explain_ends_with_the_placement() -> None:
    plan = _plan(LINK + RIGHT)
    text = explain_physical(plan)
    assert text.endswith("\n".join(explain_placement(plan)))


def test_ranks_of_papers_keep_nothing() -> None:
    text = (GOLDEN / "streamlog" / "paper_rank" / "program.dl").read_text(encoding="utf-8")
    placement = _plan(text).placement
    assert {name: placed.column for name, placed in placement.items() if "^" not in name} == dict.fromkeys(
        ("prank", "pub", "ref")
    )
    assert placement["prank"].reason == "no argument is preserved by the rule at line 6"


def test_who_checks_what_it_derives() -> None:
    """Only rules whose body tells no owner: the first of the two, not the recursive one."""
    (stratum,) = _plan(LINK + RIGHT).strata
    assert [rule.owned for rule in stratum.rules] == [1, None]


def test_many_relations_do_not_take_long() -> None:
    """A chain of relations whose columns all change places has very many splits, and is given up in time."""
    rules = "".join(f"p{n + 1}(B, C, D, A) :- p{n}(A, B, C, D), p{n}(D, C, B, A).\n" for n in range(40))
    plan = _plan("RELATION p0(A: Integer, B: Integer, C: Integer, D: Integer).\n" + rules)
    assert set(plan.placement) == {f"p{n}" for n in range(41)}
