"""Blank out comments, so that the grammar never sees them and every offset stays.

`#` and `//` start a comment anywhere outside a string. `%` does too, unless it follows an operand on its line: there
it is the remainder, as in `X % 2`.
"""

from __future__ import annotations

import re

_TOKEN = re.compile(
    r"""
    (?P<string>"(?:\\.|[^"\\\n])*"|(?<![\w'])'(?:\\.|[^'\\\n])*')
  | (?P<comment>(?:\#|//)[^\n]*)
  | (?P<percent>%[^\n]*)
    """,
    re.VERBOSE,
)
_OPERAND_END = re.compile(r"[\w)\]'\"][ \t]*\Z")


def blank_comments(text: str) -> str:
    """Return ``text`` with each comment replaced by as many spaces."""
    pieces: list[str] = []
    position = 0
    while match := _TOKEN.search(text, position):
        start, stop = match.span()
        pieces.append(text[position:start])
        if match.lastgroup == "string":
            pieces.append(match.group())
        elif match.lastgroup == "percent" and _follows_operand(text, start):
            pieces.append("%")
            stop = start + 1
        else:
            pieces.append(" " * (stop - start))
        position = stop
    pieces.append(text[position:])
    return "".join(pieces)


def _follows_operand(text: str, offset: int) -> bool:
    line_start = text.rfind("\n", 0, offset) + 1
    return _OPERAND_END.search(text[line_start:offset]) is not None
