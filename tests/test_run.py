"""`whorl run`: every format in, CSV out, epochs from files, and the errors of malformed files."""

from __future__ import annotations

import gzip
import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.command_line import whorl
from whorl.diagnostics.errors import UserError
from whorl.diagnostics.source import Source
from whorl.hosts.inprocess import InProcess
from whorl.hosts.verified import Verified
from whorl.logical.compile import compile_program
from whorl.model.delta import Change, Delta, Epoch
from whorl.model.limits import Limits
from whorl.model.report import EpochReport

REACH = """\
RELATION link(From: String, To: String).
reachable(X, Y) :- link(X, Y).
reachable(X, Y) :- link(X, Z), reachable(Z, Y).
"""
TYPES = """\
RELATION item(Id: Integer, Price: Float, Name: String, Open: Boolean, At: Timestamp, Tags: List, Place: Term).
copy(A, B, C, D, T, E, F) :- item(A, B, C, D, T, E, F).
query copy(A, B, C, D, T, E, F).
"""
WINDOW = """\
STREAM seen(At: Timestamp, Who: String) WINDOW(20, 10).
RELATION known(Who: String).
here(W) :- seen(_, W), known(W).
"""
LINKS = "From,To\na,b\nb,c\n"
ANSWER = "X,Y\na,b\na,c\nb,c\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder that holds a program and its input."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "reach.dl").write_text(REACH, encoding="utf-8")
    (tmp_path / "types.dl").write_text(TYPES, encoding="utf-8")
    (tmp_path / "window.dl").write_text(WINDOW, encoding="utf-8")
    (tmp_path / "links.csv").write_text(LINKS, encoding="utf-8")
    return tmp_path


def printed(*arguments: str) -> str:
    """Run a program, and return what it prints on standard output."""
    run = whorl("run", *arguments, "--output", "-")
    assert run.code == 0, run.err
    return run.out


def refused(*arguments: str) -> str:
    """Run a program that must fail; nothing may be written."""
    run = whorl("run", *arguments, "--output", "out")
    assert (run.code, run.out) == (1, "")
    assert not Path("out").exists() or not list(Path("out").iterdir())
    return run.err


# Formats


def _csv(path: Path) -> None:
    path.with_suffix(".csv").write_text(LINKS, encoding="utf-8")


def _csv_gz(path: Path) -> None:
    with gzip.open(path.with_suffix(".csv.gz"), "wt") as file:
        file.write(LINKS)


def _jsonl(path: Path) -> None:
    path.with_suffix(".jsonl").write_text('{"To": "b", "From": "a"}\n\n{"From": "b", "To": "c"}\n', encoding="utf-8")


def _parquet(path: Path) -> None:
    pq.write_table(pa.table({"To": ["b", "c"], "From": ["a", "b"]}), path.with_suffix(".parquet"))


def _folder(path: Path) -> None:
    (path / "part").mkdir(parents=True)
    (path / "part-2.csv").write_text("To,From\nc,b\n", encoding="utf-8")
    (path / "part-1.csv").write_text("From,To\na,b\n", encoding="utf-8")
    (path / "_SUCCESS").write_text("", encoding="utf-8")


FORMATS: dict[str, tuple[Callable[[Path], None], str]] = {
    "CSV": (_csv, "data/link.csv"),
    "CSV, compressed": (_csv_gz, "data/link.csv.gz"),
    "JSON lines": (_jsonl, "data/link.jsonl"),
    "Parquet": (_parquet, "data/link.parquet"),
    "a folder": (_folder, "data/link"),
}


@pytest.mark.parametrize("name", FORMATS)
def test_formats(name: str, folder: Path) -> None:
    write, path = FORMATS[name]
    (folder / "data").mkdir()
    write(folder / "data" / "link")
    assert printed("reach.dl", "--input", f"link={path}") == ANSWER


