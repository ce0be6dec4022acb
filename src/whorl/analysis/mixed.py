"""Which columns may hold values of every type: those that receive parts of terms or lists.

A variable is loose if it gets its value from inside a term or a list, or from a column that holds such values, and
stands in no other column: that one would say what it may be. A head column that receives what is loose is mixed. The
more columns are mixed, the more variables are loose, so the order of rules and literals does not matter.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from whorl.analysis.draft import Draft
from whorl.analysis.expressions import Functions, is_pattern
from whorl.analysis.program import MONOTONE_SPELLINGS, Compare, Literal, Member, Rule, parts
from whorl.model.types import Type
from whorl.syntax import ast

Place = tuple[str, int]


def mixed_columns(draft: Draft) -> set[Place]:
    """Return the columns that may hold values of every type."""
    kinds = {name: [column.type for column in relation.columns] for name, relation in draft.relations.items()}
    mixed: set[Place] = set()
    before = -1
    while len(mixed) > before:
        before = len(mixed)
        for rule in draft.rules:
            looseness = _Looseness(rule, mixed, kinds, draft.functions)
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


def _equations(body: Iterable[Literal]) -> list[Compare]:
    return [literal for literal in body if isinstance(literal, Compare) and literal.operator == "="]


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
            elif isinstance(literal, Member) and not literal.negated:
                self._part(literal.item)
        equations = _equations(body)
        sides = {side.name for each in equations for side in (each.left, each.right) if isinstance(side, ast.Variable)}
        sides -= self.loose
        for equation in equations:
            self._take_apart(equation.left)
            self._take_apart(equation.right)
        self.loose -= sides  # an equation says what they are; the term is built of them

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

    def __init__(
        self, rule: Rule, mixed: set[Place], kinds: Mapping[str, Sequence[Type]], functions: Functions
    ) -> None:
        inside = _Inside(rule.body, functions)
        self._functions = functions
        self._fixed, self._loose = inside.fixed, inside.loose
        for atom, positive in rule.atoms():
            for position, arg in enumerate(atom.args):
                if positive and isinstance(arg, ast.Variable):
                    (self._loose if (atom.relation, position) in mixed else self._fixed).add(arg.name)
        self._floats = {
            arg.name
            for atom, positive in rule.atoms()
            for arg, kind in zip(atom.args, kinds[atom.relation], strict=True)
            if positive and kind is Type.FLOAT and isinstance(arg, ast.Variable)
        }
        self._define(_equations(rule.body))

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

    def _is_float(self, expr: ast.Expr) -> bool:
        """Whether an expression is known to be a float, so that what is calculated with it is one."""
        if isinstance(expr, ast.Constant):
            return isinstance(expr.value, float)
        if isinstance(expr, ast.Variable):
            return expr.name in self._floats
        if isinstance(expr, ast.Operation):
            return any(map(self._is_float, expr.args))
        function = self._functions.get(expr.name) if isinstance(expr, ast.Call) else None
        return function is not None and function.result is Type.FLOAT

    def of(self, expr: ast.Expr) -> bool:
        """Whether the value of an expression may be of every type."""
        if isinstance(expr, ast.Variable):
            return expr.name in self._loose and expr.name not in self._fixed
        if isinstance(expr, ast.Operation):
            return not any(map(self._is_float, expr.args)) and any(map(self.of, expr.args))
        if not isinstance(expr, ast.Call):
            return False
        function = self._functions.get(expr.name)
        if function is None or function.result not in (Type.ANY, Type.UNKNOWN):
            return False
        return function.result is Type.ANY or any(map(self.of, expr.args))
