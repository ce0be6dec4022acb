"""Random programs that pass every check and end on any data that `changes.streams` makes.

A program is a few base relations over tiny domains, and on top of them a few strata. A stratum is of one of the kinds
below (`_KINDS`): free ones, whose rules are drawn literal by literal (joins, recursion, aggregates), and patterned ones
for what needs a certain form to be accepted (aggregates in recursion, stages, lists, choices over a recursion). Values
stay in a small range wherever a recursion calculates, so that every fixpoint is finite and small.

`Shape` says what a program may use. `GeneratedProgram.features` says what it does use.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from whorl.model.values import Row, Value
from whorl.syntax import ast
from whorl.syntax.printer import print_program

T = TypeVar("T")


@dataclass(frozen=True)
class Domain:
    """The values that a column of a base relation takes."""

    type: str
    values: tuple[Value, ...]


NODE = Domain("Integer", (0, 1, 2, 3))
WEIGHT = Domain("Integer", (1, 2, 3))
NAME = Domain("String", ("a", "b", "c"))
RATIO = Domain("Float", (0.5, 1.0, 2.5))


@dataclass(frozen=True)
class BaseRelation:
    """A relation that takes changes; the rows of a `stream` start with a timestamp that `domains` leaves out."""

    name: str
    domains: tuple[Domain, ...]
    stream: bool = False
    keyed: bool = False
    counted: bool = False

    @property
    def rows(self) -> tuple[Row, ...]:
        """Every row over the domains, without a timestamp."""
        return _rows(self.domains)


@cache
def _rows(domains: tuple[Domain, ...]) -> tuple[Row, ...]:
    return tuple(product(*(domain.values for domain in domains)))


@dataclass(frozen=True)
class GeneratedProgram:
    """A program's text, with what is needed to feed it."""

    text: str
    base: tuple[BaseRelation, ...]
    features: frozenset[str]

    @property
    def timed(self) -> bool:
        """Whether event time matters to it."""
        return bool(self.features & {"stream", "ttl"})

    @property
    def ordered(self) -> bool:
        """Whether the order of the changes inside an epoch may matter, even for distinct rows."""
        return any(relation.keyed or relation.counted for relation in self.base)


@dataclass(frozen=True)
class Shape:
    """What programs may use."""

    types: frozenset[str] = frozenset({"Integer", "String", "Float"})
    kinds: frozenset[str] = frozenset(
        {"join", "recursion", "aggregate", "best", "threshold", "stages", "lists", "terms", "choice", "stamped"}
    )
    windows: bool = False
    linear: bool = False
    max_strata: int = 3


PLAIN = Shape()
WINDOWED = Shape(windows=True)

_POOL = (
    BaseRelation("e", (NODE, NODE)),
    BaseRelation("w", (NODE, NODE, WEIGHT)),
    BaseRelation("n", (NODE,)),
    BaseRelation("f", (NODE, NODE)),
    BaseRelation("s", (NODE, NAME)),
    BaseRelation("d", (NODE, NODE, RATIO)),
)
_VARIABLES = {
    "Integer": ("X", "Y", "Z", "U", "V", "W"),
    "String": ("S", "S2", "S3"),
    "Float": ("F", "F2", "F3"),
    "List": ("L", "L2"),
    "Term": ("P", "P2"),
    "Timestamp": ("At", "At2"),
}
_CONSTANTS: Mapping[str, tuple[Value, ...]] = {
    "Integer": (0, 1, 2, 3),
    "String": ("a", "b"),
    "Float": (0.5, 2.5),
    "Timestamp": (2, 4),
}
_COMPARISONS = ("<", "<=", ">", ">=", "!=", "=")
_ONE = ast.Constant(1)
_ZERO = ast.Constant(0)


@dataclass(frozen=True)
class _Relation:
    """A relation that rules may use; a `timed` one has a timestamp before its other attributes."""

    name: str
    types: tuple[str, ...]
    timed: bool = False
    base: bool = False


@cache
def _places(count: int) -> SearchStrategy[int]:
    return st.integers(0, count - 1)


def _pick(draw: st.DrawFn, items: Sequence[T]) -> T:
    """Draw an item, as `sampled_from` would, but without a new strategy each time: most of the work is draws."""
    return items[draw(_places(len(items)))]


def _variable(name: str) -> ast.Variable:
    return ast.Variable(name)


def _call(name: str, *args: ast.Expr) -> ast.Call:
    return ast.Call(name, args)


def _sum(left: ast.Expr, right: ast.Expr) -> ast.Operation:
    return ast.Operation("+", (left, right))


