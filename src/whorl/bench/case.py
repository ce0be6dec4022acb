"""A case: what is generated, who takes part, and with which limits."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol

from whorl.bench.contestants import Contestant
from whorl.bench.workload import Workload


class Build(Protocol):
    """Generates a workload."""

    def __call__(self, seed: int, *, quick: bool) -> Workload:
        """Return the workload of a seed, a small one if it should be ``quick``."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A contestant in a case: at most so many runs and steps, at most so long, perhaps only on demand.

    `hopeless` says why it is not even tried, save on demand.
    """

    contestant: Contestant
    runs: int | None = None
    steps: int | None = None
    seconds: float = 300.0
    on_demand: bool = False
    hopeless: str = ""


@dataclass(frozen=True, slots=True)
class Case:
    """One workload and its contestants.

    Cases that are `alike` must give the same answers. Whoever does not get done with a case is not tried in one that is
    `harder_than` it.
    """

    name: str
    title: str
    build: Build
    entries: tuple[Entry, ...]
    alike: str = ""
    harder_than: str = ""


def growing(cases: Iterable[Case]) -> tuple[Case, ...]:
    """Return cases that get harder from one to the next."""
    listed = tuple(cases)
    harder = (replace(case, harder_than=before.name) for before, case in pairwise(listed))
    return (*listed[:1], *harder)
