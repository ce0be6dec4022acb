"""Names of variables on the way from one partition to another: spelt out once, a small number from then on.

A sender numbers the names that it has sent to a receiver, in the order in which it sent them; the receiver numbers them
as they arrive. Letters of one sender are taken in order and once each, so both have the same numbers. Whenever the
fixpoint starts anew, in all partitions, so do the numbers: what was under way then is never read.
"""

from __future__ import annotations

import numpy as np

from whorl.kernel.labels.conjunctions import Places
from whorl.kernel.labels.naming import ByName, Fact
from whorl.kernel.labels.variables import Variables
from whorl.kernel.labels.varints import read_varint, varint
from whorl.kernel.state.distinct import distinct
from whorl.kernel.state.relation import Ints

_NONE: Places = np.empty(0, np.int32)
_ENTRY = 100  # bytes of what is kept of one name, about


class Spelling:
    """The numbers that names have on the way to each partition, and from each."""

    def __init__(self, variables: Variables, naming: ByName) -> None:
        self._variables = variables
        self._naming = naming
        self._spelt: dict[int, bytes] = {}  # by place
        self._known: dict[bytes, int] = {}  # places
        self.facts: dict[int, Fact] = {}  # what places stand for, as far as others have told
        self._numbers: dict[int, Places] = {}  # by receiver: the number of each place, -1 if it was never sent
        self._sent: dict[int, int] = {}
        self._places: dict[int, Places] = {}  # by sender: the place of each number

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        numbers = sum(each.nbytes for known in (self._numbers, self._places) for each in known.values())
        return numbers + _ENTRY * (len(self._spelt) + len(self._known) + len(self.facts))

    def spell(self, receiver: int, places: Places) -> tuple[bytes, Places]:
        """Return the names that a receiver has to learn first, and the numbers of variables."""
        known = self._numbers.get(receiver, _NONE)
        if len(known) < len(self._variables):
            longer = np.full(2 * len(self._variables), -1, np.int32)
            longer[: len(known)] = known
            self._numbers[receiver] = known = longer
        numbers = known[places]
        if len(numbers) and numbers.min() < 0:
            new = distinct(places[numbers < 0].astype(np.int64))
            sent = self._sent.get(receiver, 0)
            known[new] = np.arange(sent, sent + len(new))
            self._sent[receiver] = sent + len(new)
            return self._learnt(new), known[places]
        return b"\0", numbers

    def _learnt(self, places: Ints) -> bytes:
        return varint(len(places)) + b"".join(map(self._spell, places.tolist()))

    def _spell(self, place: int) -> bytes:
        spelt = self._spelt.get(place)
        if spelt is None:
            self._spelt[place] = spelt = self._naming.spell(self._variables, place)
        return spelt

    def read(self, sender: int, content: bytes) -> tuple[int, Places]:
        """Learn the names at the beginning of what was sent; return where they end, and the place of each number."""
        known = self._places.get(sender, _NONE)
        count, at = read_varint(content, 0)
        if count:
            learnt = np.empty(count, np.int32)
            for number in range(count):
                learnt[number], at = self._learn(content, at)
            self._places[sender] = known = np.concatenate((known, learnt))
        return at, known

    def _learn(self, content: bytes, at: int) -> tuple[int, int]:
        """Return the place of the variable that is spelt from a byte on, and where that ends."""
        end = self._naming.end(content, at)
        spelt = content[at:end]
        place = self._known.get(spelt)
        if place is None:
            name, fact = self._naming.read(spelt)
            place = int(self._variables.places((name,))[0])
            self._known[spelt] = place
            self._spelt.setdefault(place, spelt)
            if fact is not None:
                self.facts[place] = fact
        return place, end
