"""The kinds of strata that a generated program may have.

The rules of joins, recursions and aggregates are drawn literal by literal. The others are patterns with variations, for
what is accepted only in a certain form (aggregates inside recursion, stages) or needs one to be finite (lists) or to be
interesting (a choice that may move into a recursion). In the patterns X, Y, Z are nodes and C is a cost.
"""

from __future__ import annotations

from collections.abc import Callable

from hypothesis import strategies as st

from tests.generators.bodies import CONSTANTS, Relation
from tests.generators.builder import Builder
from whorl.syntax import ast


def join(b: Builder) -> None:
    """Rules over lower relations."""
    types = () if b.flag(12) else b.columns()
    relation = b.relation(*types, timed=b.carries_time())
    for _ in range(b.draw(st.integers(1, 2))):
        _exit_rule(b, relation)
    b.publish(relation)


def _exit_rule(b: Builder, relation: Relation, *, bounded: bool = False) -> None:
    first = b.pick(b.timed_sources() if relation.timed else b.sources)
    scope = b.body([first], bounded=bounded)
    calculate = not bounded and b.flag(4)
    args = [scope.value(type_) if calculate else scope.known(type_) for type_ in relation.types]
    b.add_rule(relation, args, scope.literals)


def recursion(b: Builder) -> None:
    """One relation or two, through themselves or each other, linear or not."""
    b.features.add("recursion")
    types, mutual, timed = b.columns(2), not b.shape.linear and b.flag(3), b.carries_time()
    b.members = members = [b.relation(*types, timed=timed) for _ in range(2 if mutual else 1)]
    if mutual:
        b.features.add("mutual")
    for relation in members:
        _exit_rule(b, relation, bounded=True)
    for index, relation in enumerate(members):
        _recursive_rule(b, relation, members[index - 1])
    if not b.shape.linear and b.flag():
        _recursive_rule(b, b.pick(members), b.pick(members))
    _fact_rule(b, members[0])
    b.publish(*members)


def _recursive_rule(b: Builder, relation: Relation, other: Relation) -> None:
    atoms = [other]
    if not b.shape.linear and b.flag(3):
        b.features.add("nonlinear")
        atoms.append(relation)
    elif b.flag(4):
        atoms.insert(0, b.pick(b.sources))
    scope = b.body(atoms, bounded=True)
    b.add_rule(relation, [scope.known(type_) for type_ in relation.types], scope.literals)


def _fact_rule(b: Builder, relation: Relation) -> None:
    """Perhaps add a fact to a derived relation."""
    if not relation.timed and all(type_ in CONSTANTS for type_ in relation.types) and b.flag(6):
        b.features.add("facts")
        b.add_rule(relation, [ast.Constant(b.pick(CONSTANTS[type_])) for type_ in relation.types], [])


def aggregate(b: Builder) -> None:
    """One or two aggregates over lower relations."""
    b.features.add("aggregate")
    groups = b.columns(2) if b.flag() else ()
    chosen = [_aggregation(b) for _ in range(2 if b.flag(4) else 1)]
    relation = b.relation(*groups, *(result for _name, _type, result in chosen), timed=b.carries_time())
    for _ in range(2 if b.flag(4) else 1):
        first = b.pick(b.timed_sources() if relation.timed else b.sources)
        scope = b.body([first], bounded=False)
        args: list[ast.Expr | ast.Aggregate] = [scope.known(type_) for type_ in groups]
        for name, type_, _result in chosen:
            value = scope.value(type_) if b.flag(4) else scope.known(type_)
            function = "count" if name == "distinct" else name
            args.append(ast.Aggregate(function, (value,), distinct=name == "distinct"))
        b.add_rule(relation, args, scope.literals)
        if b.flag(3):
            # Another rule with some of the same assignments; they count once for each rule.
            b.add_rule(relation, args, [*scope.literals, b.condition(scope, b.pick(("compare", "present")))])
    if all(name != "distinct" for name, _type, _result in chosen):
        _fact_rule(b, relation)
    b.publish(relation)


def _aggregation(b: Builder) -> tuple[str, str, str]:
    """Draw an aggregate, with the types of what goes in and what comes out."""
    averages = ("avg",) if "Float" in b.shape.types else ()
    name = b.pick(("count", "sum", "min", "max", "distinct", *averages))
    types = {type_ for relation in b.sources for type_ in relation.types if type_ in CONSTANTS}
    if name in ("sum", "avg"):
        types &= {"Integer", "Float"}
    type_ = b.pick(sorted(types) or ["Integer"])
    return name, type_, {"count": "Integer", "distinct": "Integer", "avg": "Float"}.get(name, type_)


