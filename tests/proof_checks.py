"""Checks proofs without trusting whoever found them.

`check_proof` evaluates every rule that a proof uses, by the reference evaluator, on just the rows that the proof says
it took. `smallest_heights` computes the height of every row by brute force, from all derivations there are.
"""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import replace

from whorl.analysis.expressions import Binding, evaluate
from whorl.analysis.program import Program
from whorl.logical.lower import lower_program, lower_rule
from whorl.logical.plan import Contribution, Join, LogicalPlan, RulePlan, Step
from whorl.model.limits import Limits
from whorl.model.types import Type, row_type
from whorl.model.values import Row, Value, order_key
from whorl.oracle.model import evaluate_stratum
from whorl.oracle.session import Oracle
from whorl.oracle.steps import run_rule
from whorl.syntax import ast
from whorl.views.proof import Node, Premise, Proof, Use

Database = dict[str, set[Row]]
Heights = dict[tuple[str, Row], float]


def full_database(oracle: Oracle) -> tuple[LogicalPlan, Database]:
    """Return the program without rewrites, and all rows of all its relations."""
    plan = lower_program(oracle.plan.program)
    database: Database = {name: set() for name in plan.relations}
    for name, base in oracle._base.items():
        database[name] = set(base.visible)
    for stratum in plan.strata:
        evaluate_stratum(plan, stratum, database, Limits())
    return plan, database


def check_proof(proof: Proof, oracle: Oracle, database: Database) -> None:
    """Assert that a proof proves its row, from facts alive and rows that are there."""
    program = oracle.plan.program
    heights: dict[int, int] = {}
    for number in reversed(_premises_last(proof)):
        node = proof.nodes[number]
        if node.kind == "fact":
            base = oracle._base[node.relation]
            assert node.row in base.visible, node
            kept = base.facts.get(node.row)  # with a slide, views see facts that are gone already
            if kept is not None and (base.relation.timed or base.relation.ttl is not None):
                assert node.time == kept[0], node
            heights[number] = 0
            continue
        assert node.improved or node.kind == "query" or node.row in database[node.relation], node
        heights[number] = 1 + max((heights[premise] for premise in node.premises()), default=0)
        if node.kind == "query":
            _check_query(node, proof, program)
            continue
        assert node.uses, node
        for use in node.uses:
            _check_use(node, use, proof, program, database)
        if node.kind == "aggregate":
            _check_total(node)
    assert heights[0] == proof.height


def _premises_last(proof: Proof) -> list[int]:
    """Return the nodes, each before what it rests on; fail if they go in a circle."""
    state: dict[int, str] = {}
    order: list[int] = []
    stack = [(0, False)]
    while stack:
        number, done = stack.pop()
        if done:
            state[number] = "done"
            order.append(number)
            continue
        if number in state:
            assert state[number] == "done", "a row rests on itself"
            continue
        state[number] = "open"
        stack.append((number, True))
        stack.extend((premise, False) for premise in proof.nodes[number].premises() if state.get(premise) != "done")
    return order[::-1]


def _check_query(node: Node, proof: Proof, program: Program) -> None:
    query = next(query for query in program.queries if query.name == node.relation)
    (premise,) = node.premises()
    row = proof.nodes[premise].row
    assert proof.nodes[premise].relation == query.relation
    shown = [value for value, arg in zip(row, query.args, strict=True) if not isinstance(arg, ast.Anonymous)]
    assert tuple(shown) == node.row


def _check_use(node: Node, use: Use, proof: Proof, program: Program, database: Database) -> None:
    """Assert that the rule, on just the premises, derives the row or contributes what the use says."""
    used = [proof.nodes[part.node] for part in use.parts if isinstance(part, Premise)]
    rows = dict(database)  # what is negated is looked up among all rows, what is used among the premises only
    rows |= {f"{name}+": {each.row for each in used if each.relation == name} for name in database}
    for position, rule in enumerate(program.rules):
        if rule.head.relation != node.relation or rule.span is None or rule.span.line != use.rule.line:
            continue
        plan = lower_rule(rule, program, position)
        positive = [step for step in plan.steps if isinstance(step, Join)]
        if [step.relation for step in positive] != [premise.relation for premise in used]:
            continue
        steps = (replace(s, relation=f"{s.relation}+") if isinstance(s, Join) else s for s in plan.steps)
        found = run_rule(replace(plan, steps=tuple(steps)), rows, program.functions)
        if any(_gives(node, use, plan, binding, program) for binding in found):
            return
    raise AssertionError((node, use))


def _gives(node: Node, use: Use, plan: RulePlan, binding: Binding, program: Program) -> bool:
    for column, (arg, value) in enumerate(zip(plan.args, node.row, strict=True)):
        expr = arg.value if isinstance(arg, Contribution) else arg
        own = evaluate(expr, binding, program.functions)
        if isinstance(arg, Contribution):
            if column == use.column and own != use.value:
                return False
        elif own != value:
            return False
    return True


def _check_total(node: Node) -> None:
    for column, function in node.aggregates:
        values = [use.value for use in node.uses if use.column == column]
        if function in ("min", "max"):
            assert values[0] == node.row[column], node
        elif not node.left_out:
            assert math.isclose(_total(function, values), node.row[column]), node  # type: ignore[arg-type]


def _total(function: str, values: list[Value | None]) -> float:
    numbers = [float(value) for value in values]  # type: ignore[arg-type]
    return math.fsum(numbers) / (len(numbers) if function == "avg" else 1)


