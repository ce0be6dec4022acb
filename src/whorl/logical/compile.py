"""Program text in, logical plan out: the front half of the pipeline in one call."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from whorl.analysis.passes import analyze
from whorl.diagnostics.source import Source
from whorl.logical.lower import lower_program
from whorl.logical.plan import LogicalPlan
from whorl.logical.rewrites import RewriteTime, rewrite_plan
from whorl.model.functions import Function
from whorl.model.types import Type
from whorl.syntax.parser import parse_program


def compile_program(
    source: Source,
    functions: Sequence[Function] = (),
    data_types: Mapping[str, Sequence[Type]] | None = None,
    without: Sequence[str] = (),
    times: list[RewriteTime] | None = None,
) -> LogicalPlan:
    """Parse, check, lower and rewrite a program, leaving out the rewrites named in ``without``."""
    plan = lower_program(analyze(parse_program(source), functions, data_types))
    return rewrite_plan(plan, without, times)
