"""The commands that succeed: what `check`, `explain` and `replay` print."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_line import whorl
from whorl import __version__
from whorl.analysis.passes import PASSES
from whorl.logical.rewrites import NAMES

PROGRAM = """\
# Who is reachable from where, over links that live ten seconds.
STREAM link(Ts: Timestamp, From: String, To: String) WINDOW(10, 5).
RELATION zone(Id: String KEY, Borough: String).
reachable(T, X, Y) <- link(T, X, Y).
reachable(T, X, Z) <- link(T1, X, Y), reachable(T2, Y, Z), largest(T, T1, T2).
size(X, count<Y>) :- reachable(_, X, Y), !zone(X, "closed").
query reachable(_, "depot", Y).
query size(X, N).
"""
DELTAS = """\
@1 time=5
+link(3, "depot", "a")
+link(4, "a", "b")
+zone("a", "open")
+zone("a", "closed")
@2 time=6
-link(4, "a", "z")
+link(6, "a", "b")
@3 time=20
+link(1, "a", "b")
"""
REPORT = """\
Inputs
  stream link(From: String, To: String)
    its timestamp is the tuple's time, not a column
    window of 10 s, brought up to date every 5 s
  relation zone(Id: String KEY, Borough: String)
Derived
  reachable(X: String, Y: String)
    its timestamp is the tuple's time, not a column
  size(X: String, Y: Integer = count)
Strata
  1. reachable: recursive; ends (only values of the input are derived)
  2. size: once; ends (not recursive)
Strategies
  reachable: expiry (rows die of age only: the time of death is their label, and a window that moves joins nothing)
    each epoch: changes are followed, or everything is derived again, whichever costs less
  size^2^2: counting (not recursive: the number of derivations says when a row goes)
  size: counting (each group follows the changes of its contributions)
  out^reachable: expiry (rows die of age only: the time of death is their label, and a window that moves joins nothing)
Outputs
  reachable: reachable("depot", Y)
  size: size(X, N)
