"""What an expression is worth under an assignment of its variables, and how a pattern takes a value apart.

Both answer None where there is no value: see `whorl.model.functions`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from whorl.analysis.program import parts, variable_names
from whorl.diagnostics.errors import UserError
from whorl.diagnostics.source import Span
from whorl.diagnostics.wording import shortened
from whorl.model.builtins import compute_operation, side_left, side_of_numbers
from whorl.model.functions import Function
from whorl.model.types import Type, type_of
from whorl.model.values import LIST, Term, Value, format_value, list_value, order_key, storable
from whorl.syntax import ast

Binding = Mapping[str, Value]
Functions = Mapping[str, Function]


def evaluate(expr: ast.Expr, binding: Binding, functions: Functions) -> Value | None:
    """Return the value of an expression whose variables are bound."""
    if isinstance(expr, ast.Constant):
        return expr.value
    if isinstance(expr, ast.Variable):
        return binding.get(expr.name)
    if isinstance(expr, ast.ListExpr):
        return _evaluate_list(expr, binding, functions)
    assert isinstance(expr, ast.Call | ast.Operation), f"{expr} has no value"
    args = _evaluate_all(expr.args, binding, functions)
    if args is None:
        return None
    if isinstance(expr, ast.Operation):
        value = compute_operation(expr.operator, args)
    else:
        function = functions.get(expr.name)
        value = Term(expr.name, tuple(args)) if function is None else call(function, args, expr.span)
    if value is None and expr.watched:
        _check_range(expr, args)
    return value


def is_watched(expr: ast.Expr) -> bool:
    """Whether a calculation, or a part of it, may have no value at the ends of its range only."""
    own = isinstance(expr, ast.Operation | ast.Call) and expr.watched != ()
    return own or any(is_watched(part) for part in parts(expr))


def joint_ways(expr: ast.Call | ast.Operation, ways: Sequence[frozenset[int]]) -> frozenset[int]:
    """Return the directions in which a calculation may change, given those of its arguments."""
    turned = len(ways) - 1 if isinstance(expr, ast.Operation) and expr.operator == "-" else None
    return frozenset(-way if at == turned else way for at, own in enumerate(ways) for way in own)


def _check_range(expr: ast.Call | ast.Operation, args: list[Value]) -> None:
    """Refuse that a calculation has no value, if its arguments went too far where they are watched.

    Whatever sorts before or behind all numbers is too far.
    """
    name = expr.operator if isinstance(expr, ast.Operation) else expr.name
    sides = [(side_of_numbers(arg), ways) for arg, ways in zip(args, expr.watched, strict=True)]
    strange = [side in ways for side, ways in sides if side]
    if all(strange) if strange else side_left(name, args) in joint_ways(expr, expr.watched):
        raise UserError("E512", expr.span, args=", ".join(format_value(arg) for arg in args))


def _evaluate_all(exprs: tuple[ast.Expr, ...], binding: Binding, functions: Functions) -> list[Value] | None:
    values: list[Value] = []
    for expr in exprs:
        value = evaluate(expr, binding, functions)
        if value is None:
            return None
        values.append(value)
    return values


def _evaluate_list(expr: ast.ListExpr, binding: Binding, functions: Functions) -> Value | None:
    items = _evaluate_all(expr.items, binding, functions)
    if items is None:
        return None
    before: tuple[Value, ...] = ()
    after: tuple[Value, ...] = ()
    for end in (expr.prefix, expr.tail):
        if end is None:
            continue
        value = evaluate(end, binding, functions)
        if not isinstance(value, Term) or value.name != LIST:
            return None
        if end is expr.prefix:
            before = value.args
        else:
            after = value.args
    return list_value((*before, *items, *after))


def call(function: Function, args: list[Value], span: Span | None = None) -> Value | None:
    """Apply a function; what a user's function raises becomes an error that names it and its arguments."""
    if not function.user:
        value = function.compute(*args) if _takes(function, args) else None
        return value if value is None or storable(value) else None
    shown = ", ".join(format_value(arg) for arg in args)
    try:
        result = function.compute(*(_to_python(arg) for arg in args))
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".removesuffix(".").removesuffix(": ")
        raise UserError("E510", span, name=function.name, args=shown, error=reason) from error
    if result is None:
        return None
    value = _from_python(result)
    if value is not None and isinstance(value, int) and function.result is Type.FLOAT:
        value = float(value)
    if value is None or function.result not in (Type.ANY, type_of(value)) or not storable(value):
        facts = {"value": shortened(repr(result)), "expected": _promised(function.result)}
        raise UserError("E511", span, name=function.name, args=shown, **facts)
    return value


def _takes(function: Function, args: list[Value]) -> bool:
    """Whether values are of the types that a function asks for; those out of lists and terms show theirs only now."""
    for position, arg in enumerate(args):
        expected, found = function.parameter(position), type_of(arg)
        if expected not in (Type.ANY, found) and not (expected is Type.FLOAT and found is Type.INTEGER):
            return False
    return True


def _promised(result: Type) -> str:
    return "value of the language" if result is Type.ANY else str(result)


def _to_python(value: Value) -> object:
    if isinstance(value, Term) and value.name == LIST:
        return [_to_python(arg) for arg in value.args]
    return value


