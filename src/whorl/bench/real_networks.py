"""Cases of real networks, from a folder that the user names; nothing of it is kept.

Three kinds of data are known, each in a folder of its own: `rocketfuel` (`1755.latencies.intra` and the like: two names
and milliseconds a line), `topology-zoo` (`links.csv.gz` with columns network, a, b, km), and `bgp-streams`
(`*-updates.csv.gz` with columns kind, peer_ip, prefix, as_path).
"""

from __future__ import annotations

import csv
import gzip
from collections import Counter
from collections.abc import Iterator
from functools import partial
from itertools import islice, pairwise
from pathlib import Path

import numpy as np

from whorl.bench.case import Case, Entry, growing
from whorl.bench.graphs import Ints
from whorl.bench.networks import Network, build_network, even_latencies
from whorl.bench.spreading import ALL, EAGER, spread_network
from whorl.bench.workload import REACHABLE, Batch, Spread
from whorl.diagnostics.errors import UserError

_SECONDS, _EAGER = 60.0, 20.0  # what one measurement may take, and one with eager labels, which seldom ends
_PARTITIONS = 12
_EPOCHS = 8
_UPDATES = 2_000  # of each stream, from its start
_KM_EACH_MS = 200.0  # light in glass
_ZOO = ("Geant2012", "Garr201201", "Uninett2011")
Link = tuple[int, int]


def data_cases(folder: Path) -> tuple[Case, ...]:
    """Return a case for each network that the folder holds."""
    found = (*growing(_rocketfuel(folder)), *_zoo(folder), *_bgp(folder))
    if not found:
        raise UserError("E663", None, path=folder)
    return found


def _case(name: str, title: str, build: partial[Spread]) -> Case:
    entries = tuple(Entry(each, seconds=_EAGER if each == EAGER else _SECONDS) for each in ALL)
    return Case(f"regions-data-{name}", title, build, entries)


# Networks with links that are deleted one by one


def _spread(network: partial[Network], seed: int, *, quick: bool) -> Spread:
    full = network(seed)
    if quick:
        full = Network(full.nodes, full.links[:24])
    return spread_network(full, REACHABLE, _PARTITIONS, seed, quick=quick)


def _rocketfuel(folder: Path) -> Iterator[Case]:
    paths = sorted((folder / "rocketfuel").glob("*.latencies.intra"))
    for path in sorted(paths, key=lambda each: each.stat().st_size):
        number = path.name.split(".")[0]
        title = f"reachability between the routers of AS {number}, as Rocketfuel mapped them"
        yield _case(f"rocketfuel-{number}", title, partial(_spread, partial(_read_rocketfuel, path)))


def _read_rocketfuel(path: Path, seed: int) -> Network:
    rows = (line.split() for line in path.read_text(encoding="utf-8").splitlines())
    return build_network(((a, b, float(latency)) for a, b, latency in rows), seed)


def _zoo(folder: Path) -> Iterator[Case]:
    path = folder / "topology-zoo" / "links.csv.gz"
    if path.exists():
        for name in _ZOO:
            title = f"reachability in the network {name} of the Internet Topology Zoo"
            yield _case(f"zoo-{name}", title, partial(_spread, partial(_read_zoo, path, name)))


def _read_zoo(path: Path, name: str, seed: int) -> Network:
    rows = (row for row in _read_csv(path) if row["network"] == name)
    return build_network(((row["a"], row["b"], float(row["km"] or 0) / _KM_EACH_MS) for row in rows), seed)


def _read_csv(path: Path) -> Iterator[dict[str, str]]:
    with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
        yield from csv.DictReader(file)


# Routes that are announced and withdrawn


def _bgp(folder: Path) -> Iterator[Case]:
    for path in sorted((folder / "bgp-streams").glob("*-updates.csv.gz")):
        name = path.name.removesuffix("-updates.csv.gz")
        title = f"reachability over the paths that the first {_UPDATES:,} updates of {name} announce and withdraw"
        yield _case(f"bgp-{name}", title, partial(_routes, path))


def _routes(path: Path, seed: int, *, quick: bool) -> Spread:
    """Return: the links of all paths after half of the updates are loaded, the other half follows in epochs."""
    updates = list(islice(_read_csv(path), 60 if quick else _UPDATES))
    routes = _Routes()
    half = len(updates) // 2
    inserted, _deleted = routes.take(updates[:half])
    parts = np.array_split(np.arange(half, len(updates)), 3 if quick else _EPOCHS)
    steps: list[Batch] = []
    for part in parts:
        come, gone = routes.take([updates[at] for at in part.tolist()])
        steps.append(Batch("epoch", {"link": _rows(come)}, {"link": _rows(gone)}))
    order = np.random.default_rng(seed).permutation(len(inserted))
    load = Batch("load", {"link": _rows(inserted)[order]})
    return Spread(REACHABLE, load, tuple(steps), even_latencies(3 if quick else _PARTITIONS, 0.01))


def _rows(links: list[Link]) -> Ints:
    return np.array(links, np.int64).reshape(-1, 2)


class _Routes:
    """The paths in force, and how many of them each link is part of."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self._paths: dict[tuple[str, str], frozenset[Link]] = {}
        self._uses: Counter[Link] = Counter()

    def take(self, updates: list[dict[str, str]]) -> tuple[list[Link], list[Link]]:
        """Follow updates; return the links that came, and those that went."""
        before: dict[Link, bool] = {}
        for update in updates:
            key = update["peer_ip"], update["prefix"]
            old = self._paths.pop(key, frozenset())
            new = self._links(update["as_path"]) if update["kind"] == "A" else frozenset()
            if new:
                self._paths[key] = new
            for link in sorted(old | new):
                before.setdefault(link, self._uses[link] > 0)
                self._uses[link] += (link in new) - (link in old)
        come = [link for link, was in before.items() if not was and self._uses[link]]
        gone = [link for link, was in before.items() if was and not self._uses[link]]
        return come, gone

    def _links(self, path: str) -> frozenset[Link]:
        """Return the links of a path, without sets of systems and without repetition."""
        hops = [self.numbers.setdefault(hop, len(self.numbers)) for hop in path.split() if hop.isdigit()]
        return frozenset((a, b) for a, b in pairwise(hops) if a != b)
