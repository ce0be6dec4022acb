"""Delta notation: `@2 time=120` opens an epoch, `+edge(1, 2)` and `-edge(1, 2)` change it, one a line.

Reading is by hand and by line, since such files are long and simple; writing gives sorted lines, so that a difference
between two outputs means something.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from whorl.diagnostics.errors import ProgramErrors, UserError
from whorl.diagnostics.source import Source, Span
from whorl.diagnostics.wording import quoted, shortened
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
_HINTS = {
    "+": "Write one change a line.",
    "-": "Write one change a line.",
    ".": 'Write a digit before the point, as in "0.5".',
}
_COMMENT = ("#", "%", "//")
_MAX_DEPTH = 100


class _Malformed(Exception):
    """An error of the catalogue, at an offset of the line; as far as its end if no length is given."""

    def __init__(self, code: str, offset: int, length: int | None = None, **facts: object) -> None:
        super().__init__(code)
        self.code = code
        self.offset = offset
        self.length = length
        self.facts = facts

    def at(self, source: Source, start: int, text: str) -> UserError:
        """Return the error for the line ``text``, which starts at ``start``."""
        place = min(self.offset, len(text) - 1)
        stop = len(text) if self.length is None else min(place + self.length, len(text))
        return UserError(self.code, Span(source, start + place, start + stop), **self.facts)


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
            errors.append(malformed.at(source, start, text))
    if errors:
        raise ProgramErrors(errors)
    return reader.epochs()


class _Reader:
    """Collects the lines of each epoch."""

    def __init__(self) -> None:
        self._headers: list[tuple[int, int | None, int]] = []
        self._changes: list[list[Change]] = []
        self._opened = False  # by a header, or by the error that there is none

    def epochs(self) -> tuple[Epoch, ...]:
        pairs = zip(self._headers, self._changes, strict=True)
        return tuple(Epoch(number, tuple(changes), time, line) for (number, time, line), changes in pairs)

    def line(self, text: str, number: int) -> None:
        opened, self._opened = self._opened, True
        if text.startswith("@"):
            self._open(text, number)
            return
        change = _parse_change(text, number)
        if not opened:
            raise _Malformed("E122", 0)
        if self._changes:
            self._changes[-1].append(change)

    def _open(self, text: str, line: int) -> None:
        header = _EPOCH.match(text)
        if header is None:
            raise _Malformed("E120", 0)
        for group in (1, 2):
            if header[group] and not storable(_integer(header[group])):
                raise _Malformed("E112", header.start(group), len(header[group]), text=header[group])
        number = int(header[1])
        if self._headers and number <= self._headers[-1][0]:
            raise _Malformed("E121", 0, found=number, last=self._headers[-1][0])
        self._headers.append((number, int(header[2]) if header[2] else None, line))
        self._changes.append([])


def _parse_change(text: str, line: int) -> Change:
    start = _CHANGE.match(text)
    if start is None:
        raise _Malformed("E120", 0)
    tokens = list(_tokens(text, start.end()))
    cursor = _Cursor(tokens, len(text))
    row = cursor.arguments()
    cursor.end()
    return Change(start[2], row, 1 if start[1] == "+" else -1, line)


def parse_fact(text: str) -> tuple[str, Row]:
    """Read one fact, `edge(1, 2)`, as the command line gives it."""
    change = _parse_change("+" + text.strip().rstrip("."), 0)
    return change.relation, change.row


def parse_value(text: str) -> Value | None:
    """Read one value, as `[1, "a"]`; None if the text is none."""
    try:
        row = _parse_change(f"+value({text})", 0).row
    except _Malformed:
        return None
    return row[0] if len(row) == 1 else None


def _tokens(text: str, position: int) -> Iterator[tuple[str, str, int]]:
    while position < len(text):
        token = _TOKEN.match(text, position)
        if token is None:
            rest = text[position:].strip()
            if not rest or rest in (".",) or rest.lstrip(". ").startswith(_COMMENT):
                return
            offset = len(text) - len(text[position:].lstrip())
            if rest[0] in "\"'":
                raise _Malformed("E103", offset)
            raise _Malformed("E104", offset, 1, character=quoted(rest[0]), hint=_HINTS.get(rest[0], ""))
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

    def _fail(self, expected: str) -> _Malformed:
        """Return the error of a token that does not fit."""
        if self._next < len(self._tokens):
            _kind, text, offset = self._tokens[self._next]
            return _Malformed("E101", offset, len(text), found=_shown(text), expected=expected, hint="")
        return _Malformed("E101", self._length, 1, found="the end of the line", expected=expected, hint="")

    def _take(self, mark: str) -> bool:
        if self._next < len(self._tokens) and self._tokens[self._next][:2] == ("mark", mark):
            self._next += 1
            return True
        return False

    def arguments(self) -> Row:
        if self._next == len(self._tokens):
            return ()
        if not self._take("("):
            raise self._fail('"("')
        return self._items(")", 0)

    def end(self) -> None:
        if self._next < len(self._tokens):
            raise self._fail("the end of the line")

    def _items(self, close: str, depth: int) -> Row:
        if depth > _MAX_DEPTH:
            raise _Malformed("E113", self._tokens[self._next - 1][2], 1, limit=_MAX_DEPTH, hint="")
        if self._take(close):
            return ()
        items = [self._value(depth)]
        while self._take(","):
            items.append(self._value(depth))
        if not self._take(close):
            expected = f'"," or "{close}"'
            raise self._fail(expected)
        return tuple(items)

    def _value(self, depth: int) -> Value:
        if self._take("["):
            return list_value(self._items("]", depth + 1))
        if self._next == len(self._tokens) or self._tokens[self._next][0] == "mark":
            raise self._fail("a value")
        kind, text, offset = self._tokens[self._next]
        self._next += 1
        value = _scalar(kind, text)
        if value is None:
            return self._term(text, offset, depth)
        if not storable(value):
            raise _Malformed("E112", offset, len(text), text=shortened(text))
        return value

    def _term(self, name: str, offset: int, depth: int) -> Value:
        if not self._take("("):
            hint = f'Put it in quotes if it is a string: "{shortened(name)}".'
            if name.lower() in _WORDS:
                hint = f"Write {name.lower()}."
            raise _Malformed("E123", offset, len(name), found=quoted(shortened(name)), hint=hint)
        return Term(name, self._items(")", depth + 1))


def _shown(text: str) -> str:
    return shortened(text) if text[0] in "\"'" else quoted(shortened(text))


def _scalar(kind: str, text: str) -> Value | None:
    if kind == "string":
        return unquote(text)
    if kind == "float":
        return float(text)
    if kind == "integer":
        return _integer(text)
    return _WORDS.get(text)


def _integer(text: str) -> int:
    """Read an integer; one that is much too large becomes one that is just too large."""
    return int(text) if len(text) < 25 else 2**64


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