def _edge(relation: Relation, ends: str, cost: str) -> tuple[str, str]:
    """Return an atom over edges, and what its edge costs."""
    if len(relation.types) == 2:
        return f"{relation.name}({ends})", "1"
    return f"{relation.name}({ends}, {cost})", cost


def _cost_type(relation: Relation) -> str:
    return "Float" if "Float" in relation.types else "Integer"


def best(b: Builder) -> None:
    """Shortest, widest and least: `min` and `max` inside recursion."""
    b.features |= {"recursion", "monotone"}
    edges = b.pick(b.edges())
    relation = b.relation("Integer", "Integer", _cost_type(edges), timed=edges.timed and b.flag())
    falling = b.flag()
    function = b.pick(("min", "mmin") if falling else ("max", "mmax"))
    first, cost = _edge(edges, "X, Y", "C")
    b.add_text(f"{relation.name}(X, Y, {function}<{cost}>) :- {first}.", relation)
    step, cost = _edge(edges, "Z, Y", "C2")
    if b.flag(3):
        b.features.add("nonlinear")
        step, cost = f"{relation.name}(Z, Y, C2)", "C2"
    total = f"C1 + {cost}" if falling else b.pick((f"min(C1, {cost})", "C1"))
    bound = ", C < 4" if falling and b.flag(4) else ""
    body = f"{relation.name}(X, Z, C1), {step}, C = {total}{bound}"
    b.add_text(f"{relation.name}(X, Y, {function}<C>) :- {body}.", relation)
    b.publish(relation)


def _start(b: Builder) -> str:
    """Return an atom that binds X to some nodes."""
    relation = b.pick([r for r in b.sources if r.types and r.types[0] == "Integer"])
    return f"{relation.name}({', '.join(['X', *'_' * (len(relation.types) - 1)])})"


def threshold(b: Builder) -> None:
    """Who is on switches others on, once enough of them are: counts and sums inside recursion."""
    b.features |= {"recursion", "mutual", "monotone"}
    edges = b.pick(b.edges())
    step, cost = _edge(edges, "X, Y", "C")
    summed = len(edges.types) == 3 and b.flag()
    on = b.relation("Integer")
    active = b.relation("Integer", _cost_type(edges) if summed else "Integer")
    b.add_text(f"{on.name}(X) :- {_start(b)}.", on)
    b.add_text(f"{on.name}(X) :- {active.name}(X, N), N >= {b.pick((2, 3))}.", on)
    total = b.pick(("mcount<X>", "count<X>"))
    if summed:
        total, step = b.pick(((f"msum<(X, {cost})>", step), (f"sum<{cost}>", f"{step}, {cost} > 0")))
    b.add_text(f"{active.name}(Y, {total}) :- {on.name}(X), {step}.", active)
    b.publish(on, active)


def stages(b: Builder) -> None:
    """Breadth first search that negates what earlier stages have seen."""
    b.features |= {"recursion", "stages", "negation"}
    step, _cost = _edge(b.pick(b.edges()), "X, Y", "_")
    level, seen = b.relation("Integer", "Integer"), b.relation("Integer", "Integer")
    climb = "K = J + 1, J < 4"
    b.add_text(f"{level.name}(X, 0) :- {_start(b)}.", level)
    b.add_text(f"{level.name}(Y, K) :- {level.name}(X, J), {step}, {climb}, not {seen.name}(Y, J).", level)
    b.add_text(f"{seen.name}(X, J) :- {level.name}(X, J).", seen)
    b.add_text(f"{seen.name}(X, K) :- {seen.name}(X, J), {climb}.", seen)
    b.publish(level, seen)


def lists(b: Builder) -> None:
    """Simple paths as lists, and their members."""
    b.features |= {"recursion", "terms", "negation"}
    edges = b.pick(b.edges())
    path = b.relation("Integer", "Integer", "List", timed=edges.timed and b.flag())
    b.add_text(f"{path.name}(X, Y, [Y, X]) :- {_edge(edges, 'X, Y', '_')[0]}, X != Y.", path)
    step, _cost = _edge(edges, "Y, Z", "_")
    b.add_text(f"{path.name}(X, Z, [Z | L]) :- {path.name}(X, Y, L), {step}, not member(Z, L).", path)
    b.publish(path)
    through = b.relation("Integer", "Integer")
    body = b.pick((f"{path.name}(X, Y, L), member(Z, L)", f"{path.name}(X, Y, [_, Z | _])"))
    b.add_text(f"{through.name}(X, Z) :- {body}.", through)
    b.publish(through)