def _from_python(value: object) -> Value | None:
    if isinstance(value, bool | int | float | str | Term):
        return value
    if isinstance(value, list | tuple):
        items = [_from_python(item) for item in value]
        return None if any(item is None for item in items) else list_value(tuple(i for i in items if i is not None))
    item = getattr(value, "item", None)  # a NumPy scalar
    plain = item() if callable(item) else None
    return plain if isinstance(plain, bool | int | float | str) else None


def equal(left: Value, right: Value) -> bool:
    """Whether two values are the same; a whole float equals its integer."""
    if isinstance(left, bool) is not isinstance(right, bool):
        return False
    return left == right


def same(left: Value, right: Value) -> bool:
    """Whether two values are the same, and of one type."""
    return type(left) is type(right) and left == right


def held(value: Value, stored: Value) -> bool:
    """Whether a column holds a value: the same, or in a column of floats a whole number."""
    whole = isinstance(stored, float) and isinstance(value, int) and not isinstance(value, bool)
    return stored == value if whole else same(value, stored)


def match(
    pattern: ast.Expr,
    value: Value,
    binding: Binding,
    functions: Functions,
    *,
    fits: Callable[[Value, Value], bool] = equal,
) -> Binding | None:
    """Return ``binding`` with what ``pattern`` adds when it is laid over ``value``; None if it does not fit.

    ``fits`` compares what is known with what is there. Inside a term it is what would make an equal term.
    """
    if isinstance(pattern, ast.Anonymous):
        return binding
    if isinstance(pattern, ast.Variable):
        if pattern.name not in binding:
            return {**binding, pattern.name: value}
        return binding if fits(binding[pattern.name], value) else None
    if isinstance(pattern, ast.ListExpr):
        return _match_list(pattern, value, binding, functions)
    if isinstance(pattern, ast.Call) and pattern.name not in functions:
        if not isinstance(value, Term) or value.name != pattern.name or len(value.args) != len(pattern.args):
            return None
        return _match_all(pattern.args, value.args, binding, functions)
    expected = evaluate(pattern, binding, functions)
    return binding if expected is not None and fits(expected, value) else None


def _match_all(
    patterns: tuple[ast.Expr, ...], values: tuple[Value, ...], binding: Binding, functions: Functions
) -> Binding | None:
    current: Binding | None = binding
    for pattern, value in zip(patterns, values, strict=True):
        if current is None:
            return None
        current = match(pattern, value, current, functions, fits=same)
    return current


def _match_list(pattern: ast.ListExpr, value: Value, binding: Binding, functions: Functions) -> Binding | None:
    if not isinstance(value, Term) or value.name != LIST:
        return None
    spare = len(value.args) - len(pattern.items)
    if spare < 0 or (spare > 0 and pattern.tail is None and pattern.prefix is None):
        return None
    if pattern.prefix is not None:
        patterns = (pattern.prefix, *pattern.items)
        values = (list_value(value.args[:spare]), *value.args[spare:])
    elif pattern.tail is not None:
        patterns = (*pattern.items, pattern.tail)
        values = (*value.args[: len(pattern.items)], list_value(value.args[len(pattern.items) :]))
    else:
        patterns, values = pattern.items, value.args
    return _match_all(patterns, values, binding, functions)


_COMPARE: dict[str, Callable[[tuple[object, ...], tuple[object, ...]], bool]] = {
    "<": lambda left, right: left < right,
    "<=": lambda left, right: left <= right,
    ">": lambda left, right: left > right,
    ">=": lambda left, right: left >= right,
}


def compare(operator: str, left: Value, right: Value) -> bool:
    """Whether a comparison of two values holds."""
    if operator in ("=", "!="):
        return equal(left, right) is (operator == "=")
    return _COMPARE[operator](_numeric_key(left), _numeric_key(right))


def _numeric_key(value: Value) -> tuple[object, ...]:
    return order_key(value)[:2] if isinstance(value, int | float) else order_key(value)


def cast_constant(expr: ast.Expr, kind: Type) -> ast.Expr:
    """Return an argument of an atom as its column holds it: a whole number is a float in a Float column."""
    value = expr.value if isinstance(expr, ast.Constant) else None
    if kind is Type.FLOAT and isinstance(value, int) and not isinstance(value, bool):
        return ast.Constant(float(value), expr.span)
    return expr


def is_pattern(expr: ast.Expr, functions: Functions) -> bool:
    """Whether an expression can take a value apart: a list, or a term."""
    return isinstance(expr, ast.ListExpr) or (isinstance(expr, ast.Call) and expr.name not in functions)


def calculates(expr: ast.Expr, functions: Functions) -> bool:
    """Whether an expression holds an operation or a function, which may have no value."""
    if isinstance(expr, ast.Operation) or (isinstance(expr, ast.Call) and expr.name in functions):
        return True
    return any(calculates(part, functions) for part in parts(expr))


def needs(pattern: ast.Expr, functions: Functions) -> frozenset[str]:
    """Return the variables that must be bound before a pattern can be matched: those inside calculations."""
    if isinstance(pattern, ast.Variable | ast.Anonymous | ast.Constant):
        return frozenset()
    if is_pattern(pattern, functions):
        return frozenset().union(*(needs(part, functions) for part in parts(pattern)))
    return variable_names(pattern)
