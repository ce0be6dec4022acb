"""Errors of a run, through the command line: exact text, exit code, and nothing of the refused epoch."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.command_line import whorl

REACHABLE = """\
RELATION edge(A: Integer, B: Integer).
STREAM ride(Ts: Timestamp, Zone: String, Fare: Float) WINDOW(10).
path(X, Y) :- edge(X, Y).
path(X, Z) :- path(X, Y), edge(Y, Z).
busy(Z) :- ride(_, Z, _).
"""
GROWING = """\
number(X) :- start(X).
number(X + 1) :- number(X).
"""
DEEPENING = """\
nest(f(X)) :- start(X).
nest(f(X)) :- nest(X).
"""
FUNCTIONS = """\
import whorl


@whorl.function
def inverse(x: int) -> float:
    return 1 / x


@whorl.function
def label(x: int) -> str:
    return x


@whorl.function
def anything(x: int) -> object:
    return {x}
"""


@dataclass(frozen=True)
class Case:
    """A program, the epochs it is given, what it prints, and the error that ends it."""

    program: str
    deltas: str
    error: str
    printed: str = ""
    options: tuple[str, ...] = ()

    @property
    def code(self) -> str:
        return self.error[:4]


CASES = {
    "wrong number of attributes": Case(
        REACHABLE,
        "@1\n+edge(1, 2)\n@2\n+edge(2, 3)\n+edge(1, 2, 3)\n",
        """\
E501 "edge" has 2 attributes, not 3
  5 | +edge(1, 2, 3)
    | ^^^^^^^^^^^^^^
  Epoch: 2, refused as a whole.
  Detail: Row: edge(1, 2, 3).
""",
        "@1\n+path(1, 2)\n",
    ),
    "wrong type of value": Case(
        REACHABLE,
        '@1\n+edge(1, 2)\n@2\n+edge(2, 3)\n  +edge(3, "four")\n',
        """\
E502 column 2 of "edge" holds an Integer, not a String
  5 |   +edge(3, "four")
    |   ^^^^^^^^^^^^^^^^
  Epoch: 2, refused as a whole.
  Detail: Row: edge(3, "four").
""",
        "@1\n+path(1, 2)\n",
    ),
    "float for an integer": Case(
        REACHABLE,
        "@1\n+edge(1, 2.0)\n",
        """\
E502 column 2 of "edge" holds an Integer, not a Float
  2 | +edge(1, 2.0)
    | ^^^^^^^^^^^^^
  Epoch: 1, refused as a whole.
  Detail: Row: edge(1, 2.0).
""",
    ),
    "timestamp that is no number": Case(
        REACHABLE,
        '@1\n+ride("noon", "A", 1.5)\n',
        """\
E502 column 1 of "ride" holds a Timestamp, not a String
  2 | +ride("noon", "A", 1.5)
    | ^^^^^^^^^^^^^^^^^^^^^^^
  Epoch: 1, refused as a whole.
  Detail: Row: ride("noon", "A", 1.5).
""",
    ),
    "second value of another type than the first": Case(
        "size(X) :- item(X).\n",
        '@1\n+item(1)\n@2\n+item("two")\n',
        """\
E502 column 1 of "item" holds an Integer, not a String
  4 | +item("two")
    | ^^^^^^^^^^^^
  Epoch: 2, refused as a whole.
  Detail: Row: item("two").
""",
        "@1\n+size(1)\n",
    ),
    "value that the rules cannot use": Case(
        "large(X) :- item(X), X > 3.\n",
        '@1\n@2\n+item("five")\n',
        """\
E222 a String cannot be compared with an Integer
  1 | large(X) :- item(X), X > 3.
    |                      ^^^^^
  Epoch: 2, refused as a whole.
""",
        "@1\n",
    ),
    "misspelt relation": Case(
        REACHABLE,
        "@1\n+edge(1, 2)\n@2\n+egde(2, 3)\n",
        """\
E503 the program has no relation "egde"
  4 | +egde(2, 3)
    | ^^^^^^^^^^^
  Epoch: 2, refused as a whole.
  Hint: Did you mean "edge"?
""",
        "@1\n+path(1, 2)\n",
    ),
    "no such relation": Case(
        REACHABLE,
        "@1\n+street(2, 3)\n",
        """\
