"""Brackets outside of strings."""

from __future__ import annotations

import re
from collections.abc import Iterator

STRING = r'"(?:\\.|[^"\\\n])*"|(?<![\w\'])\'(?:\\.|[^\'\\\n])*\''
_BRACKET = re.compile(rf"{STRING}|(?P<bracket>[()\[\]{{}}])")


def find_brackets(text: str, start: int = 0, stop: int | None = None) -> Iterator[int]:
    """Yield the offset of every bracket, opening or closing."""
    for found in _BRACKET.finditer(text, start, len(text) if stop is None else stop):
        if found["bracket"]:
            yield found.start()


def open_brackets(text: str, start: int, stop: int) -> list[int]:
    """Return the offsets of the brackets that are still open at ``stop``, the innermost last.

    >>> open_brackets("p(X) :- (q(X", 0, 12)
    [8, 10]
    """
    opened: list[int] = []
    for offset in find_brackets(text, start, stop):
        if text[offset] in "([{":
            opened.append(offset)
        elif opened:
            opened.pop()
    return opened
