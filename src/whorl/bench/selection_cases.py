"""The cases of aggregate selections (REGIONS, figure 14): the same question, with more and less selected on the way.

All cases of one network are alike: they must give the same answer. Whoever selects nothing follows every path without a
circle. There are some 23,000 of these in the small network and 11,000 in the sparse one, which is nearly a tree; in the
dense one their number is beyond any bound.
"""

from __future__ import annotations

from functools import partial

from whorl.bench.case import Case, Entry
from whorl.bench.contestants import Contestant
from whorl.bench.networks import Network, transit_stub
from whorl.bench.path_queries import QUERIES
from whorl.bench.spreading import DRED, LAZY, RECOMPUTE, generate, spread_network
from whorl.bench.targets import Figure, Target
from whorl.bench.workload import Rules, Spread

NETWORKS = {
    "small": "25 nodes, 72 links",
    "sparse": "100 nodes, 200 links",
    "dense": "100 nodes, 400 links",
}
POINTS = {
    "small": ("none", "one", "two", "least", "printed"),
    "sparse": ("none", "one", "two", "least", "printed"),
    "dense": ("none", "one", "two", "least"),
}
_DEGREES = {"sparse": 2, "dense": 4}
_PARTITIONS = 12
_DELETIONS = 3  # each takes as long as loading: a selection starts from nothing
_SECONDS = 120.0
_ENDLESS = "a dense network has too many paths without a circle"
_MAINTAINED = ("none", "least")  # those that other strategies than recompute serve


def _build(network: str) -> partial[Network]:
    if network == "small":
        return partial(_small)
    return partial(generate, 100 * _DEGREES[network], _DEGREES[network])


def _small(seed: int, *, quick: bool) -> Network:
    return generate(100, 2, seed, quick=True) if quick else transit_stub(1, 72, seed)


def _spread(build: partial[Network], rules: Rules, seed: int, *, quick: bool) -> Spread:
    return spread_network(build(seed, quick=quick), rules, _PARTITIONS, seed, quick=quick, deletions=_DELETIONS)


def _entries(network: str, selection: str) -> tuple[Entry, ...]:
    hopeless = _ENDLESS if (network, selection) == ("dense", "none") else ""
    who: tuple[Contestant, ...] = (RECOMPUTE, DRED, LAZY) if selection in _MAINTAINED else (RECOMPUTE,)
    return tuple(Entry(each, seconds=_SECONDS, hopeless=hopeless) for each in who)


def _case(network: str, selection: str) -> Case:
    rules, text = QUERIES[selection]
    return Case(
        f"regions-select-{network}-{selection}",
        f"{text} ({NETWORKS[network]}, {_PARTITIONS} partitions)",
        partial(_spread, _build(network), rules),
        _entries(network, selection),
        alike=f"regions-select-{network}",
    )


SELECTION_CASES: tuple[Case, ...] = tuple(
    _case(network, selection) for network, selections in POINTS.items() for selection in selections
)


def _halved(network: str, name: str, text: str) -> Target:
    two, one = (Figure(f"regions-select-{network}-{each}", RECOMPUTE.label, name) for each in ("two", "one"))
    return Target(f"{text}, two selections at once against one at a time", two, one, 0.6)


SELECTION_TARGETS: tuple[Target, ...] = tuple(
    _halved(network, f"{kind}.{unit}", f"{unit} shipped by {what}")
    for network in ("sparse", "dense")
    for kind, what in (("load", "loading"), ("delete", "a deletion"))
    for unit in ("rows", "bytes")
)