def test_csv_with_byte_order_mark_carriage_returns_and_quotes(folder: Path) -> None:
    text = 'From,To\r\na,"b, ""the"" second\nline"\r\n\r\n"",c\r\n'
    (folder / "links.csv").write_bytes(b"\xef\xbb\xbf" + text.encode())
    lines = printed("reach.dl", "--input", "link=links.csv")
    assert lines == 'X,Y\n,c\na,"b, ""the"" second\nline"\n'


NOON = int(datetime(2024, 5, 1, 12, 0, tzinfo=UTC).timestamp())
VALUES = f"""\
A,B,C,D,T,E,F
-9223372036854775808,-0.5,,false,0,[],"f([""é""])"
1,2.0,"x,y",true,{NOON},"[1, ""a""]","loc(1, 2)"
"""


def test_every_type_in_csv_and_back(folder: Path) -> None:
    (folder / "item.csv").write_text(
        "Id,Price,Name,Open,At,Tags,Place\n"
        '1,2,"x,y",TRUE,2024-05-01T12:00:00Z,"[1, ""a""]","loc(1,2)"\n'
        '-9223372036854775808,-.5,,false,0,[],"f([""é""])"\n',
        encoding="utf-8",
    )
    assert printed("types.dl", "--input", "item=item.csv") == VALUES
    (folder / "again.csv").write_text(VALUES, encoding="utf-8")
    assert printed("types.dl", "--input", "item=again.csv") == VALUES


@pytest.mark.parametrize("moment", ['"2024-05-01T12:00:00"', '"2024-05-01T14:00:00+02:00"', str(NOON)])
def test_every_type_in_json(moment: str, folder: Path) -> None:
    first = (
        f'{{"Id": 1, "Price": 2, "Name": "x,y", "Open": true, "At": {moment}, "Tags": [1, "a"], "Place": "loc(1, 2)"}}'
    )
    second = (
        '{"Id": -9223372036854775808, "Price": -0.5, "Name": "", "Open": false, "At": 0, "Tags": [],'
        ' "Place": "f([\\"é\\"])"}'
    )
    (folder / "item.jsonl").write_text(f"{first}\n{second}\n", encoding="utf-8")
    assert printed("types.dl", "--input", "item=item.jsonl") == VALUES


def test_every_type_in_parquet(folder: Path) -> None:
    table = pa.table(
        {
            "Id": [1, -(2**63)],
            "Price": [2.0, -0.5],
            "Name": ["x,y", ""],
            "Open": [True, False],
            "At": pa.array([datetime(2024, 5, 1, 12, 0), datetime(1970, 1, 1)], pa.timestamp("ms")),
            "Tags": ['[1, "a"]', "[]"],
            "Place": ["loc(1, 2)", 'f(["é"])'],
        }
    )
    pq.write_table(table, folder / "item.parquet")
    assert printed("types.dl", "--input", "item=item.parquet") == VALUES


def test_undeclared_columns_take_their_types_from_the_first_file(folder: Path) -> None:
    (folder / "copy.dl").write_text("copy(A, B, C, D) :- item(A, B, C, D).", encoding="utf-8")
    (folder / "item.csv").write_text("w,x,y,z\n1,1,true,0x10\n2,1.5,false,2024-05-01\n", encoding="utf-8")
    assert printed("copy.dl", "--input", "item=item.csv") == ("A,B,C,D\n1,1.0,true,0x10\n2,1.5,false,2024-05-01\n")
    (folder / "more.csv").write_text("w,x,y,z\n3,2,true,a\nfour,2,true,b\n", encoding="utf-8")
    assert refused("copy.dl", "--input", "item=item.csv", "--input", "item=more.csv") == (
        'E605 column 1 of "item" holds an Integer, not "four"\n  Detail: It stands in line 3 of "more.csv".\n'
    )


def test_strings_that_look_like_dates_stay_strings(folder: Path) -> None:
    (folder / "links.jsonl").write_text('{"From": "2024-05-01", "To": "2024-05-02"}\n', encoding="utf-8")
    assert printed("reach.dl", "--input", "link=links.jsonl") == "X,Y\n2024-05-01,2024-05-02\n"


