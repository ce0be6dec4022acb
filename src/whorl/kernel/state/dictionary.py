"""Values as 64-bit integers and back.

Integers, timestamps and Booleans are themselves, floats their bits; strings, terms and values of columns without a
type are numbered in the order of their arrival. Numbers are never taken back.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from whorl.kernel.state.relation import Ints
from whorl.model.types import Type
from whorl.model.values import Row, Term, Value

_RAW = frozenset({Type.INTEGER, Type.TIMESTAMP, Type.BOOLEAN})


class TermTooDeep(Exception):
    """A term deeper than the limit was made."""

    def __init__(self, value: Term) -> None:
        super().__init__("term too deep")
        self.value = value


class Dictionary:
    """Numbers the values that are not numbers; refuses terms deeper than a limit."""

    def __init__(self, max_depth: int) -> None:
        self._max_depth = max_depth
        self._numbers: dict[object, int] = {}
        self._values: list[Value] = []

    def __len__(self) -> int:
        return len(self._values)

    def number(self, value: Value) -> int:
        """Return the number of a value."""
        key: object = value if isinstance(value, str | Term) else (type(value), value)
        known = self._numbers.get(key)
        if known is None:
            if isinstance(value, Term) and value.depth > self._max_depth:
                raise TermTooDeep(value)
            known = len(self._values)
            self._numbers[key] = known
            self._values.append(value)
        return known

    def value(self, number: int) -> Value:
        """Return the value with a number."""
        return self._values[number]

    def encode(self, value: Value, kind: Type) -> int:
        """Return a value of a type as an integer."""
        if kind in _RAW:
            return int(value)  # type: ignore[arg-type]
        if kind is Type.FLOAT:
            return int(np.float64(value + 0.0).view(np.int64))  # type: ignore[operator]
        return self.number(value)

    def encode_rows(self, rows: Sequence[Row], types: Sequence[Type]) -> Ints:
        """Return rows as a batch."""
        out = np.zeros((len(rows), max(len(types), 1)), np.int64)
        for column, kind in enumerate(types):
            values = [row[column] for row in rows]
            out[:, column] = self.encode_column(values, kind)
        return out

    def encode_column(self, values: Sequence[Value], kind: Type) -> Ints:
        """Return the values of one column as integers."""
        if kind in _RAW:
            return np.array(values, np.int64) if values else np.empty(0, np.int64)
        if kind is Type.FLOAT:
            return (np.array(values, np.float64) + 0.0).view(np.int64)
        return np.fromiter((self.number(value) for value in values), np.int64, len(values))

    def decode_column(self, column: Ints, kind: Type) -> list[Value]:
        """Return the values of one column."""
        if kind is Type.BOOLEAN:
            return [bool(value) for value in column]
        if kind in _RAW:
            return list(column.tolist())
        if kind is Type.FLOAT:
            return list(np.ascontiguousarray(column).view(np.float64).tolist())
        values = self._values
        return [values[number] for number in column.tolist()]

    def decode_rows(self, batch: Ints, types: Sequence[Type]) -> list[Row]:
        """Return a batch as rows."""
        if not types:
            return [()] * len(batch)
        columns = [self.decode_column(batch[:, column], kind) for column, kind in enumerate(types)]
        return list(zip(*columns, strict=True))


def as_floats(column: Ints) -> npt.NDArray[np.float64]:
    """Return the floats whose bits a column holds."""
    return np.ascontiguousarray(column).view(np.float64)
