"""Names for variables that all partitions give alike: 63 bits of a hash of what the variable stands for.

A copy of a relation names its rows as the relation itself does. That two things share a name is about as likely as one
in 2^63 for each pair of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import blake2b

import numpy as np

from whorl.kernel.labels.variables import Key
from whorl.kernel.operators.pipeline import State
from whorl.kernel.state.owner import hash_integers
from whorl.kernel.state.relation import Ints
from whorl.logical.plan import AntiJoin
from whorl.model.types import Type
from whorl.model.values import Value, format_value
from whorl.physical.plan import PhysicalStratum
from whorl.syntax import ast

_NUMBERS = frozenset({Type.INTEGER, Type.TIMESTAMP, Type.BOOLEAN, Type.FLOAT})
_MASK = np.uint64((1 << 63) - 1)


class ByContent:
    """Names rows and absences by their values."""

    def __init__(self, plan: PhysicalStratum, state: State, sources: Mapping[str, str]) -> None:
        self._state = state
        self._plan = plan
        self._sources = sources  # of copies
        self._digests: Ints = np.empty(0, np.int64)  # of the dictionary's first values

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

    def _names(self, kind: str, rows: Ints, types: Sequence[Type]) -> list[int]:
        state = np.full(len(rows), _digest(kind), np.int64).view(np.uint64)
        for column, type_ in enumerate(types[: rows.shape[1]]):
            values = np.ascontiguousarray(rows[:, column])
            own = hash_integers(values) if type_ in _NUMBERS else self._known()[values].view(np.uint64)
            state = hash_integers((state * np.uint64(3) + own).view(np.int64))
        names: list[int] = (state & _MASK).tolist()
        return names

    def _known(self) -> Ints:
        """Return the digests of the dictionary's values."""
        dictionary = self._state.dictionary
        if len(self._digests) < len(dictionary):
            fresh = [_digest(_text(dictionary.value(at))) for at in range(len(self._digests), len(dictionary))]
            self._digests = np.concatenate((self._digests, np.array(fresh, np.int64)))
        return self._digests


def _text(value: Value) -> str:
    return format_value(value)


def _digest(text: str) -> int:
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest(), "little", signed=True)