# Output


def test_snapshot_and_changes(folder: Path) -> None:
    (folder / "links.csv").write_text("epoch,op,From,To\n1,+,a,b\n1,+,b,c\n2,-,b,c\n4,+,c,d\n", encoding="utf-8")
    run = whorl("run", "reach.dl", "--input", "link=links.csv", "--output", "new/out", "--emit", "both", "--verify")
    assert (run.code, run.out) == (0, "")
    assert sorted(path.name for path in (folder / "new/out").iterdir()) == ["reachable.changes.csv", "reachable.csv"]
    assert (folder / "new/out/reachable.csv").read_text() == "X,Y\na,b\nc,d\n"
    assert (folder / "new/out/reachable.changes.csv").read_text() == (
        "epoch,op,X,Y\n1,+,a,b\n1,+,a,c\n1,+,b,c\n2,-,a,c\n2,-,b,c\n4,+,c,d\n"
    )


def test_summary(folder: Path) -> None:
    run = whorl("run", "reach.dl", "--input", "link=links.csv", "--output", "out")
    lines = [re.sub(r"\d+(\.\d+)?", "_", line) for line in run.err.splitlines()]
    assert lines[0] == "in     _ rows, _ epoch: _ inserted, _ deleted"
    assert lines[1] == "out    reachable _ rows, _ changes"
    assert lines[2] == "work   _ rounds, _ derivations, _ probes, _ matches, _ label updates"
    assert lines[3].startswith("state  _ ")
    assert lines[4] == "time   compile _ s, read _ s, input _ s, maintain _ s, output _ s, write _ s"
    assert run.err.startswith("in     2 rows, 1 epoch: 2 inserted, 0 deleted\nout    reachable 3 rows, 3 changes\n")


def test_summary_as_json() -> None:
    run = whorl("run", "reach.dl", "--input", "link=links.csv", "--output", "out", "--json")
    assert run.err == ""
    found = json.loads(run.out)
    assert found["rows"] == 2
    assert found["views"] == {"reachable": {"rows": 3, "changes": 3}}
    assert found["input"]["inserted"] == 2
    assert found["work"]["derivations"] >= 3
    printing = whorl("run", "reach.dl", "--input", "link=links.csv", "--output", "-", "--json")
    assert printing.out == ANSWER
    assert json.loads(printing.err)["rows"] == 2


def test_one_of_several_views(folder: Path) -> None:
    (folder / "two.dl").write_text(REACH + "ends(Y) :- reachable(_, Y).\n", encoding="utf-8")
    assert printed("two.dl", "--input", "link=links.csv", "--view", "ends") == "Y\nb\nc\n"
    assert "choose from reachable, ends" in whorl("run", "two.dl", "--output", "-").err
    whorl("run", "two.dl", "--input", "link=links.csv", "--output", "out", "--view", "ends")
    assert [path.name for path in (folder / "out").iterdir()] == ["ends.csv"]
    assert (
        whorl("run", "two.dl", "--output", "out", "--view", "end").err
        == 'E601 the program has no view "end"\n  Hint: Did you mean "ends"?\n'
    )


def test_a_program_without_inputs(folder: Path) -> None:
    (folder / "facts.dl").write_text('link("a", "b").\nreachable(X, Y) :- link(X, Y).\n', encoding="utf-8")
    assert printed("facts.dl") == "X,Y\na,b\n"


@pytest.mark.parametrize("options", [("--strategy", "reference"), ("--strategy", "dred"), ("--partitions", "3")])
def test_ways_to_run(options: tuple[str, ...]) -> None:
    assert printed("reach.dl", "--input", "link=links.csv", "--verify", *options) == ANSWER


