"""The variables of a stratum's labels: one for each row that it reads, one for each key that it needs to be absent.

Variables are numbers. By default they are counted up as they are first used; partitions that exchange labels agree on
numbers of their own instead, and say so with a `Naming`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from whorl.kernel.labels.diagrams import Diagrams, Function
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
    """The variables in use, and what they stand for. Each is named when it is first asked for."""

    def __init__(self, diagrams: Diagrams, naming: Naming | None = None) -> None:
        self._diagrams = diagrams
        self._naming = naming or Counted()
        self._functions: dict[str, Objects] = {}
        self._used: dict[str, Objects] = {}
        self._keys: dict[tuple[int, int], dict[Key, int]] = {}
        self.meanings: dict[int, Present | Absent] = {}

    def present(self, relation: str, numbers: Ints) -> tuple[list[Function], list[Used]]:
        """Return the labels of input rows, with the variable of each as a set."""
        functions, used = self._room(relation, int(numbers.max(initial=-1)) + 1)
        found: list[Used | None] = used[numbers].tolist()
        if None in found:
            new = list(dict.fromkeys(n for n, each in zip(numbers.tolist(), found, strict=True) if each is None))
            names = self._naming.present(relation, new)
            for number, name, function in zip(new, names, self._diagrams.variables_named(names), strict=True):
                functions[number], used[number] = function, frozenset((name,))
                self.meanings[name] = Present(relation, number)
        return functions[numbers].tolist(), used[numbers].tolist()

    def absent(self, rule: int, atom: int, keys: Iterable[Key]) -> tuple[list[Function], list[Used]]:
        """Return the labels of absences, with the variable of each as a set."""
        known, wanted = self._keys.setdefault((rule, atom), {}), list(keys)
        new = [key for key in dict.fromkeys(wanted) if key not in known]
        for key, name in zip(new, self._naming.absent(rule, atom, new), strict=True):
            known[key] = name
            self.meanings[name] = Absent(rule, atom, key)
        names = [known[key] for key in wanted]
        return self._diagrams.variables_named(names), [frozenset((name,)) for name in names]

    def gone(self, relation: str, numbers: Ints) -> Used:
        """Return the variables of input rows, as far as they have any."""
        used = self._used.get(relation)
        if used is None:
            return frozenset()
        found: list[Used | None] = used[numbers[numbers < len(used)]].tolist()
        return frozenset[int]().union(*(each for each in found if each is not None))

    def come(self, rule: int, atom: int, keys: Iterable[Key]) -> Used:
        """Return the variables of absences, as far as they have any."""
        known = self._keys.get((rule, atom), {})
        return frozenset(known[key] for key in keys if key in known)

    def _room(self, relation: str, size: int) -> tuple[Objects, Objects]:
        for arrays in (self._functions, self._used):
            arrays[relation] = grown(arrays.get(relation), size)
        return self._functions[relation], self._used[relation]


def grown(array: Objects | None, size: int) -> Objects:
    """Return an array of objects with room for some, None where nothing was."""
    if array is not None and len(array) >= size:
        return array
    larger = np.full(max(size, 32 if array is None else 2 * len(array)), None, object)
    if array is not None:
        larger[: len(array)] = array
    return larger
