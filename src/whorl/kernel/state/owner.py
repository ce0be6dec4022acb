"""Which partition owns a value: a hash that is the same in every process and does not know a dictionary's numbers.

Integers, Booleans and timestamps are hashed as they are, floats by their bits, strings by a checksum of their bytes,
terms by a checksum of their text. `hash_value` is the definition; arrays of numbers give the same by `hash_integers`.

>>> [owner_of(value, 4) for value in (7, "a", 2.5)]
[0, 3, 1]
"""

from __future__ import annotations

import struct
import zlib

import numpy as np
import numpy.typing as npt

from whorl.kernel.state.dictionary import Dictionary
from whorl.kernel.state.relation import Ints, Mask
from whorl.model.types import Type
from whorl.model.values import Term, Value, format_value

Hashes = npt.NDArray[np.uint64]

_NUMBERS = frozenset({Type.INTEGER, Type.TIMESTAMP, Type.BOOLEAN, Type.FLOAT})
_WORD = (1 << 64) - 1
_STEPS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB))  # the finalizer of splitmix64


def hash_integers(values: Ints) -> Hashes:
    """Hash 64-bit integers."""
    state = values.astype(np.int64).view(np.uint64)
    for shift, factor in _STEPS:
        state = (state ^ (state >> np.uint64(shift))) * np.uint64(factor)
    return state ^ (state >> np.uint64(31))


def hash_integer(value: int) -> int:
    """Hash one 64-bit integer."""
    state = value & _WORD
    for shift, factor in _STEPS:
        state = ((state ^ (state >> shift)) * factor) & _WORD
    return state ^ (state >> 31)


def hash_value(value: Value) -> int:
    """Hash one value."""
    if isinstance(value, int):
        return hash_integer(value)
    if isinstance(value, float):
        return hash_integer(struct.unpack("<q", struct.pack("<d", value + 0.0))[0])
    text = format_value(value) if isinstance(value, Term) else value
    return hash_integer(zlib.crc32(text.encode("utf-8", "surrogatepass")))


def owner_of(value: Value, partitions: int) -> int:
    """Return the partition that owns a value."""
    return hash_value(value) % partitions


class Owner:
    """One partition of several, which tells its own values, as they are encoded, from those of others."""

    def __init__(self, number: int, partitions: int, dictionary: Dictionary) -> None:
        assert 0 <= number < partitions
        self.number = number
        self.partitions = partitions
        self._dictionary = dictionary
        self._known: Ints = np.zeros(0, np.int64)  # for the dictionary's first numbers, who owns their value

    def owns(self, column: Ints, kind: Type) -> Mask:
        """Tell which values of an encoded column the partition owns."""
        own: Mask = self.owners(column, kind) == self.number
        return own

    def owners(self, column: Ints, kind: Type) -> Ints:
        """Return the partitions that own the values of an encoded column."""
        if kind in _NUMBERS:
            return (hash_integers(column) % np.uint64(self.partitions)).astype(np.int64)
        if len(self._known) < len(self._dictionary):
            self._learn()
        return self._known[column]

    def _learn(self) -> None:
        """Hash the values that are new in the dictionary."""
        first, count = len(self._known), len(self._dictionary)
        known = [owner_of(self._dictionary.value(at), self.partitions) for at in range(first, count)]
        self._known = np.concatenate((self._known, np.array(known, np.int64)))