def _equals(left: ast.Expr, right: ast.Expr) -> ast.Comparison:
    return ast.Comparison((left, right), ("=",))


@dataclass
class _Scope:
    """A body under construction."""

    draw: st.DrawFn
    literals: list[ast.Formula] = field(default_factory=list)
    bound: dict[str, list[str]] = field(default_factory=dict)

    def pick(self, items: Sequence[T]) -> T:
        return _pick(self.draw, items)

    def variables(self, type_: str) -> list[str]:
        return self.bound.get(type_, [])

    def bind(self, type_: str, name: str) -> ast.Variable:
        known = self.bound.setdefault(type_, [])
        if name not in known:
            known.append(name)
        return _variable(name)

    def fresh(self, type_: str) -> str | None:
        used = self.variables(type_)
        return next((name for name in _VARIABLES[type_] if name not in used), None)

    def join(self, relation: _Relation) -> None:
        """Add an atom that shares a variable with the others, where types allow."""
        before = {type_: list(names) for type_, names in self.bound.items()}
        args = [self._argument(type_) for type_ in relation.types]
        shared = any(isinstance(arg, ast.Variable) and arg.name in sum(before.values(), []) for arg in args)
        places = [i for i, type_ in enumerate(relation.types) if before.get(type_)]
        if places and not shared:
            place = self.pick(places)
            args[place] = _variable(self.pick(before[relation.types[place]]))
        self.literals.append(ast.Atom(relation.name, tuple(args)))
        self.bound = before
        for arg, type_ in zip(args, relation.types, strict=True):
            if isinstance(arg, ast.Variable):
                self.bind(type_, arg.name)

    def _argument(self, type_: str) -> ast.Expr:
        kind = self.pick(("variable",) * 7 + ("constant", "anonymous"))
        if kind == "constant" and type_ in _CONSTANTS:
            return ast.Constant(self.pick(_CONSTANTS[type_]))
        if kind == "anonymous":
            return ast.Anonymous()
        fresh = self.fresh(type_)
        names = ([fresh] if fresh else []) + self.variables(type_)
        return self.bind(type_, self.pick(names))

    def known(self, type_: str) -> ast.Expr:
        """Return a bound variable, or a constant if there is none."""
        names = self.variables(type_)
        if names and (type_ not in _CONSTANTS or self.pick((True,) * 5 + (False,))):
            return _variable(self.pick(names))
        if type_ == "List":
            return ast.ListExpr(())
        if type_ == "Term":
            return _call("f", _ZERO, _ONE)
        return ast.Constant(self.pick(_CONSTANTS[type_]))

    def value(self, type_: str) -> ast.Expr:
        """Return an expression over bound variables."""
        if type_ == "Integer":
            left, right = self.known(type_), self.known(type_)
            forms: tuple[Callable[[], ast.Expr], ...] = (
                lambda: left,
                lambda: _sum(left, _ONE),
                lambda: ast.Operation(self.pick("-*/%"), (left, right)),
                lambda: _call(self.pick(("min", "max")), left, right),
                lambda: _call("abs", ast.Operation("-", (left, right))),
                lambda: ast.Operation("-", (_variable(left.name),)) if isinstance(left, ast.Variable) else left,
            )
            return self.pick(forms)()
        if type_ == "Float":
            left, right = self.known(type_), self.known(type_)
            return self.pick((left, _sum(left, right), _call("max", left, right)))
        if type_ == "String" and self.pick((True, False)):
            return _call("cat", self.known(type_), ast.Constant("x"))
        return self.known(type_)


