"""The labels of derived rows: what is known of each, what of that was passed on, and who depends on which variable.

The *label* of a row says from which facts it follows. What was *sent* is the part of the label that other rows' labels
were built from: all of it if propagation is eager, the first derivation if it is lazy. A row has both or neither.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from whorl.kernel.labels.diagrams import Diagrams, Function, TooManyNodes
from whorl.kernel.labels.variables import Objects, Used, grown
from whorl.kernel.state.relation import Ints


@dataclass
class Losses:
    """What setting variables to false did to the rows of a relation."""

    changed: int = 0
    gone: list[int] = field(default_factory=list)  # their labels are false, and forgotten
    released: list[int] = field(default_factory=list)  # what was sent became false: the rest of the label was sent


class RowLabels:
    """The labels of one relation's rows, by number."""

    def __init__(self, diagrams: Diagrams, *, lazy: bool, always: bool = False) -> None:
        self._diagrams = diagrams
        self._lazy = lazy
        self._always = always  # whether others are told of derivations that add nothing, too
        self._labels: Objects = grown(None, 0)
        self._sent: Objects = self._labels if not lazy else grown(None, 0)
        self._used: Objects = grown(None, 0)  # the variables of what was sent, or more
        self._rows: defaultdict[int, set[int]] = defaultdict(set)  # those whose label may depend on a variable
        self._entries = 0  # in the sets of rows, at most

    @property
    def nbytes(self) -> int:
        """About what is kept beside the diagrams."""
        return self._entries * 32 + 3 * self._labels.nbytes

    def label(self, number: int) -> Function:
        """Return the label of a row: false if it has none."""
        found = self._labels[number] if number < len(self._labels) else None
        return self._diagrams.false if found is None else found

    def sent(self, number: int) -> Function:
        """Return the part of the label of a row that others were told of: false if it has none."""
        found = self._sent[number] if number < len(self._sent) else None
        return self._diagrams.false if found is None else found

    def premises(self, numbers: Ints) -> tuple[list[Function], list[Used]]:
        """Return what derivations may use of rows that have labels, with its variables."""
        return self._sent[numbers].tolist(), self._used[numbers].tolist()

    def _reserve(self, size: int) -> None:
        if size > len(self._labels):
            self._labels = grown(self._labels, size)
            self._sent = self._labels if not self._lazy else grown(self._sent, size)
            self._used = grown(self._used, size)

    def offer(self, numbers: Ints, offers: Sequence[Function], used: Sequence[Sequence[Used]]) -> list[int]:
        """Add derivations to labels; return the rows of which others have to be told.

        ``used`` holds, for each premise, the variables of each derivation's. A row may come several times.
        """
        self._reserve(int(numbers.max(initial=-1)) + 1)
        labels, plus = self._labels, self._diagrams.plus
        told: list[int] = []
        for line, number in enumerate(numbers.tolist()):
            offer, before = offers[line], labels[number]
            if before is None:
                labels[number] = self._sent[number] = offer
                self._used[number] = self._depend(number, [column[line] for column in used])
                told.append(number)
                continue
            after = plus(before, offer)
            if after == before:
                if self._always:
                    told.append(number)
                continue
            labels[number] = after
            more = self._depend(number, [column[line] for column in used])
            if not self._lazy:
                self._used[number] |= more
                told.append(number)
        self._check_entries()
        return told

    def _depend(self, number: int, used: Sequence[Used]) -> Used:
        """Note that the label of a row depends on variables; return them."""
        names = used[0].union(*used[1:]) if used else frozenset[int]()
        for name in names:
            self._rows[name].add(number)
        self._entries += len(names)
        return names

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
        losses = Losses()
        for number in sorted(rows):
            before = self._labels[number]
            if before is None:
                continue
            after = self._diagrams.without(before, cube)
            if after != before:
                losses.changed += 1
            if after.satisfiable():
                self._labels[number] = after
                self._forget_sent(number, after, gone, cube, losses)
            else:
                self._labels[number] = self._sent[number] = self._used[number] = None
                losses.gone.append(number)
        return losses

    def _forget_sent(self, number: int, label: Function, gone: Used, cube: Function, losses: Losses) -> None:
        """Take variables out of what was sent, which may depend on some that the label has absorbed."""
        if not self._lazy:
            self._used[number] -= gone
            return
        if gone.isdisjoint(self._used[number]):
            return
        left = self._diagrams.without(self._sent[number], cube)
        if left.satisfiable():
            self._sent[number] = left
            self._used[number] -= gone
        else:
            self._sent[number] = label
            self._used[number] = frozenset(self._diagrams.variables(label))
            losses.released.append(number)
