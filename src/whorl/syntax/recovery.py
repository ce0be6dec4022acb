"""A text that does not parse: cut it into statements and parse each on its own, to find the mistakes of all of them."""

from __future__ import annotations

import re
from typing import cast

from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken

from whorl.diagnostics.errors import ProgramErrors, UserError
from whorl.diagnostics.source import Source, Span
from whorl.syntax.brackets import STRING
from whorl.syntax.builder import Builder
from whorl.syntax.depth import check_depth
from whorl.syntax.grammar import parse_tree
from whorl.syntax.mistakes import find_mistake

MAX_ERRORS = 100  # whoever makes more has another problem than each of them
_STATEMENT = re.compile(rf"(?:{STRING}|\.\.\.|\d\.\d|(?<=[\s=<>+*/(,-])\.\d|[^.\"'}}]|\"|')*(?:\.|\}}(?:\s*\.)?|\Z)")
_BLANK = re.compile(r"[ \t\r\n\f]*\Z")
_REMARK = re.compile(r"%[^\n]*")
_PROSE = re.compile(r"%\s*(?:\w+\s+)?\Z")
# Statements of other languages, skipped as a whole.
_FOREIGN = (
    (
        re.compile(r"\s*((/\*).*?(?:\*/|\Z))", re.DOTALL),
        'Start a comment with "#", "%" or "//"; it runs to the end of the line.',
    ),
    (
        re.compile(r"\s*((\.(?:decl|input|output|printsize|limitsize|type|functor|pragma|plan|comp|init))\b[^\n]*)"),
        'Declare inputs as "RELATION name(attribute: Type).", and ask for outputs with "query name(X, Y).".',
    ),
)


def find_errors(source: Source, text: str) -> list[UserError]:
    """Return every syntax error of a text that has some; ``text`` is without comments."""
    recovery = _Recovery(source, text)
    recovery.run()
    assert recovery.errors, "the whole text failed, so some statement does"
    return recovery.errors


def _statement_end(text: str, position: int) -> int:
    match = _STATEMENT.match(text, position)
    return match.end() if match and match.end() > position else len(text)


class _Recovery:
    """Walks over the statements; `errors` holds what was wrong."""

    def __init__(self, source: Source, text: str) -> None:
        self._source = source
        self._text = text
        self._position = 0
        self.errors: list[UserError] = []

    def run(self) -> None:
        while len(self.errors) < MAX_ERRORS and not _BLANK.match(self._text, self._position):
            self._position = self._foreign() or self._statement(_statement_end(self._text, self._position))

    def _foreign(self) -> int | None:
        """Record a statement of another language; return where it ends."""
        for pattern, hint in _FOREIGN:
            found = pattern.match(self._text, self._position)
            if found:
                self.errors.append(UserError("E119", Span(self._source, *found.span(1)), found=found[2], hint=hint))
                return found.end()
        return None

    def _statement(self, stop: int) -> int:
        """Record what is wrong with the statement up to ``stop``; return where to go on."""
        try:
            tree = parse_tree(self._text, self._position, stop)
            check_depth(self._source, tree)
        except UnexpectedInput as error:
            return self._mistake(error, stop)
        except ProgramErrors as error:
            self.errors.extend(error.errors)
            return stop
        builder = Builder(self._source, prefix_lists=False)
        builder.transform(tree)
        self.errors.extend(builder.errors)
        return stop

    def _mistake(self, error: UnexpectedInput, stop: int) -> int:
        remark = self._remark(error, stop)
        if remark is not None:
            start, end = remark.span()
            self.errors.append(UserError("E117", Span(self._source, start, start + 1)))
            self._text = _blanked(self._text, start, end)
            return self._position
        mistake = find_mistake(self._source, self._text, self._position, stop, error)
        self.errors.append(mistake.error)
        if mistake.resume is not None:
            return mistake.resume
        if mistake.error.code == "E103":
            return self._after_string(mistake.error)
        # A full stop in the middle of a word or of arguments is part of the mistake.
        stray = stop < len(self._text) and not self._text[stop].isspace()
        return _statement_end(self._text, stop) if stray else stop

    def _remark(self, error: UnexpectedInput, stop: int) -> re.Match[str] | None:
        """Return a comment after a value, which was read as a remainder: without it the parser gets further."""
        for remark in _REMARK.finditer(self._text, self._position, stop):
            without = _blanked(self._text, *remark.span())
            reached = _reached(without, self._position)
            if reached is None or (_is_prose(self._text, error) and reached >= remark.end()):
                return remark
        return None

    def _after_string(self, error: UserError) -> int:
        """Return where to go on after an unclosed string, which hides the full stop of its line."""
        assert error.span is not None
        end = error.span.stop
        return end if self._text[:end].rstrip().endswith(".") else _statement_end(self._text, end)


def _blanked(text: str, start: int, stop: int) -> str:
    return f"{text[:start]}{' ' * (stop - start)}{text[stop:]}"


def _reached(text: str, start: int) -> int | None:
    """Return how far the statement at ``start`` parses, None if to its end."""
    try:
        parse_tree(text, start, _statement_end(text, start))
    except UnexpectedToken as error:
        return len(text) if error.token.type == "$END" else error.token.start_pos
    except UnexpectedCharacters as error:
        return cast("int", error.pos_in_stream)  # lark declares it None
    return None


def _is_prose(text: str, error: UnexpectedInput) -> bool:
    """Tell whether the parser stopped at a percent sign, or at the second word after one."""
    if not isinstance(error, UnexpectedToken) or error.token.type not in ("NAME", "TIMES"):
        return False
    stop = error.token.end_pos if error.token == "%" else error.token.start_pos
    return _PROSE.search(text[:stop]) is not None
