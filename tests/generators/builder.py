"""One program under construction: its base relations, rules and queries, and the draws that all strata share."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TypeVar

from hypothesis import strategies as st

from tests.generators.bodies import COMPARISONS, CONSTANTS, Relation, Scope, pick
from tests.generators.schema import POOL, BaseRelation, Shape
from whorl.diagnostics.source import Source
from whorl.syntax import ast
from whorl.syntax.parser import parse_program

T = TypeVar("T")


@cache
def _parse_rule(text: str) -> ast.Rule:
    (statement,) = parse_program(Source("pattern", text)).statements
    assert isinstance(statement, ast.Rule)
    return statement


class Builder:
    """Draws one program."""

    def __init__(self, draw: st.DrawFn, shape: Shape) -> None:
        self.draw = draw
        self.shape = shape
        self.features: set[str] = set()
        self.declarations: list[ast.Statement] = []
        self.rules: list[ast.Rule] = []
        self.sources: list[Relation] = []  # what a rule may use
        self.members: list[Relation] = []  # the relations of the stratum under construction
        self.shown: list[Relation] = []  # what a query may show
        self.hidden = False  # whether some relation must not be shown
        self.count = 0

    def pick(self, items: Sequence[T]) -> T:
        return pick(self.draw, items)

    def flag(self, chances: int = 2) -> bool:
        """Return True once in ``chances`` draws."""
        return self.pick((False,) * (chances - 1) + (True,))

    # Relations

    def base_relations(self) -> tuple[BaseRelation, ...]:
        pool = [r for r in POOL if all(domain.type in self.shape.types for domain in r.domains)]
        first = self.pick(pool[:2])
        others = self.draw(st.lists(st.sampled_from(pool), max_size=2, unique=True))
        chosen = [first, *(relation for relation in others if relation != first)]
        declared = self.shape.windows or self.flag()
        if not declared:
            self.features.add("undeclared")
        out = tuple(self.declare(relation) if declared else relation for relation in chosen)
        self.sources = [Relation(r.name, tuple(d.type for d in r.domains), r.stream, base=True) for r in out]
        return out

    def declare(self, relation: BaseRelation) -> BaseRelation:
        """Declare a relation; where windows are wanted, with some of what the language offers for them."""
        stream, keyed, counted = (self.shape.windows and self.flag(chances) for chances in (2, 8, 8))
        attributes = [ast.Attribute(f"a{i}", d.type, key=keyed and i == 0) for i, d in enumerate(relation.domains)]
        if stream:
            attributes.insert(0, ast.Attribute("at", "Timestamp"))
        window, ttl = None, None
        if counted:
            window = self.window(2, counted=True)
        elif stream and self.flag():
            window = self.window(3)
        elif self.shape.windows and self.flag(4):
            ttl = ast.Duration(self.pick((3, 5)))
        used = {"stream": stream, "keyed": keyed, "counted": counted, "window": window, "ttl": ttl}
        self.features |= {name for name, present in used.items() if present}
        kind = "stream" if stream else "relation"
        self.declarations.append(ast.Declaration(kind, relation.name, tuple(attributes), window, ttl))
        return BaseRelation(relation.name, relation.domains, stream, keyed, counted)

    def window(self, longest_slide: int, *, counted: bool = False) -> ast.Window:
        slide = ast.Duration(self.draw(st.integers(1, longest_slide))) if self.flag() else None
        return ast.Window(ast.Duration(self.pick((4, 3, 6))), slide, counted)

    def relation(self, *types: str, timed: bool = False) -> Relation:
        """Name a new relation."""
        self.count += 1
        return Relation(f"p{self.count}", types, timed)

    def carries_time(self) -> bool:
        """Draw whether a relation over any source is to carry timestamps."""
        return bool(self.timed_sources()) and self.flag()

    def timed_sources(self) -> list[Relation]:
        return [relation for relation in self.sources if relation.timed]

    def edges(self) -> list[Relation]:
        """Return the base relations that lead from node to node; there is always one."""
        return [r for r in self.sources if r.base and r.types[:2] == ("Integer", "Integer")]

    def columns(self, most: int = 3) -> tuple[str, ...]:
        """Draw the types of a new relation from those that the sources can give."""
        known = sorted({type_ for relation in self.sources for type_ in relation.types})
        types = ("Integer",) * 4 + tuple(type_ for type_ in known if type_ != "Integer")
        return tuple(self.draw(st.lists(st.sampled_from(types), min_size=1, max_size=most)))

    def publish(self, *relations: Relation) -> None:
        """Let later strata and queries use relations whose rules are complete."""
        self.members = []
        self.sources = self.sources + list(relations)
        self.shown += relations

    # Rules

    def add_text(self, text: str, head: Relation) -> None:
        """Add a rule written without timestamps."""
        rule = _parse_rule(text)
        body = () if rule.body is None else rule.body.parts if isinstance(rule.body, ast.Conjunction) else (rule.body,)
        self.add_rule(head, rule.heads[0].args, body)

    def add_stamped(self, text: str) -> None:
        """Add a rule that names its timestamps itself."""
        self.rules.append(_parse_rule(text))

    def add_rule(self, head: Relation, args: Sequence[ast.Expr | ast.Aggregate], body: Sequence[ast.Formula]) -> None:
        """Add a rule; atoms of timed relations get timestamps, of which the head's is the largest."""
        timed = {relation.name for relation in (*self.sources, *self.members, head) if relation.timed}
        stamps: list[ast.Variable] = []

        def stamp(formula: ast.Formula, *, carried: bool) -> ast.Formula:
            if isinstance(formula, ast.Negation):
                return ast.Negation(stamp(formula.formula, carried=False))
            if isinstance(formula, ast.Alternatives):
                return ast.Alternatives(tuple(stamp(part, carried=False) for part in formula.parts))
            if not isinstance(formula, ast.Atom) or formula.relation not in timed:
                return formula
            if not carried:
                return ast.Atom(formula.relation, (ast.Anonymous(), *formula.args))
            stamps.append(ast.Variable(f"T{len(stamps) + 1}"))
            return ast.Atom(formula.relation, (stamps[-1], *formula.args))

        literals = [stamp(formula, carried=head.timed) for formula in body]
        if head.timed:
            self.features.add("carried time")
            own = stamps[0] if len(stamps) == 1 else ast.Variable("T")
            if len(stamps) > 1:
                literals.append(ast.Atom("largest", (own, *stamps)))
            args = (own, *args)
        formula = literals[0] if len(literals) == 1 else ast.Conjunction(tuple(literals))
        self.rules.append(ast.Rule((ast.Head(head.name, tuple(args)),), formula if literals else None))

    def body(self, first: Sequence[Relation], *, bounded: bool) -> Scope:
        """Draw a body over ``first`` and perhaps more; what it calculates is small where it is ``bounded``."""
        scope = Scope(self.draw)
        more = [] if len(first) > 1 else self.draw(st.lists(st.sampled_from(self.sources), max_size=2))
        for relation in (*first, *more):
            scope.join(relation)
        for _ in range(self.draw(st.integers(0, 2))):
            self.add_condition(scope)
        if self.flag(4):
            self.add_calculation(scope, bounded=bounded)
        return scope

    def add_condition(self, scope: Scope) -> None:
        kind = self.pick(("compare", "absent", "present", "either", "chain"))
        if kind == "chain" and scope.variables("Integer"):
            operands = tuple(scope.known("Integer") for _ in range(3))
            operators = (self.pick(("<", "<=")), self.pick(("<", "<=", "!=")))
            scope.literals.append(ast.Comparison(operands, operators))
        elif kind == "either":
            self.features.add("alternatives")
            parts = tuple(dict.fromkeys((self.condition(scope, "present"), self.condition(scope, "compare"))))
            scope.literals.append(ast.Alternatives(parts) if len(parts) > 1 else parts[0])
        else:
            scope.literals.append(self.condition(scope, kind))

    def condition(self, scope: Scope, kind: str) -> ast.Formula:
        """Return a test of variables that are bound already."""
        if kind in ("absent", "present"):
            relation = self.pick(self.sources)
            atom = ast.Atom(relation.name, tuple(self.tested(scope, type_) for type_ in relation.types))
            if kind == "present":
                return atom
            self.features.add("negation")
            return ast.Negation(atom)
        type_ = self.pick([type_ for type_ in scope.bound if type_ in CONSTANTS] or ["Integer"])
        other = "Integer" if type_ == "Float" and self.flag(3) else type_
        # An equation would tell the type of an undeclared column, so numbers of two types are only ordered.
        operators = COMPARISONS if other == type_ else COMPARISONS[:4]
        return ast.Comparison((scope.known(type_), scope.value(other)), (self.pick(operators),))

    def tested(self, scope: Scope, type_: str) -> ast.Expr:
        kind = self.pick(("known",) * 3 + ("anonymous", "value", "value"))
        if kind == "anonymous":
            return ast.Anonymous()
        return scope.known(type_) if kind == "known" else scope.value(type_)

    def add_calculation(self, scope: Scope, *, bounded: bool) -> None:
        type_ = self.pick([t for t in ("Integer", "Float") if scope.variables(t)] or ["Integer"])
        fresh = scope.fresh(type_)
        if fresh is None:
            return
        self.features.add("arithmetic")
        name, value = ast.Variable(fresh), scope.value(type_)
        if type_ == "Integer" and self.flag(4):
            scope.literals.append(ast.Atom("largest", (name, value, scope.known(type_))))
        else:
            scope.literals.append(ast.Comparison((name, value), ("=",)))
        if bounded:
            low, high = (0, 5) if type_ == "Integer" else (0.0, 5.0)
            scope.literals.append(ast.Comparison((ast.Constant(low), name, ast.Constant(high)), ("<=", "<")))
        scope.bind(type_, fresh)

    # Facts and queries

    def facts(self, base: tuple[BaseRelation, ...]) -> list[ast.Statement]:
        if not self.flag(4):
            return []
        self.features.add("facts")
        relation = self.pick(base)
        stamp = (ast.Constant(0),) if relation.stream else ()
        rows = self.draw(st.lists(st.sampled_from(relation.rows), min_size=1, max_size=3, unique=True))
        return [ast.Rule((ast.Head(relation.name, (*stamp, *map(ast.Constant, row))),)) for row in rows]

    def queries(self) -> list[ast.Statement]:
        if not self.hidden and not self.shape.queried and self.flag():
            return []
        window = None
        if "stream" in self.features and not self.features & {"window", "ttl"} and self.flag():
            window = self.window(3)
        return [self.query(self.pick(self.shown[::-1]), window) for _ in range(self.draw(st.integers(1, 2)))]

    def query(self, relation: Relation, window: ast.Window | None) -> ast.Query:
        args: list[ast.Expr] = []
        for index, type_ in enumerate(relation.types):
            constants = ("constant",) * (6 if self.shape.queried else 2)
            kind = self.pick((*("variable",) * 5, *constants, "anonymous", "repeated"))
            if kind == "constant" and type_ in CONSTANTS:
                self.features.add("bound query")
                args.append(ast.Constant(self.pick(CONSTANTS[type_])))
            elif kind == "anonymous":
                args.append(ast.Anonymous())
            elif kind == "repeated" and type_ in relation.types[:index]:
                args.append(args[relation.types.index(type_)])
            else:
                args.append(ast.Variable(f"Q{index}"))
        if relation.timed:
            args.insert(0, ast.Variable("At") if self.flag(4) else ast.Anonymous())
        if window is not None and not self.reads_stream(relation.name):
            window = None
        if window is not None:
            self.features.add("window")
        return ast.Query(ast.Atom(relation.name, tuple(args)), window)

    def reads_stream(self, start: str) -> bool:
        """Tell whether a relation depends on a stream, so that a query over it may have a window."""
        reached, waiting = {start}, [start]
        for name in waiting:
            for rule in self.rules:
                if rule.heads[0].relation == name and rule.body is not None:
                    new = body_relations(rule.body) - reached
                    reached |= new
                    waiting.extend(sorted(new))
        return any(relation.base and relation.timed and relation.name in reached for relation in self.sources)


def body_relations(formula: ast.Formula) -> set[str]:
    """Return the relations and built-ins of a body."""
    if isinstance(formula, ast.Atom):
        return {formula.relation}
    if isinstance(formula, ast.Negation):
        return body_relations(formula.formula)
    if isinstance(formula, ast.Comparison):
        return set()
    return {name for part in formula.parts for name in body_relations(part)}
