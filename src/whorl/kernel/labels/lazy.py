"""The labels of a stratum where only the first derivation of a row is told: conjunctions, see `Alternatives`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from whorl.kernel.arrays import conjunctions as arrays
from whorl.kernel.labels.alternatives import Alternatives
from whorl.kernel.labels.circles import Steps
from whorl.kernel.labels.conjunctions import Conjunctions
from whorl.kernel.labels.diagrams import Diagrams, Function, TooManyNodes
from whorl.kernel.labels.losses import Losses
from whorl.kernel.labels.phrases import Phrases
from whorl.kernel.labels.spelling import Spelling
from whorl.kernel.labels.variables import Variables
from whorl.kernel.state.relation import Ints


class LazyLabels:
    """Conjunctions for what is told, lists of them for what is known. Diagrams are built only for those who ask."""

    def __init__(self, names: Iterable[str], variables: Variables, spelling: Spelling, cap: int) -> None:
        self._variables = variables
        self._cap = cap  # of uses of variables
        self._rows = {name: Alternatives() for name in names}
        self._spelling = spelling
        self._written: defaultdict[int, Phrases] = defaultdict(Phrases)  # by receiver
        self._read: defaultdict[int, Phrases] = defaultdict(Phrases)  # by sender
        self._diagrams: Diagrams | None = None

    @property
    def diagrams(self) -> Diagrams:
        """The manager of the functions that `label` and `told` return."""
        if self._diagrams is None:
            self._diagrams = Diagrams(self._cap)
        return self._diagrams

    @property
    def nbytes(self) -> int:
        """The memory that labels take."""
        books = sum(book.nbytes for books in (self._written, self._read) for book in books.values())
        return self._spelling.nbytes + books + sum(rows.nbytes for rows in self._rows.values())

    def inputs(self, places: Ints) -> Conjunctions:
        """Return the labels of inputs, which are variables."""
        return Conjunctions.single(places)

    def premises(self, name: str, numbers: Ints) -> Conjunctions:
        """Return what derivations may use of rows that have labels."""
        return self._rows[name].told(numbers)

    def straight(self, used: Conjunctions, steps: Steps, heads: Ints) -> tuple[Ints, Conjunctions]:
        """Leave out what leads back to the rows that are derived; return the lines that are left, and what they use."""
        lines = np.empty(len(heads), np.int64)
        lines = lines[: arrays.avoid(used.bounds, used.places, heads, steps.values(), lines)]
        return lines, used.picked(lines)

    def together(self, factors: Sequence[Conjunctions], count: int) -> Conjunctions:
        """Return what each of some derivations needs, from what it needs of each premise."""
        if not factors:
            return Conjunctions.empty(count)
        out = factors[0]
        for factor in factors[1:]:
            out = out.united(factor)
        return out

    def offer(self, name: str, numbers: Ints, offers: Conjunctions) -> Ints:
        """Add derivations to labels; return the rows of which others have to be told."""
        told = self._rows[name].offer(numbers, offers, len(self._variables))
        if self._rows[name].uses > self._cap:
            raise TooManyNodes(self._cap)
        return told

    def forget(self, lost: Ints) -> Iterator[tuple[str, Losses]]:
        """Set variables to false."""
        for name, rows in self._rows.items():
            yield name, rows.forget(lost)

    def label(self, name: str, number: int) -> Function:
        """Return what is known of a row: false if it is not there."""
        return self._function(self._rows[name].of(number))

    def told(self, name: str, number: int) -> Function:
        """Return what other rows were told of a row."""
        return self._function(self._rows[name].of(number)[:1])

    def _function(self, alternatives: Sequence[Sequence[int]]) -> Function:
        out = self.diagrams.false
        for places in alternatives:
            names = [self._variables.names[place] for place in places]
            self.diagrams.variables_named(names)
            out = self.diagrams.plus(out, self.diagrams.cube(names))
        return out

    # To other partitions

    def waiting(self, _name: str, _copy: str, numbers: Ints) -> tuple[Ints, Ints]:
        """Return that those who have a copy have to know of every row that is to be told, and need not know more."""
        return numbers, numbers[:0]

    def ship(self, name: str, _copy: str, numbers: Ints) -> Conjunctions:
        """Return what those who have a copy are to be told of rows."""
        return self._rows[name].told(numbers)

    def encode(self, receiver: int, labels: Conjunctions) -> bytes:
        """Return labels as bytes for one partition, in the order in which letters are sent to it."""
        learnt, numbers = self._spelling.spell(receiver, labels.places)
        arrays.arrange(labels.bounds, numbers)
        return learnt + self._written[receiver].write(labels.bounds, numbers)

    def decode(self, sender: int, content: bytes, count: int) -> Conjunctions:
        """Return the labels that a partition has sent."""
        at, known = self._spelling.read(sender, content)
        bounds, numbers = self._read[sender].read(content, at, count)
        places = known[numbers]
        arrays.arrange(bounds, places)
        return Conjunctions(bounds, places)