def test_functions(folder: Path) -> None:
    (folder / "double.dl").write_text("out(twice(X)) :- item(X).", encoding="utf-8")
    (folder / "twice.py").write_text(
        "import whorl\n@whorl.function\ndef twice(x: int) -> int:\n    return 2 * x\n", encoding="utf-8"
    )
    (folder / "item.csv").write_text("x\n3\n", encoding="utf-8")
    assert printed("double.dl", "--input", "item=item.csv", "--functions", "twice.py") == "c1\n6\n"


# Epochs


SEEN = "Who,At\nann,25\nbob,1\ncid,10\nann,11\ndan,71\n"


def test_epochs_by_event_time(folder: Path) -> None:
    """Each epoch ends at a multiple of the slide, and shows the view of that time."""
    (folder / "seen.csv").write_text(SEEN, encoding="utf-8")
    (folder / "known.csv").write_text("Who\nann\nbob\ncid\ndan\n", encoding="utf-8")
    inputs = ("--input", "seen=seen.csv", "--input", "known=known.csv", "--emit", "changes", "--verify")
    expected = "epoch,op,W\n10,+,bob\n10,+,cid\n20,+,ann\n30,-,bob\n30,-,cid\n50,-,ann\n80,+,dan\n"
    assert printed("window.dl", *inputs, "--every", "slide") == expected
    assert printed("window.dl", *inputs, "--every", "10 seconds") == expected
    assert printed("window.dl", *inputs, "--every", "5") == expected.replace("10,+,bob", "5,+,bob").replace("80", "75")


def test_without_every_there_is_one_epoch(folder: Path) -> None:
    (folder / "seen.csv").write_text(SEEN, encoding="utf-8")
    (folder / "known.csv").write_text("Who\nann\nbob\ndan\n", encoding="utf-8")
    run = whorl("run", "window.dl", "--input", "seen=seen.csv", "--input", "known=known.csv", "--output", "-")
    assert run.out == "W\ndan\n"
    assert run.err.startswith("in     8 rows, 1 epoch: 4 inserted, 0 deleted, 4 late\n")


def test_declared_columns_are_data(folder: Path) -> None:
    (folder / "ops.dl").write_text(
        "RELATION log(op: String, epoch: Integer).\nout(X, Y) :- log(X, Y).", encoding="utf-8"
    )
    (folder / "log.csv").write_text("epoch,op\n1,stop\n", encoding="utf-8")
    assert printed("ops.dl", "--input", "log=log.csv") == "X,Y\nstop,1\n"


# Errors


def _broken_parquet(folder: Path) -> None:
    (folder / "link.parquet").write_bytes(b"no Parquet at all")


def _empty_folder(folder: Path) -> None:
    (folder / "link").mkdir()


