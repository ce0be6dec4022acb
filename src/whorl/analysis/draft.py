"""What the passes hand to each other: a draft that grows by one finding a pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from whorl.analysis.program import Fact, Query, Relation, Rule, Stratum
from whorl.diagnostics.errors import UserError
from whorl.diagnostics.source import Span
from whorl.model.functions import Function
from whorl.syntax import ast


@dataclass(frozen=True, slots=True)
class Draft:
    """The program as far as it is analysed. Each pass returns a new one with its own fields replaced."""

    text: ast.Program
    functions: Mapping[str, Function]
    relations: Mapping[str, Relation] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    facts: tuple[Fact, ...] = ()
    queries: tuple[Query, ...] = ()
    strata: tuple[Stratum, ...] = ()
    trending: Mapping[int, Mapping[str, int]] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


class Errors:
    """The errors that a pass finds."""

    def __init__(self) -> None:
        self.found: list[UserError] = []

    def add(self, code: str, span: Span | None = None, **facts: object) -> None:
        """Record an error at a place."""
        self.found.append(UserError(code, span, **facts))
