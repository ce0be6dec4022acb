"""Many rows at once, as columns.

A `Batch` is a stretch of changes of one base relation, all insertions or all deletions. It means the same as its rows
one after the other; columns are only the faster way to carry them. A `Values` is one column: numbers and Booleans as
an array, everything else as positions in a tuple of distinct values.

>>> values = values_of(["a", "b", "a"])
>>> values.type, values.data.tolist(), values.distinct
(<Type.STRING: 'String'>, [0, 1, 0], ('a', 'b'))
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from whorl.model.types import Type, type_of
from whorl.model.values import Row, Term, Value

Array: TypeAlias = npt.NDArray[Any]  # int64, float64 or bool, as the type of the values says

_STORED = {Type.INTEGER: np.int64, Type.FLOAT: np.float64, Type.BOOLEAN: np.bool_}
_PYTHON: dict[type, Type] = {int: Type.INTEGER, float: Type.FLOAT, bool: Type.BOOLEAN, str: Type.STRING}


@dataclass(frozen=True, slots=True, eq=False)
class Values:
    """One column. `type` is that of every value, UNKNOWN if they differ.

    Without `distinct`, `data` holds the values themselves; else positions in `distinct`.
    """

    type: Type
    data: Array
    distinct: tuple[Value, ...] | None = None

    def __len__(self) -> int:
        return len(self.data)

    def __getitem__(self, position: int) -> Value:
        found: Value = self.data[position].item()
        return found if self.distinct is None else self.distinct[int(found)]  # type: ignore[arg-type]

    def take(self, positions: Array | slice) -> Values:
        """Return the values at some positions."""
        return Values(self.type, self.data[positions], self.distinct)

    def to_list(self) -> list[Value]:
        """Return the values one by one."""
        data: list[Any] = self.data.tolist()
        return data if self.distinct is None else [self.distinct[at] for at in data]


def values_of(column: Sequence[Value]) -> Values:
    """Return values as a column; an integer beyond 64 bits raises OverflowError."""
    kinds = set(map(type, column))
    only = next(iter(kinds)) if len(kinds) == 1 else None
    kind = _PYTHON.get(only, Type.UNKNOWN) if only is not None else Type.UNKNOWN
    if kind in _STORED:
        return Values(kind, np.array(column, _STORED[kind]))
    if kind is Type.STRING:
        numbers: dict[Value, int] = {value: at for at, value in enumerate(dict.fromkeys(column))}
        data = np.fromiter(map(numbers.__getitem__, column), np.int64, len(column))
        return Values(kind, data, tuple(numbers))
    types = set(map(type_of, column)) if kinds == {Term} else set()
    kind = next(iter(types)) if len(types) == 1 else Type.UNKNOWN
    return Values(kind, np.arange(len(column)), tuple(column))


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Rows of one base relation, all inserted (`weight` 1) or all deleted (-1).

    `count` is the number of rows, which a relation without attributes has too.
    """

    relation: str
    columns: tuple[Values, ...]
    count: int
    weight: int = 1
    line: int = field(default=0)  # of the first row, where the input has lines

    def __len__(self) -> int:
        return self.count

    def rows(self) -> Iterator[Row]:
        """Return the rows one by one."""
        if not self.columns:
            return iter([()] * self.count)
        return zip(*(column.to_list() for column in self.columns), strict=True)

    def take(self, positions: Array | slice) -> Batch:
        """Return the rows at some positions."""
        columns = tuple(column.take(positions) for column in self.columns)
        count = len(np.arange(self.count)[positions])
        return Batch(self.relation, columns, count, self.weight)


def batch_of(relation: str, rows: Sequence[Row], weight: int = 1) -> Batch:
    """Return rows of equal length as a batch."""
    return Batch(relation, tuple(values_of(column) for column in zip(*rows, strict=True)), len(rows), weight)
