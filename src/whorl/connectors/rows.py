"""Rows of Python values: tuples, lists, or dicts by column name.

A list or tuple inside a row is a List, a `datetime` or `date` a Timestamp in seconds since 1970 (without a zone: UTC),
and a NumPy scalar the number it holds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from operator import itemgetter
from typing import Any

import numpy as np

from whorl.connectors.target import Misfit, Target, row_place
from whorl.diagnostics.errors import UserError
from whorl.diagnostics.wording import shortened
from whorl.model.batch import Batch, Values, values_of
from whorl.model.types import Type, type_of
from whorl.model.values import Row, Term, Value, format_value, list_value, storable

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_PLAIN = frozenset({int, float, str, bool, Term})


def read_rows(target: Target, rows: Iterable[Any], weight: int) -> Batch:
    """Check rows against their relation, and return them as a batch. What users pass is untyped, hence Any."""
    shaped: list[Sequence[Any]] = list(rows)
    if set(map(type, shaped)) != {tuple} or set(map(len, shaped)) != {len(target.types)}:
        shaped = [_shape(target, row, position) for position, row in enumerate(shaped)]
    columns = [_read_column(target, place, list(map(itemgetter(place), shaped))) for place in range(len(target.types))]
    return Batch(target.relation, tuple(columns), len(shaped), weight)


def _shape(target: Target, row: Any, position: int) -> Sequence[Any]:
    """Return a row as its values in the order of the attributes."""
    if isinstance(row, Mapping):
        return _by_name(target, row, position)
    if isinstance(row, np.ndarray):
        row = row.tolist()
    if not isinstance(row, tuple | list):
        found = shortened(repr(row))
        raise UserError("E604", None, name=target.relation, place=row_place(position), found=found)
    if len(row) != len(target.types):
        shown = shortened(f"{target.relation}({', '.join(map(repr, row))})", 120)
        raise UserError("E501", None, name=target.relation, expected=len(target.types), found=len(row), row=shown)
    return row


def _by_name(target: Target, row: Mapping[Any, Any], position: int) -> Sequence[Any]:
    if target.names is not None and all(name in row for name in target.names):
        return [row[name] for name in target.names]
    known = ", ".join(target.names or ())
    hint = f"Name the columns {known}." if known else "Declare the relation, or give tuples."
    expected = known or f"{len(target.types)} attributes without names"
    found = ", ".join(map(str, row))
    raise UserError(
        "E603", None, name=target.relation, where=row_place(position), found=found, expected=expected, hint=hint
    )


def _read_column(target: Target, place: int, column: Sequence[Any]) -> Values:
    kind = target.types[place]
    try:
        if not _PLAIN.issuperset(map(type, column)):
            column = [plain_value(value, kind, row) for row, value in enumerate(column)]
        return fit_values(column, kind)
    except Misfit as misfit:
        raise misfit.at(target, place, row_place) from None


def fit_values(column: Sequence[Value], kind: Type) -> Values:
    """Return values as a column that fits a type; raise at the first that does not."""
    try:
        values = values_of(column)
    except OverflowError:
        values = None
    if values is not None and _fits(values.type, kind) and _storable(values):
        return values
    for row, value in enumerate(column):
        found = type_of(value)
        if not storable(value) or not (_fits(found, kind)):
            raise Misfit(row, format_value(value))
    return values_of(column)


def _storable(values: Values) -> bool:
    """Tell whether a column holds nothing but what fits; False if its values must be looked at one by one."""
    if values.type is Type.FLOAT:
        return bool(np.isfinite(values.data).all())
    return values.type not in (Type.LIST, Type.TERM, Type.UNKNOWN)


def _fits(found: Type, expected: Type) -> bool:
    return expected in (Type.UNKNOWN, found) or (found is Type.INTEGER and expected in (Type.FLOAT, Type.TIMESTAMP))


def read_row(row: object, types: Sequence[Type]) -> Row | None:
    """Return one row as a view of these types would hold it, None if it cannot."""
    if not isinstance(row, tuple | list) or len(row) != len(types):
        return None
    try:
        columns = [_read_one(value, kind) for value, kind in zip(row, types, strict=True)]
    except Misfit:
        return None
    return tuple(columns)


def _read_one(value: object, kind: Type) -> Value:
    plain = fit_values([plain_value(value, kind, 0)], kind)[0]
    return float(plain) if kind is Type.FLOAT and isinstance(plain, int) else plain


def plain_value(value: Any, kind: Type, row: int) -> Value:
    """Return a Python value as one of the language; raise at ``row`` if it is none."""
    if type(value) in _PLAIN:
        plain: Value = value
        return plain
    if value is None:
        raise Misfit(row)
    if isinstance(value, list | tuple):
        return list_value(tuple(plain_value(item, Type.UNKNOWN, row) for item in value))
    if isinstance(value, date) and kind in (Type.TIMESTAMP, Type.UNKNOWN):
        return seconds_of(value, row)
    if isinstance(value, np.generic):
        return plain_value(value.item(), kind, row)
    for kept in (int, float, str):  # subclasses, such as an enumeration of integers
        if isinstance(value, kept):
            return kept(value)
    raise Misfit(row, repr(value))


def seconds_of(value: date, row: int) -> int:
    """Return a date-time as seconds since 1970; one that is not whole seconds does not fit."""
    moment = value if isinstance(value, datetime) else datetime(value.year, value.month, value.day)
    since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - _EPOCH
    if since.microseconds:
        raise Misfit(row, f"{value} with a fraction of a second")
    return since.days * 86400 + since.seconds