E503 the program has no relation "street"
  2 | +street(2, 3)
    | ^^^^^^^^^^^^^
  Epoch: 1, refused as a whole.
  Hint: Base relations: edge, ride.
""",
    ),
    "derived relation": Case(
        REACHABLE,
        "@1\n+edge(1, 2)\n@2\n-path(1, 2)\n",
        """\
E504 relation "path" is derived
  4 | -path(1, 2)
    | ^^^^^^^^^^^
  Epoch: 2, refused as a whole.
  Detail: Only base relations take changes.
  Hint: Change the facts it follows from.
""",
        "@1\n+path(1, 2)\n",
    ),
    "event time goes back": Case(
        REACHABLE,
        '@1 time=20\n+ride(20, "A", 1.5)\n@2 time=10\n+ride(10, "B", 1.5)\n',
        """\
E505 event time cannot go back from 20 to 10
  3 | @2 time=10
    | ^^^^^^^^^^
  Epoch: 2, refused as a whole.
  Hint: Give late facts their own timestamps.
""",
        '@1 time=20\n+busy("A")\n',
    ),
    "limit of rounds": Case(
        GROWING,
        "@1\n@2\n+start(0)\n",
        """\
E506 the limit of 20 rounds is reached in "number"
  2 | number(X + 1) :- number(X).
    | ^^^^^^^^^^^^^^^^^^^^^^^^^^^
  Epoch: 2, refused as a whole.
  Detail: The rule on line 2 still makes new values: number(19) from number(18).
  Hint: Bound the recursion, check the data for a cycle, or raise the limit with --max-rounds.
""",
        "@1\n",
        ("--max-rounds", "20"),
    ),
    "limit of tuples": Case(
        REACHABLE,
        "@1\n+edge(1, 2)\n@2\n+edge(2, 3)\n+edge(3, 4)\n+edge(4, 1)\n",
        """\
E507 the limit of 10 tuples is reached in "path"
  4 | path(X, Z) :- path(X, Y), edge(Y, Z).
    | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  Epoch: 2, refused as a whole.
  Detail: The rule on line 4 still makes new tuples: path(1, 4) from path(1, 3), edge(3, 4).
  Hint: Bound the recursion, or raise the limit with --max-tuples.
""",
        "@1\n+path(1, 2)\n",
        ("--max-tuples", "10"),
    ),
    "limit of depth": Case(
        DEEPENING,
        "@1\n@2\n+start(0)\n",
        """\
E508 the limit of term depth 3 is reached in "nest"
  2 | nest(f(X)) :- nest(X).
    | ^^^^^^^^^^^^^^^^^^^^^^
  Epoch: 2, refused as a whole.
  Detail: The rule on line 2 builds ever deeper terms: nest(f(f(f(f(0))))) from nest(f(f(f(0)))).
  Hint: Bound the recursion, or raise the limit with --max-depth.
""",
        "@1\n",
        ("--max-depth", "3"),
    ),
    "sum out of range": Case(
        "total(sum<X>) :- part(X).\n",
        "@1\n+part(1)\n@2\n+part(9223372036854775807)\n",
        """\
E509 sum in "total" leaves the range of its column
  3 | @2
    | ^^
  Epoch: 2, refused as a whole.
  Hint: Use a Float, or smaller inputs.
""",
        "@1\n+total(1)\n",
    ),
    "function that fails": Case(
        "share(X, Y) :- part(X), Y = inverse(X).\n",
        "@1\n+part(2)\n@2\n+part(4)\n+part(0)\n",
        """\
E510 function "inverse" failed
  1 | share(X, Y) :- part(X), Y = inverse(X).
    |                             ^^^^^^^^^^
  Epoch: 2, refused as a whole.
  Detail: Called as inverse(0): ZeroDivisionError: division by zero.
""",
        "@1\n+share(2, 0.5)\n",
        ("--functions", "functions.py"),
    ),
    "function that returns the wrong type": Case(
        "name(X, Y) :- part(X), Y = label(X).\n",
        "@1\n@2\n+part(2)\n",
        """\
E511 function "label" returned 2, not a String
  1 | name(X, Y) :- part(X), Y = label(X).
    |                            ^^^^^^^^
  Epoch: 2, refused as a whole.
  Detail: Called as label(2).
  Hint: Return what it declares.
