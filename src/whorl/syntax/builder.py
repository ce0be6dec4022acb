"""From the grammar's pieces to syntax nodes.

The grammar reads bodies without telling expressions from formulas. Each piece here is an expression node, or one of
the raw nodes below, until a place that knows what it wants asks for an expression (`_expr`) or a formula
(`_formula`). Mistakes are collected, and the piece is replaced by something harmless, so that one run finds them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lark import Token, Tree
from lark.tree import Meta

from whorl.diagnostics.errors import UserError
from whorl.diagnostics.source import Source, Span
from whorl.model.values import INTEGER_MAX, INTEGER_MIN, unquote
from whorl.syntax import ast

_SPELLINGS = {"==": "=", "≤": "<=", "≥": ">=", "≠": "!="}
_EXPRESSIONS = (ast.Constant, ast.Variable, ast.Anonymous, ast.Rest, ast.ListExpr, ast.Call, ast.Operation)


@dataclass(frozen=True, slots=True)
class _Raw:
    """A piece in parentheses, a conjunction, alternatives, a negation or a comparison, not yet converted."""

    kind: str
    parts: tuple[Any, ...]  # pieces, or operator texts in a comparison
    span: Span


class Builder:
    """Builds the nodes of one source; `errors` holds what was wrong.

    For every rule of the grammar there is a method of its name, which takes a tree's place and its parts, already
    built. The parts are of all kinds, hence Any. (lark's own transformer does the same, three times slower.)
    """

    def __init__(self, source: Source, *, prefix_lists: bool) -> None:
        self._source = source
        self._prefix_lists = prefix_lists
        self.errors: list[UserError] = []
        self.saw_prefix_list = False

    def transform(self, tree: Tree[Token]) -> Any:
        """Build what a tree stands for, from its leaves upwards."""
        parts = [self.transform(part) if isinstance(part, Tree) else part for part in tree.children]
        return getattr(self, tree.data)(tree.meta, parts)

    def _span(self, meta: Meta) -> Span:
        if meta.empty:
            return Span(self._source, 0, 0)
        return Span(self._source, meta.start_pos, meta.end_pos)

    def _token_span(self, token: Token) -> Span:
        start = token.start_pos or 0
        return Span(self._source, start, start + len(token))

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
        return ast.Attribute(str(name), str(type_name), key is not None, self._span(meta), self._token_span(type_name))

    def declaration(self, meta: Meta, parts: list[Any]) -> ast.Declaration:
        kind, name, attributes, *modifiers = parts
        windows = [part for part in modifiers if isinstance(part, ast.Window)]
        ttls = [part for part in modifiers if isinstance(part, ast.Duration)]
        for noun, extras in (("window", windows[1:]), ("lifetime", ttls[1:])):
            for extra in extras:
                self._error("E114", extra.span, name=str(name), kind=noun)
        return ast.Declaration(
            kind,
            str(name),
            attributes or (),
            windows[0] if windows else None,
            ttls[0] if ttls else None,
            self._span(meta),
            self._token_span(name),
        )

    def printed(self, meta: Meta, parts: list[Any]) -> ast.Declaration:
        name, attributes = parts
        span = self._span(meta)
        return ast.Declaration("printed", str(name), attributes or (), span=span, name_span=self._token_span(name))

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
        literal, *others = parts
        before = len(self.errors)
        formula = self._formula(literal)
        windows = [part for part in others if isinstance(part, ast.Window)]
        if not isinstance(formula, ast.Atom) or len(windows) < len(others):
            if len(self.errors) == before:
                self._error("E108", self._span(meta))
            formula = ast.Atom("", (), self._span(meta))
        for extra in windows[1:]:
            self._error("E114", extra.span, name=formula.relation, kind="window")
        return ast.Query(formula, windows[0] if windows else None, self._span(meta))

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
        if self._is_smallest(operand):
            self.errors.pop()
            return ast.Constant(INTEGER_MIN, self._span(meta))
        value = operand.value if isinstance(operand, ast.Constant) else None
        if isinstance(value, int | float) and not isinstance(value, bool) and not _negative(value):
            return ast.Constant(-value, self._span(meta))
        return ast.Operation("-", (self._expr(operand),), self._span(meta))

    def _is_smallest(self, operand: Any) -> bool:
        """Tell whether the last error is about the one number that is too large only without its sign."""
        if not isinstance(operand, ast.Constant) or not self.errors or self.errors[-1].span != operand.span:
            return False
        return operand.span is not None and operand.span.text.lstrip("0") == str(-INTEGER_MIN)

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
        remark = self._remark(piece)
        self._error("E117" if remark else "E105", remark or piece.span)
        return ast.Conjunction((), piece.span)

    def _remark(self, piece: Any) -> Span | None:
        """Return the place of a "%" that was to start a comment: one between an atom and a word."""
        if not isinstance(piece, ast.Operation) or piece.operator != "%" or not isinstance(piece.args[0], ast.Call):
            return None
        atom = piece.args[0].span
        assert atom is not None
        offset = self._source.text.index("%", atom.stop)
        return Span(self._source, offset, offset + 1)

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
