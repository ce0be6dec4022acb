"""Names of variables on the way from one partition to another: spelled out once, a small number from then on.

A sender numbers the names that it has sent to a receiver, in the order in which it sent them; the receiver numbers them
as they arrive. Letters of one sender are taken in order and once each, so both have the same numbers. Whenever the
fixpoint starts anew, in all partitions, so do the numbers: what was under way then is never read.
"""

from __future__ import annotations

import numpy as np

from whorl.kernel.labels.conjunctions import Places
from whorl.kernel.labels.variables import Variables
from whorl.kernel.state.distinct import distinct
from whorl.kernel.state.relation import Ints

_NONE: Places = np.empty(0, np.int32)


class Spelling:
    """The numbers that names have on the way to each partition, and from each."""

    def __init__(self, variables: Variables) -> None:
        self._variables = variables
        self._numbers: dict[int, Places] = {}  # by receiver: the number of each place, -1 if it was never sent
        self._sent: dict[int, int] = {}
        self._places: dict[int, Places] = {}  # by sender: the place of each number

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        return sum(each.nbytes for known in (self._numbers, self._places) for each in known.values())

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
        names = self._variables.names
        return varint(len(places)) + np.array([names[place] for place in places.tolist()], "<i8").tobytes()

    def read(self, sender: int, content: bytes) -> tuple[int, Places]:
        """Learn the names at the beginning of what was sent; return where they end, and the place of each number."""
        known = self._places.get(sender, _NONE)
        count, at = read_varint(content, 0)
        if count:
            names = np.frombuffer(content, "<i8", count, at).tolist()
            self._places[sender] = known = np.concatenate((known, self._variables.places(names).astype(np.int32)))
        return at + 8 * count, known


def varint(number: int) -> bytes:
    """Return a number as bytes: seven bits in each, the lowest first, the highest bit while more follow."""
    out = bytearray()
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def read_varint(content: bytes, at: int) -> tuple[int, int]:
    """Return the number that begins at a byte, and where the next begins."""
    number = shift = 0
    while content[at] >= 128:
        number |= (content[at] & 127) << shift
        shift += 7
        at += 1
    return number | content[at] << shift, at + 1
