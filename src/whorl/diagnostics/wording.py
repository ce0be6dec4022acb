"""How the facts of an error are put into words: articles, plurals, lists."""

from __future__ import annotations

from collections.abc import Sequence
from string import Formatter
from typing import Any


class Wording(Formatter):
    """Fills a template of the catalogue.

    `{type:a}` puts the article before a word, `{count:attribute}` counts a noun.

    >>> Wording().format("{found:a}, {count:attribute}", found="Integer", count=1)
    'an Integer, 1 attribute'
    """

    def format_field(self, value: Any, format_spec: str) -> str:  # Any: the signature of the library
        """Return one fact as the template asks."""
        if not format_spec:
            return str(value)
        return with_article(str(value)) if format_spec == "a" else counted(value, format_spec)


def with_article(word: str) -> str:
    """Return a word after its article."""
    return f"{'an' if word[:1].lower() in 'aeiou' else 'a'} {word}"


def counted(number: object, noun: str) -> str:
    """Return a number, which may read `at least 2`, with its noun."""
    return f"{number} {noun}" if str(number).split()[-1] == "1" else f"{number} {noun}s"


def listed(words: Sequence[str], last: str = "or") -> str:
    """Return words as an enumeration: `a, b or c`."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


def quoted(text: object) -> str:
    """Return a piece of a program or of data in quotes."""
    return f'"{text}"'


def shortened(text: str, width: int = 40) -> str:
    """Return a text that is not longer than ``width``."""
    return text if len(text) <= width else text[: width - 3] + "..."