class _Builder:
    """Draws one program."""

    def __init__(self, draw: st.DrawFn, shape: Shape) -> None:
        self.draw = draw
        self.shape = shape
        self.features: set[str] = set()
        self.declarations: list[ast.Statement] = []
        self.rules: list[ast.Statement] = []
        self.sources: list[_Relation] = []  # what a rule may use
        self.members: list[_Relation] = []  # the relations of the recursion under construction
        self.shown: list[_Relation] = []  # what a query may show
        self.hidden = False  # whether some relation must not be shown
        self.count = 0

    def pick(self, items: Sequence[T]) -> T:
        return _pick(self.draw, items)

    def flag(self, chances: int = 2) -> bool:
        """Return True once in ``chances`` draws."""
        return self.pick((False,) * (chances - 1) + (True,))

    def name(self) -> str:
        self.count += 1
        return f"p{self.count}"

    # Base relations

    def base_relations(self) -> tuple[BaseRelation, ...]:
        pool = [r for r in _POOL if all(domain.type in self.shape.types for domain in r.domains)]
        first = self.pick(pool[:2])
        others = self.draw(st.lists(st.sampled_from(pool), max_size=2, unique=True))
        chosen = [first, *(relation for relation in others if relation != first)]
        declared = self.shape.windows or self.flag()
        if not declared:
            self.features.add("undeclared")
        out = tuple(self.declare(relation) if declared else relation for relation in chosen)
        self.sources = [_Relation(r.name, tuple(d.type for d in r.domains), r.stream, base=True) for r in out]
        return out

    def declare(self, relation: BaseRelation) -> BaseRelation:
        windows = self.shape.windows
        stream = windows and self.flag()
        keyed = windows and self.flag(8)
        counted = windows and self.flag(8)
        attributes = [
            ast.Attribute(f"a{i}", domain.type, key=keyed and i == 0) for i, domain in enumerate(relation.domains)
        ]
        if stream:
            attributes.insert(0, ast.Attribute("at", "Timestamp"))
        window, ttl = None, None
        if counted:
            window = ast.Window(ast.Duration(self.pick((4, 3, 6))), self.slide(2), counted=True)
        elif stream and self.flag():
            window = ast.Window(ast.Duration(self.pick((4, 3, 6))), self.slide(3))
        elif windows and self.flag(4):
            ttl = ast.Duration(self.pick((3, 5)))
        self.features |= {
            name
            for name, present in (
                ("stream", stream),
                ("keyed", keyed),
                ("counted", counted),
                ("window", window is not None),
                ("ttl", ttl is not None),
            )
            if present
        }
        kind = "stream" if stream else "relation"
        self.declarations.append(ast.Declaration(kind, relation.name, tuple(attributes), window, ttl))
        return BaseRelation(relation.name, relation.domains, stream, keyed, counted)

    def slide(self, most: int) -> ast.Duration | None:
        return ast.Duration(self.draw(st.integers(1, most))) if self.flag() else None

    # Rules

    def add_rule(self, head: _Relation, args: Sequence[ast.Expr | ast.Aggregate], body: Sequence[ast.Formula]) -> None:
        """Add a rule, with timestamps where its relations have them."""
        timed = {relation.name for relation in (*self.sources, *self.members, head) if relation.timed}
        stamps: list[str] = []

        def stamp(formula: ast.Formula, *, carried: bool) -> ast.Formula:
            if isinstance(formula, ast.Negation):
                return ast.Negation(stamp(formula.formula, carried=False))
            if isinstance(formula, ast.Alternatives):
                return ast.Alternatives(tuple(stamp(part, carried=False) for part in formula.parts))
            if not isinstance(formula, ast.Atom) or formula.relation not in timed:
                return formula
            if not carried:
                return ast.Atom(formula.relation, (ast.Anonymous(), *formula.args))
            stamps.append(f"T{len(stamps) + 1}")
            return ast.Atom(formula.relation, (_variable(stamps[-1]), *formula.args))

        literals = [stamp(formula, carried=head.timed) for formula in body]
        if head.timed:
            self.features.add("carried time")
            own = _variable(stamps[0] if len(stamps) == 1 else "T")
            if len(stamps) > 1:
                literals.append(ast.Atom("largest", (own, *(_variable(name) for name in stamps))))
            args = (own, *args)
        formula = literals[0] if len(literals) == 1 else ast.Conjunction(tuple(literals))
        self.rules.append(ast.Rule((ast.Head(head.name, tuple(args)),), formula if literals else None))

    def free_body(self, sources: Sequence[_Relation], first: Sequence[_Relation], *, bounded: bool) -> _Scope:
        """Draw a body: the relations of ``first`` and up to two more, then conditions."""
        scope = _Scope(self.draw)
        more = [] if len(first) > 1 else self.draw(st.lists(st.sampled_from(sources), max_size=2))
        for relation in (*first, *more):
            scope.join(relation)
        for _ in range(self.draw(st.integers(0, 2))):
            self.add_condition(scope)
        if self.flag(4):
            self.add_calculation(scope, bounded=bounded)
        return scope

    def add_condition(self, scope: _Scope) -> None:
        kind = self.pick(("compare", "absent", "member", "either", "chain"))
        if kind == "chain" and scope.variables("Integer"):
            low, value, high = (scope.known("Integer") for _ in range(3))
            operators = (self.pick(("<", "<=")), self.pick(("<", "<=", "!=")))
            scope.literals.append(ast.Comparison((low, value, high), operators))
        elif kind == "either":
            self.features.add("alternatives")
            parts = tuple(dict.fromkeys((self.condition(scope, "member"), self.condition(scope, "compare"))))
            scope.literals.append(ast.Alternatives(parts) if len(parts) > 1 else parts[0])
        else:
            scope.literals.append(self.condition(scope, kind))

    def condition(self, scope: _Scope, kind: str) -> ast.Formula:
        """Return a test of variables that are bound already."""
        if kind in ("absent", "member"):
            relation = self.pick(self.sources)
            atom = ast.Atom(relation.name, tuple(self.tested(scope, type_) for type_ in relation.types))
            if kind == "member":
                return atom
            self.features.add("negation")
            return ast.Negation(atom)
        types = [type_ for type_ in scope.bound if type_ in _CONSTANTS] or ["Integer"]
        type_ = self.pick(types)
        other = "Integer" if type_ == "Float" and self.flag(3) else type_
        return ast.Comparison((scope.known(type_), scope.value(other)), (self.pick(_COMPARISONS),))

    def tested(self, scope: _Scope, type_: str) -> ast.Expr:
        kind = self.pick(("known",) * 4 + ("anonymous", "value"))
        if kind == "anonymous":
            return ast.Anonymous()
        return scope.known(type_) if kind == "known" else scope.value(type_)

    def add_calculation(self, scope: _Scope, *, bounded: bool) -> None:
        type_ = self.pick([t for t in ("Integer", "Float") if scope.variables(t)] or ["Integer"])
        name = scope.fresh(type_)
        if name is None:
            return
        self.features.add("arithmetic")
        value = scope.value(type_)
        if type_ == "Integer" and self.flag(4):
            scope.literals.append(ast.Atom("largest", (_variable(name), value, scope.known(type_))))
        else:
            scope.literals.append(_equals(_variable(name), value))
        if bounded:
            low, high = (ast.Constant(0), ast.Constant(5)) if type_ == "Integer" else (ast.Constant(0.0), ast.Constant(5.0))
            scope.literals.append(ast.Comparison((low, _variable(name), high), ("<=", "<")))
        scope.bind(type_, name)

    def columns(self, most: int = 3) -> tuple[str, ...]:
        """Draw the types of a new relation from those that the sources can give."""
        known = sorted({type_ for relation in self.sources for type_ in relation.types})
        types = ("Integer",) * 4 + tuple(type_ for type_ in known if type_ != "Integer")
        return tuple(self.draw(st.lists(st.sampled_from(types), min_size=1, max_size=most)))

    def timed_sources(self) -> list[_Relation]:
        return [relation for relation in self.sources if relation.timed]

    def new_relation(self, types: tuple[str, ...]) -> _Relation:
        return _Relation(self.name(), types, timed=bool(self.timed_sources()) and self.flag())

    def publish(self, *relations: _Relation) -> None:
        """Let later strata and queries use relations whose rules are complete."""
        self.sources = self.sources + list(relations)
        self.shown += relations

    # Kinds of strata: free ones

    def join(self) -> None:
        empty = self.flag(12)
        relation = self.new_relation(() if empty else self.columns())
        for _ in range(self.draw(st.integers(1, 2))):
            self.exit_rule(relation)
        self.publish(relation)

    def exit_rule(self, relation: _Relation, *, bounded: bool = False) -> None:
        """Add a rule over lower relations."""
        first = self.pick(self.timed_sources() if relation.timed else self.sources)
        scope = self.free_body(self.sources, [first], bounded=bounded)
        calculate = not bounded and self.flag(4)
        args = [scope.value(type_) if calculate else scope.known(type_) for type_ in relation.types]
        self.add_rule(relation, args, scope.literals)

    def recursion(self) -> None:
        self.features.add("recursion")
        types = self.columns(2)
        mutual = not self.shape.linear and self.flag(3)
        timed = bool(self.timed_sources()) and self.flag()
        members = [_Relation(self.name(), types, timed) for _ in range(2 if mutual else 1)]
        if mutual:
            self.features.add("mutual")
        self.members = members
        for relation in members:
            self.exit_rule(relation, bounded=True)
        for index, relation in enumerate(members):
            self.recursive_rule(relation, members[index - 1])
        if not self.shape.linear and self.flag():
            self.recursive_rule(self.pick(members), self.pick(members))
        if self.flag(6) and not timed:
            self.features.add("facts")
            args = [ast.Constant(self.pick(_CONSTANTS[type_])) for type_ in types if type_ in _CONSTANTS]
            if len(args) == len(types):
                self.rules.append(ast.Rule((ast.Head(members[0].name, tuple(args)),)))
        self.members = []
        self.publish(*members)

    def recursive_rule(self, relation: _Relation, other: _Relation) -> None:
        atoms = [other]
        if not self.shape.linear and self.flag(3):
            self.features.add("nonlinear")
            atoms.append(relation)
        elif self.flag(4):
            atoms.insert(0, self.pick(self.sources))
        scope = self.free_body(self.sources, atoms, bounded=True)
        self.add_rule(relation, [scope.known(type_) for type_ in relation.types], scope.literals)

    def aggregate(self) -> None:
        self.features.add("aggregate")
        groups = self.columns(2) if self.flag() else ()
        chosen = [self.aggregation() for _ in range(2 if self.flag(4) else 1)]
        relation = self.new_relation((*groups, *(result for _name, _type, result in chosen)))
        for _ in range(2 if self.flag(4) else 1):
            first = self.pick(self.timed_sources() if relation.timed else self.sources)
            scope = self.free_body(self.sources, [first], bounded=False)
            args: list[ast.Expr | ast.Aggregate] = [scope.known(type_) for type_ in groups]
            for name, type_, _result in chosen:
                value = scope.value(type_) if self.flag(4) else scope.known(type_)
                function = "count" if name == "distinct" else name
                args.append(ast.Aggregate(function, (value,), distinct=name == "distinct"))
            self.add_rule(relation, args, scope.literals)
        additive = all(name != "distinct" for name, _type, _result in chosen)
        if additive and not relation.timed and self.flag(6) and all(type_ in _CONSTANTS for type_ in relation.types):
            self.add_rule(relation, [ast.Constant(self.pick(_CONSTANTS[type_])) for type_ in relation.types], [])
        self.publish(relation)

    def aggregation(self) -> tuple[str, str, str]:
        """Draw an aggregate, with the types of what goes in and what comes out."""
        floats = "Float" in self.shape.types
        name = self.pick(("count", "sum", "min", "max", "distinct", *(("avg",) if floats else ())))
        types = {type_ for relation in self.sources for type_ in relation.types if type_ in _CONSTANTS}
        if name in ("sum", "avg"):
            types &= {"Integer", "Float"}
        type_ = self.pick(sorted(types) or ["Integer"])
        return name, type_, {"count": "Integer", "distinct": "Integer", "avg": "Float"}.get(name, type_)

    # Kinds of strata: patterned ones. X, Y, Z are nodes, C is a cost.

    def edges(self) -> tuple[_Relation, ...]:
        """Return the base relations that lead from node to node."""
        return tuple(r for r in self.sources if r.base and r.types[:2] == ("Integer", "Integer"))

    def edge(self, relation: _Relation, source: str, target: str, cost: str) -> tuple[ast.Atom, ast.Expr]:
        """Return an atom over edges, and the cost of its edge."""
        ends = (_variable(source), _variable(target))
        if len(relation.types) == 2:
            return ast.Atom(relation.name, ends), _ONE
        return ast.Atom(relation.name, (*ends, _variable(cost))), _variable(cost)

    def best(self) -> None:
        """Shortest, widest and least: `min` and `max` inside recursion."""
        self.features |= {"recursion", "monotone"}
        relation = self.pick(self.edges())
        falling = self.flag()
        function = self.pick(("min", "mmin") if falling else ("max", "mmax"))
        timed = relation.timed and self.flag()
        costs = "Float" if "Float" in relation.types else "Integer"
        best = _Relation(self.name(), ("Integer", "Integer", costs), timed)
        x, y = _variable("X"), _variable("Y")

        def head(value: ast.Expr) -> tuple[ast.Expr | ast.Aggregate, ...]:
            return (x, y, ast.Aggregate(function, (value,)))

        first, cost = self.edge(relation, "X", "Y", "C")
        self.add_rule(best, head(cost), [first])
        left = ast.Atom(best.name, (x, _variable("Z"), _variable("C1")))
        step, cost = self.edge(relation, "Z", "Y", "C2")
        if self.flag(3):
            self.features.add("nonlinear")
            step, cost = ast.Atom(best.name, (_variable("Z"), y, _variable("C2"))), _variable("C2")
        one = _variable("C1")
        total = _sum(one, cost) if falling else _call("min", one, cost)
        if not falling and self.flag(3):
            total = one
        body: list[ast.Formula] = [left, step, _equals(_variable("C"), total)]
        if falling and self.flag(4):
            body.append(ast.Comparison((_variable("C"), ast.Constant(4)), ("<",)))
        self.add_rule(best, head(_variable("C")), body)
        self.publish(best)

    def threshold(self) -> None:
        """Who is on switches others on, once enough of them are: counts and sums inside recursion."""
        self.features |= {"recursion", "mutual", "monotone"}
        relation = self.pick([r for r in self.edges() if "Float" not in r.types] or self.edges())
        on, active = _Relation(self.name(), ("Integer",)), _Relation(self.name(), ("Integer", "Integer"))
        x, y, n = _variable("X"), _variable("Y"), _variable("N")
        start = self.pick([r for r in self.sources if r.types and r.types[0] == "Integer"])
        rest = tuple(ast.Anonymous() for _ in start.types[1:])
        self.add_rule(on, [x], [ast.Atom(start.name, (x, *rest))])
        enough = ast.Comparison((n, ast.Constant(self.pick((2, 3)))), (">=",))
        self.add_rule(on, [x], [ast.Atom(active.name, (x, n)), enough])
        step, cost = self.edge(relation, "X", "Y", "C")
        count = ast.Aggregate("mcount", (x,))
        total = ast.Aggregate("msum", (x, cost))
        summed = len(relation.types) == 3 and self.flag()
        if summed and "Float" in relation.types:
            active = _Relation(active.name, ("Integer", "Float"))
        self.add_rule(active, [y, total if summed else count], [ast.Atom(on.name, (x,)), step])
        self.publish(on, active)

    def stages(self) -> None:
        """Breadth first search that negates what earlier stages have seen."""
        self.features |= {"recursion", "stages", "negation"}
        relation = self.pick(self.edges())
        level, seen = _Relation(self.name(), ("Integer", "Integer")), _Relation(self.name(), ("Integer", "Integer"))
        x, y, j, k = (_variable(name) for name in ("X", "Y", "J", "K"))
        step, _cost = self.edge(relation, "X", "Y", "_C")
        climb: list[ast.Formula] = [_equals(k, _sum(j, _ONE)), ast.Comparison((j, ast.Constant(4)), ("<",))]
        start = self.pick([r for r in self.sources if r.types and r.types[0] == "Integer"])
        rest = tuple(ast.Anonymous() for _ in start.types[1:])
        self.add_rule(level, [x, _ZERO], [ast.Atom(start.name, (x, *rest))])
        known = ast.Negation(ast.Atom(seen.name, (y, j)))
        self.add_rule(level, [y, k], [ast.Atom(level.name, (x, j)), step, *climb, known])
        self.add_rule(seen, [x, j], [ast.Atom(level.name, (x, j))])
        self.add_rule(seen, [x, k], [ast.Atom(seen.name, (x, j)), *climb])
        self.publish(level, seen)

    def lists(self) -> None:
        """Simple paths as lists, and their members."""
        self.features |= {"recursion", "terms", "negation"}
        relation = self.pick(self.edges())
        timed = relation.timed and self.flag()
        path = _Relation(self.name(), ("Integer", "Integer", "List"), timed)
        x, y, z, route = (_variable(name) for name in ("X", "Y", "Z", "L"))
        first, _cost = self.edge(relation, "X", "Y", "_C")
        distinct = ast.Comparison((x, y), ("!=",))
        self.add_rule(path, [x, y, ast.ListExpr((y, x))], [first, distinct])
        step, _cost = self.edge(relation, "Y", "Z", "_C")
        absent = ast.Negation(ast.Atom("member", (z, route)))
        longer = ast.ListExpr((z,), tail=route)
        self.add_rule(path, [x, z, longer], [ast.Atom(path.name, (x, y, route)), step, absent])
        through = _Relation(self.name(), ("Integer", "Integer"))
        body: list[ast.Formula] = [ast.Atom(path.name, (x, y, route))]
        if self.flag():
            body.append(ast.Atom("member", (z, route)))
        else:
            body[0] = ast.Atom(path.name, (x, y, ast.ListExpr((ast.Anonymous(), z), tail=ast.Anonymous())))
        self.sources = [*self.sources, path]
        self.add_rule(through, [x, z], body)
        self.shown.append(path)
        self.publish(through)

    def terms(self) -> None:
        """Rows packed into terms, and taken apart again."""
        self.features.add("terms")
        relation = self.pick(self.edges())
        x, y, z = (_variable(name) for name in ("X", "Y", "Z"))
        packed = _Relation(self.name(), ("Integer", "Term"), relation.timed and self.flag())
        inner = self.pick((_call("f", x, y), _call("f", y, _call("g", x)), ast.ListExpr((x, _call("f", y, y)))))
        if isinstance(inner, ast.ListExpr):
            packed = _Relation(packed.name, ("Integer", "List"), packed.timed)
        step, _cost = self.edge(relation, "X", "Y", "_C")
        self.add_rule(packed, [self.pick((x, y)), inner], [step])
        opened = _Relation(self.name(), ("Integer", "Integer"))
        patterns = (_call("f", y, z), _call("f", z, y), _call("f", y, _call("g", z)), _call("f", y, y))
        pattern: ast.Expr = self.pick(patterns)
        if isinstance(inner, ast.ListExpr):
            pattern = ast.ListExpr((self.pick((x, z, ast.Anonymous())), pattern))
        self.sources = [*self.sources, packed]
        body: list[ast.Formula] = [ast.Atom(packed.name, (x, pattern))]
        if self.flag(3):
            body.append(ast.Negation(ast.Atom(packed.name, (y, inner))))
        self.add_rule(opened, [x, y], body)
        self.shown.append(packed)
        self.publish(opened)

    def choice(self) -> None:
        """A recursion of which only the best rows are used, so that the choice may move into it; or nearly so."""
        self.features |= {"recursion", "aggregate", "choice"}
        relation = self.pick(self.edges())
        costs = "Float" if "Float" in relation.types else "Integer"
        path = _Relation(self.name(), ("Integer", "Integer", costs, "Integer"))
        x, y, z, k, c, c1 = (_variable(name) for name in ("X", "Y", "Z", "K", "C", "C1"))
        first, cost = self.edge(relation, "X", "Y", "C")
        self.add_rule(path, [x, y, cost, self.pick((_ONE, y, x))], [first])
        step, cost = self.edge(relation, self.pick(("Y", "X")), "Z", "C2")
        totals = (_sum(c1, cost), _sum(c1, cost), _sum(c1, c1), _call("max", c1, cost))
        body = [ast.Atom(path.name, (x, y, c1, k)), step, _equals(c, self.pick(totals))]
        body.append(ast.Comparison((c, ast.Constant(self.pick((5, 7)))), ("<",)))
        if self.flag(3):
            body.append(ast.Comparison(self.pick(((x, z), (y, z), (k, z), (x, k))), (self.pick(("<", "!=")),)))
        self.add_rule(path, [x, self.pick((z, z, y)), c, self.pick((k, y, z))], body)
        self.sources = [*self.sources, path]
        atom, groups = self.pick(
            (
                ((x, y, c, ast.Anonymous()), (x, y)),
                ((x, y, c, k), (x, y)),
                ((x, y, c, k), (x,)),
                ((x, y, c, k), (x, k, y)),
                ((x, ast.Anonymous(), c, k), (k,)),
                ((x, y, c, k), ()),
                ((x, y, c, y), (x,)),
                ((x, y, c, k), (x, c)),
                ((x, y, c, _ONE), (x, y)),
            )
        )
        types = tuple(costs if name == c else "Integer" for name in groups)
        best = _Relation(self.name(), (*types, costs))
        choice = ast.Aggregate(self.pick(("min", "min", "max")), (c,))
        self.add_rule(best, [*groups, choice], [ast.Atom(path.name, atom)])
        if self.flag(3):
            chosen = _Relation(self.name(), ("Integer", "Integer"))
            self.add_rule(chosen, [x, y], [ast.Atom(path.name, (x, y, c, k)), ast.Atom(best.name, (*groups, c))])
            self.shown.append(chosen)
        self.sources = [r for r in self.sources if r is not path]
        if self.flag(5):
            self.publish(path)
        else:
            self.hidden = True
        self.publish(best)

    def stamped(self) -> None:
        """Timestamps that are compared or shown, and so are attributes like others."""
        streams = [r for r in self.sources if r.base and r.timed and r.types[0] == "Integer"]
        if not streams:
            self.join()
            return
        self.features.add("stamped")
        relation = self.pick(streams)
        rest = tuple(ast.Anonymous() for _ in relation.types[1:])
        x, at, later = _variable("X"), _variable("At"), _variable("At2")
        first = ast.Atom(relation.name, (at, x, *rest))
        if self.flag():
            out = _Relation(self.name(), ("Integer", "Timestamp"))
            bound = ast.Comparison((at, ast.Constant(3)), (self.pick((">", "<=", "!=")),))
            body: list[ast.Formula] = [first, bound] if self.flag() else [first]
            self.rules.append(_rule(out.name, (x, at), body))
        else:
            out = _Relation(self.name(), ("Integer",))
            second = ast.Atom(relation.name, (later, x, *rest))
            order = ast.Comparison((at, later), (self.pick(("<", "<=")),))
            self.rules.append(_rule(out.name, (x,), [first, second, order]))
        self.publish(out)

    # Whole programs

    def queries(self) -> list[ast.Statement]:
        if not self.hidden and self.flag():
            return []
        count = self.draw(st.integers(1, 2))
        window = None
        if "stream" in self.features and not self.features & {"window", "ttl"} and self.flag():
            window = ast.Window(ast.Duration(self.pick((4, 3, 6))), self.slide(3))
        return [self.query(self.pick(self.shown[::-1]), window) for _ in range(count)]

    def query(self, relation: _Relation, window: ast.Window | None) -> ast.Query:
        args: list[ast.Expr] = []
        for index, type_ in enumerate(relation.types):
            kind = self.pick(("variable",) * 5 + ("constant", "constant", "anonymous", "repeated"))
            if kind == "constant" and type_ in _CONSTANTS:
                self.features.add("bound query")
                args.append(ast.Constant(self.pick(_CONSTANTS[type_])))
            elif kind == "anonymous":
                args.append(ast.Anonymous())
            elif kind == "repeated" and type_ in relation.types[:index]:
                args.append(args[relation.types.index(type_)])
            else:
                args.append(_variable(f"Q{index}"))
        if relation.timed:
            args.insert(0, _variable("At") if self.flag(4) else ast.Anonymous())
        if window is not None and self.reads_stream(relation.name):
            self.features.add("window")
            return ast.Query(ast.Atom(relation.name, tuple(args)), window)
        return ast.Query(ast.Atom(relation.name, tuple(args)))

    def reads_stream(self, start: str) -> bool:
        streams = {r.name for r in self.sources if r.base and r.timed}
        reached, queue = {start}, [start]
        for name in queue:
            for rule in self.rules:
                if isinstance(rule, ast.Rule) and rule.heads[0].relation == name and rule.body is not None:
                    new = _relations(rule.body) - reached
                    reached |= new
                    queue.extend(new)
        return bool(reached & streams)

    def facts(self, base: tuple[BaseRelation, ...]) -> list[ast.Statement]:
        if not self.flag(4):
            return []
        self.features.add("facts")
        relation = self.pick(base)
        rows = st.sampled_from(relation.rows)
        stamp = (_ZERO,) if relation.stream else ()
        return [
            ast.Rule((ast.Head(relation.name, (*stamp, *(ast.Constant(value) for value in row))),))
            for row in self.draw(st.lists(rows, min_size=1, max_size=3, unique=True))
        ]

    def program(self) -> GeneratedProgram:
        base = self.base_relations()
        facts = self.facts(base)
        kinds = [kind for kind in _KINDS if kind in self.shape.kinds and (kind != "stamped" or self.shape.windows)]
        if self.shape.linear:
            kinds = [kind for kind in kinds if kind in ("join", "recursion", "aggregate")]
        for kind in self.draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=self.shape.max_strata)):
            getattr(self, kind)()
        queries = self.queries()
        statements = (*self.declarations, *facts, *self.rules, *queries)
        used = {name for statement in statements for name in _statement_relations(statement)}
        text = print_program(ast.Program(statements))
        return GeneratedProgram(text, tuple(r for r in base if r.name in used), frozenset(self.features))


