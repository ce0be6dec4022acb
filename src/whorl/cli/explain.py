"""`whorl explain`: a program as one stage of the compiler sees it."""

from __future__ import annotations

from collections.abc import Sequence

import typer

from whorl.diagnostics.names import suggest
from whorl.diagnostics.source import Source
from whorl.diagnostics.wording import listed
from whorl.logical.compile import compile_program
from whorl.logical.explain import explain_plan
from whorl.logical.rewrites import NAMES, RewriteTime
from whorl.model.functions import Function
from whorl.syntax.parser import parse_program
from whorl.syntax.printer import print_program


def explain_ast(source: Source) -> str:
    """Return the program as it was read, in one spelling."""
    return print_program(parse_program(source))


def explain_logical(source: Source, functions: Sequence[Function], without: Sequence[str], *, times: bool) -> str:
    """Return the logical plan, and which rewrites changed it."""
    check_rewrites(without)
    spent: list[RewriteTime] = []
    text = explain_plan(compile_program(source, functions, without=without, times=spent))
    changed = ", ".join(each.name for each in spent if each.changed) or "none"
    lines = [text, f"Rewrites that changed the plan: {changed}"]
    if times:
        lines.extend(f"  {each.seconds * 1000:7.2f} ms  {each.name}" for each in spent)
    return "\n".join(lines)


def explain_strategies(
    source: Source, functions: Sequence[Function], without: Sequence[str], strategy: str, placement: str
) -> str:
    """Return the physical plan: the strategy of each stratum, and the entries of its rules."""
    from whorl.physical.explain import explain_physical
    from whorl.physical.lower import lower_plan

    check_rewrites(without)
    return explain_physical(lower_plan(compile_program(source, functions, without=without), strategy, placement))


def check_rewrites(names: Sequence[str]) -> None:
    """Refuse a name that is no rewrite."""
    for name in names:
        if name not in NAMES:
            hint = suggest(name, NAMES) or f"Rewrites are {listed(NAMES, 'and')}."
            message = f"{name} is no rewrite. {hint}"
            raise typer.BadParameter(message, param_hint="--without")
