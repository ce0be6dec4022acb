"""Delta notation: `@2 time=120` opens an epoch, `+edge(1, 2)` and `-edge(1, 2)` change it, one a line.

Reading is by hand and by line, since such files are long and simple; writing gives sorted lines, so that a difference
between two outputs means something.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from whorl.diagnostics.errors import ProgramErrors, UserError
from whorl.diagnostics.source import Source, Span
from whorl.model.delta import Change, Delta, Epoch
from whorl.model.values import Row, Term, Value, format_row, list_value, row_key, storable, unquote

_EPOCH = re.compile(r"@\s*(\d+)(?:\s+time\s*=\s*(-?\d+))?\s*\Z")
_CHANGE = re.compile(r"([+\-−])\s*([^\W\d]\w*'*)\s*")
_TOKEN = re.compile(
    r"""\s*(?:
      (?P<string>"(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*')
    | (?P<float>-?\d+\.\d+(?:[eE][+-]?\d+)?|-?\d+[eE][+-]?\d+)
    | (?P<integer>-?\d+)
    | (?P<name>[^\W\d]\w*'*)
    | (?P<mark>[()\[\],])
    )""",
    re.VERBOSE,
)
_WORDS: Mapping[str, Value] = {"true": True, "false": False, "nil": list_value(())}
_COMMENT = ("#", "%", "//")
_MAX_DEPTH = 100


class _Malformed(Exception):
    """An error of the catalogue, at an offset of the line."""

    def __init__(self, code: str, offset: int, **facts: object) -> None:
        super().__init__(code)
        self.code = code
        self.offset = offset
        self.facts = facts


def parse_deltas(source: Source) -> tuple[Epoch, ...]:
    r"""Read a file of epochs; report every line that is none.

    >>> [epoch.number for epoch in parse_deltas(Source("demo", "@1\n+edge(1, 2)\n@2\n-edge(1, 2)"))]
    [1, 2]
    """
    reader = _Reader()
    errors: list[UserError] = []
    offset = 0
    for number, line in enumerate(source.text.split("\n"), 1):
        text = line.strip()
        start = offset + len(line) - len(line.lstrip())
        offset += len(line) + 1
        if not text or text.startswith(_COMMENT):
            continue
        try:
            reader.line(text, number)
        except _Malformed as malformed:
            place = start + min(malformed.offset, len(text) - 1)
            errors.append(UserError(malformed.code, Span(source, place, start + len(text)), **malformed.facts))
    if errors:
        raise ProgramErrors(errors)
    return reader.epochs()


class _Reader:
    """Collects the lines of each epoch."""

    def __init__(self) -> None:
        self._headers: list[tuple[int, int | None, int]] = []
        self._changes: list[list[Change]] = []

    def epochs(self) -> tuple[Epoch, ...]:
        pairs = zip(self._headers, self._changes, strict=True)
        return tuple(Epoch(number, tuple(changes), time, line) for (number, time, line), changes in pairs)

    def line(self, text: str, number: int) -> None:
        if text.startswith("@"):
            self._open(text, number)
            return
        change = _parse_change(text, number)
        if not self._changes:
            raise _Malformed("E122", 0)
        self._changes[-1].append(change)

    def _open(self, text: str, line: int) -> None:
        header = _EPOCH.match(text)
        if header is None or max(len(header[1]), len(header[2] or "")) > 19:
            raise _Malformed("E120", 0, found=f'"{text[:60]}"')
        number = int(header[1])
        if self._headers and number <= self._headers[-1][0]:
            raise _Malformed("E121", 0, found=number, last=self._headers[-1][0])
        self._headers.append((number, int(header[2]) if header[2] else None, line))
        self._changes.append([])


def _parse_change(text: str, line: int) -> Change:
    start = _CHANGE.match(text)
    if start is None:
        raise _Malformed("E120", 0, found=f'"{text[:60]}"')
    tokens = list(_tokens(text, start.end()))
    cursor = _Cursor(tokens, len(text))
    row = cursor.arguments()
    cursor.end()
    return Change(start[2], row, 1 if start[1] == "+" else -1, line)


def parse_fact(text: str) -> tuple[str, Row]:
    """Read one fact, `edge(1, 2)`, as the command line gives it."""
    change = _parse_change("+" + text.strip().rstrip("."), 0)
    return change.relation, change.row


def _tokens(text: str, position: int) -> Iterator[tuple[str, str, int]]:
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            rest = text[position:].strip()
            if not rest or rest in (".",) or rest.lstrip(". ").startswith(_COMMENT):
                return
            raise _Malformed("E120", position, found=f'"{rest[:40]}"')
        kind = token.lastgroup
        assert kind is not None
        yield kind, token[kind], token.start(kind)
        position = token.end()


class _Cursor:
    """Walks over the tokens of one line."""

    def __init__(self, tokens: list[tuple[str, str, int]], length: int) -> None:
        self._tokens = tokens
        self._next = 0
        self._length = length

    def _fail(self) -> _Malformed:
        if self._next < len(self._tokens):
            _kind, text, offset = self._tokens[self._next]
            return _Malformed("E120", offset, found=f'"{text[:40]}"')
        return _Malformed("E120", self._length, found="the end of the line")

    def _take(self, mark: str) -> bool:
        if self._next < len(self._tokens) and self._tokens[self._next][:2] == ("mark", mark):
            self._next += 1
            return True
        return False

    def arguments(self) -> Row:
        if self._next == len(self._tokens):
            return ()
        if not self._take("("):
            raise self._fail()
        return self._items(")", 0)

    def end(self) -> None:
        if self._next < len(self._tokens):
            raise self._fail()

    def _items(self, close: str, depth: int) -> Row:
        if depth > _MAX_DEPTH:
            raise self._fail()
        if self._take(close):
            return ()
        items = [self._value(depth)]
        while self._take(","):
            items.append(self._value(depth))
        if not self._take(close):
            raise self._fail()
        return tuple(items)

    def _value(self, depth: int) -> Value:
        if self._take("["):
            return list_value(self._items("]", depth + 1))
        if self._next == len(self._tokens) or self._tokens[self._next][0] == "mark":
            raise self._fail()
        kind, text, _offset = self._tokens[self._next]
        value = _scalar(kind, text)
        if value is not None:
            if not storable(value):
                raise self._fail()
            self._next += 1
            return value
        self._next += 1
        if not self._take("("):
            self._next -= 1
            raise self._fail()
        return Term(text, self._items(")", depth + 1))


def _scalar(kind: str, text: str) -> Value | None:
    if kind == "string":
        return unquote(text)
    if kind == "float":
        return float(text)
    if kind == "integer":
        return int(text) if len(text) < 25 else 2**64
    return _WORDS.get(text)


def format_header(number: int, time: int | None) -> str:
    """Write the line that opens an epoch."""
    return f"@{number}" if time is None else f"@{number} time={time}"


def format_deltas(deltas: Mapping[str, Delta]) -> list[str]:
    """Write the changes of views, sorted by view and row."""
    lines: list[tuple[str, tuple[tuple[object, ...], ...], str]] = []
    for view, delta in deltas.items():
        for sign, rows in (("-", delta.deleted), ("+", delta.inserted)):
            lines.extend((view, row_key(row), sign + format_row(view, row)) for row in rows)
    return [text for _view, _key, text in sorted(lines)]
