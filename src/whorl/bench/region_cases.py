"""The cases of `whorl bench regions`: partitions on a simulated network, and what maintaining makes them send.

The experiments are those of REGIONS (section 7). Each point of a figure is a case; `region_series` puts the points
together. Facts are loaded in quarters, then single facts are deleted one after the other.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from whorl.bench.case import Case, Entry, growing
from whorl.bench.contestants import Contestant
from whorl.bench.networks import even_latencies, sensor_field
from whorl.bench.selection_cases import SELECTION_CASES, SELECTION_TARGETS
from whorl.bench.spreading import (
    ALL,
    DRED,
    EAGER,
    FEW,
    LAZY,
    MANY,
    RECOMPUTE,
    generate,
    in_quarters,
    one_by_one,
    spread_network,
)
from whorl.bench.targets import Figure, Target
from whorl.bench.workload import REACHABLE, REGION, Batch, Spread

PORTIONS = (25, 50, 75, 100)
SIZES = (100, 200, 400, 800)
PARTITIONS = (1, 2, 4, 8, 12, 16, 24)
_SECONDS = {EAGER: 60.0}  # CPU seconds that one measurement may take
_LONG = 120.0  # of the others
_USUAL = 12  # partitions, where nothing else is said


def _entries(contestants: Iterable[Contestant]) -> tuple[Entry, ...]:
    return tuple(Entry(each, seconds=_SECONDS.get(each, _LONG)) for each in contestants)


# Networks


def _network(
    links: int, degree: int, partitions: int, seed: int, *, quick: bool, portion: int = 100, deletions: int = MANY
) -> Spread:
    network = generate(links, degree, seed, quick=quick)
    return spread_network(network, REACHABLE, partitions, seed, quick=quick, portion=portion, deletions=deletions)


_PORTIONS = growing(
    Case(
        f"regions-network-{portion}",
        f"reachability over {portion} % of 400 links of 100 nodes, {_USUAL} partitions; a link is deleted",
        partial(_network, 400, 4, _USUAL, portion=portion),
        _entries(ALL),
    )
    for portion in PORTIONS
)
_SIZES = tuple(
    case
    for density, degree in (("dense", 4), ("sparse", 2))
    for case in growing(
        Case(
            f"regions-{density}-{links}",
            f"reachability over {links} links of {links // degree} nodes ({density}), {_USUAL} partitions",
            partial(_network, links, degree, _USUAL, deletions=FEW),
            _entries(each for each in ALL if each != RECOMPUTE),
        )
        for links in SIZES
    )
)
_PARTITIONS = tuple(
    Case(
        f"regions-partitions-{count}",
        f"reachability over 400 links of 100 nodes in {count} partition{'s' * (count > 1)}",
        partial(_network, 400, 4, count),
        _entries(each for each in ALL if each not in (RECOMPUTE, EAGER)),
    )
    for count in PARTITIONS
)


# Sensors


def _sensors(portion: int, seed: int, *, quick: bool) -> Spread:
    """Return: sensors are triggered in quarters, then some are not any more; rows live at their sensors."""
    field = sensor_field(seed, step=25, regions=2) if quick else sensor_field(seed)
    triggered = field.triggered[: max(len(field.triggered) * portion // 100, len(field.seeds))]
    first, *more = in_quarters("isTriggered", triggered)
    known = {"sensor": field.sensors, "mainSensorInRegion": field.seeds}
    deletions = one_by_one("isTriggered", triggered, 3 if quick else FEW, seed)
    load = Batch("load", {**known, **first.inserts})
    return Spread(REGION, load, (*more, *deletions), even_latencies(3 if quick else _USUAL, 0.002), "join")


_SENSORS = growing(
    Case(
        f"regions-sensors-{portion}",
        f"regions around 5 of 100 sensors, {portion} % of 50 triggered, {_USUAL} partitions; one is triggered no more",
        partial(_sensors, portion),
        _entries(ALL),
    )
    for portion in PORTIONS
)


REGION_CASES: tuple[Case, ...] = (*_PORTIONS, *_SENSORS, *_SIZES, *_PARTITIONS, *SELECTION_CASES)


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
    *SELECTION_TARGETS,
)
