"""Functions that rules may call: their types, and how they are computed.

A function that has no value for its arguments (a division by zero, `to_number("x")`) returns None. Such an assignment
of the rule's variables simply does not exist; so the order in which a body is evaluated cannot matter.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints, overload

from whorl.model.types import Type, widen
from whorl.model.values import Term, Value

Compute = Callable[..., Value | None]


@dataclass(frozen=True, slots=True)
class Function:
    """A named function.

    `parameters` are the types of the arguments (ANY takes each); with `variadic` the last repeats. `result` is the type
    of the value, UNKNOWN if it is that of the arguments together.
    """

    name: str
    parameters: tuple[Type, ...]
    result: Type
    compute: Compute
    variadic: bool = False
    user: bool = False

    def __reduce__(self) -> tuple[Any, ...]:
        """Let built-in functions travel by name: what computes them is in every process."""
        if not self.user:
            return _builtin, (self.name,)
        return Function, (self.name, self.parameters, self.result, self.compute, self.variadic, self.user)

    def accepts(self, count: int) -> bool:
        """Whether the function takes that many arguments."""
        return count >= len(self.parameters) if self.variadic else count == len(self.parameters)

    def parameter(self, position: int) -> Type:
        """Return the type of the argument at a position."""
        return self.parameters[min(position, len(self.parameters) - 1)]

    def result_type(self, arguments: Iterable[Type]) -> Type:
        """Return the type of the value, given those of the arguments."""
        if self.result is not Type.UNKNOWN:
            return self.result
        found = list(arguments)
        if Type.UNKNOWN in found:
            return Type.UNKNOWN
        joined = Type.UNKNOWN
        for argument in found:
            joined = widen(joined, argument) or Type.ANY
        return joined

    @property
    def signature(self) -> str:
        """How the function is called."""
        parameters = ", ".join(str(p) for p in self.parameters)
        return f"{self.name}({parameters}{', ...' if self.variadic else ''})"


def _builtin(name: str) -> Function:
    from whorl.model.builtins import BUILTINS  # noqa: PLC0415 - it is made of the functions of this module

    return BUILTINS[name]


_PYTHON_TYPES: dict[object, Type] = {
    int: Type.INTEGER,
    float: Type.FLOAT,
    str: Type.STRING,
    bool: Type.BOOLEAN,
    tuple: Type.LIST,
    list: Type.LIST,
    Term: Type.TERM,
    object: Type.ANY,
    Any: Type.ANY,
}
_NAMED_TYPES = {getattr(key, "__name__", str(key)): value for key, value in _PYTHON_TYPES.items()}


class FunctionTypeError(TypeError):
    """A Python function whose annotations do not say which columns it works on."""


@overload
def function(callable_: Callable[..., Any]) -> Callable[..., Any]: ...
@overload
def function(*, name: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]: ...
def function(callable_: Callable[..., Any] | None = None, *, name: str | None = None) -> Any:
    """Make a typed Python function usable by name in rules.

    >>> @function
    ... def half(x: int) -> float:
    ...     return x / 2
    >>> half.whorl_function.signature
    'half(Integer)'
    """

    def register(target: Callable[..., Any]) -> Callable[..., Any]:
        target.whorl_function = describe(target, name)  # type: ignore[attr-defined]
        return target

    return register if callable_ is None else register(callable_)


def describe(target: Callable[..., Any], name: str | None = None) -> Function:
    """Read the types of a Python function from its annotations."""
    signature = inspect.signature(target)
    label = name or target.__name__
    hints = _read_hints(target)
    parameters = tuple(_read_type(label, hints.get(p.name, p.annotation)) for p in signature.parameters.values())
    result = _read_type(label, _without_none(hints.get("return", signature.return_annotation)))
    return Function(label, parameters, result, target, user=True)


def _read_hints(target: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(target)
    except Exception:  # annotations are any code; one that cannot run here is read as it is written
        return {}


def _without_none(annotation: object) -> object:
    """Return what a result is if there is one: no value is one that every function may return."""
    if get_origin(annotation) not in (Union, UnionType):
        return annotation
    some = [part for part in get_args(annotation) if part is not NoneType]
    return some[0] if len(some) == 1 else annotation


def _read_type(label: str, annotation: object) -> Type:
    text = annotation if isinstance(annotation, str) else None
    plain = get_origin(annotation) or annotation
    found = _NAMED_TYPES.get(text or "")
    if text is None and isinstance(plain, Hashable):
        found = _PYTHON_TYPES.get(plain)
    if found is None:
        shown = text or (annotation.__name__ if isinstance(annotation, type) else repr(annotation))
        problem = "an annotation is missing" if annotation is inspect.Parameter.empty else f"{shown} is no column type"
        message = f"function {label}: {problem}; use int, float, str, bool, list, whorl.Term or object"
        raise FunctionTypeError(message)
    return found
