"""The labels of a stratum where every change of a label is told: Boolean functions as diagrams."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from operator import or_

import numpy as np

from whorl.kernel.labels.circles import Steps
from whorl.kernel.labels.diagrams import Diagrams, Function
from whorl.kernel.labels.losses import Losses
from whorl.kernel.labels.rows import RowLabels
from whorl.kernel.labels.spelling import Spelling
from whorl.kernel.labels.variables import Used, Variables
from whorl.kernel.labels.varints import read_varint, varint
from whorl.kernel.state.relation import Ints


@dataclass(frozen=True, slots=True, eq=False)
class Functions:
    """Functions, and the variables that each depends on, or more, by name."""

    functions: Sequence[Function]
    used: Sequence[Used]

    def picked(self, lines: Ints) -> Functions:
        """Return some of them."""
        at = lines.tolist()
        return Functions([self.functions[line] for line in at], [self.used[line] for line in at])

    def joined(self, others: Sequence[Functions]) -> Functions:
        """Return these, and others behind."""
        functions = [each for part in (self, *others) for each in part.functions]
        return Functions(functions, [each for part in (self, *others) for each in part.used])


class EagerLabels:
    """Functions for what is told, which is all that is known."""

    def __init__(
        self, names: Iterable[str], always: Collection[str], variables: Variables, spelling: Spelling, room: int
    ) -> None:
        self._variables = variables
        self.diagrams = Diagrams(room)
        self._rows = {name: RowLabels(self.diagrams, always=name in always) for name in names}
        self._spelling = spelling

    @property
    def nbytes(self) -> int:
        """About the memory that labels take."""
        rows = sum(labels.nbytes for labels in self._rows.values())
        return self.diagrams.nodes * _NODE + self._spelling.nbytes + rows

    def inputs(self, places: Ints) -> Functions:
        """Return the labels of inputs, which are variables."""
        names = [self._variables.names[place] for place in places.tolist()]
        return Functions(self.diagrams.variables_named(names), [frozenset((name,)) for name in names])

    def premises(self, name: str, numbers: Ints) -> Functions:
        """Return what derivations may use of rows that have labels."""
        return Functions(*self._rows[name].premises(numbers))

    def straight(self, used: Functions, steps: Steps, heads: Ints) -> tuple[Ints, Functions]:
        """Leave out what leads back to the rows that are derived; return the lines that are left, and what they use."""
        lines, functions, names = list[int](), list[Function](), list[Used]()
        for line, head in enumerate(map(tuple, heads.tolist())):
            function, own = used.functions[line], used.used[line]
            back = own & steps.leading(head)
            if back:
                function = self.diagrams.without(function, self.diagrams.cube(back))
                own -= back
            if function.satisfiable():
                lines.append(line)
                functions.append(function)
                names.append(own)
        return np.array(lines, np.int64), Functions(functions, names)

    def together(self, factors: Sequence[Functions], count: int) -> Functions:
        """Return what each of some derivations needs, from what it needs of each premise."""
        if not factors:
            return Functions([self.diagrams.true] * count, [frozenset()] * count)
        used = [reduce(or_, line) for line in zip(*(factor.used for factor in factors), strict=True)]
        return Functions(self.diagrams.products([factor.functions for factor in factors]), used)

    def offer(self, name: str, numbers: Ints, offers: Functions) -> Ints:
        """Add derivations to labels; return the rows of which others have to be told."""
        return self._rows[name].offer(numbers, offers.functions, offers.used)

    def forget(self, lost: Ints) -> Iterator[tuple[str, Losses]]:
        """Set variables to false."""
        names = frozenset(self._variables.names[place] for place in lost.tolist())
        cube = self.diagrams.cube(names)
        for name, rows in self._rows.items():
            yield name, rows.forget(names, cube)

    def label(self, name: str, number: int) -> Function:
        """Return what is known of a row: false if it is not there."""
        return self._rows[name].label(number)

    told = label  # what other rows of the partition were told of a row

    # To other partitions

    def waiting(self, name: str, copy: str, numbers: Ints) -> tuple[Ints, Ints]:
        """Tell which rows those who have a copy know nothing of, and of which they know less than there is."""
        return self._rows[name].waiting(copy, numbers)

    def ship(self, name: str, copy: str, numbers: Ints) -> Functions:
        """Return what those who have a copy are told of rows from now on."""
        return Functions(*self._rows[name].ship(copy, numbers))

    def encode(self, receiver: int, labels: Functions) -> bytes:
        """Return labels as bytes for one partition, in the order in which letters are sent to it.

        Nodes come from the bottom, each once for all labels: the number of its variable, and how far back its children
        are. Then come the labels, as nodes.
        """
        nodes, roots = self.diagrams.dump(labels.functions)
        places = self._variables.places(name for name, _held, _gone in nodes)
        learnt, numbers = self._spelling.spell(receiver, places.astype(np.int32))
        parts = [learnt, varint(len(nodes))]
        for at, (number, (_name, held, gone)) in enumerate(zip(numbers.tolist(), nodes, strict=True), 2):
            parts += (varint(number), varint(at - held), varint(at - gone))
        return b"".join((*parts, *map(varint, roots)))

    def decode(self, sender: int, content: bytes, count: int) -> Functions:
        """Return the labels that a partition has sent."""
        at, known = self._spelling.read(sender, content)
        size, at = read_varint(content, at)
        nodes: list[tuple[int, int, int]] = []
        for node in range(2, size + 2):
            number, at = read_varint(content, at)
            held, at = read_varint(content, at)
            gone, at = read_varint(content, at)
            nodes.append((self._variables.names[known[number]], node - held, node - gone))
        roots: list[int] = []
        for _label in range(count):
            root, at = read_varint(content, at)
            roots.append(root)
        assert at == len(content), "labels are read as they were written"
        return Functions(self.diagrams.load(nodes, roots), _variables_of(nodes, roots))


_NODE = 24  # bytes


def _variables_of(nodes: Iterable[tuple[int, int, int]], roots: Iterable[int]) -> list[Used]:
    """Return the variables of some nodes."""
    used: list[Used] = [frozenset(), frozenset()]
    for name, held, gone in nodes:
        used.append(used[held] | used[gone] | {name})
    return [used[root] for root in roots]
