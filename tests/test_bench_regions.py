"""`whorl bench regions`: generated networks and sensors, equal answers, what is shipped, series, real networks."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from tests.command_line import whorl
from whorl.bench.answer import Answer, answer_of
from whorl.bench.contestants.whorl import build_epochs
from whorl.bench.curves import draw_series
from whorl.bench.networks import Network, even_latencies, sensor_field, transit_stub
from whorl.bench.outcome import Outcome
from whorl.bench.path_queries import QUERIES
from whorl.bench.real_networks import data_cases
from whorl.bench.region_cases import REGION_CASES, REGION_TARGETS
from whorl.bench.region_series import REGION_SERIES, data_series
from whorl.bench.results import CaseResult, Tally
from whorl.bench.series import cell, format_bytes, metrics_of, notes_of
from whorl.bench.spreading import ALL, DERIVATIONS, DRED, EAGER, LAZY, PF, RECOMPUTE, SUPPORT, spread_network
from whorl.bench.suite import SUITES, find_case
from whorl.bench.targets import judge
from whorl.bench.workload import REACHABLE, Batch, Spread, Workload
from whorl.diagnostics.source import Source
from whorl.kernel.state.owner import owner_of
from whorl.logical.compile import compile_program
from whorl.oracle.session import Oracle

# Generated data


@pytest.mark.parametrize(
    ("transits", "links", "nodes"),
    [(1, 100, 25), (4, 400, 100), (8, 800, 200), (2, 100, 50), (16, 800, 400)],
)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_network_is_connected_and_has_the_links_it_promises(transits: int, links: int, nodes: int, seed: int) -> None:
    network = transit_stub(transits, links, seed)
    assert network.nodes == nodes
    assert len(np.unique(network.links[:, :2], axis=0)) == len(network.links) == links
    assert (network.links[:, 0] != network.links[:, 1]).all()
    assert np.isfinite(network.distances()).all()
    both = {tuple(row) for row in network.links.tolist()}
    assert {(b, a, latency) for a, b, latency in both} == both


def test_latencies_tell_the_core_from_the_stubs() -> None:
    network = transit_stub(4, 400, seed=1)
    for a, b, latency in network.links.tolist():
        inside = (a >= 4) + (b >= 4)  # the first four nodes are the core
        assert latency == {0: 50, 1: 10, 2: 2}[inside]
        assert inside < 2 or (a - 4) // 8 == (b - 4) // 8


def test_the_seed_decides_the_network() -> None:
    first, again, other = (transit_stub(4, 400, seed).links.tolist() for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_links_that_find_no_room_are_refused() -> None:
    for links in (10, 1_000):
        with pytest.raises(ValueError, match="do not fit"):
            transit_stub(1, links, seed=1)


def test_a_partition_stands_at_its_first_node() -> None:
    ways = np.array([[0, 1, 10], [1, 0, 10], [1, 2, 50], [2, 1, 50], [2, 3, 2], [3, 2, 2]])
    network = Network(4, ways)
    assert network.distances()[0].tolist() == pytest.approx([0.0, 0.01, 0.06, 0.062])
    owners = [owner_of(node, 2) for node in range(4)]
    stands = [owners.index(0), owners.index(1)]
    assert network.latencies(2)[0][1] == network.distances()[stands[0], stands[1]]


def test_half_of_the_sensors_are_triggered_the_seeds_first() -> None:
    field = sensor_field(1)
    assert len(field.sensors) == 100
    assert {(x, y) for _, x, y in field.sensors.tolist()} == {
        (x, y) for x in range(0, 100, 10) for y in range(0, 100, 10)
    }
    assert field.triggered[:5, 0].tolist() == field.seeds[:, 1].tolist()
    assert len(np.unique(field.triggered)) == len(field.triggered) == 50
    assert sensor_field(2).triggered.tolist() != field.triggered.tolist()


@pytest.mark.parametrize("case", REGION_CASES, ids=lambda case: case.name)
def test_facts_are_loaded_in_quarters_then_single_ones_go(case: object) -> None:
    assert isinstance(case, type(REGION_CASES[0]))
    workload = case.build(1, quick=False)
    assert isinstance(workload, Spread)
    kinds = [workload.load.kind, *(step.kind for step in workload.steps)]
    assert kinds == ["load"] * 4 + ["delete"] * (len(kinds) - 4)
    relation = next(iter(workload.steps[-1].deletes))
    loaded = [tuple(row) for batch in (workload.load, *workload.steps[:3]) for row in batch.inserts[relation].tolist()]
    gone = [tuple(row) for step in workload.steps[3:] for row in step.deletes[relation].tolist()]
    assert len(set(gone)) == len(gone) == {"network": 30, "partitions": 30, "select": 3}.get(case.name.split("-")[1], 8)
    assert set(gone) <= set(loaded)


# Contestants, on small data


def _expected(workload: Workload) -> Answer:
    source = Source(workload.rules.name, workload.rules.text)
    oracle = Oracle(lambda types: compile_program(source, data_types=types))
    for epoch in build_epochs(workload):
        oracle.commit(epoch)
    rows = np.array(sorted(oracle.rows(workload.rules.view)), np.int64)
    return answer_of(rows)


@pytest.mark.parametrize(
    ("name", "contestant"),
    [
        *(("regions-network-100", each) for each in ALL),
        *(("regions-sensors-100", each) for each in ALL),
        *(("regions-select-dense-least", each) for each in (RECOMPUTE, DRED, LAZY)),
        *((f"regions-select-sparse-{each}", RECOMPUTE) for each in ("none", "one", "two", "printed")),
        ("regions-select-small-none", LAZY),
        ("regions-sparse-100", LAZY),
    ],
)
def test_contestants_answer_as_the_oracle(name: str, contestant: object) -> None:
    assert isinstance(contestant, type(DRED))
    workload = find_case(name).build(3, quick=True)
    outcome = contestant.measure(workload, workload.first(0))
    assert outcome.answers["end"] == _expected(workload)
    assert outcome.figures["load.rows"] > 0
    assert outcome.figures["load.clock"] > 0
    assert outcome.figures["load.state"] > 0
    assert outcome.figures["delete.state"] > 0


def test_who_does_not_serve_a_selection_says_so() -> None:
    workload = find_case("regions-select-dense-two").build(1, quick=True)
    assert LAZY.measure(workload, workload.first(0)).skipped.startswith(
        "does not serve this program: rows are selected"
    )


def test_two_selections_in_one_recursion_ship_about_half_of_what_two_recursions_do() -> None:
    outcomes = {}
    for name, (rules, _text) in QUERIES.items():
        workload = spread_network(transit_stub(1, 60, seed=1), rules, 6, 1, quick=False, deletions=1)
        outcomes[name] = RECOMPUTE.measure(workload, workload.first(0))
    (same,) = {tuple(outcome.answers.items()) for outcome in outcomes.values()}
    assert [answer.rows for _moment, answer in same] == [600, 600]  # all pairs but a node with itself
    figures = {name: outcome.figures for name, outcome in outcomes.items()}
    for kind in ("load", "delete"):
        for unit in ("rows", "bytes"):
            assert figures["two"][f"{kind}.{unit}"] < 0.6 * figures["one"][f"{kind}.{unit}"]
            assert figures["two"][f"{kind}.{unit}"] < 0.6 * figures["none"][f"{kind}.{unit}"]
    assert figures["least"]["load.rows"] <= figures["one"]["load.rows"]


def _triangle(*steps: Batch) -> Spread:
    """Return the network of figure 2 of REGIONS, where nodes 0, 1, 2 stand for A, B, C."""
    load = Batch("load", {"link": np.array([[0, 1], [1, 2], [2, 0], [2, 1]])})
    return Spread(REACHABLE, load, steps, even_latencies(8, 0.002))


def test_figures_add_up_what_was_shipped() -> None:
    workload = _triangle(
        Batch("load", {"link": np.array([[2, 3]])}), Batch("delete", deletes={"link": np.array([[2, 3]])})
    )
    sets, ranked, lazy = (each.measure(workload, workload.first(0)).figures for each in (DRED, SUPPORT, LAZY))
    assert sets["load.rows"] == ranked["load.rows"] > lazy["load.rows"]
    assert sets["load.bytes"] == 16 * sets["load.rows"]  # two numbers each, and nothing else
    assert sets["load.label"] == 0.0
    assert lazy["load.bytes"] == pytest.approx((16 + lazy["load.label"]) * lazy["load.rows"])
    assert min(lazy["load.label"], ranked["load.label"]) > 0.0
    assert sets["load.spread"] == pytest.approx(sets["load.clock"] + sets["load.cpu"] / 8)


def test_lazy_labels_ship_far_less_than_dred_when_a_link_of_a_dense_network_goes() -> None:
    network = transit_stub(2, 200, seed=1)
    steps = tuple(Batch("delete", deletes={"link": network.links[[at], :2]}) for at in range(4))
    workload = Spread(REACHABLE, Batch("load", {"link": network.links[:, :2]}), steps, network.latencies(6))
    sets, lazy = (each.measure(workload, workload.first(0)).figures for each in (DRED, LAZY))
    assert sets["load.rows"] >= lazy["load.rows"]
    assert sets["delete.rows"] > 10 * lazy["delete.rows"]
    assert sets["delete.bytes"] > 5 * lazy["delete.bytes"]
    assert sets["delete.work"] > 10 * lazy["delete.work"]


def test_a_quick_run_is_content_with_one_case_of_a_kind() -> None:
    suite = SUITES["regions"]
    chosen = suite.choose([], suite.options(None, None, 1, quick=True, full=False))
    kinds = [case.name.split("-")[1] for case in chosen]
    assert set(kinds) == {case.name.split("-")[1] for case in REGION_CASES}
    assert [kinds.count(each) for each in ("network", "partitions", "select")] == [1, 1, 5]
    assert suite.choose([], suite.options(None, None, 1, quick=False, full=False)) == REGION_CASES


# Series and targets


def _results(**figures: dict[str, float]) -> CaseResult:
    tallies = [Tally(f"whorl-net {who.replace('_', ' ')}", [Outcome(own)]) for who, own in figures.items()]
    return CaseResult("regions-network-100", "", tallies)


def test_every_case_is_a_point_of_a_series() -> None:
    points = [name for series in REGION_SERIES for name in series.points.values()]
    assert set(points) == {case.name for case in REGION_CASES}
    assert len(points) == 2 * len(REGION_CASES)  # the load, and the deletions


def test_what_was_not_done_is_shown() -> None:
    result = _results(dred={"load.bytes": 1_234_567.0})
    result.tallies.append(Tally(EAGER.label, note="failed: not done after 60 s"))
    result.tallies.append(Tally(PF.label, note="does not serve this program: it is recursive"))
    series, metric = REGION_SERIES[0], metrics_of("load")[2]
    results = {result.name: result}
    shown = [cell(series, "100 %", who.label, metric, results) for who in (DRED, EAGER, PF)]
    assert shown == ["1.23 MB", "not done", "not served"]
    assert cell(series, "25 %", DRED.label, metric, results) == ""
    assert notes_of([series], [result]) == [
        "whorl-net absorption eager: failed: not done after 60 s (regions-network-100)",
        "whorl-net pf: does not serve this program: it is recursive (regions-network-100)",
    ]


def test_targets_compare_lazy_labels_with_dred() -> None:
    result = _results(
        dred={"delete.bytes": 800.0, "delete.rows": 50.0, "delete.work": 90.0, "load.rows": 30.0, "load.bytes": 480.0},
        absorption_lazy={
            "delete.bytes": 50.0,
            "delete.rows": 1.0,
            "delete.work": 10.0,
            "load.rows": 30.0,
            "load.bytes": 960.0,
        },
    )
    verdicts = judge({result.name: result}, REGION_TARGETS)
    assert [(each.value, each.passed) for each in verdicts] == [
        (16.0, True),
        (50.0, True),
        (9.0, False),
        (None, None),
        (1.0, True),
        (2.0, False),
    ]


def test_targets_name_who_takes_part() -> None:
    for target in REGION_TARGETS:
        for figure in (target.over, target.under):
            if figure is not None:
                assert figure.contestant in {entry.contestant.label for entry in find_case(figure.case).entries}


def test_bytes_have_a_unit_that_suits_them() -> None:
    assert [format_bytes(value) for value in (0, 76.66, 1_500, 2.5e6, 3e9)] == [
        "0 B",
        "76.7 B",
        "1.5 kB",
        "2.5 MB",
        "3 GB",
    ]


def test_the_picture_has_a_line_for_each_contestant_that_was_measured() -> None:
    result = _results(
        dred={"delete.bytes": 800.0, "delete.rows": 50.0}, support={"delete.bytes": 8.0, "delete.rows": 0.0}
    )
    root = ElementTree.fromstring(draw_series(REGION_SERIES, {result.name: result}))
    texts = [element.text for element in root if element.tag.endswith("text")]
    assert texts[:4] == ["reachability in a network: one deletion (figure 8)", "dred", "support", "rows shipped"]
    assert "bytes shipped" in texts
    assert len([element for element in root if element.tag.endswith("circle")]) == 3


# Real networks


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """Return a folder with a small network of each kind."""
    for name in ("rocketfuel", "topology-zoo", "bgp-streams"):
        (tmp_path / name).mkdir()
    ring = "".join(f"r{at} r{(at + 1) % 6} {at + 1}\nr{(at + 1) % 6} r{at} {at + 1}\n" for at in range(6))
    (tmp_path / "rocketfuel" / "7.latencies.intra").write_text(ring, encoding="utf-8")
    zoo = "network,a,b,label,speed_raw,km\n" + "".join(f"Geant2012,{at},{at + 1},,,400\n" for at in range(8))
    (tmp_path / "topology-zoo" / "links.csv.gz").write_bytes(gzip.compress(zoo.encode()))
    updates = "time,kind,peer_ip,prefix,as_path\n1,A,p,x,1 2 2 3\n2,A,p,y,1 2 4\n3,A,p,x,1 {5} 3\n4,W,p,y,\n"
    (tmp_path / "bgp-streams" / "r-updates.csv.gz").write_bytes(gzip.compress(updates.encode()))
    return tmp_path


def test_real_networks_become_cases(data: Path) -> None:
    cases = {case.name: case for case in data_cases(data)}
    assert list(cases)[:2] == ["regions-data-rocketfuel-7", "regions-data-zoo-Geant2012"]
    ring = cases["regions-data-rocketfuel-7"].build(1, quick=False)
    assert sum(len(batch.inserts["link"]) for batch in (ring.load, *ring.steps[:3])) == 12
    line = cases["regions-data-zoo-Geant2012"].build(1, quick=False)
    assert sum(len(batch.inserts["link"]) for batch in (line.load, *line.steps[:3])) == 16
    assert find_case("regions-data-rocketfuel-7", str(data)).name == "regions-data-rocketfuel-7"


def test_links_follow_the_paths_that_are_announced_and_withdrawn(data: Path) -> None:
    case = find_case("regions-data-bgp-r", str(data))
    workload = case.build(1, quick=True)
    changes = [
        (sorted(batch.inserts["link"].tolist()), sorted(batch.deletes.get("link", np.empty((0, 2))).tolist()))
        for batch in (workload.load, *workload.steps)
    ]
    # 1 2 3 4 are numbered 0 1 2 3; the set {5} is no system
    assert changes == [([[0, 1], [1, 2], [1, 3]], []), ([[0, 2]], [[1, 2]]), ([], [[0, 1], [1, 3]]), ([], [])]
    assert [series.name for series in data_series([case])] == [
        "data-load",
        "data-delete",
        "routes-load",
        "routes-epoch",
    ]
    for contestant in (DRED, DERIVATIONS, LAZY):
        outcome = contestant.measure(workload, workload.first(0))
        assert outcome.answers["end"] == _expected(workload)
        assert "epoch.bytes" in outcome.figures


# The command


def test_the_command_prints_series_and_writes_files(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    only = ("--only", "regions-network-100", "--only", "regions-data-rocketfuel-7", "--cap", "120")
    run = whorl("bench", "regions", "--quick", *only, "--data", str(data), "--output", str(out))
    assert run.code == 0
    assert "reachability in a network: one deletion (figure 8), small data" in run.out
    assert "real networks: loading, small data" in run.out
    assert "recompute ships what a system without maintenance would" in run.out
    written = json.loads((out / "results.json").read_text(encoding="utf-8"))
    assert [case["case"] for case in written["cases"]] == ["regions-network-100", "regions-data-rocketfuel-7"]
    first = {own["contestant"]: own["median"] for own in written["cases"][0]["contestants"]}
    assert first[DRED.label]["load.rows"] > first[LAZY.label]["load.rows"]
    assert ElementTree.parse(out / "results.svg").getroot().tag.endswith("svg")


def test_a_folder_without_networks_is_refused(tmp_path: Path) -> None:
    run = whorl("bench", "regions", "--data", str(tmp_path))
    assert run.code == 1
    assert f'E663 the folder "{tmp_path}" holds no network that is known' in run.err
