"""Program text in, syntax tree out; or every syntax error, each at its place.

The whole text is parsed at once. Only when that fails is it cut into statements, and each parsed on its own, so that
one mistake does not hide the next. Lists are read as `[head | tail]`; a program that writes two elements after the bar
anywhere, `[prefix | a, b]`, uses that notation throughout, and is read so.
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files
from typing import cast

from lark import Lark, TextSlice
from lark.exceptions import UnexpectedCharacters, UnexpectedEOF, UnexpectedInput, UnexpectedToken

from whorl.diagnostics.errors import ProgramErrors, UserError
from whorl.diagnostics.source import Source, Span
from whorl.syntax import ast
from whorl.syntax.builder import Builder
from whorl.syntax.comments import blank_comments

MAX_NESTING = 100

_STATEMENT = re.compile(
    r"""(?:"(?:\\.|[^"\\\n])*"|(?<![\w'])'(?:\\.|[^'\\\n])*'|\.\.\.|\d\.\d|[^."'}]|"|')*(?:\.|\}(?:\s*\.)?|\Z)""",
    re.VERBOSE,
)
_TOKEN_NAMES = {
    "$END": "the end of the text",
    "_ARROW": '":-"',
    "DOT": '"."',
    "COMMA": '","',
    "NAME": "a name",
    "INTEGER": "a number",
    "FLOAT": "a number",
    "STRING": "a string",
    "LPAR": '"("',
    "RPAR": '")"',
    "LSQB": '"["',
    "RSQB": '"]"',
    "LBRACE": '"{"',
    "RBRACE": '"}"',
    "VBAR": '"|"',
    "COLON": '":"',
    "SEMICOLON": '";"',
    "COMPARE": "a comparison",
    "LESS": "a comparison",
    "MORE": '">"',
}
# What may follow almost anywhere says nothing about the mistake.
_QUIET = frozenset(
    {"PLUS", "MINUS", "TIMES", "POWER", "BANG", "NOT", "TRUE", "FALSE", "NIL", "KEY", "COUNT", "DISTINCT"}
)


@cache
def _grammar() -> str:
    return files("whorl.syntax").joinpath("datalog.lark").read_text(encoding="utf-8")


@cache
def _parser() -> Lark:
    return Lark(_grammar(), parser="lalr", propagate_positions=True, maybe_placeholders=True)


def parse_program(source: Source) -> ast.Program:
    """Parse a Datalog program.

    >>> parse_program(Source("demo", "p(X) :- q(X, 1).")).statements[0].heads[0].relation
    'p'
    """
    text = blank_comments(source.text)
    _check_nesting(source, text)
    try:
        tree = _parser().parse(text)
    except UnexpectedInput:
        raise ProgramErrors(_statement_errors(source, text)) from None
    builder = Builder(source, prefix_lists=False)
    program = builder.transform(tree)
    if builder.saw_prefix_list:
        builder = Builder(source, prefix_lists=True)
        program = builder.transform(tree)
    if builder.errors:
        raise ProgramErrors(builder.errors)
    assert isinstance(program, ast.Program)
    return program


def _check_nesting(source: Source, text: str) -> None:
    depth = 0
    for offset, char in enumerate(text):
        if char in "([{":
            depth += 1
            if depth > MAX_NESTING:
                raise ProgramErrors([UserError("E113", Span(source, offset, offset + 1), limit=MAX_NESTING)])
        elif char in ")]}":
            depth -= 1


def _statement_errors(source: Source, text: str) -> list[UserError]:
    errors: list[UserError] = []
    position = 0
    while position < len(text):
        match = _STATEMENT.match(text, position)
        stop = match.end() if match and match.end() > position else len(text)
        if text[position:stop].strip():
            errors.extend(_parse_one(source, text, position, stop))
        position = stop
    assert errors, "the whole text failed, so some statement does"
    return errors


def _parse_one(source: Source, text: str, start: int, stop: int) -> list[UserError]:
    try:
        tree = _parser().parse(TextSlice(text, start, stop))
    except UnexpectedInput as error:
        return [_syntax_error(source, text, stop, error)]
    builder = Builder(source, prefix_lists=False)
    builder.transform(tree)
    return builder.errors


def _syntax_error(source: Source, text: str, stop: int, error: UnexpectedInput) -> UserError:
    if isinstance(error, UnexpectedCharacters):
        offset = cast("int", error.pos_in_stream)  # lark declares it None
        if text[offset] in "\"'":
            end = text.find("\n", offset)
            return UserError("E103", Span(source, offset, end if end >= 0 else len(text)))
        return UserError("E104", Span(source, offset, offset + 1), character=text[offset])
    expected = _expected(error)
    if isinstance(error, UnexpectedToken) and error.token.type != "$END":
        token = error.token
        start = token.start_pos or 0
        code = "E117" if token.type == "TIMES" and str(token) == "%" else "E101"
        return UserError(code, Span(source, start, start + len(token)), found=str(token), expected=expected)
    assert isinstance(error, UnexpectedToken | UnexpectedEOF)
    end = len(text[:stop].rstrip())
    return UserError("E102", Span(source, max(end - 1, 0), max(end, 1)), expected=expected)


def _expected(error: UnexpectedInput) -> str:
    names = getattr(error, "accepts", None) or getattr(error, "expected", None) or ()
    shown = {_TOKEN_NAMES.get(name, f'"{name.lower()}"') for name in names if name not in _QUIET}
    listed = sorted(shown - {"the end of the text"})
    if not listed:
        return "the end of the statement"
    return listed[0] if len(listed) == 1 else ", ".join(listed[:-1]) + " or " + listed[-1]
