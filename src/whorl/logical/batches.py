"""Whole columns on their way in: the same checks as row by row, one for each column.

What a column alone cannot decide is left to the rows: `fit_batch` then answers None.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from whorl.analysis.program import Relation
from whorl.model.batch import Batch, Values
from whorl.model.types import Type, type_of


def learn_batch_types(batch: Batch, relation: Relation, learnt: dict[str, list[Type]]) -> None:
    """Take the type of each undeclared column from the first value that arrives."""
    if relation.declared or len(batch.columns) != relation.arity:
        return
    types = learnt.setdefault(relation.name, [Type.UNKNOWN] * len(relation.columns))
    if batch.weight < 0 or not batch.count:
        return
    for position, values in enumerate(batch.columns):
        if types[position] is Type.UNKNOWN:
            fixed = relation.columns[position].type
            found = type_of(values[0]) if values.type is Type.UNKNOWN else values.type
            types[position] = found if fixed is Type.UNKNOWN else fixed


def fit_batch(batch: Batch, expected: Sequence[Type]) -> Batch | None:
    """Return a batch with its integers widened where the column holds floats; None if a row may not fit."""
    if len(batch.columns) != len(expected):
        return None if batch.count else Batch(batch.relation, _nothing(len(expected)), 0, batch.weight)
    columns, same = [], True
    for values, kind in zip(batch.columns, expected, strict=True):
        fitting = _fit(values, kind)
        if fitting is None:
            return None
        columns.append(fitting)
        same &= fitting is values
    if same:
        return batch
    return Batch(batch.relation, tuple(columns), batch.count, batch.weight, batch.line)


def _nothing(count: int) -> tuple[Values, ...]:
    return tuple(Values(Type.INTEGER, np.empty(0, np.int64)) for _ in range(count))


def _fit(values: Values, expected: Type) -> Values | None:
    if not len(values):
        return Values(Type.INTEGER, np.empty(0, np.int64))
    if expected is Type.FLOAT and values.type is Type.INTEGER:
        return Values(Type.FLOAT, values.data.astype(np.float64))
    if values.type is Type.UNKNOWN or (values.type is Type.FLOAT and not np.isfinite(values.data).all()):
        return None
    if values.type in (Type.LIST, Type.TERM):
        return None  # what they hold is looked at one by one
    fits = expected in (Type.UNKNOWN, values.type)
    return values if fits or (expected is Type.TIMESTAMP and values.type is Type.INTEGER) else None
