"""Names for variables that all partitions give alike: 63 bits of a hash of what the variable stands for.

A copy of a relation names its rows as the relation itself does. That two things share a name is about as likely as one
in 2^63 for each pair of them.

On the way to another partition a name is *spelt*: a row whose values are short is spelt as itself, its relation and its
values, from which the receiver finds the name, and what it stands for; everything else as 0 and the name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import blake2b
from typing import NamedTuple

import numpy as np

from whorl.kernel.labels.variables import Key, Present, Variables
from whorl.kernel.labels.varints import read_varint, varint
from whorl.kernel.operators.pipeline import State
from whorl.kernel.state.owner import hash_integer, hash_integers
from whorl.kernel.state.relation import Ints
from whorl.logical.plan import AntiJoin
from whorl.model.types import Type
from whorl.model.values import Value, format_value
from whorl.physical.plan import PhysicalStratum
from whorl.syntax import ast

_NUMBERS = frozenset({Type.INTEGER, Type.TIMESTAMP, Type.BOOLEAN, Type.FLOAT})
_WHOLE = frozenset({Type.INTEGER, Type.TIMESTAMP, Type.BOOLEAN})
_MASK = np.uint64((1 << 63) - 1)
_LONGEST = 9  # bytes of a name that is spelt as such


class Fact(NamedTuple):
    """A row of an input: its relation, never a copy, and its values, as they are stored here."""

    relation: str
    row: Key


class ByName:
    """Spells variables whose names are all that is known of them."""

    def spell(self, variables: Variables, place: int) -> bytes:
        """Return how a variable is told to another partition."""
        return b"\0" + variables.names[place].to_bytes(8, "little")

    def end(self, _content: bytes, at: int) -> int:
        """Return where the name ends that is spelt from a byte on."""
        return at + 9

    def read(self, spelt: bytes) -> tuple[int, Fact | None]:
        """Return a name that is spelt, and the row that it stands for, if that is told."""
        return int.from_bytes(spelt[1:], "little"), None


class ByContent(ByName):
    """Names rows and absences by their values, and spells short rows as themselves."""

    def __init__(self, plan: PhysicalStratum, state: State, sources: Mapping[str, str]) -> None:
        self._state = state
        self._plan = plan
        self._sources = sources  # of copies
        self._digests: Ints = np.empty(0, np.int64)  # of the dictionary's first values
        self._inputs = sorted({sources.get(name, name) for name in plan.inputs() if name not in plan.imports})

    def present(self, relation: str, numbers: Sequence[int]) -> Sequence[int]:
        """Return the variables of rows."""
        stored = self._state.relations[relation]
        rows = stored.read(np.array(numbers, np.int64))
        return self._names(f"row {self._sources.get(relation, relation)}", rows, stored.types)

    def absent(self, rule: int, atom: int, keys: Sequence[Key]) -> Sequence[int]:
        """Return the variables of absences."""
        step = self._plan.rules[rule].atoms[atom][0]
        assert isinstance(step, AntiJoin)
        types = self._state.relations[step.relation].types
        held = [types[at] for at, arg in enumerate(step.args) if isinstance(arg, ast.Variable)]
        rows = np.array(keys, np.int64).reshape(len(keys), len(held))
        return self._names(f"absence {rule} {atom}", rows, held)

    def spell(self, variables: Variables, place: int) -> bytes:
        """Return how a variable is told to another partition."""
        meaning = variables.meanings.get(variables.names[place])
        row = self._spell_row(meaning) if isinstance(meaning, Present) else b""
        return row or super().spell(variables, place)

    def _spell_row(self, meaning: Present) -> bytes:
        """Return a row as its relation and its values, nothing if that is long."""
        stored = self._state.relations[meaning.relation]
        before, count = 1 + self._inputs.index(self._sources.get(meaning.relation, meaning.relation)), len(self._inputs)
        out = b""
        for value, type_ in zip(stored.read(np.array([meaning.number]))[0].tolist(), stored.types, strict=True):
            if type_ is Type.STRING:
                text = str(self._state.dictionary.value(value)).encode("utf-8", "surrogatepass")
                out += varint(before + count * len(text)) + text
            elif type_ in _WHOLE and value >= 0:
                out += varint(before + count * value)
            else:
                return b""
            before, count = 0, 1
        return out if len(out) <= _LONGEST else b""

    def end(self, content: bytes, at: int) -> int:
        """Return where the name ends that is spelt from a byte on."""
        if content[at] == 0:
            return super().end(content, at)
        first, at = read_varint(content, at)
        source, value = self._begin(first)
        for column, type_ in enumerate(self._state.relations[source].types):
            if column:
                value, at = read_varint(content, at)
            at += value if type_ is Type.STRING else 0
        return at

    def read(self, spelt: bytes) -> tuple[int, Fact | None]:
        """Return a name that is spelt, and the row that it stands for, if that is told."""
        if spelt[0] == 0:
            return super().read(spelt)
        first, at = read_varint(spelt, 0)
        source, value = self._begin(first)
        types = self._state.relations[source].types
        row: list[int] = []
        for column, type_ in enumerate(types):
            if column:
                value, at = read_varint(spelt, at)
            if type_ is Type.STRING:
                text = spelt[at : at + value].decode("utf-8", "surrogatepass")
                at += value
                row.append(self._state.dictionary.encode(text, type_))
            else:
                row.append(value)
        return self._name(f"row {source}", row, types), Fact(source, tuple(row))

    def _begin(self, first: int) -> tuple[str, int]:
        """Return the relation, and the first value or its length, that the first number of a row tells together."""
        value, at = divmod(first - 1, len(self._inputs))
        return self._inputs[at], value

    def _names(self, kind: str, rows: Ints, types: Sequence[Type]) -> list[int]:
        state = np.full(len(rows), _digest_of_kind(kind), np.int64).view(np.uint64)
        for column, type_ in enumerate(types[: rows.shape[1]]):
            values = np.ascontiguousarray(rows[:, column])
            own = hash_integers(values) if type_ in _NUMBERS else self._known()[values].view(np.uint64)
            state = hash_integers((state * np.uint64(3) + own).view(np.int64))
        names: list[int] = (state & _MASK).tolist()
        return names

    def _name(self, kind: str, row: Sequence[int], types: Sequence[Type]) -> int:
        """Return the name of one row, as `_names` does for many."""
        state = _digest_of_kind(kind)
        for value, type_ in zip(row, types, strict=True):
            own = hash_integer(value) if type_ in _NUMBERS else int(self._known()[value])
            state = hash_integer(3 * state + own)
        return state & int(_MASK)

    def _known(self) -> Ints:
        """Return the digests of the dictionary's values."""
        dictionary = self._state.dictionary
        if len(self._digests) < len(dictionary):
            fresh = [_digest(_text(dictionary.value(at))) for at in range(len(self._digests), len(dictionary))]
            self._digests = np.concatenate((self._digests, np.array(fresh, np.int64)))
        return self._digests


def _text(value: Value) -> str:
    return format_value(value)


@cache
def _digest_of_kind(kind: str) -> int:
    return _digest(kind)


def _digest(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little", signed=True)
