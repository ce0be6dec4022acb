"""Conditions of rules as text, as they are written or with values for their variables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from whorl.analysis.expressions import Binding
from whorl.logical.plan import AntiJoin, Extend, Filter, Join, Lacks, Step, Unnest
from whorl.syntax import ast
from whorl.syntax.printer import print_expr


def substitute(expr: ast.Expr, binding: Binding) -> ast.Expr:
    """Return an expression with values in the place of variables."""
    if isinstance(expr, ast.Variable):
        return ast.Constant(binding[expr.name]) if expr.name in binding else expr
    if isinstance(expr, ast.Call | ast.Operation):
        return replace(expr, args=tuple(substitute(arg, binding) for arg in expr.args))
    if isinstance(expr, ast.ListExpr):
        prefix = None if expr.prefix is None else substitute(expr.prefix, binding)
        tail = None if expr.tail is None else substitute(expr.tail, binding)
        return replace(expr, items=tuple(substitute(item, binding) for item in expr.items), prefix=prefix, tail=tail)
    return expr


def row_text(relation: str, args: Sequence[ast.Expr], binding: Binding) -> str:
    """Return an atom with the values known."""
    return f"{relation}({', '.join(print_expr(substitute(arg, binding)) for arg in args)})"


def part_text(step: Step, binding: Binding | None = None) -> str:
    """Return a condition as the language writes it."""
    values = binding or {}
    if isinstance(step, Join):
        return row_text(step.relation, step.args, values)
    if isinstance(step, AntiJoin):
        return f"not {row_text(step.relation, step.args, values)}"
    if isinstance(step, Filter):
        left, right = substitute(step.left, values), substitute(step.right, values)
        return f"{print_expr(left)} {step.operator} {print_expr(right)}"
    if isinstance(step, Extend):
        return f"{print_expr(substitute(step.pattern, values))} = {print_expr(substitute(step.value, values))}"
    assert isinstance(step, Unnest | Lacks), "rules as written have no other steps"
    word = "not member" if isinstance(step, Lacks) else "member"
    return f"{word}({print_expr(substitute(step.item, values))}, {print_expr(substitute(step.items, values))})"
