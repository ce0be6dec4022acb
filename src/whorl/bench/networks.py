"""Generated networks and sensor fields, and how far apart their nodes are. The same seed gives the same network.

A transit-stub network has a core of transit nodes, in domains of four; stubs of nodes that know each other hang on each
of them. Between transit nodes a message takes 50 ms, between a transit node and a stub 10 ms, within a stub 2 ms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from whorl.bench.graphs import Ints
from whorl.kernel.state.owner import owner_of

Seconds = npt.NDArray[np.float64]
_TRANSIT, _UP, _STUB = 50, 10, 2  # milliseconds
_DOMAIN = 4  # transit nodes of one domain
_CORE = 0.1  # the share of additional links that do not stay within a stub
_FAR = 0.05  # seconds between partitions of which one has no node, or between nodes without a way


@dataclass(frozen=True, slots=True, eq=False)
class Network:
    """Directed links, one a row with its latency in milliseconds; each link leads both ways."""

    nodes: int
    links: Ints

    def distances(self) -> Seconds:
        """Return the seconds of the fastest way between any two nodes; infinite where there is none."""
        found = np.full((self.nodes, self.nodes), np.inf)
        np.fill_diagonal(found, 0.0)
        np.minimum.at(found, (self.links[:, 0], self.links[:, 1]), self.links[:, 2] / 1000)
        for via in range(self.nodes):
            np.minimum(found, found[:, via, None] + found[None, via], out=found)
        return found

    def latencies(self, partitions: int) -> tuple[tuple[float, ...], ...]:
        """Return the seconds between any two partitions: each stands at the first node that it owns."""
        owners = [owner_of(node, partitions) for node in range(self.nodes)]
        stands = [owners.index(number) if number in owners else None for number in range(partitions)]
        between = np.where(np.isinf(distances := self.distances()), _FAR, distances)
        return tuple(tuple(_FAR if a is None or b is None else float(between[a, b]) for b in stands) for a in stands)


def even_latencies(partitions: int, seconds: float) -> tuple[tuple[float, ...], ...]:
    """Return the same time between any two partitions."""
    return tuple(tuple(seconds * (a != b) for b in range(partitions)) for a in range(partitions))


class _Wires:
    """Links as they are laid, each once."""

    def __init__(self) -> None:
        self.latency: dict[tuple[int, int], int] = {}

    def lay(self, a: int, b: int, latency: int) -> bool:
        """Connect two nodes; return False if they are the same, or connected already."""
        pair = (min(a, b), max(a, b))
        if a == b or pair in self.latency:
            return False
        self.latency[pair] = latency
        return True


def transit_stub(transits: int, links: int, seed: int, *, stubs: int = 3, size: int = 8) -> Network:
    """Return a connected network with so many link tuples; each transit node has ``stubs`` stubs of ``size`` nodes."""
    rng = np.random.default_rng(seed)
    wires = _Wires()
    for number, node in enumerate(range(1, transits), 1):
        inside = number % _DOMAIN  # the first of a domain leads to the domain before it
        wires.lay(node, node - int(rng.integers(1, (inside or _DOMAIN) + 1)), _TRANSIT)
    groups = _stubs(transits, stubs, size)
    for transit, members in groups:
        wires.lay(transit, int(rng.choice(members)), _UP)
        for at in range(1, size):
            wires.lay(members[at], members[int(rng.integers(at))], _STUB)
    room = (links // 2) - len(wires.latency)
    if room < 0 or links // 2 > _most(transits, groups):
        message = f"{links} links do not fit {transits} transit nodes with {stubs} stubs of {size}"
        raise ValueError(message)
    _add(wires, transits, groups, room, rng)
    return _network(transits * (1 + stubs * size), wires, rng)


def _stubs(transits: int, stubs: int, size: int) -> list[tuple[int, list[int]]]:
    """Return the nodes of each stub, with the transit node it hangs on."""
    starts = range(transits, transits * (1 + stubs * size), size)
    return [(at // stubs, list(range(start, start + size))) for at, start in enumerate(starts)]


def _most(transits: int, groups: list[tuple[int, list[int]]]) -> int:
    """Return how many links surely find room: all within stubs, and what connects these."""
    return transits - 1 + sum(1 + len(members) * (len(members) - 1) // 2 for _transit, members in groups)


def _add(
    wires: _Wires, transits: int, groups: list[tuple[int, list[int]]], room: int, rng: np.random.Generator
) -> None:
    """Lay more links: most within stubs, some between transit nodes of a domain, or from a stub to the core."""
    core = [
        pair
        for first in range(0, transits, _DOMAIN)
        for pair in combinations(range(first, min(first + _DOMAIN, transits)), 2)
    ]
    while room:
        _transit, members = groups[int(rng.integers(len(groups)))]
        a, b = (int(node) for node in rng.choice(members, 2, replace=False))
        luck = rng.random()
        if luck < _CORE / 2 and core:
            laid = wires.lay(*core[int(rng.integers(len(core)))], _TRANSIT)
        elif luck < _CORE:
            laid = wires.lay(a, int(rng.integers(transits)), _UP)
        else:
            laid = wires.lay(a, b, _STUB)
        room -= laid


def _network(nodes: int, wires: _Wires, rng: np.random.Generator) -> Network:
    rows = np.array([(*pair, latency) for pair, latency in wires.latency.items()], np.int64)
    both = np.concatenate((rows, rows[:, [1, 0, 2]]))
    return Network(nodes, both[rng.permutation(len(both))])


def build_network(pairs: Iterator[tuple[str, str, float]], seed: int) -> Network:
    """Return a network of named nodes, from links with latencies in milliseconds; each leads both ways."""
    numbers: dict[str, int] = {}
    wires = _Wires()
    for a, b, latency in pairs:
        ends = [numbers.setdefault(name, len(numbers)) for name in (a, b)]
        wires.lay(ends[0], ends[1], max(1, round(latency)))
    return _network(len(numbers), wires, np.random.default_rng(seed))


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """Sensors with their places in metres, the seeds of regions, and which sensors are triggered, in random order."""

    sensors: Ints
    seeds: Ints
    triggered: Ints


def sensor_field(seed: int, *, side: int = 100, step: int = 10, regions: int = 5) -> Field:
    """Return a square of sensors, ``step`` metres apart; half of them are triggered, those of the seeds first."""
    rng = np.random.default_rng(seed)
    along = np.arange(0, side, step)
    places = np.array([(x, y) for x in along for y in along], np.int64)
    chosen = rng.permutation(len(places))
    sensors = np.column_stack((np.arange(len(places)), places))
    seeds = np.column_stack((np.arange(regions), chosen[:regions]))
    return Field(sensors, seeds, chosen[: len(places) // 2, None])
