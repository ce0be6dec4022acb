"""The abstract syntax of a Datalog program.

Nodes are frozen and compare by what they say, not by where they stand: `span` is left out of equality, so that
printing a program and parsing it again gives an equal tree.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from whorl.diagnostics.source import Span
from whorl.model.values import Value


def _span() -> Span | None:
    return field(default=None, compare=False, repr=False)


# Expressions: what stands in an argument or on a side of a comparison.


@dataclass(frozen=True, slots=True)
class Constant:
    """A number, a string, a Boolean."""

    value: Value
    span: Span | None = _span()

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Constant) and type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash(self.value)


@dataclass(frozen=True, slots=True)
class Variable:
    """A named variable."""

    name: str
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Anonymous:
    """The underscore: some value, no matter which."""

    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Rest:
    """Three dots: all the attributes that follow, no matter which."""

    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class ListExpr:
    """A list: `[a, b]`, `[a, b | tail]` or, in the prefix notation, `[prefix | a, b]`."""

    items: tuple[Expr, ...]
    tail: Expr | None = None
    prefix: Expr | None = None
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Call:
    """A function applied to arguments, or a term: analysis tells them apart by name.

    It is an error if it has no value because arguments went too far in the directions in which they are `watched`: for
    each argument -1 for down, 1 for up.
    """

    name: str
    args: tuple[Expr, ...]
    span: Span | None = _span()
    watched: tuple[frozenset[int], ...] = ()


@dataclass(frozen=True, slots=True)
class Operation:
    """Arithmetic: a binary operator, or the unary minus; `watched` is as in `Call`."""

    operator: str
    args: tuple[Expr, ...]
    span: Span | None = _span()
    watched: tuple[frozenset[int], ...] = ()


Expr: TypeAlias = Constant | Variable | Anonymous | Rest | ListExpr | Call | Operation


@dataclass(frozen=True, slots=True)
class Aggregate:
    """`min<X>`, `count<distinct X>`, `msum<(Key, N)>` in the head of a rule."""

    function: str
    args: tuple[Expr, ...]
    distinct: bool = False
    span: Span | None = _span()


# Formulas: what stands in a body.


@dataclass(frozen=True, slots=True)
class Atom:
    """A relation, or a built-in, applied to arguments."""

    relation: str
    args: tuple[Expr, ...]
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Comparison:
    """`a < b`, or a chain such as `a < b <= c`."""

    operands: tuple[Expr, ...]
    operators: tuple[str, ...]
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Negation:
    """`not` with the atom or comparison that must not hold."""

    formula: Formula
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Conjunction:
    """Formulas that must all hold."""

    parts: tuple[Formula, ...]
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Alternatives:
    """Formulas of which one must hold."""

    parts: tuple[Formula, ...]
    span: Span | None = _span()


Formula: TypeAlias = Atom | Comparison | Negation | Conjunction | Alternatives


# Statements.


@dataclass(frozen=True, slots=True)
class Duration:
    """An amount of time, `60 minutes`, or a bare number of timestamp units (`unit` empty)."""

    amount: int
    unit: str = ""
    span: Span | None = _span()

    def __str__(self) -> str:
        return f"{self.amount} {self.unit}".strip()


@dataclass(frozen=True, slots=True)
class Window:
    """`WINDOW(size[, slide])`, in time or, with COUNT, in facts."""

    size: Duration
    slide: Duration | None = None
    counted: bool = False
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Attribute:
    """One attribute of a declaration."""

    name: str
    type: str
    key: bool = False
    span: Span | None = _span()
    type_span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Declaration:
    """`STREAM` or `RELATION` with its attributes; `kind` is `stream`, `relation` or `printed` (inside braces)."""

    kind: str
    name: str
    attributes: tuple[Attribute, ...]
    window: Window | None = None
    ttl: Duration | None = None
    span: Span | None = _span()
    name_span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class StreamGroup:
    """The printed form `{name(attr: Type, ...), ...}`."""

    declarations: tuple[Declaration, ...]
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Head:
    """The head of a rule; its arguments may be aggregates."""

    relation: str
    args: tuple[Expr | Aggregate, ...]
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Rule:
    """Heads that follow from a body; a fact has none."""

    heads: tuple[Head, ...]
    body: Formula | None = None
    span: Span | None = _span()


@dataclass(frozen=True, slots=True)
class Query:
    """An output of the program, possibly over a window."""

    atom: Atom
    window: Window | None = None
    span: Span | None = _span()


Statement: TypeAlias = Declaration | StreamGroup | Rule | Query


@dataclass(frozen=True, slots=True)
class Program:
    """A whole program text."""

    statements: tuple[Statement, ...]
