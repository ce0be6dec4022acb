"""The demo runs, shows real changes, and can be kept and replayed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import networkx as nx

from whorl.cli.demo import Network

COMMAND = (sys.executable, "-m", "whorl.cli.main")


def _whorl(*args: str, folder: Path) -> str:
    run = subprocess.run([*COMMAND, *args], cwd=folder, capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stderr
    return run.stdout


def _epochs(output: str) -> list[dict[str, list[str]]]:
    """Cut bare output into epochs: the lines of `in`, `out` and `now`."""
    epochs: list[dict[str, list[str]]] = []
    for line in output.splitlines():
        if re.fullmatch(r"epoch \d+", line):
            epochs.append({"in": [], "out": [], "now": []})
        elif found := re.fullmatch(r"  (in|out|now) +(.*)", line):
            epochs[-1][found[1]].append(found[2])
    return epochs


def test_plain_run(tmp_path: Path) -> None:
    output = _whorl("demo", "network", "--epochs", "3", "--plain", folder=tmp_path)
    first, second, third = _epochs(output)
    assert first["now"] == ["11 of 11 links up, 36 of 36 pairs connected"]
    assert all(line.startswith("+link(") for line in first["in"])
    assert second["in"] == ['-link("Graz", "Riga", 7)']
    assert '-route("Graz", "Riga", 7)' in second["out"]
    assert '+route("Graz", "Riga", 41)' in second["out"]
    assert third["in"] == ['-link("Brno", "Riga", 4)']
    assert '-connected("Graz", "Riga")' in third["out"]
    assert third["now"] == ["9 of 11 links up, 28 of 36 pairs connected"]
    assert "computed every view afresh" in output
    assert "\x1b" not in output


def test_same_seed_same_run(tmp_path: Path) -> None:
    options = ("--epochs", "4", "--plain", "--seed")
    assert _whorl("demo", *options, "3", folder=tmp_path) == _whorl("demo", *options, "3", folder=tmp_path)
    assert _whorl("demo", *options, "3", folder=tmp_path) != _whorl("demo", *options, "4", folder=tmp_path)


def test_tables_without_a_terminal(tmp_path: Path) -> None:
    output = _whorl("demo", "--epochs", "2", folder=tmp_path)
    assert "query route(X, Y, C)." in output
    assert "- Graz–Riga fails" in output
    assert "Bern–Riga 13 → 35" in output


def test_routes_are_the_shortest_paths(tmp_path: Path) -> None:
    """After every epoch the changes add up to what another library finds."""
    epochs = _epochs(_whorl("demo", "--plain", "--seed", "5", folder=tmp_path))
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


def test_saved_demo_replays(tmp_path: Path) -> None:
    _whorl("demo", "network", "--epochs", "5", "--save", "kept", folder=tmp_path)
    replayed = _whorl("replay", "kept/network.dl", "kept/network.deltas", folder=tmp_path)
    shown = _epochs(_whorl("demo", "--epochs", "5", "--plain", folder=tmp_path))
    changes = [line for line in replayed.splitlines() if not line.startswith("@")]
    assert changes == [line for epoch in shown for line in epoch["out"]]
    assert (tmp_path / "kept" / "network.deltas").read_text().startswith("@1\n+link(")


def test_other_demos_are_refused(tmp_path: Path) -> None:
    run = subprocess.run([*COMMAND, "demo", "nothing"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert run.returncode == 2
    assert "nothing is no demo; there is network" in run.stderr
