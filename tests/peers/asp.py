"""Stratified programs for clingo: the views of a program as the one stable model of a logic program.

A relation `p` becomes the predicate `r_p`, a variable `X` becomes `V_X`. What rules contribute to the aggregated cells
of a relation is kept apart in `c_p(key, group, values)`: the key holds the rule and its assignment, as the language
counts distinct assignments of a body's named variables.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import clingo

from whorl.analysis.program import (
    Absent,
    Compare,
    Literal,
    Program,
    Query,
    Relation,
    Rule,
    rule_variables,
)
from whorl.model.values import Row, Value, format_value
from whorl.syntax import ast


class _Functions:
    """Functions that clingo calls back for."""

    @staticmethod
    def cat(*parts: clingo.Symbol) -> clingo.Symbol:
        return clingo.String("".join(part.string for part in parts))


def solve(program: Program, base: Mapping[str, set[Row]]) -> dict[str, set[Row]]:
    """Return the rows of every view over the base facts."""
    control = clingo.Control(["--warn=none"])
    control.add("base", [], "\n".join([*_rules(program), *_facts(base)]))
    control.ground([("base", [])], context=_Functions())
    with control.solve(yield_=True) as handle:
        models = [model.symbols(atoms=True) for model in handle]
    (symbols,) = models
    views: dict[str, set[Row]] = {query.name: set() for query in program.queries}
    for symbol in symbols:
        if symbol.name.startswith("q_"):
            views[symbol.name[2:]].add(tuple(_value(argument) for argument in symbol.arguments))
    return views


def _value(symbol: clingo.Symbol) -> Value:
    return int(symbol.number) if symbol.type == clingo.SymbolType.Number else str(symbol.string)


def _facts(base: Mapping[str, set[Row]]) -> Iterator[str]:
    for name, rows in base.items():
        for row in rows:
            yield f"r_{name}({', '.join(format_value(value) for value in row)})."


def _rules(program: Program) -> Iterator[str]:
    for rule in program.rules:
        aggregates = program.relations[rule.head.relation].aggregates
        yield _aggregated(rule, aggregates) if aggregates else _plain(rule)
    for relation in program.relations.values():
        if relation.aggregates:
            yield _cells(relation, program)
    for query in program.queries:
        yield _query(query)


def _plain(rule: Rule) -> str:
    args = ", ".join(_expr(arg) for arg in rule.head.args if not isinstance(arg, ast.Aggregate))
    return f"r_{rule.head.relation}({args}){_body(rule)}"


def _body(rule: Rule, further: Sequence[str] = ()) -> str:
    literals = [*(_literal(literal) for literal in rule.body), *further]
    return f" :- {', '.join(literals)}." if literals else "."


def _aggregated(rule: Rule, aggregates: Mapping[int, str]) -> str:
    group, values, defined = [], [], []
    for position, arg in enumerate(rule.head.args):
        value = arg.args[-1] if isinstance(arg, ast.Aggregate) else arg
        if position not in aggregates:
            group.append(_expr(value))
        elif isinstance(arg, ast.Aggregate) and arg.function == "count" and not arg.distinct:
            values.append("1")
            defined.append(f"{_expr(value)} = {_expr(value)}")
        else:
            values.append(_expr(value))
    names = sorted({variable.name for variable in rule_variables(rule)})
    key = ", ".join([str(rule.origin), *(f'"{name}", V_{name}' for name in names)])
    contribution = f"c_{rule.head.relation}(k({key}), g({', '.join(group)}), v({', '.join(values)}))"
    return contribution + _body(rule, defined)


def _cells(relation: Relation, program: Program) -> str:
    distinct = {
        position
        for rule in program.rules
        if rule.head.relation == relation.name
        for position, aggregate in rule.aggregates.items()
        if aggregate.distinct
    }
    width = len(relation.columns)
    group = ", ".join(f"G{i}" for i in range(width) if i not in relation.aggregates)
    columns = [f"A{i}" if i in relation.aggregates else f"G{i}" for i in range(width)]
    body = [f"c_{relation.name}(_, g({group}), _)"]
    for position, function in relation.aggregates.items():
        places = ", ".join("V" if i == position else "_" for i in relation.aggregates)
        elements = f"c_{relation.name}(K, g({group}), v({places}))"
        if position in distinct:
            body.append(f"A{position} = #count {{ V : {elements} }}")
        elif function in ("count", "sum"):
            body.append(f"A{position} = #sum {{ V, K : {elements} }}")
        else:
            body.append(f"A{position} = #{function} {{ V : {elements} }}")
    return f"r_{relation.name}({', '.join(columns)}) :- {', '.join(body)}."


def _query(query: Query) -> str:
    args = ", ".join(_expr(arg) for arg in query.args)
    shown = ", ".join(_expr(arg) for arg in query.args if not isinstance(arg, ast.Anonymous))
    return f"q_{query.name}({shown}) :- r_{query.relation}({args})."


def _literal(literal: Literal) -> str:
    if isinstance(literal, ast.Atom):
        return f"r_{literal.relation}({', '.join(_expr(arg) for arg in literal.args)})"
    if isinstance(literal, Absent):
        return f"not r_{literal.atom.relation}({', '.join(_expr(arg) for arg in literal.atom.args)})"
    assert isinstance(literal, Compare), "lists are not translated"
    return f"{_expr(literal.left)} {literal.operator} {_expr(literal.right)}"


def _expr(expr: ast.Expr) -> str:
    if isinstance(expr, ast.Constant):
        return format_value(expr.value)
    if isinstance(expr, ast.Variable):
        return f"V_{expr.name}"
    if isinstance(expr, ast.Anonymous):
        return "_"
    assert isinstance(expr, ast.Operation | ast.Call), "lists are not translated"
    args = [_expr(arg) for arg in expr.args]
    if isinstance(expr, ast.Operation):
        operator = "\\" if expr.operator == "%" else expr.operator
        return f"(-{args[0]})" if len(args) == 1 else f"({args[0]} {operator} {args[1]})"
    if expr.name in ("min", "max"):
        left, right = args
        sign = "-" if expr.name == "min" else "+"
        return f"(({left} + {right} {sign} |{left} - {right}|) / 2)"
    return f"|{args[0]}|" if expr.name == "abs" else f"@{expr.name}({', '.join(args)})"