"""
OUTPUT = """\
@1 time=5
+reachable("depot", "a")
+reachable("depot", "b")
+size("depot", 2)
@2 time=6
@3 time=20
-reachable("depot", "a")
-reachable("depot", "b")
-size("depot", 2)
"""
HEAVY = ("numba", "numpy", "pandas", "pyarrow", "pyspark")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Work in an empty folder that holds a program and its input."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "program.dl").write_text(PROGRAM, encoding="utf-8")
    (tmp_path / "input.deltas").write_text(DELTAS, encoding="utf-8")
    return tmp_path


def succeed(*arguments: str) -> str:
    """Run the command line; return what it prints."""
    run = whorl(*arguments)
    assert (run.code, run.err) == (0, "")
    return run.out


def timed(lines: list[str]) -> list[str]:
    """Return the names that stand behind times."""
    found = [re.fullmatch(r" +\d+\.\d\d ms  (.+)", line) for line in lines]
    assert all(found), lines
    return [match[1] for match in found if match]


def test_check() -> None:
    assert succeed("check", "program.dl") == REPORT


def test_check_without_queries_shows_every_derived_relation(folder: Path) -> None:
    (folder / "program.dl").write_text("path(X, Y) :- edge(X, Y).\nends(Y) :- path(_, Y).\n", encoding="utf-8")
    assert succeed("check", "program.dl").endswith("Outputs\n  path: path(X, Y)\n  ends: ends(Y)\n")


def test_check_notes_what_looks_like_a_slip(folder: Path) -> None:
    text = "path(X, Y) :- edge(X, Y).\npath(X, Z) :- paht(X, Y), edge(Y, Z).\ntotal(sum(X)) :- path(X, _).\n"
    (folder / "program.dl").write_text(text, encoding="utf-8")
    notes = succeed("check", "program.dl").split("Notes\n")[1]
    assert notes == (
        '  line 2: "paht" is taken for an input relation. Did you mean "path"?\n'
        '  line 3: "sum" is taken for a term, not a function. Write "sum<X>" to aggregate.\n'
    )


def test_check_of_an_empty_program(folder: Path) -> None:
    (folder / "program.dl").write_text("", encoding="utf-8")
    assert succeed("check", "program.dl") == "\n"


def test_check_times() -> None:
    report, passes = succeed("check", "program.dl", "--times").split("Passes\n")
    assert report == REPORT
    assert timed(passes.splitlines()) == [name for name, _run in PASSES]


def test_check_json() -> None:
    report = json.loads(succeed("check", "program.dl", "--json"))
    assert list(report) == ["relations", "strata", "strategies", "outputs", "notes"]
    assert {relation["name"]: relation["kind"] for relation in report["relations"]} == {
        "link": "stream",
        "zone": "relation",
        "reachable": "derived",
        "size": "derived",
    }
    assert report["relations"][0] == {
        "name": "link",
        "kind": "stream",
        "columns": [
            {"name": "From", "type": "String", "key": False},
            {"name": "To", "type": "String", "key": False},
        ],
        "lifted": True,
        "window": {"size": 10, "slide": 5, "counted": False},
        "ttl": None,
        "aggregates": {},
    }
    assert report["relations"][3]["aggregates"] == {"1": "count"}
    assert report["strata"][0] == {
        "relations": ["reachable"],
        "recursive": True,
        "stages": None,
        "termination": "ends",
        "reason": "only values of the input are derived",
    }
    assert report["strategies"][1] == {
        "relations": ["size^2^2"],
        "kind": "rows",
        "recursive": False,
        "strategy": "counting",
        "reason": "not recursive: the number of derivations says when a row goes",
        "arms": [],
    }
    assert report["outputs"] == [
        {"name": "reachable", "query": 'reachable("depot", Y)'},
        {"name": "size", "query": "size(X, N)"},
    ]
    assert report["notes"] == []


def test_check_json_times() -> None:
    report = json.loads(succeed("check", "program.dl", "--json", "--times"))
    assert [each["name"] for each in report["passes"]] == [name for name, _run in PASSES]
    assert all(each["seconds"] >= 0 for each in report["passes"])


def test_check_with_functions(folder: Path) -> None:
    text = "import whorl\n\n\n@whorl.function\ndef half(x: int) -> float:\n    return x / 2\n"
    (folder / "functions.py").write_text(text, encoding="utf-8")
    (folder / "program.dl").write_text("halves(X, half(X)) :- n(X).\n", encoding="utf-8")
    assert "  halves(X: unknown, c2: Float)\n" in succeed("check", "program.dl", "--functions", "functions.py")


def test_explain_ast_prints_one_spelling() -> None:
    assert succeed("explain", "program.dl", "--stage", "ast") == (
        PROGRAM.split("\n", 1)[1].replace("<-", ":-").replace("!zone", "not zone")
    )


def test_explain_logical(folder: Path) -> None:
    text = 'path(X, Y) :- edge(X, Y).\npath(X, Z) :- path(X, Y), edge(Y, Z).\nquery path("a", Y).\n'
    (folder / "program.dl").write_text(text, encoding="utf-8")
    assert "magic_sets" in succeed("explain", "program.dl").splitlines()[-1]
    lines = succeed("explain", "program.dl", "--stage", "logical", "--times", "--without", "magic_sets").splitlines()
    plan, (changed, *times) = lines[: -len(NAMES)], lines[-len(NAMES) :]
    assert plan[0] == "Fixpoint 1: path"
    assert plan[-1] == 'Output path = path("a", Y)'
    assert changed.startswith("Rewrites that changed the plan: ")
    assert "magic_sets" not in changed
    assert timed(times) == [name for name in NAMES if name != "magic_sets"]


def test_replay() -> None:
    assert succeed("replay", "program.dl", "input.deltas") == OUTPUT


@pytest.mark.parametrize("name", NAMES)
def test_replay_without_a_rewrite(name: str) -> None:
    assert succeed("replay", "program.dl", "input.deltas", "--without", name) == OUTPUT


REPORTS = [
    "# epoch 1: 4 inserted, 1 deleted; 3 changes out; _ ms",
    "# epoch 2: 0 inserted, 0 deleted, 1 refreshed, 1 absent; 0 changes out; _ ms",
    "# epoch 3: 0 inserted, 0 deleted, 1 late, 2 expired; 3 changes out; _ ms",
]
COSTS = (
    r"#   \d+ rounds, \d+ derivations, \d+ probes, \d+ matches, \d+ label updates;"
    r" state \d+\.\d kB; input _ ms, maintain _ ms, output _ ms"
)


@pytest.mark.parametrize("strategy", ["reference", "auto"])
def test_replay_report(strategy: str) -> None:
    lines = succeed("replay", "program.dl", "input.deltas", "--report", "--strategy", strategy).splitlines()
    assert [line for line in lines if not line.startswith("#")] == OUTPUT.splitlines()
    reports = [re.sub(r"\d+\.\d ms", "_ ms", line) for line in lines if line.startswith("#")]
    assert [line for line in reports if line.startswith("# epoch")] == REPORTS
    costs = [line for line in reports if "label updates" in line]
    assert len(costs) == (3 if strategy == "auto" else 0), "the reference evaluator counts no work"
    assert [line for line in costs if not re.fullmatch(COSTS, line)] == []


@pytest.mark.parametrize("options", [("--verify",), ("--partitions", "3"), ("--strategy", "reference", "--verify")])
def test_replay_in_other_ways(options: tuple[str, ...]) -> None:
    assert succeed("replay", "program.dl", "input.deltas", *options) == OUTPUT


def test_replay_json() -> None:
    epochs = [json.loads(line) for line in succeed("replay", "program.dl", "input.deltas", "--json").splitlines()]
    assert [(epoch["epoch"], epoch["time"]) for epoch in epochs] == [(1, 5), (2, 6), (3, 20)]
    assert epochs[0]["changes"] == {
        "reachable": {"inserted": [["depot", "a"], ["depot", "b"]], "deleted": []},
        "size": {"inserted": [["depot", 2]], "deleted": []},
    }
    assert epochs[1]["changes"] == {}
    assert epochs[1]["input"] == {
        "inserted": 0,
        "deleted": 0,
        "refreshed": 1,
        "absent": 1,
        "late": 0,
        "expired": 0,
    }
    assert all(epoch["seconds"] >= 0 for epoch in epochs)
    assert all(epoch["work"]["rounds"] >= 0 and epoch["state_bytes"] > 0 for epoch in epochs)
    assert set(epochs[0]["phases"]) >= {"input", "maintain", "output"}


def test_replay_json_values(folder: Path) -> None:
    """Lists become arrays, terms stay text."""
    (folder / "program.dl").write_text("copy(X) :- item(X).\n", encoding="utf-8")
    (folder / "input.deltas").write_text("@1\n+item([1, [2], point(3, 4)])\n", encoding="utf-8")
    (line,) = succeed("replay", "program.dl", "input.deltas", "--json").splitlines()
    assert json.loads(line)["changes"]["copy"]["inserted"] == [[[1, [2], "point(3, 4)"]]]


def test_byte_order_mark_and_carriage_returns(folder: Path) -> None:
    (folder / "program.dl").write_bytes(b"\xef\xbb\xbf" + PROGRAM.replace("\n", "\r\n").encode())
    (folder / "input.deltas").write_bytes(b"\xef\xbb\xbf" + DELTAS.replace("\n", "\r\n").encode())
    assert succeed("replay", "program.dl", "input.deltas") == OUTPUT


def test_version() -> None:
    assert succeed("--version") == f"whorl {__version__}\n"


def test_help() -> None:
    text = succeed("--help")
    assert text.startswith("Usage: whorl [OPTIONS] COMMAND [ARGS]...\n")
    for command in ("check", "explain", "replay"):
        assert re.search(rf"^  {command} +\S", text, re.MULTILINE)


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("check", ["--functions", "--strategy", "--json", "--times"]),
        ("explain", ["--stage", "--functions", "--without", "--times"]),
        (
            "replay",
            [
                "--functions",
                "--json",
                "--report",
                "--partitions",
                "--verify",
                "--without",
                "--max-rounds",
                "--max-tuples",
                "--max-depth",
            ],
        ),
    ],
)
def test_help_of_a_command(command: str, options: list[str]) -> None:
    text = succeed(command, "--help")
    assert text.startswith(f"Usage: whorl {command} [OPTIONS]")
    assert [option for option in options if f"\n  {option}" not in text] == []


def loaded_after(*arguments: str) -> set[str]:
    """Return the top-level modules that a run of the command line in a process of its own has imported."""
    code = (
        "import sys\n"
        "from whorl.cli.main import main\n"
        "try:\n    main()\nexcept SystemExit as ended:\n    assert not ended.code\n"
        "print(*{name.partition('.')[0] for name in sys.modules}, file=sys.stderr)\n"
    )
    done = subprocess.run([sys.executable, "-c", code, *arguments], check=True, capture_output=True, text=True)
    return set(done.stderr.split())


@pytest.mark.parametrize(
    "arguments",
    [("--version",), ("check", "program.dl"), ("explain", "program.dl"), ("explain", "program.dl", "--times")],
)
def test_starting_up_imports_nothing_heavy(arguments: tuple[str, ...]) -> None:
    loaded = loaded_after(*arguments)
    assert "whorl" in loaded
    assert loaded.isdisjoint(HEAVY)


def test_version_does_not_load_the_parser() -> None:
    assert "lark" not in loaded_after("--version")