_KINDS = (
    "join",
    "recursion",
    "aggregate",
    "join",
    "recursion",
    "recursion",
    "best",
    "choice",
    "threshold",
    "stages",
    "lists",
    "terms",
    "stamped",
)


def _rule(name: str, args: tuple[ast.Expr, ...], body: list[ast.Formula]) -> ast.Rule:
    return ast.Rule((ast.Head(name, args),), body[0] if len(body) == 1 else ast.Conjunction(tuple(body)))


def _relations(formula: ast.Formula) -> set[str]:
    if isinstance(formula, ast.Atom):
        return {formula.relation}
    if isinstance(formula, ast.Negation):
        return _relations(formula.formula)
    if isinstance(formula, ast.Comparison):
        return set()
    return {name for part in formula.parts for name in _relations(part)}


def _statement_relations(statement: ast.Statement) -> set[str]:
    if isinstance(statement, ast.Declaration):
        return {statement.name}
    if isinstance(statement, ast.Rule):
        heads = {head.relation for head in statement.heads}
        return heads | (_relations(statement.body) if statement.body is not None else set())
    return {statement.atom.relation} if isinstance(statement, ast.Query) else set()


def programs(shape: Shape = PLAIN) -> SearchStrategy[GeneratedProgram]:
    """Return valid programs of a shape."""

    @st.composite
    def build(draw: st.DrawFn) -> GeneratedProgram:
        return _Builder(draw, shape).program()

    return build()
