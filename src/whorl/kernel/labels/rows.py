"""The labels of one relation's rows where propagation is eager: a function for each, and who depends on which variable.

Of a relation whose rows go to other partitions it is also kept what these were told: the whole label as it was when it
was last sent. What has been added since may wait; if what was told becomes false before that, the row is told again.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

import numpy as np

from whorl.kernel.labels.diagrams import Diagrams, Function, TooManyNodes
from whorl.kernel.labels.losses import Losses
from whorl.kernel.labels.variables import Objects, Used, grown
from whorl.kernel.state.relation import Ints


class RowLabels:
    """The labels of rows, by number."""

    def __init__(self, diagrams: Diagrams, *, always: bool = False) -> None:
        self._diagrams = diagrams
        self._always = always  # whether others are told of derivations that add nothing, too
        self._labels: Objects = grown(None, 0)
        self._used: Objects = grown(None, 0)  # the variables of the label, or more
        # What other partitions were told, for each copy that they have.
        self._shipped: defaultdict[str, dict[int, Function]] = defaultdict(dict)
        self._rows: defaultdict[int, set[int]] = defaultdict(set)  # those whose label may depend on a variable
        self._entries = 0  # in the sets of rows, at most

    @property
    def nbytes(self) -> int:
        """About what is kept beside the diagrams."""
        return self._entries * 32 + 2 * self._labels.nbytes + 64 * sum(map(len, self._shipped.values()))

    def label(self, number: int) -> Function:
        """Return the label of a row: false if it has none."""
        found = self._labels[number] if number < len(self._labels) else None
        return self._diagrams.false if found is None else found

    def premises(self, numbers: Ints) -> tuple[list[Function], list[Used]]:
        """Return the labels of rows that have some, with their variables."""
        return self._labels[numbers].tolist(), self._used[numbers].tolist()

    def offer(self, numbers: Ints, offers: Sequence[Function], used: Sequence[Used]) -> Ints:
        """Add derivations to labels, with the variables of each; return the rows of which others have to be told.

        A row may come several times.
        """
        size = int(numbers.max(initial=-1)) + 1
        self._labels, self._used = grown(self._labels, size), grown(self._used, size)
        labels, plus = self._labels, self._diagrams.plus
        told: list[int] = []
        for number, offer, names in zip(numbers.tolist(), offers, used, strict=True):
            before = labels[number]
            after = offer if before is None else plus(before, offer)
            if before is not None and after == before:
                if self._always:
                    told.append(number)
                continue
            labels[number] = after
            self._depend(number, names)
            told.append(number)
        self._check_entries()
        return np.array(told, np.int64)

    def _depend(self, number: int, names: Used) -> None:
        """Note that the label of a row depends on variables."""
        known = self._used[number]
        self._used[number] = names if known is None else known | names
        for name in names:
            self._rows[name].add(number)
        self._entries += len(names)

    def _check_entries(self) -> None:
        """Keep the index within the bounds of the diagrams."""
        if self._entries > self._diagrams.cap:
            self._entries = sum(map(len, self._rows.values()))
            if self._entries > self._diagrams.cap:
                raise TooManyNodes(self._diagrams.cap)

    def forget(self, names: Iterable[int], cube: Function) -> Losses:
        """Set variables, which are also given as a cube, to false."""
        gone = frozenset(names)
        rows = set[int]().union(*(self._rows.pop(name, ()) for name in gone))
        changed, lost, released = 0, list[int](), list[int]()
        for number in sorted(rows):
            before = self._labels[number]
            if before is None:
                continue
            after = self._diagrams.without(before, cube)
            changed += after != before
            if after.satisfiable():
                self._labels[number] = after
                self._used[number] -= gone
                if self._outdated(number, cube):
                    released.append(number)
            else:
                self._labels[number] = self._used[number] = None
                for shipped in self._shipped.values():
                    shipped.pop(number, None)
                lost.append(number)
        return Losses(changed, np.array(lost, np.int64), np.array(released, np.int64))

    def _outdated(self, number: int, cube: Function) -> bool:
        """Take variables out of what other partitions were told; return whether some have nothing left of it."""
        outdated = False
        for shipped in self._shipped.values():
            if number in shipped:
                left = self._diagrams.without(shipped[number], cube)
                if left.satisfiable():
                    shipped[number] = left
                else:
                    del shipped[number]
                    outdated = True
        return outdated

    # To other partitions

    def waiting(self, copy: str, numbers: Ints) -> tuple[Ints, Ints]:
        """Tell which rows those who have a copy know nothing of, and of which they know less than there is."""
        unknown: list[int] = []
        more: list[int] = []
        shipped = self._shipped[copy]
        for number in numbers.tolist():
            known = shipped.get(number)
            if known is None or self._always:
                unknown.append(number)
            elif known != self._labels[number]:
                more.append(number)
        return np.array(unknown, np.int64), np.array(more, np.int64)

    def ship(self, copy: str, numbers: Ints) -> tuple[list[Function], list[Used]]:
        """Return the labels of rows, which those who have a copy are told from now on."""
        functions, used = self.premises(numbers)
        self._shipped[copy].update(zip(numbers.tolist(), functions, strict=True))
        return functions, used
