"""Bring every body into an order in which each literal finds its variables bound.

An atom binds its variables, an equation binds the variable or the pattern on one side when the other side is known,
`member` binds its element. Everything else, and what a calculation uses, must be bound before. The order of the text is
kept wherever it can be.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from whorl.analysis.draft import Draft, Errors
from whorl.analysis.expressions import Functions, is_pattern, needs
from whorl.analysis.program import Absent, Compare, Literal, Member, Rule, expressions, parts, variable_names, variables
from whorl.syntax import ast


def check_safety(draft: Draft, errors: Errors) -> Draft:
    """Order every body; report the variables that nothing binds."""
    rules = tuple(_order(rule, draft.functions, errors) for rule in draft.rules)
    return replace(draft, rules=rules)


def binds(literal: Literal, bound: frozenset[str] | set[str], functions: Functions) -> frozenset[str] | None:
    """Return the variables that a literal binds, or None if it cannot run before others are bound."""
    if isinstance(literal, ast.Atom):
        required = frozenset().union(*(needs(arg, functions) for arg in literal.args))
        named = frozenset().union(*(variable_names(arg) for arg in literal.args))
        return named if required <= bound else None
    if isinstance(literal, Absent):
        named = frozenset().union(*(variable_names(arg) for arg in literal.atom.args))
        return frozenset() if named <= bound else None
    if isinstance(literal, Compare):
        return _compare_binds(literal, bound, functions)
    if not variable_names(literal.items) <= bound:
        return None
    if literal.negated:
        return frozenset() if variable_names(literal.item) <= bound else None
    return variable_names(literal.item) if needs(literal.item, functions) <= bound else None


def _compare_binds(literal: Compare, bound: frozenset[str] | set[str], functions: Functions) -> frozenset[str] | None:
    left, right = variable_names(literal.left), variable_names(literal.right)
    if left | right <= bound and not _anonymous_side(literal):
        return frozenset()
    if literal.operator != "=":
        return None
    for own, other in ((literal.left, literal.right), (literal.right, literal.left)):
        opens = isinstance(own, ast.Variable) or is_pattern(own, functions)
        if opens and variable_names(other) <= bound and needs(own, functions) <= bound:
            return variable_names(own)
    return None


def _anonymous_side(literal: Compare) -> bool:
    """Whether a side holds an underscore, and so is a pattern even with all its variables bound."""

    def holds(expr: ast.Expr) -> bool:
        return isinstance(expr, ast.Anonymous) or any(holds(part) for part in parts(expr))

    return holds(literal.left) or holds(literal.right)


def _order(rule: Rule, functions: Functions, errors: Errors) -> Rule:
    waiting = list(rule.body)
    ordered: list[Literal] = []
    bound: set[str] = set()
    while waiting:
        for index, literal in enumerate(waiting):
            new = binds(literal, bound, functions)
            if new is not None:
                bound |= new
                ordered.append(waiting.pop(index))
                break
        else:
            break
    reported: set[str] = set()
    for variable, code in _loose(rule, waiting, bound):
        if variable.name not in reported:
            reported.add(variable.name)
            errors.add(code, variable.span, name=variable.name, head=rule.head.relation)
    if waiting and not reported:
        errors.add("E314", waiting[0].span)
    return replace(rule, body=(*ordered, *waiting))


def _loose(rule: Rule, waiting: list[Literal], bound: set[str]) -> Iterator[tuple[ast.Variable, str]]:
    """Yield the unbound variables with the error that fits their place."""
    for literal in waiting:
        code = "E311" if isinstance(literal, Absent) or (isinstance(literal, Member) and literal.negated) else "E312"
        for expr in expressions(literal):
            for variable in variables(expr):
                if variable.name not in bound:
                    yield variable, code
    for arg in rule.head.args:
        for variable in variables(arg):
            if variable.name not in bound:
                yield variable, "E310"
