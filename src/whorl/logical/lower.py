"""Checked program in, logical plan out: each literal becomes a step, each head argument a column or a contribution."""

from __future__ import annotations

from collections.abc import Iterator

from whorl.analysis.expressions import calculates, cast_constant, is_pattern
from whorl.analysis.program import (
    MONOTONE_SPELLINGS,
    Absent,
    Compare,
    Literal,
    Member,
    Program,
    Query,
    Relation,
    Rule,
    rule_variables,
)
from whorl.analysis.safety import binds, is_known
from whorl.logical.plan import (
    AntiJoin,
    Contribution,
    Extend,
    Filter,
    Fixpoint,
    Join,
    Lacks,
    LogicalPlan,
    Output,
    RulePlan,
    Step,
    Unnest,
)
from whorl.logical.watching import watch_rule
from whorl.syntax import ast

_ONE = ast.Constant(1)


def lower_program(program: Program) -> LogicalPlan:
    """Lower every rule of every stratum."""
    position = {id(rule): index for index, rule in enumerate(program.rules)}
    strata = tuple(
        Fixpoint(
            stratum.relations,
            tuple(lower_rule(rule, program, position[id(rule)]) for rule in stratum.rules),
            stratum.recursive,
            stratum.stages,
        )
        for stratum in program.strata
    )
    outputs = tuple(_lower_query(query, program.relations[query.relation]) for query in program.queries)
    return LogicalPlan(program, program.relations, strata, outputs)


def lower_rule(rule: Rule, program: Program, position: int) -> RulePlan:
    """Lower one rule; its body is already in a safe order."""
    steps: list[Step] = []
    bound: set[str] = set()
    for literal in rule.body:
        steps.append(_lower_literal(literal, bound, program))
        bound |= binds(literal, bound, program.functions) or frozenset()
    steps.extend(_counted(rule, program))
    relation = program.relations[rule.head.relation]
    args = tuple(_lower_argument(arg, relation.aggregates.get(column)) for column, arg in enumerate(rule.head.args))
    trends = program.trending.get(position, {})
    assignment: tuple[str, ...] = ()
    if relation.aggregates:
        names = {variable.name for variable in rule_variables(rule)}
        assignment = tuple(sorted(names - trends.keys()))
    lowered = RulePlan(rule.head.relation, args, tuple(steps), rule.origin, assignment, rule.span)
    return watch_rule(lowered, {name: frozenset({trend}) for name, trend in trends.items()}, program.functions)


def _counted(rule: Rule, program: Program) -> Iterator[Filter]:
    """Yield a condition for each calculation that is counted: only where it has a value is there an assignment."""
    for aggregate in rule.aggregates.values():
        value = aggregate.args[-1]
        if aggregate.function == "count" and not aggregate.distinct and calculates(value, program.functions):
            yield Filter("=", value, value)


def _lower_literal(literal: Literal, bound: set[str], program: Program) -> Step:
    if isinstance(literal, ast.Atom):
        return Join(literal.relation, _cast(literal.args, program.relations[literal.relation]))
    if isinstance(literal, Absent):
        return AntiJoin(literal.atom.relation, _cast(literal.atom.args, program.relations[literal.atom.relation]))
    if isinstance(literal, Member):
        return (Lacks if literal.negated else Unnest)(literal.item, literal.items)
    return _lower_compare(literal, bound, program)


def _cast(args: tuple[ast.Expr, ...], relation: Relation) -> tuple[ast.Expr, ...]:
    return tuple(cast_constant(arg, column.type) for arg, column in zip(args, relation.columns, strict=True))


def _lower_compare(literal: Compare, bound: set[str], program: Program) -> Step:
    if literal.operator == "=":
        for own, other in ((literal.left, literal.right), (literal.right, literal.left)):
            opens = isinstance(own, ast.Variable) and own.name not in bound
            opens = opens or (is_pattern(own, program.functions) and not is_pattern(other, program.functions))
            if opens and is_known(other, bound):
                return Extend(own, other)
        if is_pattern(literal.left, program.functions) and is_known(literal.right, bound):
            return Extend(literal.left, literal.right)
        if is_pattern(literal.right, program.functions) and is_known(literal.left, bound):
            return Extend(literal.right, literal.left)
    return Filter(literal.operator, literal.left, literal.right)


def _lower_argument(arg: ast.Expr | ast.Aggregate, cell: str | None) -> ast.Expr | Contribution:
    if not isinstance(arg, ast.Aggregate):
        return arg if cell is None else Contribution(cell, arg)
    function = MONOTONE_SPELLINGS.get(arg.function, arg.function)
    *keys, value = arg.args
    if keys:
        return Contribution(function, value, tuple(keys))
    if function == "count":
        distinct = arg.distinct or arg.function == "mcount"
        return Contribution("count", _ONE, (value,) if distinct else None)
    return Contribution(function, value)


def _lower_query(query: Query, relation: Relation) -> Output:
    shown = [column for column, arg in enumerate(query.args) if not isinstance(arg, ast.Anonymous)]
    columns = tuple(relation.columns[column] for column in shown)
    names = _output_names(query, [column.name for column in columns], shown)
    return Output(
        query.name, relation.name, _cast(query.args, relation), names, tuple(column.type for column in columns)
    )


def _output_names(query: Query, fallback: list[str], shown: list[int]) -> tuple[str, ...]:
    """Name columns as the query does, where that tells them apart."""
    names: list[str] = []
    for name, column in zip(fallback, shown, strict=True):
        arg = query.args[column]
        own = arg.name if isinstance(arg, ast.Variable) and query.span is not None else name
        names.append(own if own not in names else f"{own}_{len(names) + 1}")
    return tuple(names)
