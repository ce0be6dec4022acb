"""The variables of a stratum's labels: one for each row that it reads, one for each key that it needs to be absent.

A variable has a name, a number of 64 bits. By default names are counted up as they are first used; partitions that
exchange labels agree on names of their own instead, and say so with a `Naming`. Here it also has a *place*, in the
order in which variables came: a small number, with which labels are calculated.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from whorl.kernel.state.relation import Ints

Key = tuple[int, ...]
Used = frozenset[int]  # variables
Objects: TypeAlias = npt.NDArray[Any]  # an array of Python objects, None where there is none


@dataclass(frozen=True, slots=True)
class Present:
    """What a variable stands for: a row of an input."""

    relation: str
    number: int


@dataclass(frozen=True, slots=True)
class Absent:
    """What a variable stands for: that no row fits a negated atom of a rule, for some values of its variables."""

    rule: int
    atom: int
    key: Key


class Naming(Protocol):
    """Gives variables their numbers, of 64 bits: the same number for the same thing, and to nothing else."""

    def present(self, relation: str, numbers: Sequence[int]) -> Sequence[int]:
        """Return the variables of rows."""

    def absent(self, rule: int, atom: int, keys: Sequence[Key]) -> Sequence[int]:
        """Return the variables of absences."""


class Counted:
    """Counts variables up as they come."""

    def __init__(self) -> None:
        self._next = 0

    def present(self, _relation: str, numbers: Sequence[int]) -> Sequence[int]:
        """Return the variables of rows."""
        return self._count(len(numbers))

    def absent(self, _rule: int, _atom: int, keys: Sequence[Key]) -> Sequence[int]:
        """Return the variables of absences."""
        return self._count(len(keys))

    def _count(self, more: int) -> range:
        self._next += more
        return range(self._next - more, self._next)


class Variables:
    """The variables in use, and what they stand for. Each gets its name and its place when it is first asked for."""

    def __init__(self, naming: Naming | None = None) -> None:
        self._naming = naming or Counted()
        self._rows: dict[str, Ints] = {}  # the places of input rows, -1 where a row has none
        self._keys: dict[tuple[int, int], dict[Key, int]] = {}
        self._places: dict[int, int] = {}
        self.names: list[int] = []  # by place
        self.meanings: dict[int, Present | Absent] = {}

    def __len__(self) -> int:
        return len(self.names)

    def places(self, names: Iterable[int]) -> Ints:
        """Return the places of variables, wherever they come from; new ones get the next."""
        out: list[int] = []
        for name in names:
            place = self._places.setdefault(name, len(self.names))
            if place == len(self.names):
                self.names.append(name)
            out.append(place)
        return np.array(out, np.int64)

    def known(self, names: Iterable[int]) -> Ints:
        """Return the places of those variables that have one, in their order."""
        return np.array(sorted(self._places[name] for name in names if name in self._places), np.int64)

    def present(self, relation: str, numbers: Ints) -> Ints:
        """Return the variables of input rows."""
        known = self._room(relation, int(numbers.max(initial=-1)) + 1)
        places = known[numbers]
        if len(places) and places.min() < 0:
            new = list(dict.fromkeys(numbers[places < 0].tolist()))
            names = self._naming.present(relation, new)
            known[new] = self.places(names)
            self.meanings.update((name, Present(relation, at)) for name, at in zip(names, new, strict=True))
            places = known[numbers]
        return places

    def absent(self, rule: int, atom: int, keys: Iterable[Key]) -> Ints:
        """Return the variables of absences."""
        known, wanted = self._keys.setdefault((rule, atom), {}), list(keys)
        new = [key for key in dict.fromkeys(wanted) if key not in known]
        names = self._naming.absent(rule, atom, new)
        known.update(zip(new, self.places(names).tolist(), strict=True))
        self.meanings.update((name, Absent(rule, atom, key)) for name, key in zip(names, new, strict=True))
        return np.array([known[key] for key in wanted], np.int64)

    def gone(self, relation: str, numbers: Ints) -> Used:
        """Return the names of the variables of input rows, as far as they have any."""
        known = self._rows.get(relation)
        if known is None:
            return frozenset()
        places = known[numbers[numbers < len(known)]]
        return frozenset(self.names[place] for place in places[places >= 0].tolist())

    def come(self, rule: int, atom: int, keys: Iterable[Key]) -> Used:
        """Return the names of the variables of absences, as far as they have any."""
        known = self._keys.get((rule, atom), {})
        return frozenset(self.names[known[key]] for key in keys if key in known)

    def _room(self, relation: str, size: int) -> Ints:
        known = self._rows.get(relation)
        if known is None or len(known) < size:
            self._rows[relation] = known = widened(known, size, -1)
        return known


def widened(array: Ints | None, size: int, filling: int) -> Ints:
    """Return an array with room for some numbers, and more, with a filling where nothing was."""
    larger = np.full(max(size, 32 if array is None else 2 * len(array)), filling, np.int64)
    if array is not None:
        larger[: len(array)] = array
    return larger


def grown(array: Objects | None, size: int) -> Objects:
    """Return an array of objects with room for some, None where nothing was."""
    if array is not None and len(array) >= size:
        return array
    larger = np.full(max(size, 32 if array is None else 2 * len(array)), None, object)
    if array is not None:
        larger[: len(array)] = array
    return larger
