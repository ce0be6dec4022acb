"""Places in a text: what an error points at."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from functools import cached_property


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

    def line(self, number: int) -> str:
        """Return one line without its end."""
        start = self._starts[number - 1]
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


def line_span(source: Source, line: int) -> Span:
    """Return the span of one whole line, without the white space around it."""
    start = sum(len(text) + 1 for text in source.text.split("\n")[: line - 1])
    text = source.line(line)
    indent = len(text) - len(text.lstrip())
    return Span(source, start + indent, start + max(len(text.rstrip()), indent + 1))


def show_span(span: Span) -> str:
    """Return the line of a span with carets under it."""
    line, column = span.source.position(span.start)
    text = span.source.line(line).replace("\t", " ")
    width = max(1, min(span.stop - span.start, len(text) - column + 1))
    gutter = f"{line:>3} | "
    margin = " " * (len(gutter) - 2) + "| "
    return f"{gutter}{text}\n{margin}{' ' * (column - 1)}{'^' * width}"
