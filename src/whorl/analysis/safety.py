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
    rules = tuple(_order(rule, draft, errors) for rule in draft.rules)
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
    if not is_known(literal.items, bound):
        return None
    if literal.negated:
        return frozenset() if variable_names(literal.item) <= bound else None
    return variable_names(literal.item) if needs(literal.item, functions) <= bound else None


def _compare_binds(literal: Compare, bound: frozenset[str] | set[str], functions: Functions) -> frozenset[str] | None:
    if is_known(literal.left, bound) and is_known(literal.right, bound):
        return frozenset()
    if literal.operator != "=":
        return None
    for own, other in ((literal.left, literal.right), (literal.right, literal.left)):
        if _opens(own, functions) and needs(own, functions) <= bound and is_known(other, bound):
            return variable_names(own)
    return None


def _opens(expr: ast.Expr, functions: Functions) -> bool:
    """Whether an expression can take the value of the other side of an equation."""
    return isinstance(expr, ast.Variable) or is_pattern(expr, functions)


def is_known(expr: ast.Expr, bound: frozenset[str] | set[str]) -> bool:
    """Whether an expression has a value: its variables are bound, and it holds no underscore."""
    return variable_names(expr) <= bound and not _holds_anonymous(expr)


def _holds_anonymous(expr: ast.Expr) -> bool:
    return isinstance(expr, ast.Anonymous) or any(_holds_anonymous(part) for part in parts(expr))


def _order(rule: Rule, draft: Draft, errors: Errors) -> Rule:
    waiting = list(rule.body)
    ordered: list[Literal] = []
    bound: set[str] = set()
    while waiting:
        for index, literal in enumerate(waiting):
            new = binds(literal, bound, draft.functions)
            if new is not None:
                bound |= new
                ordered.append(waiting.pop(index))
                break
        else:
            break
    _report(rule, waiting, bound, draft, errors)
    return replace(rule, body=(*ordered, *waiting))


def _report(rule: Rule, waiting: list[Literal], bound: set[str], draft: Draft, errors: Errors) -> None:
    """Report the variables that nothing binds, each once, or else a condition that nothing can decide."""
    promised = bound.union(*(_promises(literal, draft.functions) for literal in waiting))
    loose = list(_loose(rule, waiting, promised)) or list(_loose(rule, waiting, bound))
    if waiting and not loose:
        errors.add("E314", waiting[0].span)
    reported: set[str] = set()
    for variable, code in loose:
        if variable.name not in reported:
            reported.add(variable.name)
            facts = {"head": rule.head.relation, "where": _where(rule, draft)}
            errors.add(code, variable.span, name=variable.name, **facts)


def _where(rule: Rule, draft: Draft) -> str:
    alternatives = sum(other.origin == rule.origin for other in draft.rules)
    return "the body" if alternatives == 1 else "every alternative of the body"


def _promises(literal: Literal, functions: Functions) -> frozenset[str]:
    """Return the variables that a waiting literal would bind if those were bound that it needs."""
    if isinstance(literal, ast.Atom):
        needed = frozenset().union(*(needs(arg, functions) for arg in literal.args))
        return frozenset().union(*(variable_names(arg) for arg in literal.args)) - needed
    if isinstance(literal, Member):
        return frozenset() if literal.negated else variable_names(literal.item) - variable_names(literal.items)
    if isinstance(literal, Absent) or literal.operator != "=":
        return frozenset()
    left, right = variable_names(literal.left), variable_names(literal.right)
    sides = ((literal.left, left - right), (literal.right, right - left))
    return frozenset().union(*(names for own, names in sides if _opens(own, functions)))


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
