"""Syntax tree in, program text out; parsing the text again gives an equal tree."""

from __future__ import annotations

from whorl.model.values import format_value
from whorl.syntax import ast

# How tightly a piece binds; an operand that binds less tightly than its place asks gets parentheses.
_OR, _AND, _LITERAL, _SUM, _PRODUCT, _UNARY, _POWER, _PRIMARY = range(8)
_BINDING = {"+": _SUM, "-": _SUM, "*": _PRODUCT, "/": _PRODUCT, "%": _PRODUCT, "^": _POWER}


def print_program(program: ast.Program) -> str:
    """Return the text of a whole program, one statement a line."""
    return "".join(print_statement(statement) + "\n" for statement in program.statements)


def print_statement(statement: ast.Statement) -> str:
    """Return the text of one statement."""
    if isinstance(statement, ast.Declaration):
        return _declaration(statement)
    if isinstance(statement, ast.StreamGroup):
        return "{" + ", ".join(_signature(declaration) for declaration in statement.declarations) + "}"
    if isinstance(statement, ast.Query):
        window = f", {_window(statement.window)}" if statement.window else ""
        return f"query {print_formula(statement.atom)}{window}."
    heads = ", ".join(print_head(head) for head in statement.heads)
    body = f" :- {print_formula(statement.body)}" if statement.body is not None else ""
    return f"{heads}{body}."


def _declaration(declaration: ast.Declaration) -> str:
    window = f" {_window(declaration.window)}" if declaration.window else ""
    ttl = f" TTL {_duration(declaration.ttl)}" if declaration.ttl else ""
    return f"{declaration.kind.upper()} {_signature(declaration)}{window}{ttl}."


def _signature(declaration: ast.Declaration) -> str:
    attributes = (f"{a.name}: {a.type}" + (" KEY" if a.key else "") for a in declaration.attributes)
    return f"{declaration.name}({', '.join(attributes)})"


def _window(window: ast.Window) -> str:
    count = "COUNT " if window.counted else ""
    slide = f", {_duration(window.slide)}" if window.slide else ""
    return f"WINDOW({count}{_duration(window.size)}{slide})"


def _duration(duration: ast.Duration) -> str:
    return f"{duration.amount} {duration.unit}".strip()


def print_head(head: ast.Head) -> str:
    """Return the text of a head."""
    if not head.args:
        return f"{head.relation}()"
    return f"{head.relation}({', '.join(_headarg(arg) for arg in head.args)})"


def _headarg(arg: ast.Expr | ast.Aggregate) -> str:
    if not isinstance(arg, ast.Aggregate):
        return print_expr(arg)
    inner = ", ".join(print_expr(part) for part in arg.args)
    # A variable of that name would be read as the word.
    if len(arg.args) > 1 or inner.startswith("distinct"):
        inner = f"({inner})"
    return f"{arg.function}<{'distinct ' if arg.distinct else ''}{inner}>"


def print_formula(formula: ast.Formula, binding: int = _OR) -> str:
    """Return the text of a formula, in parentheses where its place binds tighter."""
    if isinstance(formula, ast.Atom):
        return f"{formula.relation}({', '.join(print_expr(arg) for arg in formula.args)})"
    if isinstance(formula, ast.Comparison):
        return _comparison(formula)
    if isinstance(formula, ast.Negation):
        return f"not {print_formula(formula.formula, _LITERAL)}"
    own, separator = (_AND, ", ") if isinstance(formula, ast.Conjunction) else (_OR, " ; ")
    text = separator.join(print_formula(part, own + 1) for part in formula.parts)
    return f"({text})" if own < binding else text


def _comparison(formula: ast.Comparison) -> str:
    text = print_expr(formula.operands[0])
    for operator, operand in zip(formula.operators, formula.operands[1:], strict=True):
        text += f" {operator} {print_expr(operand)}"
    return text


def print_expr(expr: ast.Expr, binding: int = _SUM) -> str:
    """Return the text of an expression, in parentheses where its place binds tighter."""
    if isinstance(expr, ast.Constant):
        text = format_value(expr.value)
        return f"({text})" if text.startswith("-") and binding > _UNARY else text
    if isinstance(expr, ast.Variable):
        return expr.name
    if isinstance(expr, ast.Anonymous):
        return "_"
    if isinstance(expr, ast.Rest):
        return "..."
    if isinstance(expr, ast.ListExpr):
        return _list(expr)
    if isinstance(expr, ast.Call):
        return f"{expr.name}({', '.join(print_expr(arg) for arg in expr.args)})"
    return _operation(expr, binding)


def _list(expr: ast.ListExpr) -> str:
    items = ", ".join(print_expr(item) for item in expr.items)
    if expr.prefix is not None:
        return f"[{print_expr(expr.prefix)} | {items}]"
    return f"[{items} | {print_expr(expr.tail)}]" if expr.tail is not None else f"[{items}]"


def _operation(expr: ast.Operation, binding: int) -> str:
    if len(expr.args) == 1:
        own = _UNARY
        operand = expr.args[0]
        inner = print_expr(operand, _UNARY)
        # A number after the sign would be read as a negative constant.
        plain = isinstance(operand, ast.Constant) and not inner.startswith("-")
        text = f"-({inner})" if plain or inner.startswith("-") else f"-{inner}"
    else:
        own = _BINDING[expr.operator]
        left, right = expr.args
        tighter = (_PRIMARY, _UNARY) if expr.operator == "^" else (own, own + 1)
        text = f"{print_expr(left, tighter[0])} {expr.operator} {print_expr(right, tighter[1])}"
    return f"({text})" if own < binding else text
