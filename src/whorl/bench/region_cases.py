"""The cases of `whorl bench regions`: partitions on a simulated network, and what maintaining makes them send.

The experiments are those of REGIONS (section 7). Each point of a figure is a case; `region_series` puts the points
together. Facts are loaded in quarters, then single facts are deleted one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np

from whorl.bench.case import Case, Entry
from whorl.bench.contestants import Contestant
from whorl.bench.graphs import Ints
from whorl.bench.networks import Network, even_latencies, sensor_field, transit_stub
from whorl.bench.targets import Figure, Target
from whorl.bench.workload import CHEAPEST, COST, COST_AND_HOPS, EVERY_PATH, REACHABLE, REGION, Batch, Rules, Spread

DRED, PF, SUPPORT, DERIVATIONS, RECOMPUTE, LAZY, EAGER = (
    Contestant("whorl-net", variant)
    for variant in ("dred", "pf", "support", "derivations", "recompute", "absorption lazy", "absorption eager")
)
ALL = (RECOMPUTE, DRED, PF, DERIVATIONS, SUPPORT, LAZY, EAGER)
PORTIONS = (25, 50, 75, 100)
SIZES = (100, 200, 400, 800)
PARTITIONS = (1, 2, 4, 8, 12, 16, 24)
SELECTIONS = ("one", "two", "printed", "none")
_SECONDS = {EAGER: 60.0}  # what one measurement may take
_LONG = 120.0  # of the others
_LEAST, _FEW, _MANY = 3, 8, 30  # deletions: single ones differ much, but of costs and in large networks they take long
_USUAL = 12  # partitions, where nothing else is said


def _entries(contestants: Iterable[Contestant]) -> tuple[Entry, ...]:
    return tuple(Entry(each, seconds=_SECONDS.get(each, _LONG)) for each in contestants)


def _in_quarters(relation: str, rows: Ints) -> list[Batch]:
    return [Batch("load", {relation: part}) for part in np.array_split(rows, 4)]


def _one_by_one(relation: str, rows: Ints, count: int, seed: int) -> tuple[Batch, ...]:
    """Return deletions of single rows."""
    chosen = np.random.default_rng(seed + 1).choice(len(rows), min(count, len(rows)), replace=False)
    return tuple(Batch("delete", deletes={relation: rows[[at]]}) for at in chosen.tolist())


# Networks


def _generate(links: int, degree: int, seed: int, *, quick: bool) -> Network:
    """Return a network with so many link tuples, and ``degree`` of them for each node."""
    if quick:
        return transit_stub(2, 14 + 3 * degree, seed, stubs=1, size=4)
    return transit_stub(links // (25 * degree), links, seed)


def spread_network(
    network: Network,
    rules: Rules,
    partitions: int,
    seed: int,
    *,
    quick: bool,
    portion: int = 100,
    deletions: int = _FEW,
) -> Spread:
    """Return: a part of the links is loaded in quarters, then some are deleted."""
    links = network.links[: len(network.links) * portion // 100, : 3 if "C: Integer" in rules.text else 2]
    first, *more = _in_quarters("link", links)
    steps = _one_by_one("link", links, 3 if quick else deletions, seed)
    return Spread(rules, first, (*more, *steps), network.latencies(3 if quick else partitions))


def _network(
    links: int, degree: int, partitions: int, rules: Rules, seed: int, *, quick: bool, portion: int, deletions: int
) -> Spread:
    network = _generate(links, degree, seed, quick=quick)
    return spread_network(network, rules, partitions, seed, quick=quick, portion=portion, deletions=deletions)


_PORTIONS = tuple(
    Case(
        f"regions-network-{portion}",
        f"reachability over {portion} % of 400 links of 100 nodes, {_USUAL} partitions; a link is deleted",
        partial(_network, 400, 4, _USUAL, REACHABLE, portion=portion, deletions=_MANY),
        _entries(ALL),
    )
    for portion in PORTIONS
)
_SIZES = tuple(
    Case(
        f"regions-{density}-{links}",
        f"reachability over {links} links of {links // degree} nodes ({density}), {_USUAL} partitions",
        partial(_network, links, degree, _USUAL, REACHABLE, portion=100, deletions=_FEW),
        _entries((DRED, SUPPORT, LAZY, EAGER)),
    )
    for density, degree in (("dense", 4), ("sparse", 2))
    for links in SIZES
)
_PARTITIONS = tuple(
    Case(
        f"regions-partitions-{count}",
        f"reachability over 400 links of 100 nodes in {count} partition{'s' * (count > 1)}",
        partial(_network, 400, 4, count, REACHABLE, portion=100, deletions=_MANY),
        _entries((DRED, SUPPORT, LAZY)),
    )
    for count in PARTITIONS
)


# Sensors


def _sensors(portion: int, seed: int, *, quick: bool) -> Spread:
    """Return: sensors are triggered in quarters, then some are not any more; rows live at their sensors."""
    field = sensor_field(seed, step=25, regions=2) if quick else sensor_field(seed)
    triggered = field.triggered[: max(len(field.triggered) * portion // 100, len(field.seeds))]
    first, *more = _in_quarters("isTriggered", triggered)
    known = {"sensor": field.sensors, "mainSensorInRegion": field.seeds}
    deletions = _one_by_one("isTriggered", triggered, 3 if quick else _FEW, seed)
    load = Batch("load", {**known, **first.inserts})
    return Spread(REGION, load, (*more, *deletions), even_latencies(3 if quick else _USUAL, 0.002), "join")


_SENSORS = tuple(
    Case(
        f"regions-sensors-{portion}",
        f"regions around 5 of 100 sensors, {portion} % of 50 triggered, {_USUAL} partitions; one is triggered no more",
        partial(_sensors, portion),
        _entries(ALL),
    )
    for portion in PORTIONS
)


# Aggregate selections

_QUERIES = {
    "one": (COST, "the cost of the cheapest path, min in recursion: one selection at the sender"),
    "two": (COST_AND_HOPS, "lowest cost and fewest hops, each a recursion of its own: two selections at the sender"),
    "printed": (
        CHEAPEST,
        "query 2 of REGIONS: its recursion runs as a whole in every partition, and only links travel",
    ),
    "none": (EVERY_PATH, "every path with its cost and length: nothing is selected, and cycles have no end"),
}
_SELECTIONS = tuple(
    Case(
        f"regions-select-{density}-{selection}",
        f"{_QUERIES[selection][1]} (100 nodes, {density})",
        partial(_network, 100 * degree, degree, _USUAL, _QUERIES[selection][0], portion=100, deletions=_LEAST),
        _entries((DRED,) if selection == "none" else (RECOMPUTE, DRED, LAZY)),
    )
    for density, degree in (("dense", 4), ("sparse", 2))
    for selection in SELECTIONS
)

REGION_CASES: tuple[Case, ...] = (*_PORTIONS, *_SENSORS, *_SIZES, *_PARTITIONS, *_SELECTIONS)


def _against(case: str, other: Contestant, name: str, text: str) -> Target:
    return Target(text, Figure(case, other.label, name), Figure(case, LAZY.label, name), 10.0, least=True)


_DENSE, _LARGE = "regions-network-100", "regions-dense-800"
REGION_TARGETS: tuple[Target, ...] = (
    _against(_DENSE, DRED, "delete.bytes", "bytes shipped by a deletion, DRed against lazy absorption"),
    _against(_DENSE, DRED, "delete.rows", "rows shipped by a deletion, DRed against lazy absorption"),
    _against(_DENSE, DRED, "delete.work", "work of a deletion, DRed against lazy absorption"),
    _against(_DENSE, RECOMPUTE, "delete.bytes", "bytes shipped by a deletion, recompute against lazy absorption"),
    Target(
        "rows shipped by loading, lazy absorption against sets (DRed)",
        Figure(_DENSE, LAZY.label, "load.rows"),
        Figure(_DENSE, DRED.label, "load.rows"),
        1.0,
    ),
    Target(
        "bytes shipped by loading, lazy absorption against sets (DRed)",
        Figure(_DENSE, LAZY.label, "load.bytes"),
        Figure(_DENSE, DRED.label, "load.bytes"),
        1.0,
    ),
    Target(
        "CPU seconds to load 800 links with lazy absorption, all partitions together",
        Figure(_LARGE, LAZY.label, "load.cpu"),
        None,
        5.0,
    ),
    Target(
        "seconds on the network to load 800 links with lazy absorption, with a 12th of the CPU time",
        Figure(_LARGE, LAZY.label, "load.spread"),
        None,
        5.0,
    ),
)
