"""Boolean functions over facts, as reduced ordered binary decision diagrams.

A variable stands for something that may go, and is named by a number of 64 bits that the caller gives. Functions are
positive: conjunctions and disjunctions of variables. So setting variables to false is the universal quantification over
them, equal functions are equal objects, and a function that is not false holds as long as nothing goes.

Variables are ordered as they arrive. Nodes that no function needs are collected when room is short; if there is none
nevertheless, `TooManyNodes` is raised. Room is only reserved: memory is taken as nodes are made.

>>> diagrams = Diagrams()
>>> first, second = diagrams.variable(7), diagrams.variable(8)
>>> either = diagrams.plus(diagrams.times(first, second), first)
>>> either == first, diagrams.variables(either)
(True, [7])
>>> other = Diagrams()
>>> other.load(*diagrams.dump([either])) == [other.variable(7)]
True
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeAlias, TypeVar

from oxidd.bdd import BDDFunction, BDDManager
from oxidd.util import DDMemoryError

Function: TypeAlias = BDDFunction
_Made = TypeVar("_Made")

CAP = 1 << 24  # nodes: about 400 MB when all are in use
_CACHE = 1 << 16  # results of operations that are remembered
_FALSE, _TRUE = 0, 1  # numbers of the terminals in a dump; nodes follow
Node: TypeAlias = tuple[int, int, int]  # the variable that it tests, and what is left if it is true and if it is false


class TooManyNodes(Exception):
    """The functions alive need more nodes than there may be."""

    def __init__(self, cap: int) -> None:
        super().__init__(f"more than {cap} nodes")
        self.cap = cap


class Diagrams:
    """A manager of functions. Functions of different managers must not meet; they travel as nodes."""

    def __init__(self, cap: int = CAP) -> None:
        self.cap = cap
        self._manager = BDDManager(cap, min(_CACHE, cap), 1)
        self.false: Function = self._manager.false()
        self.true: Function = self._manager.true()
        self._places: dict[int, int] = {}  # the manager's number of each variable
        self._names: list[int] = []
        self._functions: list[Function] = []

    @property
    def nodes(self) -> int:
        """The number of nodes, garbage included."""
        return self._manager.approx_num_inner_nodes()

    @property
    def count(self) -> int:
        """The number of variables."""
        return len(self._names)

    def variable(self, name: int) -> Function:
        """Return the function that is a variable."""
        place = self._places.get(name)
        return self._functions[place] if place is not None else self.variables_named([name])[0]

    def variables_named(self, names: Iterable[int]) -> list[Function]:
        """Return several variables; those that are new come into the order as they stand."""
        wanted = list(names)
        new = [name for name in dict.fromkeys(wanted) if name not in self._places]
        if new:
            self._add(new)
        return [self._functions[self._places[name]] for name in wanted]

    def _add(self, names: Sequence[int]) -> None:
        first = len(self._names)
        missing = first + len(names) - self._manager.num_vars()
        if missing > 0:  # some may be there from an attempt that found no room
            self._manager.add_vars(missing)
        made = self._tried(lambda: [self._manager.var(first + at) for at in range(len(names))])
        self._names.extend(names)
        self._places.update((name, first + at) for at, name in enumerate(names))
        self._functions.extend(made)

    def _tried(self, operation: Callable[[], _Made]) -> _Made:
        """Return what an operation makes; if there is no room for it, collect garbage and try once more."""
        try:
            return operation()
        except DDMemoryError:
            self._manager.gc()
        try:
            return operation()
        except DDMemoryError:
            raise TooManyNodes(self.cap) from None

    def times(self, left: Function, right: Function) -> Function:
        """Return what holds if both do."""
        try:
            return left & right
        except DDMemoryError:
            return self._tried(lambda: left & right)

    def plus(self, left: Function, right: Function) -> Function:
        """Return what holds if one of them does."""
        try:
            return left | right
        except DDMemoryError:
            return self._tried(lambda: left | right)

    def products(self, columns: Sequence[Sequence[Function]]) -> list[Function]:
        """Return the conjunction of each line of some columns, at least one."""
        out = list(columns[0])
        for column in columns[1:]:
            pairs = list(zip(out, column, strict=True))
            out = self._tried(lambda: [left & right for left, right in pairs])  # noqa: B023  # called at once
        return out

    def cube(self, names: Iterable[int]) -> Function:
        """Return the conjunction of variables; those that no function ever used are left out."""
        places = sorted(self._places[name] for name in names if name in self._places)
        out = self.true
        for place in reversed(places):
            out = self.times(self._functions[place], out)
        return out

    def without(self, function: Function, cube: Function) -> Function:
        """Return a function with the variables of a cube set to false."""
        try:
            return function.forall(cube)
        except DDMemoryError:
            return self._tried(lambda: function.forall(cube))

    def variables(self, function: Function) -> list[int]:
        """Return the variables that a function depends on, in their order."""
        places = {node.node_var() for node in nodes_of(function)}
        return [self._names[place] for place in sorted(place for place in places if place is not None)]

    def size(self, function: Function) -> int:
        """Return the number of nodes of a function, without the terminals."""
        return sum(1 for _node in nodes_of(function))

    def branch(self, function: Function) -> tuple[int, Function, Function] | None:
        """Return the first variable of a function, and what is left if it is true and if it is false.

        A function that depends on nothing has none.
        """
        place, children = function.node_var(), function.cofactors()
        return None if place is None or children is None else (self._names[place], *children)

    # To other managers

    def dump(self, functions: Iterable[Function]) -> tuple[list[Node], list[int]]:
        """Return functions as nodes that any manager can load: from the bottom, each once; and which these are.

        Nodes are numbered from 2 on, after false and true.
        """
        numbers: dict[Function, int] = {self.false: _FALSE, self.true: _TRUE}
        nodes: list[Node] = []
        wanted = list(functions)
        for node in sorted(nodes_of(*wanted), key=lambda node: -(node.node_level() or 0)):
            branch = self.branch(node)
            assert branch is not None, "only nodes that test a variable are listed"
            name, held, gone = branch
            nodes.append((name, numbers[held], numbers[gone]))
            numbers[node] = len(numbers)
        return nodes, [numbers[function] for function in wanted]

    def load(self, nodes: Sequence[Node], wanted: Iterable[int]) -> list[Function]:
        """Return functions from nodes; variables that are new come last in the order."""
        tests = self.variables_named(reversed([name for name, _held, _gone in nodes]))[::-1]
        made = [self.false, self.true]
        for test, (_name, held, gone) in zip(tests, nodes, strict=True):
            made.append(self._choice(test, made[held], made[gone]))
        return [made[number] for number in wanted]

    def _choice(self, test: Function, held: Function, gone: Function) -> Function:
        return self._tried(lambda: test.ite(held, gone))


def nodes_of(*functions: Function) -> Iterator[Function]:
    """Yield the nodes of functions that test a variable, each once."""
    seen = set(functions)
    stack = list(dict.fromkeys(functions))
    while stack:
        node = stack.pop()
        children = node.cofactors()
        if children is None:
            continue
        yield node
        for child in children:
            if child not in seen:
                seen.add(child)
                stack.append(child)
