"""The checked program: what every later stage starts from.

Bodies are flat: alternatives have become rules of their own, several heads too, chains of comparisons are single
comparisons, predicates that compute are equations. Expressions are still syntax nodes; a `Call` is a function if
`Program.functions` has its name, and a term otherwise.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from whorl.diagnostics.source import Span
from whorl.model.functions import Function
from whorl.model.schema import Column, Window
from whorl.model.values import Row
from whorl.syntax import ast

MONOTONE_SPELLINGS = {"mmin": "min", "mmax": "max", "mcount": "count", "msum": "sum"}
AGGREGATES = ("count", "sum", "avg", "min", "max", *MONOTONE_SPELLINGS)


@dataclass(frozen=True, slots=True)
class Absent:
    """A negated atom."""

    atom: ast.Atom
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Compare:
    """One comparison of two expressions; `=` also binds."""

    operator: str
    left: ast.Expr
    right: ast.Expr
    span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Member:
    """`member(X, L)`: X is an element of the list L; negated, it is not."""

    item: ast.Expr
    items: ast.Expr
    negated: bool = False
    span: Span | None = field(default=None, compare=False, repr=False)


Literal: TypeAlias = ast.Atom | Absent | Compare | Member


@dataclass(frozen=True, slots=True)
class Rule:
    """One head, one flat body. Rules of one `origin` are alternatives of one head of a rule of the text."""

    head: ast.Head
    body: tuple[Literal, ...]
    origin: int
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def aggregates(self) -> dict[int, ast.Aggregate]:
        """The aggregates of the head, by position."""
        return {i: arg for i, arg in enumerate(self.head.args) if isinstance(arg, ast.Aggregate)}

    def atoms(self) -> Iterator[tuple[ast.Atom, bool]]:
        """Yield the atoms over relations with whether each is positive."""
        for literal in self.body:
            if isinstance(literal, ast.Atom):
                yield literal, True
            elif isinstance(literal, Absent):
                yield literal.atom, False


@dataclass(frozen=True, slots=True)
class Fact:
    """A base fact that stands in the program; `row` is as the text gives it, a stream's timestamp first."""

    relation: str
    row: Row
    span: Span | None = field(default=None, compare=False, repr=False)
    value_spans: tuple[Span | None, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Query:
    """One output: the rows of a relation that match the arguments, without the anonymous columns."""

    name: str
    relation: str
    args: tuple[ast.Expr, ...]
    window: Window | None = None
    span: Span | None = field(default=None, compare=False, repr=False)
    window_span: Span | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Relation:
    """A relation with its columns.

    `kind` is `stream`, `relation` (both base) or `derived`. The timestamp of a `lifted` relation is not a column: it is
    the tuple's time. `aggregates` gives the function of each aggregated column; these columns are then a function of
    the others.
    """

    name: str
    kind: str
    columns: tuple[Column, ...]
    lifted: bool = False
    declared: bool = False
    window: Window | None = None
    ttl: int | None = None
    aggregates: Mapping[int, str] = field(default_factory=dict)
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def base(self) -> bool:
        """Whether facts arrive from outside."""
        return self.kind != "derived"

    @property
    def timed(self) -> bool:
        """Whether its facts carry a timestamp as their first attribute."""
        return self.kind == "stream"

    @property
    def dies(self) -> bool:
        """Whether its facts die of age: they have a time to live, or a window by time."""
        return self.ttl is not None or (self.window is not None and not self.window.counted)

    @property
    def arity(self) -> int:
        """The number of attributes of a row as it arrives, the timestamp included."""
        return len(self.columns) + (1 if self.lifted and self.timed else 0)


@dataclass(frozen=True, slots=True)
class Stages:
    """How a stratum runs stage by stage: the stage column of each relation, and the order inside one stage."""

    columns: Mapping[str, int]
    layers: tuple[tuple[str, ...], ...]
    bound: int | None = None


@dataclass(frozen=True, slots=True)
class Stratum:
    """Relations that are computed together, after those of all earlier strata."""

    relations: tuple[str, ...]
    rules: tuple[Rule, ...]
    recursive: bool
    stages: Stages | None = None
    termination: str = "ends"
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Program:
    """A program that passed every check, with the facts found on the way."""

    relations: Mapping[str, Relation]
    rules: tuple[Rule, ...]
    facts: tuple[Fact, ...]
    queries: tuple[Query, ...]
    strata: tuple[Stratum, ...]
    functions: Mapping[str, Function]
    # Named variables whose value may still improve during the recursion, per rule (by position in `rules`):
    # 1 if it rises, -1 if it falls.
    trending: Mapping[int, Mapping[str, int]]
    notes: tuple[str, ...] = ()

    def base_relations(self) -> tuple[Relation, ...]:
        """Return the relations that receive facts."""
        return tuple(relation for relation in self.relations.values() if relation.base)


def expressions(literal: Literal) -> tuple[ast.Expr, ...]:
    """Return the expressions that a literal is made of."""
    if isinstance(literal, ast.Atom):
        return literal.args
    if isinstance(literal, Absent):
        return literal.atom.args
    if isinstance(literal, Compare):
        return (literal.left, literal.right)
    return (literal.item, literal.items)


def parts(expr: ast.Expr | ast.Aggregate) -> tuple[ast.Expr, ...]:
    """Return the direct parts of an expression."""
    if isinstance(expr, ast.ListExpr):
        ends = tuple(end for end in (expr.prefix, expr.tail) if end is not None)
        return expr.items + ends
    if isinstance(expr, ast.Call | ast.Operation | ast.Aggregate):
        return expr.args
    return ()


def variables(expr: ast.Expr | ast.Aggregate) -> Iterator[ast.Variable]:
    """Yield the variables of an expression, each as often as it occurs."""
    if isinstance(expr, ast.Variable):
        yield expr
    for part in parts(expr):
        yield from variables(part)


def variable_names(expr: ast.Expr | ast.Aggregate) -> frozenset[str]:
    """Return the names of the variables of an expression."""
    return frozenset(variable.name for variable in variables(expr))


def rule_variables(rule: Rule) -> Iterator[ast.Variable]:
    """Yield every occurrence of a variable in a rule, the head's first."""
    for arg in rule.head.args:
        yield from variables(arg)
    for literal in rule.body:
        for expr in expressions(literal):
            yield from variables(expr)