def smallest_heights(plan: LogicalPlan, database: Database) -> Heights:
    """Return the height of every row's shortest proof, infinite if only rows since improved lead to it."""
    derivations = [way for rule in plan.rules() for way in _ways(rule, plan, database)]
    heights: Heights = defaultdict(lambda: math.inf)
    for relation in plan.relations.values():
        if relation.base:
            heights.update(((relation.name, row), 0) for row in database[relation.name])
    changed = True
    while changed:
        changed = False
        for key, height in _once(derivations, plan, heights).items():
            if height < heights[key]:
                heights[key] = height
                changed = True
    return heights


# The rule, the row with contributions in it, their keys by column, and the rows it takes.
_Way = tuple[RulePlan, Row, dict[int, object], list[tuple[str, Row]]]


def _ways(rule: RulePlan, plan: LogicalPlan, database: Database) -> list[_Way]:
    functions = plan.program.functions
    steps: list[Step] = []
    for at, step in enumerate(rule.steps):
        if isinstance(step, Join):
            named = tuple(_named(arg, f"{at}_{place}") for place, arg in enumerate(step.args))
            steps.append(replace(step, args=named))
        else:
            steps.append(step)
    ways: list[_Way] = []
    for binding in run_rule(replace(rule, steps=tuple(steps)), database, functions):
        values = [evaluate(a.value if isinstance(a, Contribution) else a, binding, functions) for a in rule.args]
        pairs = zip(rule.args, values, strict=True)
        if None in values or not all(_adds(arg, value) for arg, value in pairs if isinstance(arg, Contribution)):
            continue
        row = _stored_row(plan, rule.relation, values)
        keys: dict[int, object] = {}
        assigned = (rule.origin, tuple((name, type(binding.get(name)), binding.get(name)) for name in rule.assignment))
        for column, arg in enumerate(rule.args):
            if isinstance(arg, Contribution):
                own = tuple(evaluate(key, binding, functions) for key in arg.key or ())
                keys[column] = assigned if arg.key is None else None if None in own else (own, tuple(map(type, own)))
        if None in keys.values():
            continue
        premises = [
            (step.relation, _stored_row(plan, step.relation, [evaluate(arg, binding, functions) for arg in step.args]))
            for step in steps
            if isinstance(step, Join)
        ]
        ways.append((rule, row, keys, premises))
    return ways


def _stored_row(plan: LogicalPlan, relation: str, values: list[Value | None]) -> Row:
    """Return a row as the relation holds it: whole numbers are floats in a Float column."""
    types = [column.type for column in plan.relations[relation].columns]
    pairs = zip(values, types, strict=True)
    stored = (float(v) if kind is Type.FLOAT and isinstance(v, int) else v for v, kind in pairs if v is not None)
    return row_type(types)(stored)


def _named(expr: ast.Expr, name: str) -> ast.Expr:
    """Return an argument with names in the place of underscores, so that what they took can be told."""
    if isinstance(expr, ast.Anonymous):
        return ast.Variable(name)
    if isinstance(expr, ast.Call):
        return replace(expr, args=tuple(_named(arg, f"{name}_{at}") for at, arg in enumerate(expr.args)))
    if isinstance(expr, ast.ListExpr):
        items = tuple(_named(item, f"{name}_{at}") for at, item in enumerate(expr.items))
        prefix = None if expr.prefix is None else _named(expr.prefix, f"{name}_p")
        tail = None if expr.tail is None else _named(expr.tail, f"{name}_t")
        return replace(expr, items=items, prefix=prefix, tail=tail)
    return expr


def _adds(arg: Contribution, value: Value | None) -> bool:
    return arg.function in ("min", "max") or (isinstance(value, int | float) and not isinstance(value, bool))


def _once(derivations: list[_Way], plan: LogicalPlan, heights: Heights) -> Heights:
    """Return the heights that derivations give, from those known."""
    out: Heights = {}
    cells: dict[tuple[str, Row], dict[int, dict[object, tuple[Value, float]]]] = {}
    for rule, row, keys, premises in derivations:
        height = 1 + max((heights[premise] for premise in premises), default=0)
        if not keys:
            key = (rule.relation, row)
            out[key] = min(out.get(key, math.inf), height)
            continue
        group = tuple(value for column, value in enumerate(row) if column not in keys)
        cell = cells.setdefault((rule.relation, group), {})
        for column, own in keys.items():
            function = rule.args[column].function  # type: ignore[union-attr]
            known = cell.setdefault(column, {})
            place = () if function in ("min", "max") else own
            known[place] = _better(known.get(place), (row[column], height), lower=function == "min")
    for (name, group), cell in cells.items():
        aggregates = plan.relations[name].aggregates
        plain = iter(group)
        row = tuple(
            _cell_value(aggregates[i], list(cell[i].values())) if i in aggregates else next(plain)
            for i in range(len(plan.relations[name].columns))
        )
        out[name, row] = max(height for known in cell.values() for _value, height in known.values())
    return out


def _better(old: tuple[Value, float] | None, new: tuple[Value, float], *, lower: bool) -> tuple[Value, float]:
    if old is None:
        return new
    if order_key(new[0]) == order_key(old[0]):
        return old[0], min(old[1], new[1])
    return new if (order_key(new[0]) < order_key(old[0])) is lower else old


def _cell_value(function: str, contributions: list[tuple[Value, float]]) -> Value:
    values = [value for value, _height in contributions]
    if function in ("min", "max"):
        return values[0]
    whole = all(isinstance(value, int) for value in values)
    total = sum(values) if whole else math.fsum(values)  # type: ignore[arg-type]
    return total / len(values) if function == "avg" else total
