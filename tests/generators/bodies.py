"""Rule bodies, literal by literal: every variable is bound before it is used, and has one type throughout."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from whorl.model.values import Value
from whorl.syntax import ast

T = TypeVar("T")

VARIABLES = {
    "Integer": ("X", "Y", "Z", "U", "V", "W"),
    "String": ("S", "S2", "S3"),
    "Float": ("F", "F2", "F3"),
    "List": ("L", "L2"),
    "Term": ("P", "P2"),
    "Timestamp": ("At", "At2"),
}
CONSTANTS: Mapping[str, tuple[Value, ...]] = {
    "Integer": (0, 1, 2, 3),
    "String": ("a", "b"),
    "Float": (0.5, 2.5),
    "Timestamp": (2, 4),
}
COMPARISONS = ("<", "<=", ">", ">=", "!=", "=")


@dataclass(frozen=True)
class Relation:
    """A relation that rules may use; a `timed` one has a timestamp before its other attributes."""

    name: str
    types: tuple[str, ...]
    timed: bool = False
    base: bool = False


@cache
def _places(count: int) -> SearchStrategy[int]:
    return st.integers(0, count - 1)


def pick(draw: st.DrawFn, items: Sequence[T]) -> T:
    """Draw an item, as `sampled_from` would, but without a new strategy each time: most of the work is draws."""
    return items[draw(_places(len(items)))]


@dataclass
class Scope:
    """A body under construction: its literals, and the variables of each type that they bind."""

    draw: st.DrawFn
    literals: list[ast.Formula] = field(default_factory=list)
    bound: dict[str, list[str]] = field(default_factory=dict)

    def pick(self, items: Sequence[T]) -> T:
        return pick(self.draw, items)

    def variables(self, type_: str) -> list[str]:
        return self.bound.get(type_, [])

    def bind(self, type_: str, name: str) -> ast.Variable:
        known = self.bound.setdefault(type_, [])
        if name not in known:
            known.append(name)
        return ast.Variable(name)

    def fresh(self, type_: str) -> str | None:
        used = self.variables(type_)
        return next((name for name in VARIABLES[type_] if name not in used), None)

    def join(self, relation: Relation) -> None:
        """Add an atom; mostly it shares a variable with the others, where types allow."""
        before = {type_: list(names) for type_, names in self.bound.items()}
        args = [self._argument(type_) for type_ in relation.types]
        earlier = {name for names in before.values() for name in names}
        shared = any(isinstance(arg, ast.Variable) and arg.name in earlier for arg in args)
        places = [i for i, type_ in enumerate(relation.types) if before.get(type_)]
        if places and not shared and self.pick((True,) * 6 + (False,)):
            place = self.pick(places)
            args[place] = ast.Variable(self.pick(before[relation.types[place]]))
        self.literals.append(ast.Atom(relation.name, tuple(args)))
        self.bound = before
        for arg, type_ in zip(args, relation.types, strict=True):
            if isinstance(arg, ast.Variable):
                self.bind(type_, arg.name)

    def _argument(self, type_: str) -> ast.Expr:
        kind = self.pick(("variable",) * 7 + ("constant", "anonymous"))
        if kind == "constant" and type_ in CONSTANTS:
            return self.constant(type_)
        if kind == "anonymous":
            return ast.Anonymous()
        fresh = self.fresh(type_)
        return self.bind(type_, self.pick(([fresh] if fresh else []) + self.variables(type_)))

    def constant(self, type_: str) -> ast.Expr:
        if type_ == "List":
            return ast.ListExpr(())
        if type_ == "Term":
            return ast.Call("f", (ast.Constant(0), ast.Constant(1)))
        return ast.Constant(self.pick(CONSTANTS[type_]))

    def known(self, type_: str) -> ast.Expr:
        """Return a bound variable, or a constant if there is none."""
        names = self.variables(type_)
        if names and (type_ not in CONSTANTS or self.pick((True,) * 5 + (False,))):
            return ast.Variable(self.pick(names))
        return self.constant(type_)

    def value(self, type_: str) -> ast.Expr:
        """Return an expression over bound variables."""
        if type_ == "Integer":
            return self._integer(self.known(type_), self.known(type_))
        if type_ == "Float":
            left, right = self.known(type_), self.known(type_)
            forms = (left, ast.Operation("+", (left, right)), ast.Call("max", (left, right)))
            return self.pick(forms)
        if type_ == "String" and self.pick((True, False)):
            return ast.Call("cat", (self.known(type_), ast.Constant("x")))
        return self.known(type_)

    def _integer(self, left: ast.Expr, right: ast.Expr) -> ast.Expr:
        forms: tuple[Callable[[], ast.Expr], ...] = (
            lambda: left,
            lambda: ast.Operation("+", (left, ast.Constant(1))),
            lambda: ast.Operation(self.pick("-*"), (left, right)),
            lambda: ast.Operation(self.pick("/%"), (left, right)),
            lambda: ast.Call(self.pick(("min", "max")), (left, right)),
            lambda: ast.Call("abs", (ast.Operation("-", (left, right)),)),
            lambda: ast.Operation("-", (left,)) if isinstance(left, ast.Variable) else left,
        )
        return self.pick(forms)()
