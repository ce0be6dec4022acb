"""The functions that every program has."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import TypeGuard

from whorl.model.functions import Function
from whorl.model.types import Type
from whorl.model.values import Term, Value, format_value, list_value, order_key, storable

INT, FLOAT, STRING, LIST, BOOL = Type.INTEGER, Type.FLOAT, Type.STRING, Type.LIST, Type.BOOLEAN
ANY, ARGUMENTS = Type.ANY, Type.UNKNOWN
_MATCH_LIMIT = 10_000


def divide(left: int | float, right: int | float) -> Value | None:
    """Divide; integers truncate toward zero, and nothing is divided by zero."""
    if right == 0:
        return None
    if isinstance(left, int) and isinstance(right, int):
        quotient = abs(left) // abs(right)
        return quotient if (left < 0) == (right < 0) else -quotient
    return left / right


def remainder(left: int | float, right: int | float) -> Value | None:
    """Return what truncating division leaves; it has the sign of ``left``."""
    if right == 0:
        return None
    if isinstance(left, int) and isinstance(right, int):
        rest = abs(left) % abs(right)
        return rest if left >= 0 else -rest
    return math.fmod(left, right)


def power(base: int | float, exponent: int | float) -> Value | None:
    """Raise to a power; integers stay integers."""
    if isinstance(base, int) and isinstance(exponent, int):
        if exponent < 0 or (abs(base) > 1 and exponent > 63):
            return None
        return int(base**exponent)
    try:
        value = float(base) ** float(exponent)
    except (OverflowError, ZeroDivisionError):
        return None
    return value if isinstance(value, float) else None


ARITHMETIC: dict[str, Callable[[int | float, int | float], Value | None]] = {
    "+": lambda left, right: left + right,
    "-": lambda left, right: left - right,
    "*": lambda left, right: left * right,
    "/": divide,
    "%": remainder,
    "^": power,
}


def _is_number(value: Value) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def compute_operation(operator: str, args: list[Value]) -> Value | None:
    """Compute an arithmetic operation; None where it has no value that a column can hold."""
    if not all(_is_number(arg) for arg in args):
        return None
    try:
        value = -args[0] if len(args) == 1 else ARITHMETIC[operator](*args)  # type: ignore[operator,arg-type]
    except OverflowError:
        return None
    return value if value is not None and storable(value) else None


RANGED = frozenset({"floor", "ceil", "round", "sqrt"})  # functions of a number that lack a value at an end of the range


def side_left(name: str, args: list[Value]) -> int:
    """Tell at which end a calculation without a value leaves the range: -1 the lower, 1 the upper, 0 at none."""
    numbers = [float(arg) for arg in args if _is_number(arg)]
    if name in RANGED:
        value: Value | None = numbers[0]
    elif name in ARITHMETIC:
        value = -numbers[0] if len(numbers) == 1 else ARITHMETIC[name](*numbers)
    else:
        value = None
    return 0 if not isinstance(value, float) else int(value > 0) - int(value < 0)


def side_of_numbers(value: Value) -> int:
    """Tell whether a value sorts before all numbers, -1, or behind them, 1; a number does neither, 0."""
    return 0 if _is_number(value) else -1 if isinstance(value, bool) else 1


def _coordinates(point: Value) -> tuple[float, ...] | None:
    if isinstance(point, Term) and all(_is_number(arg) for arg in point.args):
        return tuple(float(arg) for arg in point.args if _is_number(arg))
    return (float(point),) if _is_number(point) else None


def distance(left: Value, right: Value) -> Value | None:
    """Return the Euclidean distance of two points: numbers, lists or terms of numbers."""
    first, second = _coordinates(left), _coordinates(right)
    if first is None or second is None or len(first) != len(second):
        return None
    return math.dist(first, second)


def _concat(*lists: Term) -> Value:
    return list_value(tuple(item for part in lists for item in part.args))


def _substr(text: str, start: int, length: int) -> Value | None:
    return text[start : start + length] if start >= 0 and length >= 0 else None


def _match(pattern: str, text: str) -> Value | None:
    if len(text) > _MATCH_LIMIT:
        return None
    try:
        return re.fullmatch(pattern, text) is not None
    except (re.error, RecursionError, OverflowError):
        return None


def _to_number(text: str) -> Value | None:
    try:
        value = int(text)
    except ValueError:
        return None
    return value if storable(value) else None


def _to_string(value: Value) -> Value:
    return value if isinstance(value, str) else format_value(value)


def _root(value: float) -> Value | None:
    return math.sqrt(value) if value >= 0 else None


def _extreme(choose: Callable[..., Value]) -> Callable[..., Value | None]:
    def compute(*args: Value) -> Value:
        best = choose(args, key=order_key)
        floats = any(isinstance(arg, float) for arg in args)
        return float(best) if floats and isinstance(best, int) else best

    return compute


_ALL = (
    Function("min", (ANY, ANY), ARGUMENTS, _extreme(min), variadic=True),
    Function("max", (ANY, ANY), ARGUMENTS, _extreme(max), variadic=True),
    Function("abs", (ANY,), ARGUMENTS, lambda value: abs(value) if _is_number(value) else None),
    Function("sqrt", (FLOAT,), FLOAT, _root),
    Function("floor", (FLOAT,), INT, math.floor),
    Function("ceil", (FLOAT,), INT, math.ceil),
    Function("round", (FLOAT,), INT, round),
    Function("to_float", (FLOAT,), FLOAT, float),
    Function("distance", (ANY, ANY), FLOAT, distance),
    Function("dist", (ANY, ANY), FLOAT, distance),
    Function("concat", (LIST, LIST), LIST, _concat, variadic=True),
    Function("length", (LIST,), INT, lambda items: len(items.args)),
    Function("cat", (STRING, STRING), STRING, lambda *parts: "".join(parts), variadic=True),
    Function("strlen", (STRING,), INT, len),
    Function("substr", (STRING, INT, INT), STRING, _substr),
    Function("contains", (STRING, STRING), BOOL, lambda part, whole: part in whole),
    Function("match", (STRING, STRING), BOOL, _match),
    Function("to_string", (ANY,), STRING, _to_string),
    Function("to_number", (STRING,), INT, _to_number),
)
BUILTINS = {function.name: function for function in _ALL}

# Predicates that the front end turns into equations: result first, or result last, or a pair taken apart.
LARGEST = frozenset({"larger", "largest"})
SMALLEST = frozenset({"smaller", "smallest"})
PREDICATES = LARGEST | SMALLEST | {"encd", "decd", "member"}
