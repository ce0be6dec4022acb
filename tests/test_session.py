"""`whorl.open`: sessions against the reference, every kind of data, every refusal."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import whorl
from tests.golden_cases import Case, cases
from whorl.cli.files import read_source
from whorl.diagnostics.errors import ProgramErrors, UserError
from whorl.model.limits import Limits
from whorl.model.values import NIL, list_value
from whorl.oracle.session import Oracle
from whorl.syntax.deltas import parse_deltas

REACH = """\
RELATION link(From: String, To: String).
reachable(X, Y) :- link(X, Y).
reachable(X, Y) :- link(X, Z), reachable(Z, Y).
"""
TYPES = """\
RELATION item(Id: Integer, Price: Float, Name: String, Open: Boolean, Tags: List, Place: Term).
copy(A, B, C, D, E, F) :- item(A, B, C, D, E, F).
"""
STREAM = """\
STREAM seen(At: Timestamp, Who: String) WINDOW(60).
here(W) :- seen(_, W).
"""
ROW = (1, 2.5, "x", True, list_value((1, "a")), whorl.Term("loc", (1, 2)))


# Against the reference


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_golden_case(case: Case) -> None:
    """The session gives the deltas and the views of the reference, epoch by epoch, and refuses the same."""
    path, functions = case.folder / "program.dl", case.functions_path() or ()
    options: dict[str, Any] = {"functions": functions, "limits": Limits(**case.options())}
    with whorl.open(path, **options) as session, whorl.open(path, host=Oracle, **options) as reference:
        for epoch in parse_deltas(read_source(case.folder / "input.deltas")):
            found, expected = (_apply(each, epoch) for each in (session, reference))
            assert found == expected
            for view in session.views if isinstance(found, dict) else ():
                rows = reference[view].rows()
                assert session[view].rows() == rows
                assert list(session[view]) == rows
                assert len(session[view]) == len(rows)
                assert all(row in session[view] for row in rows)
                assert session[view].to_arrow() == reference[view].to_arrow()


def _apply(session: Any, epoch: Any) -> object:
    """Return what an epoch did, or the codes of the errors that refuse it."""
    try:
        for change in epoch.changes:
            (session.insert if change.weight > 0 else session.delete)(change.relation, [change.row])
        return session.commit(epoch.time)
    except (UserError, ProgramErrors) as refused:
        session.discard()
        errors = refused.errors if isinstance(refused, ProgramErrors) else (refused,)
        return [error.code for error in errors]


# Programs


def test_program_as_text_and_as_path(tmp_path: Path) -> None:
    path = tmp_path / "reach.dl"
    path.write_text(REACH, encoding="utf-8")
    for program in (path, str(path), REACH, REACH.replace("\n", " "), "copy(X) :- item(X).", 'fact("a").'):
        with whorl.open(program) as session:
            assert session.views or "fact" in str(program)


@pytest.mark.parametrize("program", ["missing.dl", "missing", Path("missing.txt")])
def test_no_such_program(program: str | Path) -> None:
    with pytest.raises(UserError, match="E701"):
        whorl.open(program)


def test_a_wrong_program_names_its_place() -> None:
    with pytest.raises(ProgramErrors) as raised:
        whorl.open("a(X, Y) :- n(X).")
    assert "E310" in str(raised.value)


@pytest.mark.parametrize("strategy", ["auto", "recompute", "dred", "support", "reference"])
def test_strategies(strategy: str) -> None:
    session = whorl.open(REACH, strategy=strategy)
    session.insert("link", [("a", "b"), ("b", "c")])
    session.commit()
    session.delete("link", [("b", "c")])
    assert session.commit()["reachable"].deleted == (("a", "c"), ("b", "c"))


def test_no_such_strategy() -> None:
    with pytest.raises(UserError, match="E401"):
        whorl.open(REACH, strategy="magic")


def test_partitions() -> None:
    session = whorl.open(REACH, partitions=3)
    session.insert("link", [(letter, chr(ord(letter) + 1)) for letter in "abcdef"])
    session.commit()
    assert len(session["reachable"]) == 21
    assert session["reachable"].rows()[0] == ("a", "b")
    with pytest.raises(UserError, match="E681"):
        whorl.open(REACH, partitions=0)


# Data in


LINKS = [("a", "b"), ("b", "c")]
NAMED = {"To": ["b", "c"], "From": ["a", "b"]}
FORMS: dict[str, Any] = {
    "tuples": LINKS,
    "lists": [list(row) for row in LINKS],
    "dicts": [{"To": to, "From": start, "More": 1} for start, to in LINKS],
    "generator": (row for row in LINKS),
    "set": set(LINKS),
    "numpy": np.array(LINKS),
    "arrow": pa.table(NAMED),
    "arrow in another case": pa.table({name.lower(): column for name, column in NAMED.items()}),
    "arrow by position": pa.table({"source": NAMED["From"], "target": NAMED["To"]}),
    "arrow with more columns": pa.table({"More": [1, 2], **NAMED}),
    "record batch": pa.RecordBatch.from_pydict(NAMED),
    "reader": pa.table(NAMED).to_reader(),
    "arrow in chunks": pa.concat_tables([pa.table(NAMED).slice(0, 1), pa.table(NAMED).slice(1)]),
    "dictionary": pa.table({name: pa.array(column).dictionary_encode() for name, column in NAMED.items()}),
    "large strings": pa.table({name: pa.array(column, pa.large_string()) for name, column in NAMED.items()}),
    "pandas": pd.DataFrame(NAMED),
    "pandas with labels": pd.DataFrame(NAMED, index=["x", "y"]),
    "pandas categories": pd.DataFrame(NAMED).astype("category"),
    "polars": pl.DataFrame(NAMED),
    "polars categories": pl.DataFrame(NAMED, schema_overrides={"To": pl.Categorical}),
}


@pytest.mark.parametrize("form", FORMS)
def test_data(form: str) -> None:
    session = whorl.open(REACH)
    session.insert("link", FORMS[form])
    assert session.commit()["reachable"].inserted == (("a", "b"), ("a", "c"), ("b", "c"))


def test_no_rows() -> None:
    session = whorl.open(REACH)
    empty: list[Any] = [[], pa.table({"From": [], "To": []}), pd.DataFrame({"From": [], "To": []})]
    for data in empty:
        session.insert("link", data)
        session.delete("link", data)
    assert not session.commit()["reachable"]


def test_rows_without_attributes() -> None:
    session = whorl.open("alarm :- smoke.")
    session.insert("smoke", [()])
    assert session.commit()["alarm"].inserted == ((),)
    assert session["alarm"].rows() == [()]
    assert session["alarm"].to_arrow().num_columns == 0
    assert () in session["alarm"]
    assert len(session["alarm"]) == 1


def test_undeclared_relations_go_by_position_and_learn_their_types() -> None:
    session = whorl.open("copy(X, Y) :- item(X, Y).")
    session.insert("item", pd.DataFrame({"p": [1, 2], "q": ["a", "b"]}))
    session.commit()
    assert session["copy"].rows() == [(1, "a"), (2, "b")]
    with pytest.raises(UserError, match="E605"):
        session.insert("item", [("x", "c")])
    with pytest.raises(UserError, match="E603"):
        session.insert("item", [{"X": 1, "Y": "c"}])


class Level(IntEnum):
    LOW = 1


@pytest.mark.parametrize(
    "row",
    [
        ROW,
        (Level.LOW, 2.5, np.str_("x"), np.bool_(True), [1, "a"], ROW[5]),
        (np.int64(1), np.float64(2.5), "x", True, (1, "a"), ROW[5]),
    ],
)
def test_every_type_from_rows(row: tuple[Any, ...]) -> None:
    session = whorl.open(TYPES)
    session.insert("item", [row])
    session.commit()
    assert session["copy"].rows() == [ROW]
    assert [type(value) for value in session["copy"].rows()[0]] == [type(value) for value in ROW]
    assert row in session["copy"]


def test_every_type_through_arrow_and_back() -> None:
    session = whorl.open(TYPES)
    rows = [ROW, (-(2**63), -0.5, 'quo"te', False, NIL, whorl.Term("f", (list_value(("é",)),)))]
    session.insert("item", rows)
    session.commit()
    table = session["copy"].to_arrow()
    assert [str(field.type) for field in table.schema] == ["int64", "double", "string", "bool", "string", "string"]
    assert table.column("E").to_pylist() == ["[]", '[1, "a"]']
    again = whorl.open(TYPES)
    again.insert("item", table)
    again.commit()
    assert again["copy"].rows() == session["copy"].rows() == rows[::-1]
    frame = session["copy"].to_pandas()
    assert list(frame.columns) == ["A", "B", "C", "D", "E", "F"]
    assert frame["A"].tolist() == [-(2**63), 1]


def test_arrow_lists() -> None:
    session = whorl.open("RELATION item(Tags: List).\ncopy(X) :- item(X).")
    session.insert("item", pa.table({"Tags": [[1, 2], []]}))
    session.insert("item", pl.DataFrame({"Tags": [[["a"], ["b", "c"]]]}))
    session.commit()
    letters = list_value((list_value(("a",)), list_value(("b", "c"))))
    assert set(session["copy"].rows()) == {(NIL,), (list_value((1, 2)),), (letters,)}


def test_integers_become_floats_where_the_column_holds_floats() -> None:
    session = whorl.open("RELATION item(Price: Float).\ncopy(X) :- item(X).")
    session.insert("item", [(1,), (2.5,)])
    session.insert("item", pa.table({"Price": [3]}))
    session.commit()
    assert repr(session["copy"].rows()) == "[(1.0,), (2.5,), (3.0,)]"
    assert (1,) in session["copy"]


NOON = datetime(2024, 5, 1, 12, 0, tzinfo=UTC)
MOMENTS: dict[str, Any] = {
    "integer": [(1714564800, "ann")],
    "datetime": [(NOON, "ann")],
    "datetime without a zone": [(NOON.replace(tzinfo=None), "ann")],
    "arrow": pa.table({"At": [NOON], "Who": ["ann"]}),
    "arrow nanoseconds": pa.table({"At": pa.array([NOON], pa.timestamp("ns", "Europe/Rome")), "Who": ["ann"]}),
    "pandas": pd.DataFrame({"At": [pd.Timestamp(NOON)], "Who": ["ann"]}),
    "polars": pl.DataFrame({"At": [NOON], "Who": ["ann"]}),
}


@pytest.mark.parametrize("form", MOMENTS)
def test_timestamps(form: str) -> None:
    session = whorl.open(STREAM)
    session.insert("seen", MOMENTS[form])
    session.commit()
    assert session.time == 1714564800
    assert session["here"].rows() == [("ann",)]


def test_dates() -> None:
    session = whorl.open("RELATION day(At: Timestamp).\ncopy(X) :- day(X).")
    session.insert("day", [(date(1970, 1, 2),)])
    session.insert("day", pa.table({"At": [date(1970, 1, 3)]}))
    session.commit()
    assert session["copy"].rows() == [(86400,), (172800,)]


def test_event_time_moves_by_commit() -> None:
    session = whorl.open(STREAM)
    session.insert("seen", [(0, "ann")])
    session.commit()
    assert session.commit(time=59) == {"here": whorl.Delta()}
    assert session.commit(time=datetime(1970, 1, 1, 0, 1, tzinfo=UTC))["here"].deleted == (("ann",),)
    with pytest.raises(UserError) as raised:
        session.commit(time=10)
    assert (raised.value.code, raised.value.epoch) == ("E505", 4)


@pytest.mark.parametrize("time", ["noon", 1.5, True, 2**63, NOON.replace(microsecond=1)])
def test_what_is_no_event_time(time: Any) -> None:
    session = whorl.open(STREAM)
    session.insert("seen", [(0, "ann")])
    with pytest.raises(UserError) as raised:
        session.commit(time)
    assert str(raised.value) == f"E610 event time is whole seconds or a datetime, not {time!r}"
    assert session.commit(time=5)["here"].inserted == (("ann",),), "nothing was tried, so nothing is dropped"


# Refusals


def _refused(program: str, relation: str, data: Any) -> str:
    session = whorl.open(program)
    with pytest.raises(UserError) as raised:
        session.insert(relation, data)
    return str(raised.value)


NO_VALUE = """\
E602 column "To" of "link" has no value in row 2
  Hint: Leave such rows out, or fill in a value."""
REFUSED: dict[str, tuple[str, str, Any, str]] = {
    "a misspelt relation": (
        REACH,
        "lnik",
        [],
        'E503 the program has no relation "lnik"\n  Hint: Did you mean "link"?',
    ),
    "a derived relation": (
        REACH,
        "reachable",
        [],
        'E504 relation "reachable" is derived\n  Detail: Only base relations take changes.\n'
        "  Hint: Change the facts it follows from.",
    ),
    "None": (REACH, "link", [("a", "b"), ("b", None)], NO_VALUE),
    "null": (REACH, "link", pa.table({"From": ["a", "b"], "To": ["b", None]}), NO_VALUE),
    "missing in pandas": (REACH, "link", pd.DataFrame({"From": ["a", "b"], "To": ["b", None]}), NO_VALUE),
    "null in polars": (REACH, "link", pl.DataFrame({"From": ["a", "b"], "To": ["b", None]}), NO_VALUE),
    "another type": (
        REACH,
        "link",
        [("a", "b"), ("b", 3)],
        'E605 column "To" of "link" holds a String, not 3\n  Detail: It stands in row 2.',
    ),
    "another type in a table": (
        REACH,
        "link",
        pa.table({"From": ["a"], "To": [3]}),
        'E605 column "To" of "link" holds a String, not 3\n  Detail: It stands in row 1.',
    ),
    "a number beyond 64 bits": (
        "copy(X) :- item(X).",
        "item",
        [(1,), (2**63,)],
        'E605 column 1 of "item" holds a value of the language, not 9223372036854775808\n  Detail: It stands in row 2.',
    ),
    "a number beyond 64 bits in a table": (
        "copy(X) :- item(X).",
        "item",
        pa.table({"x": pa.array([1, 2**63], pa.uint64())}),
        'E605 column 1 of "item" holds a value of the language, not 9223372036854775808\n  Detail: It stands in row 2.',
    ),
    "not a number": (
        "RELATION item(X: Float).\ncopy(X) :- item(X).",
        "item",
        [(1.0,), (float("nan"),)],
        'E605 column "X" of "item" holds a Float, not nan\n  Detail: It stands in row 2.',
    ),
    "infinity in a table": (
        "RELATION item(X: Float).\ncopy(X) :- item(X).",
        "item",
        pa.table({"X": [1.0, float("inf")]}),
        'E605 column "X" of "item" holds a Float, not inf\n  Detail: It stands in row 2.',
    ),
    "a Boolean for an integer": (
        "RELATION item(X: Integer).\ncopy(X) :- item(X).",
        "item",
        [(1,), (True,)],
        'E605 column "X" of "item" holds an Integer, not true\n  Detail: It stands in row 2.',
    ),
    "a fraction of a second": (
        STREAM,
        "seen",
        pa.table({"At": [NOON, NOON.replace(microsecond=500000)], "Who": ["a", "b"]}),
        'E605 column "At" of "seen" holds a Timestamp, not 2024-05-01 12:00:00.500000+00:00 with...\n'
        "  Detail: It stands in row 2.",
    ),
    "a date for a string": (
        REACH,
        "link",
        pa.table({"From": ["a"], "To": [date(2024, 5, 1)]}),
        'E605 column "To" of "link" holds a String, not 2024-05-01\n  Detail: It stands in row 1.',
    ),
    "an object": (
        REACH,
        "link",
        [("a", b"b")],
        'E605 column "To" of "link" holds a String, not b\'b\'\n  Detail: It stands in row 1.',
    ),
    "text for a term": (
        TYPES,
        "item",
        pa.table({"Id": [1], "Price": [1.0], "Name": [""], "Open": [True], "Tags": ["[1"], "Place": ["f(1)"]}),
        'E605 column "Tags" of "item" holds a List, not "[1"\n  Detail: It stands in row 1.',
    ),
    "a value too many": (
        REACH,
        "link",
        [("a", "b"), ("a", "b", "c")],
        "E501 \"link\" has 2 attributes, not 3\n  Detail: Row: link('a', 'b', 'c').",
    ),
    "a string for a row": (
        REACH,
        "link",
        ["ab"],
        "E604 row 1 for \"link\" is 'ab', not a row\n"
        '  Hint: Give a tuple with a value for each attribute, as ("a",), or a dict by column name.',
    ),
    "other keys": (
        REACH,
        "link",
        [{"From": "a", "To": "b"}, {"From": "a", "Too": "b"}],
        'E603 the columns of row 2 do not fit "link"\n  Detail: Found From, Too; expected From, To.\n'
        "  Hint: Name the columns From, To.",
    ),
    "other names": (
        REACH,
        "link",
        pa.table({"From": ["a"], "Too": ["b"]}),
        'E603 the columns of the table do not fit "link"\n  Detail: Found From, Too; expected From, To.\n'
        '  Hint: Add "To", or let all names agree with the declaration.',
    ),
    "too many columns": (
        REACH,
        "link",
        pa.table({"a": ["a"], "b": ["b"], "c": ["c"]}),
        'E603 the columns of the table do not fit "link"\n  Detail: Found a, b, c; expected From, To.\n'
        "  Hint: Name the columns as the program declares them.",
    ),
    "an Arrow type that no column holds": (
        REACH,
        "link",
        pa.table({"From": ["a"], "To": [{"x": 1}]}),
        'E607 column "To" of "link" has the Arrow type struct<x: int64>\n'
        "  Detail: No type of the language fits.\n  Hint: Convert it first.",
    ),
    "no rows at all": (
        REACH,
        "link",
        "a,b",
        'E608 "link" cannot take rows from a str\n'
        "  Hint: Give a list of tuples or dicts, an Arrow table, or a pandas or Polars frame.",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused(name: str) -> None:
    program, relation, data, expected = REFUSED[name]
    assert _refused(program, relation, data) == expected


def test_a_refused_call_leaves_no_trace() -> None:
    session = whorl.open(REACH)
    session.insert("link", [("a", "b")])
    with pytest.raises(UserError):
        session.insert("link", [("b", "c"), ("c", None)])
    assert session.commit()["reachable"].inserted == (("a", "b"),)


def test_a_refused_commit_drops_its_changes_and_the_session_goes_on() -> None:
    session = whorl.open("number(X) :- start(X).\nnumber(X + 1) :- number(X), X < 1000.", limits=Limits(rounds=20))
    session.insert("start", [(995,)])
    session.commit()
    before = session["number"].rows()
    session.insert("start", [(0,)])
    with pytest.raises(UserError) as raised:
        session.commit()
    assert (raised.value.code, raised.value.epoch) == ("E506", 2)
    assert session["number"].rows() == before
    session.insert("start", [(994,)])
    assert session.commit()["number"].inserted == ((994,),)
    assert session.report is not None
    assert session.report.number == 2


def test_rows_that_disagree_in_type_are_refused_by_the_commit() -> None:
    session = whorl.open("copy(X) :- item(X).")
    session.insert("item", [(1,)])
    session.insert("item", [("a",)])
    with pytest.raises(UserError, match="E502"):
        session.commit()
    session.insert("item", [("a",)])
    assert session.commit()["copy"].inserted == (("a",),)


def test_no_such_view() -> None:
    session = whorl.open(REACH)
    with pytest.raises(UserError) as raised:
        session["reach"]
    assert str(raised.value) == 'E601 the program has no view "reach"\n  Hint: Did you mean "reachable"?'
    with pytest.raises(UserError, match="E601"):
        session["link"]


def test_a_closed_session_takes_nothing() -> None:
    with whorl.open(REACH) as session:
        session.insert("link", [("a", "b")])
    for action in (session.commit, lambda: session["reachable"], lambda: session.insert("link", [])):
        with pytest.raises(UserError) as raised:
            action()
        assert str(raised.value) == "E606 the session is closed\n  Hint: Open another with whorl.open."
    assert repr(session) == "<session, closed>"


def test_pandas_need_not_be_there() -> None:
    code = (
        "import sys\nclass Without:\n    def find_spec(self, name, *rest):\n"
        "        if name == 'pandas':\n            raise ModuleNotFoundError(name=name)\n"
        "sys.meta_path.insert(0, Without())\nimport whorl\nsession = whorl.open('copy(X) :- item(X).')\n"
        "session.insert('item', [(1,)])\nsession.commit()\n"
        "try:\n    session['copy'].to_pandas()\nexcept whorl.UserError as error:\n    print(error.code)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "E609\n"


# The rest of the face


def test_changes_and_listeners() -> None:
    session = whorl.open(REACH)
    reports: list[int] = []
    session.on_commit(lambda report: reports.append(report.number))
    session.insert("link", [("a", "b")])
    changes = session.commit()
    assert session["reachable"].changes() is changes["reachable"]
    session.commit()
    assert not session["reachable"].changes()
    assert reports == [1, 2]
    assert session.report is not None
    assert session.report.work is not None
    assert repr(session) == "<session of reachable; 2 epochs, 0 changes waiting>"
    assert repr(session["reachable"]) == "<view reachable(X, Y), 1 rows>"
    assert session["reachable"].columns == ("X", "Y")


def test_order_of_changes_counts() -> None:
    session = whorl.open(REACH)
    session.insert("link", [("a", "b")])
    session.delete("link", [("a", "b")])
    assert not session.commit()["reachable"]
    session.delete("link", [("a", "b")])
    session.insert("link", [("a", "b")])
    assert session.commit()["reachable"].inserted == (("a", "b"),)


def test_what_is_not_in_a_view() -> None:
    session = whorl.open(REACH)
    session.insert("link", [("a", "b")])
    session.commit()
    strange: list[object] = [("b", "a"), ("a",), "ab", None, (1, 2), ("a", None)]
    assert [row in session["reachable"] for row in strange] == [False] * len(strange)


def test_importing_whorl_loads_nothing_heavy() -> None:
    code = "import sys, whorl\nprint(*{name.partition('.')[0] for name in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert set(done.stdout.split()).isdisjoint({"numba", "numpy", "pandas", "polars", "pyarrow", "lark"})


# Saving


ENDING_WELL = [case for case in cases() if not case.options() and not (case.folder / "expected.err").exists()]


@pytest.mark.parametrize("case", ENDING_WELL[::3], ids=lambda case: case.name)
def test_a_session_that_was_saved_goes_on(case: Case, tmp_path: Path) -> None:
    """After each epoch another session takes over; what it shows is what is expected of one that never stopped."""
    program = case.folder / "program.dl"
    functions = case.functions_path() or ()
    epochs = list(parse_deltas(read_source(case.folder / "input.deltas")))
    steady = whorl.open(program, functions=functions)
    session = whorl.open(program, functions=functions)
    for number, epoch in enumerate(epochs):
        for each in (steady, session):
            for change in epoch.changes:
                (each.insert if change.weight > 0 else each.delete)(change.relation, [change.row])
        assert session.commit(epoch.time) == steady.commit(epoch.time)
        session.save(tmp_path / f"{number % 2}")
        session.close()
        session = whorl.open(program, functions=functions, restore=tmp_path / f"{number % 2}")
        assert session.time == steady.time
        for name in steady.views:
            assert session[name].rows() == steady[name].rows()
            assert not session[name].changes()


def test_a_saved_session_in_other_partitions_and_by_another_strategy(tmp_path: Path) -> None:
    session = whorl.open(REACH, strategy="dred", partitions=2)
    session.insert("link", [("a", "b"), ("b", "c")])
    session.commit()
    session.insert("link", [("c", "d")])  # waits, and is not saved
    session.save(tmp_path)
    for options in ({}, {"strategy": "dred"}, {"strategy": "support", "partitions": 3}):
        again = whorl.open(REACH, restore=tmp_path, **options)
        assert repr(again) == "<session of reachable; 1 epochs, 0 changes waiting>"
        again.delete("link", [("b", "c")])
        assert again.commit()["reachable"].deleted == (("a", "c"), ("b", "c"))
        assert again.report is not None
        assert again.report.number == 2


def test_what_cannot_be_saved_or_restored_is_refused(tmp_path: Path) -> None:
    reference = whorl.open(REACH, strategy="reference")
    closed = whorl.open(REACH)
    closed.close()
    whorl.open(REACH).save(tmp_path / "reach")
    refusals: dict[str, list[Callable[[], object]]] = {
        "E611": [
            lambda: reference.save(tmp_path / "none"),
            lambda: whorl.open(REACH, strategy="reference", restore=tmp_path / "reach"),
            lambda: whorl.open(REACH, host=Oracle, restore=tmp_path / "reach"),
        ],
        "E606": [lambda: closed.save(tmp_path / "none")],
        "E682": [lambda: whorl.open(REACH, restore=tmp_path / "none")],
        "E684": [lambda: whorl.open(STREAM, restore=tmp_path / "reach")],
        "E686": [lambda: whorl.open(REACH).save(tmp_path / "reach" / "manifest.json" / "below")],
    }
    for code, calls in refusals.items():
        for call in calls:
            with pytest.raises(UserError) as refused:
                call()
            assert refused.value.code == code
    assert not (tmp_path / "none").exists()
