"""A program as the entry points of Spark take it: its text, its functions, and the names of its declarations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from whorl.diagnostics.source import Source
from whorl.logical.compile import compile_program
from whorl.logical.intake import DataTypes
from whorl.logical.plan import LogicalPlan
from whorl.model.functions import Function


@dataclass(frozen=True, slots=True)
class GivenProgram:
    """What the user gave."""

    source: Source
    functions: Sequence[Function]
    names: Mapping[str, Sequence[str]]
    without: Sequence[str] = ()  # rewrites left out

    def compile(self, types: DataTypes) -> LogicalPlan:
        """Return the plan, given the types that data tells."""
        return compile_program(self.source, self.functions, types, without=self.without)