FILES: dict[str, tuple[str, str | Callable[[Path], None], str]] = {
    "another type in CSV": (
        "item=item.csv",
        'Id,Price,Name,Open,At,Tags,Place\n1,2,x,true,0,[],f(1)\n\n"2","2,5",x,true,0,[],f(1)\n',
        'E605 column "Price" of "item" holds a Float, not "2,5"\n  Detail: It stands in line 4 of "item.csv".\n',
    ),
    "an integer too large": (
        "item=item.csv",
        "Id,Price,Name,Open,At,Tags,Place\n9223372036854775808,2,x,true,0,[],f(1)\n",
        'E605 column "Id" of "item" holds an Integer, not "9223372036854775808"\n'
        '  Detail: It stands in line 2 of "item.csv".\n',
    ),
    "no value in CSV": (
        "item=item.csv",
        "Id,Price,Name,Open,At,Tags,Place\n1,,x,true,0,[],f(1)\n",
        'E602 column "Price" of "item" has no value in line 2 of "item.csv"\n'
        "  Hint: Leave such rows out, or fill in a value.\n",
    ),
    "a moment that is none": (
        "item=item.csv",
        "Id,Price,Name,Open,At,Tags,Place\n1,1,x,true,yesterday,[],f(1)\n",
        'E605 column "At" of "item" holds a Timestamp, not "yesterday"\n  Detail: It stands in line 2 of "item.csv".\n',
    ),
    "a term where a list belongs": (
        "item=item.csv",
        "Id,Price,Name,Open,At,Tags,Place\n1,1,x,true,0,f(1),f(1)\n",
        'E605 column "Tags" of "item" holds a List, not "f(1)"\n  Detail: It stands in line 2 of "item.csv".\n',
    ),
    "too few values in CSV": (
        "link=link.csv",
        'From,To\n"a\nb",c\nd\n',
        'E622 line 4 of "link.csv" is not CSV\n  Detail: It has 1 value, the header 2.\n',
    ),
    "an empty CSV": ("link=link.csv", "", 'E622 "link.csv" is not CSV\n  Detail: The file is empty.\n'),
    "other columns": (
        "link=link.csv",
        "From,Too\na,b\n",
        'E603 the columns of "link.csv" do not fit "link"\n  Detail: Found From, Too; expected From, To.\n'
        '  Hint: Add "To", or let all names agree with the declaration.\n',
    ),
    "no JSON": (
        "link=link.jsonl",
        '{"From": "a", "To": "b"}\n{"From": "a"\n',
        "E622 line 2 of \"link.jsonl\" is not JSON\n  Detail: Expecting ',' delimiter: line 2 column 1 (char 13).\n",
    ),
    "no JSON object": (
        "link=link.jsonl",
        '["a", "b"]\n',
        'E622 line 1 of "link.jsonl" is not a row\n'
        '  Detail: Found ["a", "b"], not an object with a key for each column.\n',
    ),
    "no value in JSON": (
        "link=link.jsonl",
        '{"From": "a", "To": "b"}\n\n{"From": "a"}\n',
        'E602 column "To" of "link" has no value in line 3 of "link.jsonl"\n'
        "  Hint: Leave such rows out, or fill in a value.\n",
    ),
    "another type in JSON": (
        "link=link.jsonl",
        '{"From": "a", "To": "b"}\n{"From": "a", "To": 1}\n',
        'E605 column "To" of "link" holds a String, not 1\n  Detail: It stands in line 2 of "link.jsonl".\n',
    ),
    "a broken Parquet file": (
        "link=link.parquet",
        _broken_parquet,
        'E622 "link.parquet" is not Parquet\n  Detail: Parquet magic bytes not found in footer. Either the file is'
        " corrupted or this is not a parquet file.\n",
    ),
    "no such operation": (
        "link=link.csv",
        "From,To,op\na,b,+\na,b,insert\n",
        'E623 line 3 of "link.csv" has the operation "insert"\n  Hint: Write "+" to insert and "-" to delete.\n',
    ),
    "an epoch that is no number": (
        "link=link.csv",
        "From,To,epoch\na,b,one\n",
        'E605 column "epoch" of "link" holds an Integer, not "one"\n  Detail: It stands in line 2 of "link.csv".\n',
    ),
    "no such format": (
        "link=link.txt",
        "a,b\n",
        'E620 the format of "link.txt" is not known\n'
        "  Detail: Files end in .csv, .csv.gz, .jsonl, .jsonl.gz, .ndjson, .json or .parquet.\n"
        "  Hint: Rename the file, or convert it.\n",
    ),
    "a folder without files": (
        "link=link",
        _empty_folder,
        'E621 the folder "link" holds no input\n'
        "  Detail: Files end in .csv, .csv.gz, .jsonl, .jsonl.gz, .ndjson, .json or .parquet.\n",
    ),
    "no such file": (
        "link=missing.csv",
        "",
        'E701 the file "missing.csv" cannot be read\n  Detail: No such file or directory.\n',
    ),
    "no such relation": (
        "lnik=links.csv",
        "",
        'E503 the program has no relation "lnik"\n  Hint: Did you mean "link"?\n',
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_refused_files(name: str, folder: Path) -> None:
    source, content, error = FILES[name]
    relation, _equals, path = source.partition("=")
    if callable(content):
        content(folder)
    elif content or path.startswith(("link.", "item.")):
        (folder / path).write_text(content, encoding="utf-8")
    assert refused("types.dl" if relation == "item" else "reach.dl", "--input", source) == error


def test_a_fraction_of_a_second_in_parquet(folder: Path) -> None:
    moments = pa.array([datetime(2024, 5, 1, 12, 0), datetime(2024, 5, 1, 12, 0, 0, 500)], pa.timestamp("us"))
    pq.write_table(pa.table({"At": moments, "Who": ["ann", "bob"]}), folder / "seen.parquet")
    assert refused("window.dl", "--input", "seen=seen.parquet").endswith(
        '  Detail: It stands in row 2 of "seen.parquet".\n'
    )


def test_files_that_are_no_text(folder: Path) -> None:
    (folder / "latin.csv").write_bytes("From,To\nZoë,b\n".encode("latin-1"))
    assert refused("reach.dl", "--input", "link=latin.csv").startswith('E622 "latin.csv" is not CSV\n')
    (folder / "links.csv.gz").write_bytes(b"\x1f\x8bnot compressed")
    assert refused("reach.dl", "--input", "link=links.csv.gz").startswith('E622 "links.csv.gz" is not CSV\n')


def test_epoch_and_every_do_not_go_together(folder: Path) -> None:
    (folder / "seen.csv").write_text("At,Who,epoch\n1,ann,1\n", encoding="utf-8")
    assert refused("window.dl", "--input", "seen=seen.csv", "--every", "slide") == (
        'E624 "seen.csv" has a column "epoch", which --every does not follow\n  Hint: Drop the column, or the option.\n'
    )


def test_every_needs_a_stream() -> None:
    assert refused("reach.dl", "--input", "link=links.csv", "--every", "10") == (
        "E625 no stream of the input has timestamps for --every\n"
        "  Hint: Declare an input as a STREAM, or drop the option.\n"
    )


def test_an_output_that_cannot_be_written(folder: Path) -> None:
    run = whorl("run", "reach.dl", "--input", "link=links.csv", "--output", "reach.dl")
    assert run.err == 'E626 "reach.dl" cannot be written\n  Detail: File exists.\n'
    assert run.code == 1


def test_a_refused_epoch_writes_nothing_and_keeps_what_was_there(folder: Path) -> None:
    (folder / "out").mkdir()
    (folder / "out" / "number.csv").write_text("old\n", encoding="utf-8")
    (folder / "up.dl").write_text("number(X) :- start(X).\nnumber(X + 1) :- number(X).\n", encoding="utf-8")
    (folder / "start.csv").write_text("x\n1\n", encoding="utf-8")
    arguments = ("up.dl", "--input", "start=start.csv", "--output", "out", "--emit", "both", "--max-rounds", "20")
    run = whorl("run", *arguments)
    assert (run.code, run.err[:4]) == (1, "E506")
    assert "  Epoch: 1, refused as a whole.\n" in run.err
    assert [path.name for path in (folder / "out").iterdir()] == ["number.csv"]
    assert (folder / "out" / "number.csv").read_text() == "old\n"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--input", "links.csv"), "links.csv does not read as REL=PATH"),
        (("--emit", "all"), "all is none of snapshot, changes, both"),
        (("--emit", "both", "--output", "-"), "standard output takes a snapshot or changes, not both"),
        (("--host", "moon"), "moon is none of local, spark"),
        (("--every", "soon"), "soon is no time"),
        (("--every", "slide"), "no stream of the program has a slide"),
        (("--without", "magic"), "magic is no rewrite"),
    ],
)
def test_usage(arguments: tuple[str, ...], message: str) -> None:
    run = whorl("run", "reach.dl", "--output", "out", *arguments)
    assert run.code == 2
    assert message in " ".join(run.err.split())


