"""Which columns may hold values of every type: those that receive parts of terms or lists.

A variable is loose if it gets its value from inside a term or a list, or from a column that holds such values, and
stands in no other column: that one would say what it may be. A head column that receives what is loose is mixed. The
more columns are mixed, the more variables are loose, so the order of rules and literals does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable

from whorl.analysis.draft import Draft
from whorl.analysis.expressions import Functions, is_pattern
from whorl.analysis.program import MONOTONE_SPELLINGS, Compare, Literal, Member, Rule, parts
from whorl.model.types import Type
from whorl.syntax import ast

Place = tuple[str, int]


def mixed_columns(draft: Draft) -> set[Place]:
    """Return the columns that may hold values of every type."""
    mixed: set[Place] = set()
    before = -1
    while len(mixed) > before:
        before = len(mixed)
        for rule in draft.rules:
            looseness = _Looseness(rule, mixed, draft.functions)
            for position, arg in enumerate(rule.head.args):
                value = _value_of(arg) if isinstance(arg, ast.Aggregate) else arg
                if value is not None and looseness.of(value):
                    mixed.add((rule.head.relation, position))
    return mixed


def _value_of(aggregate: ast.Aggregate) -> ast.Expr | None:
    """Return the expression whose type an aggregate has, None if it has one of its own."""
    function = MONOTONE_SPELLINGS.get(aggregate.function, aggregate.function)
    own = function == "avg" or (function == "count" and len(aggregate.args) == 1)
    return None if own else aggregate.args[-1]


def inner_variables(body: Iterable[Literal], functions: Functions) -> set[str]:
    """Return the variables of a body that get their value from inside a term or a list."""
    return _Inside(body, functions).loose


class _Inside:
    """The variables inside terms and lists of a body: loose ones, and those that hold what is left of a list."""

    def __init__(self, body: Iterable[Literal], functions: Functions) -> None:
        self._functions = functions
        self.fixed: set[str] = set()
        self.loose: set[str] = set()
        for literal in body:
            if isinstance(literal, ast.Atom):
                for arg in literal.args:
                    self._take_apart(arg)
            elif isinstance(literal, Member):
                self._part(literal.item)
            elif isinstance(literal, Compare) and literal.operator == "=":
                self._take_apart(literal.left)
                self._take_apart(literal.right)

    def _take_apart(self, pattern: ast.Expr) -> None:
        """Note the variables inside a term or a list; what is left of a list is a list."""
        if is_pattern(pattern, self._functions):
            ends = (pattern.prefix, pattern.tail) if isinstance(pattern, ast.ListExpr) else ()
            for part in parts(pattern):
                if isinstance(part, ast.Variable) and any(part is end for end in ends):
                    self.fixed.add(part.name)
                else:
                    self._part(part)

    def _part(self, part: ast.Expr) -> None:
        if isinstance(part, ast.Variable):
            self.loose.add(part.name)
        else:
            self._take_apart(part)


class _Looseness:
    """Which variables of a rule are loose, given the columns known to be mixed."""

    def __init__(self, rule: Rule, mixed: set[Place], functions: Functions) -> None:
        inside = _Inside(rule.body, functions)
        self._functions = functions
        self._fixed, self._loose = inside.fixed, inside.loose
        for atom, positive in rule.atoms():
            for position, arg in enumerate(atom.args):
                if positive and isinstance(arg, ast.Variable):
                    (self._loose if (atom.relation, position) in mixed else self._fixed).add(arg.name)
        self._define([each for each in rule.body if isinstance(each, Compare) and each.operator == "="])

    def _define(self, equations: list[Compare]) -> None:
        """A variable that only equations define is loose if what it equals is."""
        placed = self._fixed | self._loose
        found = True
        while found:
            found = False
            for equation in equations:
                for own, other in ((equation.left, equation.right), (equation.right, equation.left)):
                    if isinstance(own, ast.Variable) and own.name not in placed | self._loose and self.of(other):
                        self._loose.add(own.name)
                        found = True

    def of(self, expr: ast.Expr) -> bool:
        """Whether the value of an expression may be of every type."""
        if isinstance(expr, ast.Variable):
            return expr.name in self._loose and expr.name not in self._fixed
        if isinstance(expr, ast.Operation):
            whole = not any(isinstance(arg, ast.Constant) and isinstance(arg.value, float) for arg in expr.args)
            return whole and any(map(self.of, expr.args))
        if not isinstance(expr, ast.Call):
            return False
        function = self._functions.get(expr.name)
        if function is None or function.result not in (Type.ANY, Type.UNKNOWN):
            return False
        return function.result is Type.ANY or any(map(self.of, expr.args))
