"""The logical plan: strata of rules, each rule a pipeline over bindings.

A rule's body is a sequence of steps. Each takes a set of bindings (values for variables) and gives one: a `Join`
extends them by matching a relation, a `Filter` keeps some, an `Extend` adds a calculated variable, and so on; the
first step starts from the one empty binding. The head turns what is left into rows, or into contributions to
aggregated cells. A `Fixpoint` holds the rules of one stratum, which are applied until nothing changes.

>>> print(Join("edge", (ast.Variable("X"), ast.Constant(1))))
Join edge(X, 1)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from whorl.analysis.program import Program, Relation, Stages
from whorl.diagnostics.source import Span
from whorl.model.types import Type
from whorl.syntax import ast
from whorl.syntax.printer import print_expr


def _args(args: tuple[ast.Expr, ...]) -> str:
    return ", ".join(print_expr(arg) for arg in args)


@dataclass(frozen=True, slots=True)
class Join:
    """Extend each binding by every row of a relation that fits."""

    relation: str
    args: tuple[ast.Expr, ...]

    def __str__(self) -> str:
        return f"Join {self.relation}({_args(self.args)})"


@dataclass(frozen=True, slots=True)
class SemiJoin:
    """Keep the bindings for which some row of a relation fits; bind nothing."""

    relation: str
    args: tuple[ast.Expr, ...]

    def __str__(self) -> str:
        return f"SemiJoin {self.relation}({_args(self.args)})"


@dataclass(frozen=True, slots=True)
class AntiJoin:
    """Keep the bindings for which no row of a relation fits."""

    relation: str
    args: tuple[ast.Expr, ...]

    def __str__(self) -> str:
        return f"AntiJoin {self.relation}({_args(self.args)})"


@dataclass(frozen=True, slots=True)
class Filter:
    """Keep the bindings for which a comparison holds."""

    operator: str
    left: ast.Expr
    right: ast.Expr

    def __str__(self) -> str:
        return f"Filter {print_expr(self.left)} {self.operator} {print_expr(self.right)}"


@dataclass(frozen=True, slots=True)
class Extend:
    """Lay a variable or a pattern over a calculated value, and bind what it holds."""

    pattern: ast.Expr
    value: ast.Expr

    def __str__(self) -> str:
        return f"Extend {print_expr(self.pattern)} = {print_expr(self.value)}"


@dataclass(frozen=True, slots=True)
class Unnest:
    """Extend each binding by every element of a list."""

    item: ast.Expr
    items: ast.Expr

    def __str__(self) -> str:
        return f"Unnest {print_expr(self.item)} in {print_expr(self.items)}"


@dataclass(frozen=True, slots=True)
class Lacks:
    """Keep the bindings for which a list does not hold an element."""

    item: ast.Expr
    items: ast.Expr

    def __str__(self) -> str:
        return f"Lacks {print_expr(self.item)} in {print_expr(self.items)}"


@dataclass(frozen=True, slots=True)
class Project:
    """Keep these variables only, each binding once."""

    columns: tuple[str, ...]

    def __str__(self) -> str:
        return f"Project {', '.join(self.columns) or 'nothing'}"


Step: TypeAlias = Join | SemiJoin | AntiJoin | Filter | Extend | Unnest | Lacks | Project


@dataclass(frozen=True, slots=True)
class Contribution:
    """What a rule adds to an aggregated cell: a value, at most once for each key.

    Without `key` the key is the rule's assignment. Of two values for one key the larger counts.
    """

    function: str
    value: ast.Expr
    key: tuple[ast.Expr, ...] | None = None

    def __str__(self) -> str:
        key = "" if self.key is None else f" per ({_args(self.key)})"
        return f"{self.function}<{print_expr(self.value)}{key}>"


@dataclass(frozen=True, slots=True)
class RulePlan:
    """One rule: what its steps bind becomes rows of `relation`, or contributions to its cells.

    `assignment` names the variables whose values tell one contribution from another; it is empty for plain rows.
    """

    relation: str
    args: tuple[ast.Expr | Contribution, ...]
    steps: tuple[Step, ...]
    origin: int
    assignment: tuple[str, ...] = ()
    span: Span | None = field(default=None, compare=False, repr=False)

    @property
    def aggregating(self) -> bool:
        """Whether bindings that differ in any variable must be told apart."""
        return any(isinstance(arg, Contribution) and arg.function in ("sum", "count", "avg") for arg in self.args)

    def relations(self) -> list[tuple[str, bool]]:
        """Return the relations that the steps read, with whether positively."""
        return [
            (step.relation, not isinstance(step, AntiJoin))
            for step in self.steps
            if isinstance(step, Join | SemiJoin | AntiJoin)
        ]


@dataclass(frozen=True, slots=True)
class Selection:
    """Keep only the rows of a relation that are best in `value` among those equal in `group`."""

    relation: str
    group: tuple[int, ...]
    value: int
    function: str

    def __str__(self) -> str:
        group = ", ".join(str(column + 1) for column in self.group)
        return f"{self.function} of column {self.value + 1} for each ({group})"


@dataclass(frozen=True, slots=True)
class Fixpoint:
    """One stratum: rules to apply until nothing changes; once, if they are not recursive."""

    relations: tuple[str, ...]
    rules: tuple[RulePlan, ...]
    recursive: bool
    stages: Stages | None = None
    selections: tuple[Selection, ...] = ()


@dataclass(frozen=True, slots=True)
class Output:
    """One output view: the rows of a relation that match `args`, without anonymous columns."""

    name: str
    relation: str
    args: tuple[ast.Expr, ...]
    columns: tuple[str, ...]
    types: tuple[Type, ...]


@dataclass(frozen=True, slots=True)
class LogicalPlan:
    """A whole program as strata in the order of their computation."""

    program: Program
    relations: Mapping[str, Relation]
    strata: tuple[Fixpoint, ...]
    outputs: tuple[Output, ...]

    def rules(self) -> tuple[RulePlan, ...]:
        """Return the rules of all strata."""
        return tuple(rule for stratum in self.strata for rule in stratum.rules)
