"""Values: what a row is made of.

A value is an integer (64 bits), a finite float, a string, a Boolean, or a term. A term is a name with
arguments, `loc(1, 2)`; a list is a term whose name is ``LIST``. Values of different kinds are never equal, also
inside terms, where Python alone would confuse 1, 1.0 and True.

All values have one total order (Booleans, then numbers, then strings, then terms by name and arguments), so
that `min` and `max` work on any column and printed output is sorted in one way everywhere.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TypeAlias

LIST = "[]"
INTEGER_MIN = -(2**63)
INTEGER_MAX = 2**63 - 1


@dataclass(frozen=True, slots=True, eq=False)
class Term:
    """A name with arguments; a list has the name ``LIST``."""

    name: str
    args: tuple[Value, ...]
    _key: tuple[object, ...] = field(init=False, repr=False)
    _hash: int = field(init=False, repr=False)
    depth: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        key = (self.name, *((type(arg), arg) for arg in self.args))
        object.__setattr__(self, "_key", key)
        object.__setattr__(self, "_hash", hash(key))
        depth = 1 + max((arg.depth for arg in self.args if isinstance(arg, Term)), default=0)
        object.__setattr__(self, "depth", depth)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Term) and self._hash == other._hash and self._key == other._key

    def __hash__(self) -> int:
        return self._hash

    def __repr__(self) -> str:
        return format_value(self)

    def __reduce__(self) -> tuple[type[Term], tuple[str, tuple[Value, ...]]]:
        """Travel without the hash: another process hashes strings otherwise."""
        return Term, (self.name, self.args)


Value: TypeAlias = int | float | str | bool | Term
Row: TypeAlias = tuple[Value, ...]


class ExactRow(tuple[Value, ...]):
    """A row of a relation with a column for values of every type: of these Python takes 1, 1.0 and True to be equal."""

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        return tuple.__eq__(self, other) is True and all(type(a) is type(b) for a, b in zip(self, other, strict=True))  # type: ignore[call-overload]

    def __ne__(self, other: object) -> bool:
        return not self == other

    __hash__ = tuple.__hash__


def list_value(items: tuple[Value, ...]) -> Term:
    """Return the list of ``items``."""
    return Term(LIST, items)


NIL = list_value(())


def storable(value: Value) -> bool:
    """Tell whether ``value`` fits a column: integers of 64 bits, finite floats."""
    if isinstance(value, bool | str):
        return True
    if isinstance(value, int):
        return INTEGER_MIN <= value <= INTEGER_MAX
    if isinstance(value, float):
        return math.isfinite(value)
    return all(storable(arg) for arg in value.args)


def order_key(value: Value) -> tuple[object, ...]:
    """Return a key that sorts any two values: Booleans, numbers, strings, terms."""
    if isinstance(value, bool):
        return (0, value)
    if isinstance(value, int | float):
        return (1, value, isinstance(value, float))
    if isinstance(value, str):
        return (2, value)
    return (3, value.name, tuple(order_key(arg) for arg in value.args))


def row_key(row: Row) -> tuple[tuple[object, ...], ...]:
    """Return the sort key of a whole row."""
    return tuple(order_key(value) for value in row)


_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\r": "\\r"}
_UNESCAPES = {"n": "\n", "t": "\t", "r": "\r"}


def format_value(value: Value) -> str:
    """Write a value as the language reads it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return '"' + "".join(_ESCAPES.get(char, char) for char in value) + '"'
    inner = ", ".join(format_value(arg) for arg in value.args)
    return f"[{inner}]" if value.name == LIST else f"{value.name}({inner})"


def unquote(text: str) -> str:
    """Read a quoted string of the language, single or double quotes."""
    out: list[str] = []
    chars = iter(text[1:-1])
    for char in chars:
        if char == "\\":
            escaped = next(chars)
            out.append(_UNESCAPES.get(escaped, escaped))
        else:
            out.append(char)
    return "".join(out)


def format_row(relation: str, row: Row) -> str:
    """Write one fact: ``edge(1, 2)``."""
    return f"{relation}({', '.join(format_value(value) for value in row)})"