# Verification


class Forgetful:
    """A host that loses rows."""

    def __init__(self, host: InProcess) -> None:
        self._host = host
        self.plan = host.plan
        self.time = None

    def commit(self, epoch: Epoch) -> EpochReport:
        report = self._host.commit(epoch)
        kept = {view: Delta(delta.inserted[1:], delta.deleted) for view, delta in report.deltas.items()}
        return EpochReport(report.number, report.time, kept, report.counts, report.seconds)

    def rows(self, view: str) -> set[tuple[object, ...]]:
        return set(self._host.rows(view))


def test_verification_shows_the_difference() -> None:
    def compile_plan(types: object) -> object:
        return compile_program(Source("reach.dl", REACH), data_types=types)  # type: ignore[arg-type]

    host = Forgetful(InProcess(compile_plan))  # type: ignore[arg-type]
    checked = Verified(host, compile_plan, Limits())  # type: ignore[arg-type]
    with pytest.raises(UserError) as raised:
        checked.commit(Epoch(3, (Change("link", ("a", "b"), 1), Change("link", ("b", "c"), 1))))
    assert str(raised.value) == (
        'E627 view "reachable" differs from the reference after epoch 3\n'
        '  Detail: Missing: reachable("a", "b").\n'
        "  Hint: This is a fault in Whorl. Report it with the program and the input."
    )


