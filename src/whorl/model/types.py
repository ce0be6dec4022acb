"""Types of columns.

`UNKNOWN` is the type of a column that the program does not fix: the data will. `Integer` widens to `Float` where
a column receives both, and a `Timestamp` is an integer that counts seconds. `ANY` is what the parts of terms and lists
may hold: a variable that also stands elsewhere takes the type of that place, but a column that receives it can hold
values of every type. Only the analysis tells the two apart: to all that follows, such a column is of unknown type.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum

from whorl.model.values import LIST, ExactRow, Row, Value


class Type(Enum):
    """The type of a column or of an expression."""

    INTEGER = "Integer"
    FLOAT = "Float"
    STRING = "String"
    BOOLEAN = "Boolean"
    TIMESTAMP = "Timestamp"
    LIST = "List"
    TERM = "Term"
    UNKNOWN = "unknown"
    ANY = "any"

    def __str__(self) -> str:
        return self.value

    @property
    def numeric(self) -> bool:
        """Whether arithmetic applies."""
        return self in NUMERIC

    @property
    def settled(self) -> Type:
        """The type of a column that holds it, once nothing more is to be learnt from the program."""
        return Type.UNKNOWN if self is Type.ANY else self


NUMERIC = frozenset({Type.INTEGER, Type.FLOAT, Type.TIMESTAMP})

SPELLINGS = {
    "integer": Type.INTEGER,
    "int": Type.INTEGER,
    "float": Type.FLOAT,
    "double": Type.FLOAT,
    "string": Type.STRING,
    "boolean": Type.BOOLEAN,
    "bool": Type.BOOLEAN,
    "timestamp": Type.TIMESTAMP,
    "list": Type.LIST,
    "term": Type.TERM,
}


def type_of(value: Value) -> Type:
    """Return the type of a value."""
    if isinstance(value, bool):
        return Type.BOOLEAN
    if isinstance(value, int):
        return Type.INTEGER
    if isinstance(value, float):
        return Type.FLOAT
    if isinstance(value, str):
        return Type.STRING
    return Type.LIST if value.name == LIST else Type.TERM


def row_type(types: Iterable[Type]) -> type[Row]:
    """Return what tells rows with columns of some types apart: where one is unknown, the types of values count too."""
    return ExactRow if Type.UNKNOWN in types else tuple


def unify(left: Type, right: Type) -> Type | None:
    """Return the type of one variable that stands in two places, or None if there is none."""
    if left is right or right is Type.UNKNOWN:
        return left
    if left is Type.UNKNOWN:
        return right
    if Type.ANY in (left, right):
        return left if right is Type.ANY else right
    if {left, right} == {Type.INTEGER, Type.TIMESTAMP}:
        return Type.TIMESTAMP
    return None


def widen(left: Type, right: Type) -> Type | None:
    """Return the type of a column that receives both types, or None if there is none."""
    if Type.ANY in (left, right):
        return Type.ANY
    if left.numeric and right.numeric and Type.FLOAT in (left, right):
        return Type.FLOAT
    return unify(left, right)