""",
        "@1\n",
        ("--functions", "functions.py"),
    ),
    "function that returns what no column holds": Case(
        "name(X, Y) :- part(X), Y = anything(X).\n",
        "@1\n+part(2)\n",
        """\
E511 function "anything" returned {2}, not a value of the language
  1 | name(X, Y) :- part(X), Y = anything(X).
    |                            ^^^^^^^^^^^
  Epoch: 1, refused as a whole.
  Detail: Called as anything(2).
  Hint: Return what it declares.
""",
        options=("--functions", "functions.py"),
    ),
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder that holds a program, its input and a functions file."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.dl").write_text(REACHABLE, encoding="utf-8")
    (tmp_path / "input.deltas").write_text("@1\n+edge(1, 2)\n", encoding="utf-8")
    (tmp_path / "functions.py").write_text(FUNCTIONS, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize("name", CASES)
def test_refused_epoch(name: str, folder: Path) -> None:
    case = CASES[name]
    (folder / "program.dl").write_text(case.program, encoding="utf-8")
    (folder / "input.deltas").write_text(case.deltas, encoding="utf-8")
    run = whorl("replay", "program.dl", "input.deltas", "--strategy", "reference", *case.options)
    assert run.err == case.error
    assert run.out == case.printed
    assert run.code == 1


@pytest.mark.parametrize("name", CASES)
def test_refused_epoch_by_the_kernel(name: str, folder: Path) -> None:
    """The kernel meets a limit at another row than the reference; all else is the same."""
    case = CASES[name]
    (folder / "program.dl").write_text(case.program, encoding="utf-8")
    (folder / "input.deltas").write_text(case.deltas, encoding="utf-8")
    run = whorl("replay", "program.dl", "input.deltas", *case.options)
    assert (run.code, run.out) == (1, case.printed)
    assert run.err.splitlines()[0] == case.error.splitlines()[0]
    if "limit" not in name:
        assert run.err == case.error


@pytest.mark.parametrize("name", CASES)
def test_refused_epoch_as_json(name: str, folder: Path) -> None:
    """Earlier epochs are lines of JSON; the error comes last, as one object over several lines."""
    case = CASES[name]
    (folder / "program.dl").write_text(case.program, encoding="utf-8")
    (folder / "input.deltas").write_text(case.deltas, encoding="utf-8")
    run = whorl("replay", "program.dl", "input.deltas", "--json", *case.options)
    epochs, _brace, error = run.out.partition("{\n")
    assert len(epochs.splitlines()) == case.printed.count("@")
    (found,) = json.loads("{\n" + error)["errors"]
    message = case.error.split("\n", 1)[0]
    assert f"{found['code']} {found['message']}" == message
    assert f"  Epoch: {found['epoch']}, refused as a whole." in case.error
    assert (run.code, run.err) == (1, "")


def test_json_error_in_full(folder: Path) -> None:
    (folder / "input.deltas").write_text("@1\n+edge(1, 2)\n@2\n\t+edge(1)\n", encoding="utf-8")
    run = whorl("replay", "program.dl", "input.deltas", "--json")
    first, error = run.out.split("\n", 1)
    assert json.loads(first)["changes"] == {"path": {"inserted": [[1, 2]], "deleted": []}}
    assert json.loads(error) == {
        "errors": [
            {
                "code": "E501",
                "message": '"edge" has 2 attributes, not 1',
                "source": "input.deltas",
                "line": 4,
                "column": 2,
                "text": "+edge(1)",
                "epoch": 2,
                "detail": "Row: edge(1).",
                "hint": "",
            }
        ]
    }


def test_epochs_after_the_refused_one_are_not_run(folder: Path) -> None:
    (folder / "input.deltas").write_text("@1\n+edge(1, 2)\n@2\n+edge(1)\n@3\n+edge(3, 4)\n", encoding="utf-8")
    assert whorl("replay", "program.dl", "input.deltas").out == "@1\n+path(1, 2)\n"


def test_malformed_deltas_are_found_before_anything_runs(folder: Path) -> None:
    (folder / "input.deltas").write_text("@1\n+edge(1, 2)\n@2\n+edge(1, b)\nedge(1, 3)\n", encoding="utf-8")
    run = whorl("replay", "program.dl", "input.deltas")
    assert run.out == ""
    assert [line[:4] for line in run.err.splitlines() if line[:1] == "E"] == ["E123", "E120"]
    assert run.err.endswith("2 errors\n")
    assert run.code == 1


def test_errors_of_a_program(folder: Path) -> None:
    """One run reports every mistake, in the order of the text, and counts them."""
    (folder / "program.dl").write_text("a(X, Y) :- n(X).\nb(X) :- n(X), not c(X, Z).\n", encoding="utf-8")
    expected = """\
