"""From the grammar's pieces to syntax nodes.

The grammar reads bodies without telling expressions from formulas. Each piece here is an expression node, or one of
the raw nodes below, until a place that knows what it wants asks for an expression (`_expr`) or a formula
(`_formula`). Mistakes are collected, and the piece is replaced by something harmless, so that one run finds them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lark import Token, Transformer, v_args
from lark.tree import Meta

from whorl.diagnostics.errors import UserError
from whorl.diagnostics.source import Source, Span
from whorl.model.values import INTEGER_MAX, unquote
from whorl.syntax import ast

_SPELLINGS = {"==": "=", "≤": "<=", "≥": ">=", "≠": "!="}
_EXPRESSIONS = (ast.Constant, ast.Variable, ast.Anonymous, ast.Rest, ast.ListExpr, ast.Call, ast.Operation)


@dataclass(frozen=True, slots=True)
class _Raw:
    """A piece in parentheses, a conjunction, alternatives, a negation or a comparison, not yet converted."""

    kind: str
    parts: tuple[Any, ...]  # pieces, or operator texts in a comparison
    span: Span


# lark hands over and takes back untyped pieces: this class is the border, hence Any.
@v_args(meta=True)
class Builder(Transformer[Token, Any]):
    """Builds the nodes of one source; `errors` holds what was wrong."""

    def __init__(self, source: Source, *, prefix_lists: bool) -> None:
        super().__init__()
        self._source = source
        self._prefix_lists = prefix_lists
        self.errors: list[UserError] = []
        self.saw_prefix_list = False

    def _span(self, meta: Meta) -> Span:
        if meta.empty:
            return Span(self._source, 0, 0)
        return Span(self._source, meta.start_pos, meta.end_pos)

    def _error(self, code: str, span: Span | None, **facts: object) -> None:
        self.errors.append(UserError(code, span, **facts))

    # Statements

    def start(self, _meta: Meta, parts: list[Any]) -> ast.Program:
        return ast.Program(tuple(parts))

    def stream(self, _meta: Meta, _parts: list[Any]) -> str:
        return "stream"

    def relation(self, _meta: Meta, _parts: list[Any]) -> str:
        return "relation"

    def attributes(self, _meta: Meta, parts: list[Any]) -> tuple[Any, ...]:
        return tuple(parts)

    def attribute(self, meta: Meta, parts: list[Any]) -> ast.Attribute:
        name, type_name, key = parts
        return ast.Attribute(str(name), str(type_name), key is not None, self._span(meta))

    def declaration(self, meta: Meta, parts: list[Any]) -> ast.Declaration:
        kind, name, attributes, *modifiers = parts
        windows = [part for part in modifiers if isinstance(part, ast.Window)]
        ttls = [part for part in modifiers if isinstance(part, ast.Duration)]
        for extra in windows[1:] + ttls[1:]:
            self._error("E114", extra.span, name=str(name))
        return ast.Declaration(
            kind,
            str(name),
            attributes or (),
            windows[0] if windows else None,
            ttls[0] if ttls else None,
            self._span(meta),
        )

    def printed(self, meta: Meta, parts: list[Any]) -> ast.Declaration:
        name, attributes = parts
        return ast.Declaration("printed", str(name), attributes or (), span=self._span(meta))

    def group(self, meta: Meta, parts: list[Any]) -> ast.StreamGroup:
        return ast.StreamGroup(tuple(parts), self._span(meta))

    def ttl(self, _meta: Meta, parts: list[Any]) -> ast.Duration:
        (duration,) = parts
        assert isinstance(duration, ast.Duration)
        return duration

    def window(self, meta: Meta, parts: list[Any]) -> ast.Window:
        counted, size, slide = parts
        return ast.Window(size, slide, counted is not None, self._span(meta))

    def duration(self, meta: Meta, parts: list[Any]) -> ast.Duration:
        minus, amount, unit = parts
        number = int(amount) if len(amount) < 20 else INTEGER_MAX + 1
        span = self._span(meta)
        if number > INTEGER_MAX:
            self._error("E112", span, text=str(amount))
            number = 1
        return ast.Duration(-number if minus else number, str(unit) if unit else "", span)

    def query(self, meta: Meta, parts: list[Any]) -> ast.Query:
        literal, window = parts[0], parts[1] if len(parts) > 1 else None
        formula = self._formula(literal)
        if not isinstance(formula, ast.Atom):
            self._error("E108", self._span(meta))
            formula = ast.Atom("", (), self._span(meta))
        return ast.Query(formula, window, self._span(meta))

    def rule(self, meta: Meta, parts: list[Any]) -> ast.Rule:
        *heads, body = parts
        formula = None if body is None else self._formula(body)
        return ast.Rule(tuple(heads), formula, self._span(meta))

    def headargs(self, _meta: Meta, parts: list[Any]) -> tuple[Any, ...]:
        return tuple(part if isinstance(part, ast.Aggregate) else self._expr(part) for part in parts)

    def head(self, meta: Meta, parts: list[Any]) -> ast.Head:
        name, args = parts
        return ast.Head(str(name), args or (), self._span(meta))

    def aggregate(self, meta: Meta, parts: list[Any]) -> ast.Aggregate:
        name, _less, distinct, content, _more = parts
        pieces = (content,)
        if isinstance(content, _Raw) and content.kind == "group":
            (inner,) = content.parts
            pieces = inner.parts if isinstance(inner, _Raw) and inner.kind == "and" else (inner,)
        args = tuple(self._expr(piece) for piece in pieces)
        return ast.Aggregate(str(name), args, distinct is not None, self._span(meta))

    # Formulas, still raw

    def formula(self, meta: Meta, parts: list[Any]) -> _Raw:
        return _Raw("or", tuple(parts), self._span(meta))

    def conjunction(self, meta: Meta, parts: list[Any]) -> _Raw:
        return _Raw("and", tuple(parts), self._span(meta))

    def negation(self, meta: Meta, parts: list[Any]) -> _Raw:
        return _Raw("not", tuple(parts), self._span(meta))

    def comparison(self, meta: Meta, parts: list[Any]) -> _Raw:
        return _Raw("compare", tuple(parts), self._span(meta))

    def group_(self, meta: Meta, parts: list[Any]) -> _Raw:
        return _Raw("group", tuple(parts), self._span(meta))

    # Expressions

    def operation(self, meta: Meta, parts: list[Any]) -> ast.Operation:
        left, operator, right = parts
        text = "-" if str(operator) == "−" else str(operator)
        return ast.Operation(text, (self._expr(left), self._expr(right)), self._span(meta))

    def minus(self, meta: Meta, parts: list[Any]) -> ast.Expr:
        _sign, operand = parts
        inner = self._expr(operand)
        if isinstance(inner, ast.Constant) and isinstance(inner.value, int | float) and not _negative(inner.value):
            return ast.Constant(-inner.value, self._span(meta))
        return ast.Operation("-", (inner,), self._span(meta))

    def integer(self, meta: Meta, parts: list[Any]) -> ast.Constant:
        (text,) = parts
        span = self._span(meta)
        if len(text.lstrip("0")) > 19 or int(text) > INTEGER_MAX:
            self._error("E112", span, text=str(text))
            return ast.Constant(0, span)
        return ast.Constant(int(text), span)

    def float_(self, meta: Meta, parts: list[Any]) -> ast.Constant:
        (text,) = parts
        value = float(text)
        if value == float("inf"):
            self._error("E112", self._span(meta), text=str(text))
            value = 0.0
        return ast.Constant(value, self._span(meta))

    def string(self, meta: Meta, parts: list[Any]) -> ast.Constant:
        return ast.Constant(unquote(str(parts[0])), self._span(meta))

    def true(self, meta: Meta, _parts: list[Any]) -> ast.Constant:
        return ast.Constant(True, self._span(meta))  # noqa: FBT003 - the value of the language's true

    def false(self, meta: Meta, _parts: list[Any]) -> ast.Constant:
        return ast.Constant(False, self._span(meta))  # noqa: FBT003 - the value of the language's false

    def nil(self, meta: Meta, _parts: list[Any]) -> ast.ListExpr:
        return ast.ListExpr((), span=self._span(meta))

    def name(self, meta: Meta, parts: list[Any]) -> ast.Expr:
        text = str(parts[0])
        return ast.Anonymous(self._span(meta)) if text == "_" else ast.Variable(text, self._span(meta))

    def items(self, _meta: Meta, parts: list[Any]) -> tuple[Any, ...]:
        return tuple(parts)

    def rest(self, meta: Meta, _parts: list[Any]) -> ast.Rest:
        return ast.Rest(self._span(meta))

    def call(self, meta: Meta, parts: list[Any]) -> ast.Call:
        name, args = parts
        return ast.Call(str(name), tuple(self._expr(arg) for arg in args or ()), self._span(meta))

    def list_(self, meta: Meta, parts: list[Any]) -> ast.ListExpr:
        before, after = parts
        span = self._span(meta)
        items = tuple(self._expr(part) for part in before or ())
        if after is None:
            return ast.ListExpr(items, span=span)
        rest = tuple(self._expr(part) for part in after)
        if len(rest) > 1:
            self.saw_prefix_list = True
        if not self._prefix_lists:
            if not items:
                self._error("E115", span)
            return ast.ListExpr(items, tail=rest[0], span=span)
        if len(items) != 1:
            self._error("E116", span)
            return ast.ListExpr(items, span=span)
        return ast.ListExpr(rest, prefix=items[0], span=span)

    # Conversions

    def _expr(self, piece: Any) -> ast.Expr:
        while isinstance(piece, _Raw) and piece.kind == "group":
            (piece,) = piece.parts
        if isinstance(piece, _EXPRESSIONS):
            return piece
        self._error("E106", piece.span)
        return ast.Anonymous(piece.span)

    def _formula(self, piece: Any) -> ast.Formula:
        while isinstance(piece, _Raw) and piece.kind == "group":
            (piece,) = piece.parts
        if isinstance(piece, _Raw):
            return self._raw_formula(piece)
        if isinstance(piece, ast.Call):
            return ast.Atom(piece.name, piece.args, piece.span)
        if isinstance(piece, ast.Variable):
            return ast.Atom(piece.name, (), piece.span)
        self._error("E105", piece.span)
        return ast.Conjunction((), piece.span)

    def _raw_formula(self, piece: _Raw) -> ast.Formula:
        if piece.kind == "compare":
            return self._compare(piece.parts, piece.span)
        parts = tuple(self._formula(part) for part in piece.parts)
        if piece.kind == "or":
            return ast.Alternatives(_flatten(parts, ast.Alternatives), piece.span)
        if piece.kind == "and":
            return ast.Conjunction(_flatten(parts, ast.Conjunction), piece.span)
        (inner,) = parts
        if isinstance(inner, ast.Conjunction | ast.Alternatives):
            self._error("E107", piece.span)
            return ast.Conjunction((), piece.span)
        return ast.Negation(inner, piece.span)

    def _compare(self, parts: Sequence[Any], span: Span) -> ast.Comparison:
        operands = tuple(self._expr(part) for part in parts[::2])
        operators = tuple(_SPELLINGS.get(str(part), str(part)) for part in parts[1::2])
        return ast.Comparison(operands, operators, span)


def _negative(number: float) -> bool:
    return number < 0 or str(number).startswith("-")


def _flatten(parts: tuple[ast.Formula, ...], kind: type[Any]) -> tuple[ast.Formula, ...]:
    out: list[ast.Formula] = []
    for part in parts:
        if isinstance(part, kind):
            out.extend(part.parts)
        else:
            out.append(part)
    return tuple(out)
