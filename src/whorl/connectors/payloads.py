"""JSON payloads to rows: each column has a path into the payload, or into what came with it.

`a.b` is the value under b of the object under a. `@topic` is the topic, `@topic.2` its second level, `@payload` the
payload as text, `@received` when it came. What is not there, or does not fit the type of its column, is None: one bad
message must not stop a query.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias

from whorl.connectors.journal import Message
from whorl.diagnostics.errors import UserError

Read: TypeAlias = Callable[[Message, Any], Any]  # of a message and its parsed payload
_MISSING = None


def _text(value: Any) -> str | None:
    if isinstance(value, str):
        return value
    return None if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else None


def _real(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return float(value) if math.isfinite(value) else None
    except OverflowError:
        return None


def _whole(bits: int) -> Callable[[Any], int | None]:
    def convert(value: Any) -> int | None:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        if isinstance(value, bool) or not isinstance(value, int):
            return None
        return value if -(1 << bits - 1) <= value < 1 << bits - 1 else None

    return convert


def _moment(value: Any) -> datetime | None:
    """Read seconds since 1970, or a date and time as ISO 8601 writes them, in UTC unless they say otherwise."""
    try:
        if isinstance(value, str):
            found = datetime.fromisoformat(value)
            return found if found.tzinfo is not None else found.replace(tzinfo=UTC)
        seconds = _real(value)
        return None if seconds is None else datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):
        return None


CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "string": _text,
    "boolean": _flag,
    "tinyint": _whole(8),
    "smallint": _whole(16),
    "int": _whole(32),
    "bigint": _whole(64),
    "float": _real,
    "double": _real,
    "timestamp": _moment,
}


class Payloads:
    """Knows the columns: their names, their types by Spark's short names, and their paths."""

    def __init__(self, columns: Sequence[tuple[str, str]], paths: Mapping[str, str]) -> None:
        known = {name.lower() for name, _kind in columns}
        for name in paths:
            if name.lower() not in known:
                raise UserError("E751", None, name=f"map.{name}", reason="names no column of the schema")
        self._columns: list[tuple[Read, Callable[[Any], Any]]] = []
        given = {name.lower(): path for name, path in paths.items()}
        for name, kind in columns:
            if kind not in CONVERTERS:
                raise UserError(
                    "E751", None, name="schema", reason=f"has {name} of type {kind}, which JSON cannot fill"
                )
            self._columns.append((_reader(name, given.get(name.lower(), name)), CONVERTERS[kind]))

    def row(self, message: Message) -> tuple[Any, ...]:
        """Return the row of a message."""
        try:
            parsed = json.loads(message.payload)
        except (ValueError, RecursionError):
            parsed = _MISSING
        return tuple(convert(read(message, parsed)) for read, convert in self._columns)


def _reader(name: str, path: str) -> Read:
    if path == "@topic":
        return lambda message, _parsed: message.topic
    if path == "@payload":
        return lambda message, _parsed: message.payload.decode("utf-8", "replace")
    if path == "@received":
        return lambda message, _parsed: message.received
    level = path.removeprefix("@topic.")
    if level != path and level.isdecimal() and int(level) > 0:
        return lambda message, _parsed: next(iter(message.topic.split("/")[int(level) - 1 :]), None)
    if path.startswith("@") or not all(path.split(".")):
        raise UserError("E751", None, name=f"map.{name}", reason=f'has the path "{path}", which leads nowhere')
    return lambda _message, parsed: _follow(parsed, path.split("."))


def _follow(value: Any, keys: Sequence[str]) -> Any:
    for key in keys:
        if not isinstance(value, dict):
            return None
        value = value.get(key)
    return value
