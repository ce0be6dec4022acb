"""Values as 64-bit integers and back.

Integers, timestamps and Booleans are themselves, floats their bits; strings, terms and values of columns without a
type are numbered in the order of their arrival. Numbers are never taken back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from whorl.kernel.state.relation import Ints
from whorl.model.batch import Values
from whorl.model.types import Type, row_type
from whorl.model.values import Row, Term, Value, order_key

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

    def values(self) -> list[Value]:
        """Return all values, in the order of their numbers."""
        return self._values

    def load(self, values: list[Value]) -> None:
        """Take over values with their numbers."""
        assert not self._values, "only an empty dictionary can take others' numbers"
        for number, value in enumerate(values):
            self._numbers[value if isinstance(value, str | Term) else (type(value), value)] = number
        self._values = values

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

    def encode_values(self, values: Values, kind: Type) -> Ints:
        """Return a whole column as integers; of repeated values each is looked up once."""
        if values.distinct is not None and kind is not Type.FLOAT and kind not in _RAW:
            numbers = self._number_strings if values.type is Type.STRING else self._number_each
            return numbers(values.distinct)[values.data] if len(values) else np.empty(0, np.int64)
        if values.distinct is None and kind in _RAW:
            return values.data.astype(np.int64, copy=False)
        if values.distinct is None and kind is Type.FLOAT:
            return (values.data.astype(np.float64) + 0.0).view(np.int64)
        return self.encode_column(values.to_list(), kind)

    def _number_each(self, distinct: Sequence[Value]) -> Ints:
        return np.fromiter((self.number(value) for value in distinct), np.int64, len(distinct))

    def _number_strings(self, distinct: Sequence[Value]) -> Ints:
        """Number distinct strings: all that are new at once."""
        fresh = [value for value in distinct if value not in self._numbers]
        self._numbers.update(zip(fresh, range(len(self._values), len(self._values) + len(fresh)), strict=True))
        self._values.extend(fresh)
        return np.fromiter(map(self._numbers.__getitem__, distinct), np.int64, len(distinct))

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
        rows = zip(*columns, strict=True)
        kind_of_row = row_type(types)
        return list(rows) if kind_of_row is tuple else list(map(kind_of_row, rows))

    def sort_rows(self, batch: Ints, types: Sequence[Type]) -> Ints:
        """Return a batch in the order of its values."""
        if len(batch) < 2 or not types:
            return batch
        keys = [self._order(batch[:, column], kind) for column, kind in enumerate(types)]
        return batch[np.lexsort(keys[::-1])]

    def _order(self, column: Ints, kind: Type) -> npt.NDArray[Any]:
        """Return numbers that sort as the values of a column do."""
        if kind in _RAW:
            return column
        if kind is Type.FLOAT:
            return as_floats(column)
        numbers, places = np.unique(column, return_inverse=True)
        keys = [order_key(self._values[number]) for number in numbers.tolist()]
        ranks = np.empty(len(keys), np.int64)
        ranks[sorted(range(len(keys)), key=keys.__getitem__)] = np.arange(len(keys))
        return ranks[places]

    def decode_values(self, column: Ints, kind: Type) -> Values:
        """Return one column of a batch as a whole."""
        if kind is Type.BOOLEAN:
            return Values(kind, column.astype(np.bool_))
        if kind in _RAW:
            return Values(kind, np.ascontiguousarray(column))
        if kind is Type.FLOAT:
            return Values(kind, as_floats(column))
        numbers, places = np.unique(column, return_inverse=True)
        return Values(kind, places, tuple(self._values[number] for number in numbers.tolist()))


def as_floats(column: Ints) -> npt.NDArray[np.float64]:
    """Return the floats whose bits a column holds."""
    return np.ascontiguousarray(column).view(np.float64)