def terms(b: Builder) -> None:
    """Rows packed into terms, and taken apart again."""
    b.features.add("terms")
    edges = b.pick(b.edges())
    in_list = b.flag(3)
    packed = b.relation("Integer", "List" if in_list else "Term", timed=edges.timed and b.flag())
    term = b.pick(("f(X, Y)", "f(Y, g(X))", "f(Y, Y)"))
    pattern = b.pick(("f(Y, Z)", "f(Z, Y)", "f(Y, g(Z))", "f(Y, Y)"))
    if in_list:
        term, pattern = f"[X, {term}]", f"[{b.pick(('X', 'Z', '_'))}, {pattern}]"
    b.add_text(f"{packed.name}({b.pick(('X', 'Y'))}, {term}) :- {_edge(edges, 'X, Y', '_')[0]}.", packed)
    b.publish(packed)
    opened = b.relation("Integer", "Integer")
    absent = f", not {packed.name}(Y, {term})" if b.flag(3) else ""
    b.add_text(f"{opened.name}(X, Y) :- {packed.name}(X, {pattern}){absent}.", opened)
    b.publish(opened)


# How a choice reads a path, and by what it groups: some fit to move into the recursion, some only look so.
_CHOICES = (
    ("X, Y, C, _", "X, Y"),
    ("X, Y, C, K", "X, Y"),
    ("X, Y, C, K", "Y, X"),
    ("X, Y, C, K", "X"),
    ("X, Y, C, K", "X, K, Y"),
    ("X, _, C, K", "K"),
    ("X, Y, C, K", ""),
    ("X, Y, C, Y", "X"),
    ("X, Y, C, K", "X, C"),
    ("X, Y, C, 1", "X, Y"),
)


def choice(b: Builder) -> None:
    """A recursion of which only the best rows are used, so that the choice may move into it; or nearly so."""
    b.features |= {"recursion", "aggregate", "choice"}
    edges = b.pick(b.edges())
    costs = _cost_type(edges)
    path = b.relation("Integer", "Integer", costs, "Integer")
    first, cost = _edge(edges, "X, Y", "C")
    b.add_text(f"{path.name}(X, Y, {cost}, {b.pick(('1', 'Y', 'X'))}) :- {first}.", path)
    step, cost = _edge(edges, b.pick(("Y, Z", "X, Z")), "C2")
    total = b.pick((f"C1 + {cost}", f"C1 + {cost}", "C1 + C1", f"max(C1, {cost})"))
    condition = b.pick(("", "", "", "", ", X < Z", ", Y != Z", ", K != Z", ", X < K"))
    head = f"{path.name}(X, {b.pick(('Z', 'Z', 'Y'))}, C, {b.pick(('K', 'Y', 'Z'))})"
    body = f"{path.name}(X, Y, C1, K), {step}, C = {total}, C < {b.pick((5, 7))}{condition}"
    b.add_text(f"{head} :- {body}.", path)
    atom, groups = b.pick(_CHOICES)
    types = [costs if name == "C" else "Integer" for name in groups.split(", ") if name]
    chosen = b.relation(*types, costs)
    columns = f"{groups}, " if groups else ""
    b.add_text(f"{chosen.name}({columns}{b.pick(('min', 'min', 'max'))}<C>) :- {path.name}({atom}).", chosen)
    if b.flag(3):
        winners = b.relation("Integer", "Integer")
        b.add_text(f"{winners.name}(X, Y) :- {path.name}(X, Y, C, K), {chosen.name}({columns}C).", winners)
        b.publish(winners)
    if b.flag(5):
        b.publish(path)
    else:
        b.hidden = True
    b.publish(chosen)


def stamped(b: Builder) -> None:
    """Timestamps that are compared or shown, and so are attributes like others."""
    streams = [r for r in b.sources if r.base and r.timed]
    if not streams:
        join(b)
        return
    b.features.add("stamped")
    stream = b.pick(streams)
    rest = ", _" * (len(stream.types) - 1)
    shown = b.flag()
    out = b.relation("Integer", "Timestamp") if shown else b.relation("Integer")
    condition = b.pick(("", ", At > 3", ", At <= 3", ", At != 3"))
    text = f"{out.name}(X, At) :- {stream.name}(At, X{rest}){condition}."
    if not shown:
        order = b.pick(("At < At2", "At <= At2"))
        text = f"{out.name}(X) :- {stream.name}(At, X{rest}), {stream.name}(At2, X{rest}), {order}."
    b.add_stamped(text)
    b.publish(out)


# Each as often as it is wanted.
KINDS: tuple[Callable[[Builder], None], ...] = (
    join,
    recursion,
    aggregate,
    join,
    recursion,
    aggregate,
    recursion,
    best,
    choice,
    threshold,
    stages,
    lists,
    terms,
    stamped,
)
