"""Who takes part in `whorl bench regions`, and how facts come and go there: loaded in quarters, deleted one by one."""

from __future__ import annotations

import numpy as np

from whorl.bench.contestants import Contestant
from whorl.bench.graphs import Ints
from whorl.bench.networks import Network, transit_stub
from whorl.bench.workload import Batch, Rules, Spread

DRED, PF, SUPPORT, DERIVATIONS, RECOMPUTE, LAZY, EAGER = (
    Contestant("whorl-net", variant)
    for variant in ("dred", "pf", "support", "derivations", "recompute", "absorption lazy", "absorption eager")
)
ALL = (RECOMPUTE, DRED, PF, DERIVATIONS, SUPPORT, LAZY, EAGER)
FEW, MANY = 8, 30  # deletions: single ones differ much, but in large networks they take long
_QUICK_PARTITIONS, _QUICK_DELETIONS = 3, 3


def in_quarters(relation: str, rows: Ints) -> list[Batch]:
    """Return facts in four loads."""
    return [Batch("load", {relation: part}) for part in np.array_split(rows, 4)]


def one_by_one(relation: str, rows: Ints, count: int, seed: int) -> tuple[Batch, ...]:
    """Return deletions of single rows."""
    chosen = np.random.default_rng(seed + 1).choice(len(rows), min(count, len(rows)), replace=False)
    return tuple(Batch("delete", deletes={relation: rows[[at]]}) for at in chosen.tolist())


def generate(links: int, degree: int, seed: int, *, quick: bool) -> Network:
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
    deletions: int = FEW,
) -> Spread:
    """Return: a part of the links is loaded in quarters, then some are deleted."""
    links = network.links[: len(network.links) * portion // 100, : 3 if "C: Integer" in rules.text else 2]
    first, *more = in_quarters("link", links)
    steps = one_by_one("link", links, _QUICK_DELETIONS if quick else deletions, seed)
    return Spread(rules, first, (*more, *steps), network.latencies(_QUICK_PARTITIONS if quick else partitions))