# The process as a whole


def test_in_a_process_of_its_own(folder: Path) -> None:
    """Start-up and all, from a warm cache; the bound leaves room for a busy machine."""
    command = [sys.executable, "-m", "whorl", "run", "reach.dl", "--input", "link=links.csv", "--output", "-"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    spent = []
    for _ in range(3):
        started, before = perf_counter(), os.times()
        done = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
        after = os.times()
        processor = after.children_user + after.children_system - before.children_user - before.children_system
        spent.append(min(perf_counter() - started, processor))
        assert done.stdout == ANSWER
    assert min(spent) < 2


def test_pandas_is_not_loaded(folder: Path) -> None:
    code = (
        "import sys\nfrom whorl.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit as ended:\n    assert not ended.code\n"
        "assert 'pandas' not in sys.modules and 'rich.progress' not in sys.modules\n"
    )
    arguments = ["run", "reach.dl", "--input", "link=links.csv", "--output", "out", "--emit", "both"]
    subprocess.run([sys.executable, "-c", code, *arguments], check=True, capture_output=True)


SMALL = """\
import resource
import sys
from whorl.cli.compiling import announced
from whorl.kernel.arrays import jit

if "--full-disk" in sys.argv:
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
with announced():

    @jit.kernel(jit.INT(jit.INT))
    def double(x):
        return 2 * x

    @jit.kernel(jit.INT(jit.INT))
    def triple(x):
        return 3 * x


print(double(4), triple(4))
"""


def _run_small(folder: Path, *arguments: str) -> str:
    """Run a program with two kernels; return what it says besides."""
    (folder / "small.py").write_text(SMALL, encoding="utf-8")
    environment = os.environ | {"NUMBA_CACHE_DIR": str(folder / "cache")}
    command = [sys.executable, "small.py", *arguments]
    run = subprocess.run(command, check=True, capture_output=True, text=True, env=environment)
    assert run.stdout == "8 12\n"
    return run.stderr


def test_compilation_is_announced(folder: Path) -> None:
    """A kernel that is not on disk is compiled with a word about it; one that is there, without."""
    assert [_run_small(folder) for _ in range(2)] == ["compiling the kernel (once per machine) ...\n", ""]


def test_what_cannot_be_kept_is_announced_once(folder: Path) -> None:
    word, warning = _run_small(folder, "--full-disk").splitlines()
    assert word == "compiling the kernel (once per machine) ..."
    assert warning.startswith(f"compiled kernels cannot be kept on disk: {folder / 'cache'}")
    assert warning.endswith("set NUMBA_CACHE_DIR to a folder that can be written")
