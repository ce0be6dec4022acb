"""Places in a text: what an error points at."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property
from unicodedata import combining, east_asian_width


@dataclass(frozen=True)
class Source:
    """A named text: a program, or a file of deltas."""

    name: str
    text: str = field(repr=False)

    @cached_property
    def _starts(self) -> list[int]:
        starts = [0]
        starts.extend(index + 1 for index, char in enumerate(self.text) if char == "\n")
        return starts

    def position(self, offset: int) -> tuple[int, int]:
        """Return the line and column of an offset, both counted from one."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def start(self, number: int) -> int:
        """Return the offset at which a line starts."""
        return self._starts[number - 1]

    def line(self, number: int) -> str:
        """Return one line without its end."""
        start = self.start(number)
        stop = self._starts[number] if number < len(self._starts) else len(self.text)
        return self.text[start:stop].rstrip("\r\n")


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of a source, from `start` up to but not including `stop`."""

    source: Source
    start: int
    stop: int

    def __str__(self) -> str:
        line, column = self.source.position(self.start)
        return f"{self.source.name}:{line}:{column}"

    @property
    def line(self) -> int:
        """The line the span starts on."""
        return self.source.position(self.start)[0]

    @property
    def text(self) -> str:
        """What the source says there."""
        return self.source.text[self.start : self.stop]

    def first(self, length: int) -> Span:
        """Return the span of the first characters, such as the name of an atom."""
        return Span(self.source, self.start, self.start + length)


def line_span(source: Source, line: int) -> Span:
    """Return the span of one whole line, without the white space around it."""
    start = source.start(line)
    text = source.line(line)
    indent = len(text) - len(text.lstrip())
    return Span(source, start + indent, start + max(len(text.rstrip()), indent + 1))


_WIDTH = 160  # of a longer line, the part around the carets is shown
_BEFORE = 60


def show_span(span: Span) -> str:
    """Return the line of a span with carets under it, as a terminal shows them one below the other."""
    line, column = span.source.position(span.start)
    text = span.source.line(line)
    before, here, after = _around(text, column - 1, min(span.stop - span.start, len(text)))
    gutter = f"{line:>3} | "
    margin = " " * (len(gutter) - 2) + "| "
    carets = "^" * max(1, _cells(here))
    return f"{gutter}{before}{here}{after}\n{margin}{' ' * _cells(before)}{carets}"


def _around(text: str, start: int, length: int) -> tuple[str, str, str]:
    """Cut a line into what stands before the carets, above them and after them."""
    first = max(0, start - _BEFORE) if len(text) > _WIDTH else 0
    last = min(len(text), first + _WIDTH)
    stop = min(start + length, last)
    before = ("..." if first else "") + text[first:start]
    after = text[stop:last] + ("..." if last < len(text) else "")
    return _printable(before), _printable(text[start:stop]), _printable(after)


def _printable(text: str) -> str:
    return "".join(
        " " if char.isspace() else char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in text
    )


def _cells(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    return sum(0 if combining(char) else 2 if east_asian_width(char) in "WF" else 1 for char in text)
