"""Why a statement does not parse: the place, what was expected there, and what was probably meant.

The parser stops at the first token that fits nowhere. What people write for it in other languages, a bracket left
open, a forgotten comma or full stop is looked for around that place, and becomes the hint.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import cast
from unicodedata import name as character_name

from lark import Token
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from whorl.diagnostics.errors import UserError
from whorl.diagnostics.source import Source, Span
from whorl.diagnostics.wording import listed, quoted, shortened
from whorl.syntax.brackets import STRING, open_brackets
from whorl.syntax.grammar import parses

# In the order in which they are listed. What is not here may follow almost anywhere, and says nothing about a mistake.
_TOKEN_NAMES = {
    "NAME": "a name",
    "INTEGER": "a number",
    "LPAR": '"("',
    "RPAR": '")"',
    "RSQB": '"]"',
    "RBRACE": '"}"',
    "COLON": '":"',
    "MORE": '">"',
    "COMMA": '","',
    "SEMICOLON": '";"',
    "_ARROW": '":-"',
    "WINDOW": "WINDOW",
    "TTL": "TTL",
    "DOT": '"."',
}
_ENDS = frozenset({"RPAR", "RSQB", "RBRACE", "COMMA", "SEMICOLON", "_ARROW", "DOT"})
_CLOSING = frozenset({"RPAR", "RSQB", "RBRACE"})
_CONTINUES = frozenset({"LPAR", "MORE"})

_ARROW = re.compile(rf"{STRING}|(?P<arrow>:-|<-|←)")
_BEGINS = re.compile(r"(?:STREAM|RELATION|query|QUERY)\b|\{")
_NOT_ARROW = re.compile(r"[-=<>:~⇒⟸⟵⇐→]+|\b(?:if|IF|when|where)\b")
_AGGREGATE = re.compile(r"\b[^\W\d]\w*\s*<[^<>\n]*>\s*\Z")
_WORD = re.compile(r"[^\W\d]\w*\Z")
_OPERATOR = re.compile(r"[<>=!:]+")

# What other languages write, and what to write for it.
_MEANT = (
    (re.compile(r"&&?|∧|/\\|(?:and|AND)\b"), 'Write "," between conditions that must all hold.'),
    (re.compile(r"\|\|?|∨|\\/|(?:or|OR)\b"), 'Write ";" between alternatives.'),
    (re.compile(r"¬|~(?!=)|\\\+"), 'Write "not" before an atom.'),
    (re.compile("[«»`\u00b4\u2018-\u201f]"), "Write straight quotes, as in \"text\" or 'text'."),
    (re.compile(r"is\b"), 'Write "=".'),
    (re.compile(r"mod\b"), 'Write "%" for the remainder.'),
    (re.compile(r"\?"), 'Ask with "query", as in "query name(X, Y).".'),
    (re.compile(r"\\=|~="), 'Write "!=".'),
)
_OPERATORS = {"=<": "<=", "=>": ">=", "<>": "!=", "===": "=", "=:=": "=", "=!": "!=", "!==": "!="}
_KEYWORDS = {
    word.lower(): word for word in ("STREAM", "RELATION", "WINDOW", "TTL", "KEY", "COUNT", "query", "distinct")
}


@dataclass(frozen=True, slots=True)
class Mistake:
    """An error, and where the next statement starts if it starts inside this one."""

    error: UserError
    resume: int | None = None


@dataclass(frozen=True, slots=True)
class _Place:
    """Where the parser stopped: a token of the statement from `start` to `stop`, and what it accepts instead."""

    source: Source
    text: str
    start: int
    stop: int
    token: Token
    accepts: frozenset[str]

    @property
    def offset(self) -> int:
        return self.token.start_pos or 0

    @property
    def before(self) -> str:
        return self.text[self.start : self.offset].strip()

    @property
    def previous_word(self) -> str:
        word = _WORD.search(self.before)
        return word[0] if word else ""

    @property
    def on_new_line(self) -> bool:
        return not self.text[self.text.rfind("\n", 0, self.offset) + 1 : self.offset].strip()


def find_mistake(source: Source, text: str, start: int, stop: int, error: UnexpectedInput) -> Mistake:
    """Explain why the statement from ``start`` to ``stop`` does not parse; ``text`` is without comments."""
    if isinstance(error, UnexpectedCharacters):
        return Mistake(_character_error(source, text, cast("int", error.pos_in_stream)))  # lark declares it None
    assert isinstance(error, UnexpectedToken)
    place = _Place(source, text, start, stop, error.token, frozenset(error.accepts or error.expected))
    if error.token.type == "$END":
        return Mistake(_end_error(place, stop, '"."' if "DOT" in place.accepts else expected(place.accepts)))
    if "_ARROW" in place.accepts and (found := _NOT_ARROW.match(text, place.offset)):
        return Mistake(UserError("E109", Span(source, *found.span()), found=found[0]))
    if _stop_is_missing(place):
        return Mistake(_end_error(place, place.offset, f'"." before {_shown(error.token)}'), resume=place.offset)
    operator = _find_operator(place)
    if operator is not None:
        return Mistake(operator)
    facts = {"found": _shown(error.token), "expected": expected(place.accepts), "hint": _hint(place)}
    return Mistake(UserError("E101", Span(source, place.offset, place.offset + len(error.token)), **facts))


def expected(accepts: Collection[str]) -> str:
    """Say which tokens may stand somewhere.

    >>> expected({"COMMA", "DOT", "PLUS", "SEMICOLON"})
    '",", ";" or "."'
    """
    if "RELATION" in accepts:
        return "a rule, a fact, a declaration or a query"
    names = set(accepts)
    words: list[str] = []
    if {"INTEGER", "STRING"} <= names:
        words.append("a condition" if "NOT" in names else "a value")
        names -= {"NAME", "INTEGER", "LPAR"}
    if names & _ENDS:
        names -= _CONTINUES
    words.extend(word for name, word in _TOKEN_NAMES.items() if name in names)
    return listed(words) or "the end of the statement"


def _shown(token: Token) -> str:
    text = shortened(str(token))
    return text if token.type == "STRING" else quoted(text)


def _character_error(source: Source, text: str, offset: int) -> UserError:
    char = text[offset]
    if char in "\"'":
        end = text.find("\n", offset)
        return UserError("E103", Span(source, offset, end if end >= 0 else len(text)))
    hint, length = _meant(text, offset)
    shown = quoted(char)
    if not char.isprintable():
        shown = f"U+{ord(char):04X} ({character_name(char, 'a control character')})"
        hint = "Write a plain space." if char.isspace() else "Remove it."
    return UserError("E104", Span(source, offset, offset + max(length, 1)), character=shown, hint=hint)


def _end_error(place: _Place, stop: int, what: str) -> UserError:
    end = len(place.text[:stop].rstrip())
    hint = _unclosed(place, stop) or "End every rule, declaration and query with a full stop."
    span = Span(place.source, max(end - 1, place.start), max(end, place.start + 1))
    return UserError("E102", span, expected=what, hint=hint)


def _unclosed(place: _Place, stop: int) -> str:
    """Return a hint that names the bracket which is open at ``stop``, empty if none is."""
    opened = open_brackets(place.text, place.start, stop)
    if not opened:
        return ""
    line, column = place.source.position(opened[-1])
    return f'The "{place.text[opened[-1]]}" in line {line}, column {column} is not closed.'


def _stop_is_missing(place: _Place) -> bool:
    """Tell whether what precedes the place is a whole statement, and what follows looks like another one."""
    text, offset = place.text, place.offset
    if "DOT" not in place.accepts or _meant(text, offset)[0] or _word_hint(place.previous_word):
        return False
    if _BEGINS.match(text, offset):
        return True
    if not text[offset].isidentifier():
        return False
    return _has_arrow(text, offset, place.stop) or (place.on_new_line and not _has_arrow(text, place.start, offset))


def _has_arrow(text: str, start: int, stop: int) -> bool:
    return any(found["arrow"] for found in _ARROW.finditer(text, start, stop))


def _find_operator(place: _Place) -> UserError | None:
    """Return the error of an operator of another language, which the parser has cut in two."""
    if "DISTINCT" in place.accepts:
        return None
    first = place.offset
    while place.text[first - 1] in "<>=!:":
        first -= 1
    run = _OPERATOR.match(place.text, first)
    meant = _OPERATORS.get(run[0]) if run else None
    if run is None or meant is None:
        return None
    facts = {"found": quoted(run[0]), "expected": "a comparison", "hint": f'Write "{meant}".'}
    return UserError("E101", Span(place.source, *run.span()), **facts)


def _meant(text: str, offset: int) -> tuple[str, int]:
    """Return what to write for a notation of another language, and the length of that notation."""
    for pattern, hint in _MEANT:
        found = pattern.match(text, offset)
        if found:
            return hint, len(found[0])
    return "", 0


def _hint(place: _Place) -> str:
    """Say what to do about a token that is not expected, or nothing."""
    return (
        _meant(place.text, place.offset)[0]
        or _word_hint(place.previous_word)
        or _word_hint(str(place.token))
        or _token_hint(place)
        or _bracket_hint(place)
        or _comma_hint(place)
        or (_unclosed(place, place.offset) if place.on_new_line else "")
    )


def _word_hint(word: str) -> str:
    if word.lower() == "not":
        return "A negation stands before an atom or a comparison of a body."
    keyword = _KEYWORDS.get(word.lower(), word)
    return f"The keyword is written {keyword}." if keyword != word else ""


def _token_hint(place: _Place) -> str:
    """Say what is wrong with one kind of token in the company of its neighbours."""
    kind, before = place.token.type, place.before
    if before.endswith((",", ";")) and kind in _ENDS:
        return f'Remove the "{before[-1]}" before it.'
    if place.accepts == {"COLON"}:
        return 'Give every attribute its type, as in "Id: Integer".'
    if kind == "SEMICOLON" and "COMMA" in place.accepts:
        return 'Write "," here.'
    if kind in ("COMPARE", "LESS", "MORE") and "RPAR" in place.accepts:
        return "Compare in the body, after a comma."
    if kind == "MORE" and "DISTINCT" in place.accepts:
        return 'Name what to aggregate, as in "sum<X>".'
    if kind == "NAME" and place.text[place.offset - 1].isdigit():
        return "A name starts with a letter; a string stands in quotes."
    if kind == "LSQB" and place.text[place.offset - 1].isidentifier():
        return "Arguments stand in parentheses."
    if kind == "_ARROW":
        return _arrow_hint(place)
    return _stop_hint(place) if kind == "DOT" else ""


def _arrow_hint(place: _Place) -> str:
    if not place.before:
        return 'Write a head before the arrow; to ask for rows, write "query name(X, Y).".'
    closed = not open_brackets(place.text, place.start, place.offset)
    two = _has_arrow(place.text, place.start, place.offset)
    return "End the rule before this one with a full stop." if closed and two else ""


def _stop_hint(place: _Place) -> str:
    if not place.before:
        return "A statement ends with one full stop; remove this one."
    if place.text[place.offset + 1 : place.offset + 2].isdigit():
        return 'Write a digit before the point, as in "0.5".'
    if _AGGREGATE.search(place.before):
        return 'Aggregates stand in the head of a rule, as in "total(sum<X>) :- part(X).".'
    return ""


def _bracket_hint(place: _Place) -> str:
    closes = place.token.type in _CLOSING
    if closes and not open_brackets(place.text, place.start, place.offset):
        return "No bracket is open here; remove it."
    ends = closes or place.token.type in ("DOT", "_ARROW")
    return _unclosed(place, place.offset) if ends and _CLOSING & place.accepts else ""


def _comma_hint(place: _Place) -> str:
    repaired = f"{place.text[place.start : place.offset]},{place.text[place.offset : place.stop]}"
    return "Put a comma before it." if "COMMA" in place.accepts and parses(repaired) else ""
