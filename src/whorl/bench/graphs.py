"""Generated graphs. The same seed gives the same rows; a graph is an array of edges, one a row."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
import numpy.typing as npt

Ints: TypeAlias = npt.NDArray[np.int64]


def random_graph(nodes: int, edges: int, seed: int, *, acyclic: bool = False) -> Ints:
    """Return distinct directed edges between different nodes, in random order; ``acyclic`` lets them lead upwards."""
    rng = np.random.default_rng(seed)
    keys = np.empty(0, np.int64)
    while len(keys) < edges:
        ends = rng.integers(0, nodes, (2 * edges, 2))
        ends = ends[ends[:, 0] != ends[:, 1]]
        if acyclic:
            ends.sort(axis=1)
        keys = np.union1d(keys, ends[:, 0] * nodes + ends[:, 1])
    return _edges(rng.permutation(keys)[:edges], nodes)


def chain(nodes: int) -> Ints:
    """Return one path through all nodes."""
    return np.column_stack((np.arange(nodes - 1), np.arange(1, nodes)))


def chains(count: int, length: int) -> Ints:
    """Return paths of ``length`` nodes each, with nothing between them."""
    starts = np.arange(count)[:, None] * length
    steps = np.arange(length - 1)[None, :]
    first = (starts + steps).ravel()
    return np.column_stack((first, first + 1))


def grid(side: int, *, both_ways: bool = False) -> Ints:
    """Return a square grid with edges to the right and down, or ``both_ways``."""
    node = np.arange(side * side).reshape(side, side)
    right = np.column_stack((node[:, :-1].ravel(), node[:, 1:].ravel()))
    down = np.column_stack((node[:-1].ravel(), node[1:].ravel()))
    edges = np.concatenate((right, down))
    return np.concatenate((edges, edges[:, ::-1])) if both_ways else edges


def local_graph(nodes: int, degree: float, span: int, block: int, seed: int) -> Ints:
    """Return an acyclic graph whose nodes have about ``degree`` edges each, to one of the next ``span`` nodes.

    No edge leaves a ``block`` of nodes: that keeps the size of the closure nearly the same for every seed.
    """
    rng = np.random.default_rng(seed)
    starts = np.repeat(np.arange(nodes), rng.poisson(degree, nodes))
    stops = starts + rng.integers(1, span + 1, len(starts))
    inside = (stops < nodes) & (starts // block == stops // block)
    return _edges(np.unique(starts[inside] * nodes + stops[inside]), nodes)


def weighted(edges: Ints, most: int, seed: int) -> Ints:
    """Return the edges with a third column of costs from 1 to ``most``."""
    costs = np.random.default_rng(seed).integers(1, most + 1, len(edges))
    return np.column_stack((edges, costs))


def _edges(keys: Ints, nodes: int) -> Ints:
    return np.column_stack((keys // nodes, keys % nodes))
