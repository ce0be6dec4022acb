"""Expressions over the columns of a batch.

Arithmetic and comparisons of numbers run on whole columns. Everything else (strings, lists, terms, users' functions) is
evaluated line by line by the same function that gives expressions their meaning (`whorl.analysis.expressions`).
A result is a column and the mask of the lines that have a value, None if all have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from whorl.analysis.expressions import Binding, evaluate, is_watched
from whorl.analysis.expressions import compare as compare_values
from whorl.analysis.program import variable_names
from whorl.diagnostics.errors import UserError
from whorl.kernel.state.dictionary import Dictionary, as_floats
from whorl.kernel.state.relation import Ints
from whorl.model.builtins import compute_operation
from whorl.model.functions import Function
from whorl.model.types import Type, type_of
from whorl.model.values import Value, storable
from whorl.physical.rules import expr_type
from whorl.syntax import ast

Mask: TypeAlias = npt.NDArray[np.bool_]
Column: TypeAlias = Callable[[Ints], tuple[Ints, Mask | None]]
Condition: TypeAlias = Callable[[Ints], Mask]

_EXACT = 2**53  # integers up to here are exact as floats
OUT_OF_RANGE = frozenset({"E512"})
FAULTS = OUT_OF_RANGE | {"E510", "E511"}  # what an expression fails with


@dataclass
class Passed:
    """Whether something failed that did not count."""

    any: bool = False


@dataclass
class Faults:
    """Whether an expression that fails makes the epoch fail.

    Who looks for derivations that came or went lets rows from before and after the epoch meet, which never stood
    together. What fails for them has no value.
    """

    ignoring: frozenset[str] = frozenset()  # codes of errors
    passed: Passed = field(default_factory=Passed)

    @contextmanager
    def ignored(self, codes: frozenset[str] = FAULTS) -> Iterator[Passed]:
        """Let expressions that fail have no value; tell whether any did, but for what is ignored further inside."""
        before = self.ignoring, self.passed
        self.ignoring, self.passed = self.ignoring | codes, Passed()
        try:
            yield self.passed
        finally:
            self.ignoring, self.passed = before


@dataclass(frozen=True)
class Scope:
    """What expressions of a rule may refer to: where each variable stands in the batch, and its type."""

    places: Mapping[str, int]
    types: Mapping[str, Type]
    functions: Mapping[str, Function]
    dictionary: Dictionary
    faults: Faults

    def type_of(self, expr: ast.Expr) -> Type:
        """Return the type of an expression."""
        return expr_type(expr, self.types, self.functions)


def compile_expr(expr: ast.Expr, scope: Scope, kind: Type) -> Column:
    """Return a function from batches to the column of an expression, as values of a type."""
    if isinstance(expr, ast.Variable) and scope.types.get(expr.name) is kind:
        place = scope.places[expr.name]
        return lambda batch: (batch[:, place], None)
    if isinstance(expr, ast.Constant) and type_of(expr.value) is kind:
        number = scope.dictionary.encode(expr.value, kind)
        return lambda batch: (np.full(len(batch), number, np.int64), None)
    if kind.numeric and _numeric(expr, scope):
        column = _compile_numeric(expr, scope, kind)
        return _refusing(column, expr, scope) if is_watched(expr) else column
    return _compile_by_line(expr, scope, kind)


def _refusing(column: Column, expr: ast.Expr, scope: Scope) -> Column:
    """Calculate lines again that have no value, one by one: that refuses those which are watched for it."""
    names = sorted(variable_names(expr))

    def compute(batch: Ints) -> tuple[Ints, Mask | None]:
        values, valid = column(batch)
        if valid is not None:
            evaluate_lines(expr, names, scope, batch[~valid])
        return values, valid

    return compute


def _numeric(expr: ast.Expr, scope: Scope) -> bool:
    if isinstance(expr, ast.Operation):
        return expr.operator != "^" and all(_numeric(arg, scope) for arg in expr.args)
    plain = isinstance(expr, ast.Variable | ast.Constant)
    return plain and scope.type_of(expr).numeric


def _compile_numeric(expr: ast.Expr, scope: Scope, kind: Type) -> Column:
    if scope.type_of(expr) is Type.FLOAT:
        return _bits(_floats(expr, scope))
    column = _integers(expr, scope)
    return _bits(lambda batch: _to_floats(column(batch))) if kind is Type.FLOAT else column


def _to_floats(result: tuple[Ints, Mask | None]) -> tuple[npt.NDArray[np.float64], Mask | None]:
    return result[0].astype(np.float64), result[1]


def _bits(column: Callable[[Ints], tuple[npt.NDArray[np.float64], Mask | None]]) -> Column:
    """Store floats by their bits; an infinite result is no value."""

    def compute(batch: Ints) -> tuple[Ints, Mask | None]:
        values, valid = column(batch)
        finite = np.isfinite(values)
        if not finite.all():
            valid = finite if valid is None else valid & finite
        return (values + 0.0).view(np.int64), valid

    return compute


def _both(left: Mask | None, right: Mask | None) -> Mask | None:
    if left is None or right is None:
        return right if left is None else left
    return left & right


def _floats(expr: ast.Expr, scope: Scope) -> Callable[[Ints], tuple[npt.NDArray[np.float64], Mask | None]]:
    if isinstance(expr, ast.Constant):
        number = float(expr.value)  # type: ignore[arg-type]
        return lambda batch: (np.full(len(batch), number), None)
    if isinstance(expr, ast.Variable):
        place = scope.places[expr.name]
        if scope.types[expr.name] is Type.FLOAT:
            return lambda batch: (as_floats(batch[:, place]), None)
        return lambda batch: (batch[:, place].astype(np.float64), None)
    assert isinstance(expr, ast.Operation)
    if scope.type_of(expr) is not Type.FLOAT:
        whole = _integers(expr, scope)
        return lambda batch: _to_floats(whole(batch))
    parts = [_floats(arg, scope) for arg in expr.args]
    operator = expr.operator

    def compute(batch: Ints) -> tuple[npt.NDArray[np.float64], Mask | None]:
        results = [part(batch) for part in parts]
        left, valid = results[0]
        if len(results) == 1:
            return -left, valid
        right, other = results[1]
        valid = _both(valid, other)
        with np.errstate(all="ignore"):
            if operator in ("/", "%"):
                valid = _both(valid, right != 0)
                return (left / right if operator == "/" else np.fmod(left, right)), valid
            return (left + right if operator == "+" else left - right if operator == "-" else left * right), valid

    return compute


def _integers(expr: ast.Expr, scope: Scope) -> Column:
    if isinstance(expr, ast.Constant):
        number = int(expr.value)  # type: ignore[arg-type]
        return lambda batch: (np.full(len(batch), number, np.int64), None)
    if isinstance(expr, ast.Variable):
        place = scope.places[expr.name]
        return lambda batch: (batch[:, place], None)
    assert isinstance(expr, ast.Operation)
    parts = [_integers(arg, scope) for arg in expr.args]
    operator = expr.operator

    def compute(batch: Ints) -> tuple[Ints, Mask | None]:
        results = [part(batch) for part in parts]
        if len(results) == 1:
            zero = np.zeros(len(batch), np.int64)
            values, fine = _whole(zero, results[0][0], "-")
            return values, _both(results[0][1], fine)
        (left, first), (right, second) = results
        values, fine = _whole(left, right, operator)
        return values, _both(_both(first, second), fine)

    return compute


def _whole(left: Ints, right: Ints, operator: str) -> tuple[Ints, Mask | None]:
    """Calculate with integers; a result beyond 64 bits is no value."""
    with np.errstate(all="ignore"):
        if operator in ("+", "-"):
            values = left + right if operator == "+" else left - right
            wrong = (left ^ values) & ((right ^ values) if operator == "+" else (left ^ right)) < 0
            return values, (~wrong if wrong.any() else None)
        if operator == "*":
            values = left * right
            wrong = np.abs(left.astype(np.float64) * right.astype(np.float64)) >= 2.0**62
            return values, (_exact_product(left, right, values, wrong) if wrong.any() else None)
        zero = right == 0
        divisor = np.where(zero, 1, right)
        quotient = np.abs(left) // np.abs(divisor)
        quotient = np.where((left < 0) ^ (divisor < 0), -quotient, quotient)
        values = quotient if operator == "/" else left - quotient * divisor
        # The smallest integer has no absolute value: such lines are rare, and done one by one.
        odd = (left == np.iinfo(np.int64).min) | (right == np.iinfo(np.int64).min)
        fine = ~zero
        for line in np.flatnonzero(odd & fine):
            values[line], fine[line] = _one_division(int(left[line]), int(right[line]), operator)
        return values, (None if fine.all() else fine)


def _one_division(left: int, right: int, operator: str) -> tuple[int, bool]:
    value = compute_operation(operator, [left, right])
    return (0, False) if value is None else (int(value), True)  # type: ignore[arg-type]


def _exact_product(left: Ints, right: Ints, values: Ints, doubtful: Mask) -> Mask:
    fine = np.ones(len(values), np.bool_)
    for line in np.flatnonzero(doubtful):
        fine[line] = int(left[line]) * int(right[line]) == int(values[line])
    return fine


def _compile_by_line(expr: ast.Expr, scope: Scope, kind: Type) -> Column:
    """Evaluate line by line on real values."""
    names = sorted(variable_names(expr))

    def compute(batch: Ints) -> tuple[Ints, Mask | None]:
        values = [fit(value, kind) for value in evaluate_lines(expr, names, scope, batch)]
        valid = np.array([value is not None for value in values], np.bool_)
        filler: Value = "" if kind not in (Type.INTEGER, Type.FLOAT, Type.TIMESTAMP, Type.BOOLEAN) else 0
        column = scope.dictionary.encode_column([filler if value is None else value for value in values], kind)
        return column, (None if valid.all() else valid)

    return compute


def evaluate_lines(expr: ast.Expr, names: list[str], scope: Scope, batch: Ints) -> list[Value | None]:
    """Return the plain value of an expression for each line, given the names of its variables."""
    columns = [scope.dictionary.decode_column(batch[:, scope.places[n]], scope.types[n]) for n in names]
    if not names:
        return [_evaluate(expr, {}, scope)] * len(batch)
    return [_evaluate(expr, dict(zip(names, values, strict=True)), scope) for values in zip(*columns, strict=True)]


def _evaluate(expr: ast.Expr, binding: Binding, scope: Scope) -> Value | None:
    try:
        return evaluate(expr, binding, scope.functions)
    except UserError as error:
        if error.code not in scope.faults.ignoring:
            raise
        scope.faults.passed.any = True
        return None


def fit(value: Value | None, kind: Type) -> Value | None:
    """Return a value as a column of a type holds it, None if it cannot."""
    if value is None or not storable(value):
        return None
    if kind is Type.FLOAT and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    found = type_of(value)
    same = kind in (Type.UNKNOWN, found) or {kind, found} == {Type.INTEGER, Type.TIMESTAMP}
    return value if same else None


def compile_condition(operator: str, left: ast.Expr, right: ast.Expr, scope: Scope) -> Condition:
    """Return a function from batches to the mask of lines for which a comparison holds."""
    test = _compile_comparison(operator, left, right, scope)
    sides = [compile_expr(side, scope, scope.type_of(side)) for side in (left, right) if is_watched(side)]
    if not sides:
        return test

    def refuse_or_test(batch: Ints) -> Mask:
        for side in sides:
            side(batch)
        return test(batch)

    return refuse_or_test


def _compile_comparison(operator: str, left: ast.Expr, right: ast.Expr, scope: Scope) -> Condition:
    kinds = (scope.type_of(left), scope.type_of(right))
    if _numeric(left, scope) and _numeric(right, scope) and Type.UNKNOWN not in kinds:
        return _numeric_condition(operator, left, right, scope, as_float=Type.FLOAT in kinds)
    if operator in ("=", "!=") and kinds[0] is kinds[1] and Type.UNKNOWN not in kinds:
        return _identity_condition(operator, left, right, scope, kinds[0])
    return _condition_by_line(operator, left, right, scope)


def _numeric_condition(operator: str, left: ast.Expr, right: ast.Expr, scope: Scope, *, as_float: bool) -> Condition:
    compiled = [_floats(side, scope) if as_float else _integers(side, scope) for side in (left, right)]
    by_line = _condition_by_line(operator, left, right, scope)
    apply = _COMPARE[operator]

    def test(batch: Ints) -> Mask:
        (first, valid), (second, other) = (side(batch) for side in compiled)
        if as_float and (np.abs(first) > _EXACT).any():
            return by_line(batch)
        result: Mask = apply(first, second)
        valid = _both(valid, other)
        return result if valid is None else result & valid

    return test


def _identity_condition(operator: str, left: ast.Expr, right: ast.Expr, scope: Scope, kind: Type) -> Condition:
    first, second = compile_expr(left, scope, kind), compile_expr(right, scope, kind)

    def test(batch: Ints) -> Mask:
        (one, valid), (other, also) = first(batch), second(batch)
        result: Mask = one == other if operator == "=" else one != other
        valid = _both(valid, also)
        return result if valid is None else result & valid

    return test


def _condition_by_line(operator: str, left: ast.Expr, right: ast.Expr, scope: Scope) -> Condition:
    names = sorted(variable_names(left) | variable_names(right))

    def test(batch: Ints) -> Mask:
        pairs = zip(evaluate_lines(left, names, scope, batch), evaluate_lines(right, names, scope, batch), strict=True)
        holds = (a is not None and b is not None and compare_values(operator, a, b) for a, b in pairs)
        return np.fromiter(holds, np.bool_, len(batch))

    return test


_COMPARE: dict[str, Callable[..., Mask]] = {
    "=": np.equal,
    "!=": np.not_equal,
    "<": np.less,
    "<=": np.less_equal,
    ">": np.greater,
    ">=": np.greater_equal,
}