E310 variable "Y" of the head is not bound
  1 | a(X, Y) :- n(X).
    |      ^
  Detail: Without a value for it, "a" would be infinite.
  Hint: Bind it in a positive atom or an equation of the body.
E311 variable "Z" is bound nowhere but under the negation
  2 | b(X) :- n(X), not c(X, Z).
    |                        ^
  Hint: Bind it in a positive atom, or write "_" if no value at all may exist.
2 errors
"""
    for command in (["check"], ["explain"], ["replay"]):
        arguments = ["input.deltas"] if command == ["replay"] else []
        run = whorl(*command, "program.dl", *arguments)
        assert (run.code, run.out, run.err) == (1, "", expected)


def test_errors_of_a_program_as_json(folder: Path) -> None:
    (folder / "program.dl").write_text("a(X, Y) :- n(X).\nb(X) :- n(X), not c(X, Z).\n", encoding="utf-8")
    run = whorl("check", "program.dl", "--json")
    found = json.loads(run.out)["errors"]
    assert [(each["code"], each["line"], each["column"], each["text"]) for each in found] == [
        ("E310", 1, 6, "Y"),
        ("E311", 2, 24, "Z"),
    ]
    assert (run.code, run.err) == (1, "")


FILES = {
    "no program": (
        ("check", "missing.dl"),
        'E701 the file "missing.dl" cannot be read\n  Detail: No such file or directory.\n',
    ),
    "no deltas": (
        ("replay", "program.dl", "missing.deltas"),
        'E701 the file "missing.deltas" cannot be read\n  Detail: No such file or directory.\n',
    ),
    "no functions": (
        ("check", "program.dl", "--functions", "missing.py"),
        'E701 the file "missing.py" cannot be read\n  Detail: No such file or directory.\n',
    ),
    "no such strategy": (
        ("explain", "program.dl", "--stage", "physical", "--strategy", "magic"),
        'E401 "magic" is no strategy\n'
        "  Detail: Known strategies: auto, recompute, counting, expiry, dred, pf, support, derivations, absorption.\n",
    ),
    "no such benchmark": (
        ("bench", "peers", "--only", "closure-rndom"),
        'E661 there is no benchmark case "closure-rndom"\n  Hint: Did you mean "closure-random"?\n',
    ),
    "results where a file is": (
        ("bench", "peers", "--only", "growth", "--output", "program.dl"),
        'E662 the folder "program.dl" for the results cannot be written\n  Detail: File exists.\n',
    ),
    "no networks": (
        ("bench", "regions", "--data", "missing"),
        'E663 the folder "missing" holds no network that is known\n'
        "  Detail: It has none of rocketfuel, topology-zoo and bgp-streams in it.\n"
        "  Hint: Give the folder that they are in, or leave --data out.\n",
    ),
    "a folder": (("check", "."), 'E701 the file "." cannot be read\n  Detail: Is a directory.\n'),
    "not UTF-8": (("check", "latin.dl"), 'E702 the file "latin.dl" is not UTF-8 text\n  Hint: Save it as UTF-8.\n'),
    "functions that raise": (
        ("check", "program.dl", "--functions", "raises.py"),
        "E703 the functions file \"raises.py\" failed\n  Detail: Line 2: KeyError: 'b'.\n",
    ),
    "functions that do not parse": (
        ("check", "program.dl", "--functions", "broken.py"),
        'E703 the functions file "broken.py" failed\n'
        "  Detail: SyntaxError: '(' was never closed (broken.py, line 1).\n",
    ),
    "functions that leave": (
        ("check", "program.dl", "--functions", "leaves.py"),
        'E703 the functions file "leaves.py" failed\n  Detail: Line 1: SystemExit: 3.\n',
    ),
    "functions without types": (
        ("check", "program.dl", "--functions", "untyped.py"),
        'E703 the functions file "untyped.py" failed\n'
        "  Detail: Line 4: FunctionTypeError: function half: an annotation is missing;"
        " use int, float, str, bool, list, whorl.Term or object.\n",
    ),
    "functions with other types": (
        ("check", "program.dl", "--functions", "strange.py"),
        'E703 the functions file "strange.py" failed\n'
        "  Detail: Line 4: FunctionTypeError: function half: bytes is no column type;"
        " use int, float, str, bool, list, whorl.Term or object.\n",
    ),
    "functions in another language": (
        ("check", "program.dl", "--functions", "program.dl"),
        'E703 the functions file "program.dl" failed\n  Detail: Its name does not end in .py.\n',
    ),
    "no function marked": (
        ("check", "program.dl", "--functions", "unmarked.py"),
        'E704 the functions file "unmarked.py" registers no function\n  Hint: Mark functions with @whorl.function.\n',
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_files(name: str, folder: Path) -> None:
    (folder / "latin.dl").write_bytes('name("Zoë").\n'.encode("latin-1"))
    (folder / "raises.py").write_text("prices = {'a': 1}\nprice = prices['b']\n", encoding="utf-8")
    (folder / "broken.py").write_text("def half(x:\n", encoding="utf-8")
    (folder / "leaves.py").write_text("raise SystemExit(3)\n", encoding="utf-8")
    for file, signature in (("untyped.py", "x"), ("strange.py", "x: bytes")):
        text = f"import whorl\n\n\n@whorl.function\ndef half({signature}) -> float:\n    return x / 2\n"
        (folder / file).write_text(text, encoding="utf-8")
    (folder / "unmarked.py").write_text("def half(x: int) -> float:\n    return x / 2\n", encoding="utf-8")
    arguments, error = FILES[name]
    run = whorl(*arguments)
    assert (run.code, run.out, run.err) == (1, "", error)


USAGE = {
    "no such rewrite in explain": (
        ("explain", "program.dl", "--without", "magic"),
        'Error: Invalid value for --without: magic is no rewrite. Did you mean "magic_sets"?',
    ),
    "no such rewrite in replay": (
        ("replay", "program.dl", "input.deltas", "--without", "sorting"),
        "Error: Invalid value for --without: sorting is no rewrite. Rewrites are drop_unused, fold_constants,"
        " select_in_recursion, magic_sets, order_joins, push_filters, join_as_semijoin and prune_columns.",
    ),
    "no such stage": (
        ("explain", "program.dl", "--stage", "magic"),
        "Error: Invalid value for --stage: magic is no stage; use ast, logical or physical",
    ),
    "no such command": (("chekc", "program.dl"), "Error: No such command 'chekc'."),
    "no such option": (("check", "program.dl", "--jsno"), "Error: No such option: --jsno"),
    "no program named": (("check",), "Error: Missing argument 'PROGRAM'."),
    "limit of nothing": (
        ("replay", "program.dl", "input.deltas", "--max-rounds", "0"),
        "Error: Invalid value for '--max-rounds':",
    ),
    "depth beyond what can be compared": (
        ("replay", "program.dl", "input.deltas", "--max-depth", "1000"),
        "Error: Invalid value for '--max-depth':",
    ),
}


@pytest.mark.parametrize("name", USAGE)
def test_usage(name: str) -> None:
    arguments, message = USAGE[name]
    run = whorl(*arguments)
    assert (run.code, run.out) == (2, "")
    assert run.err.startswith("Usage: whorl")
    assert message in run.err


def test_default_depth_ends_with_an_error(folder: Path) -> None:
    (folder / "program.dl").write_text(DEEPENING, encoding="utf-8")
    (folder / "input.deltas").write_text("@1\n+start(0)\n", encoding="utf-8")
    run = whorl("replay", "program.dl", "input.deltas")
    assert run.err.startswith('E508 the limit of term depth 200 is reached in "nest"\n')


def test_installed_script(folder: Path) -> None:
    """The script that pip installs behaves as the function that the other tests call."""
    (folder / "input.deltas").write_text("@1\n+edge(1, 2)\n@2\n+edge(1)\n", encoding="utf-8")
    command = [str(Path(sys.executable).with_name("whorl")), "replay", "program.dl", "input.deltas"]
    done = subprocess.run(command, check=False, capture_output=True, text=True, env={**os.environ, "LANG": "C"})
    assert done.returncode == 1
    assert done.stdout == "@1\n+path(1, 2)\n"
    assert done.stderr.startswith('E501 "edge" has 2 attributes, not 1\n')
