"""Linear programs for DuckDB: one table a relation, a recursive common table expression for each recursion.

Tables have the columns `c0`, `c1`, ...; the table of a relation without attributes has one column that is always 0.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import duckdb

from whorl.analysis.program import Absent, Compare, Program, Query, Rule, Stratum, rule_variables, variable_names
from whorl.model.types import Type
from whorl.model.values import Row, Value
from whorl.syntax import ast

_TYPES = {Type.INTEGER: "BIGINT", Type.STRING: "VARCHAR", Type.FLOAT: "DOUBLE", Type.UNKNOWN: "BIGINT"}


class Database:
    """A DuckDB database that holds one program's relations."""

    def __init__(self) -> None:
        self._connection = duckdb.connect()
        self._connection.execute("SET threads = 1; SET error_on_division_by_zero = false")

    def solve(self, program: Program, base: Mapping[str, set[Row]]) -> dict[str, set[Row]]:
        """Return the rows of every view over the base facts."""
        for relation in program.base_relations():
            columns = ", ".join(f"c{i} {_TYPES[column.type]}" for i, column in enumerate(relation.columns))
            self._connection.execute(f"CREATE OR REPLACE TABLE {relation.name} ({columns})")
            for row in base.get(relation.name, ()):
                self._connection.execute(f"INSERT INTO {relation.name} VALUES ({', '.join(map(_constant, row))})")
        for stratum in program.strata:
            (name,) = stratum.relations
            self._connection.execute(f"CREATE OR REPLACE TABLE {name} AS {_stratum(stratum, program)}")
        return {query.name: self._rows(query) for query in program.queries}

    def _rows(self, query: Query) -> set[Row]:
        shown = [i for i, arg in enumerate(query.args) if not isinstance(arg, ast.Anonymous)]
        select = _Select()
        select.join(query.relation, query.args)
        columns = ", ".join(f"t0.c{i}" for i in shown) or "0"
        rows = self._connection.execute(select.text(columns)).fetchall()
        return {tuple(row) if shown else () for row in rows}


def _constant(value: Value) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return f"{value}::DOUBLE" if isinstance(value, float) else f"{value}::BIGINT"


def _stratum(stratum: Stratum, program: Program) -> str:
    (name,) = stratum.relations
    relation = program.relations[name]
    width = max(len(relation.columns), 1)
    if relation.aggregates:
        return _aggregated(name, stratum.rules, relation.aggregates, width)
    exits = [rule for rule in stratum.rules if all(atom.relation != name for atom, _ in rule.atoms())]
    steps = [rule for rule in stratum.rules if rule not in exits]
    anchor = " UNION ".join(_rule(rule) for rule in exits)
    columns = ", ".join(f"c{i}" for i in range(width))
    if not steps:
        return f"SELECT * FROM ({anchor}) AS all_rules({columns})"
    recursive = " UNION ALL ".join(_rule(rule) for rule in steps)
    return f"WITH RECURSIVE {name}({columns}) AS (({anchor}) UNION ({recursive})) SELECT * FROM {name}"


def _rule(rule: Rule) -> str:
    select = _Select()
    select.body(rule)
    values = [select.expr(arg) for arg in rule.head.args if not isinstance(arg, ast.Aggregate)]
    select.conditions.extend(f"{value} IS NOT NULL" for value in values)
    return select.text(", ".join(values) or "0::BIGINT")


def _aggregated(name: str, rules: Sequence[Rule], aggregates: Mapping[int, str], width: int) -> str:
    """Union the assignments of all rules, each with a text that tells it from others, then group."""
    assignments = " UNION ".join(_assignments(rule) for rule in rules)
    distinct = {i for rule in rules for i, aggregate in rule.aggregates.items() if aggregate.distinct}
    columns = []
    for i in range(width):
        function = aggregates.get(i)
        if function is None:
            columns.append(f"a{i} AS c{i}")
        elif i in distinct:
            columns.append(f"count(DISTINCT a{i}) AS c{i}")
        else:
            columns.append(f"{'sum' if function == 'count' else function}(a{i}) AS c{i}")
    groups = ", ".join(f"a{i}" for i in range(width) if i not in aggregates)
    inner = ", ".join([*(f"a{i}" for i in range(width)), "k"])
    group_by = f"GROUP BY {groups}" if groups else "HAVING count(*) > 0"
    return f"SELECT {', '.join(columns)} FROM ({assignments}) AS {name}_rows({inner}) {group_by}"


def _assignments(rule: Rule) -> str:
    select = _Select()
    select.body(rule)
    values = [
        select.contribution(arg) if isinstance(arg, ast.Aggregate) else select.expr(arg) for arg in rule.head.args
    ]
    select.conditions.extend(f"{value} IS NOT NULL" for value in values)
    names = sorted({variable.name for variable in rule_variables(rule)})
    key = ", ".join([f"'{rule.origin}'", *(f"'{name}', {select.columns[name]}" for name in names)])
    return select.text(", ".join([*values, f"concat_ws('|', {key})"]))


@dataclass
class _Select:
    """One rule as a SELECT under construction: what it joins, and which column each variable has."""

    tables: list[str] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)
    columns: dict[str, str] = field(default_factory=dict)

    def text(self, columns: str) -> str:
        source = f" FROM {', '.join(self.tables)}" if self.tables else ""
        where = f" WHERE {' AND '.join(self.conditions)}" if self.conditions else ""
        return f"SELECT DISTINCT {columns}{source}{where}"

    def body(self, rule: Rule) -> None:
        """Add the literals of a body, which stand in an order that binds variables before their use."""
        for literal in rule.body:
            if isinstance(literal, ast.Atom):
                self.join(literal.relation, literal.args)
            elif isinstance(literal, Absent):
                self._absent(literal.atom)
            else:
                assert isinstance(literal, Compare), "lists are not translated"
                self._compare(literal)

    def join(self, relation: str, args: Sequence[ast.Expr]) -> None:
        table = f"t{len(self.tables)}"
        self.tables.append(f"{relation} AS {table}")
        for position, arg in enumerate(args):
            column = f"{table}.c{position}"
            if isinstance(arg, ast.Variable) and arg.name not in self.columns:
                self.columns[arg.name] = column
            elif not isinstance(arg, ast.Anonymous):
                self.conditions.append(f"{column} = {self.expr(arg)}")

    def _absent(self, atom: ast.Atom) -> None:
        named = [(i, self.expr(arg)) for i, arg in enumerate(atom.args) if not isinstance(arg, ast.Anonymous)]
        where = " AND ".join([f"n.c{i} = {value}" for i, value in named] or ["true"])
        self.conditions.extend(f"{value} IS NOT NULL" for _i, value in named)
        self.conditions.append(f"NOT EXISTS (SELECT 1 FROM {atom.relation} AS n WHERE {where})")

    def _compare(self, literal: Compare) -> None:
        for own, other in ((literal.left, literal.right), (literal.right, literal.left)):
            opens = isinstance(own, ast.Variable) and own.name not in self.columns
            if literal.operator == "=" and opens and variable_names(other) <= self.columns.keys():
                assert isinstance(own, ast.Variable)
                self.columns[own.name] = self.expr(other)
                self.conditions.append(f"{self.columns[own.name]} IS NOT NULL")
                return
        operator = "<>" if literal.operator == "!=" else literal.operator
        self.conditions.append(f"{self.expr(literal.left)} {operator} {self.expr(literal.right)}")

    def contribution(self, aggregate: ast.Aggregate) -> str:
        value = self.expr(aggregate.args[-1])
        if aggregate.function != "count" or aggregate.distinct:
            return value
        self.conditions.append(f"{value} IS NOT NULL")
        return _constant(1)

    def expr(self, expr: ast.Expr) -> str:
        if isinstance(expr, ast.Constant):
            return _constant(expr.value)
        if isinstance(expr, ast.Variable):
            return self.columns[expr.name]
        assert isinstance(expr, ast.Operation | ast.Call), "lists are not translated"
        args = [self.expr(arg) for arg in expr.args]
        if isinstance(expr, ast.Call):
            return _call(expr.name, args)
        if len(args) == 1:
            return f"(-{args[0]})"
        return f"({args[0]} {'//' if expr.operator == '/' else expr.operator} {args[1]})"


def _call(name: str, args: list[str]) -> str:
    if name == "cat":
        return f"({' || '.join(args)})"
    if name == "abs":
        return f"abs({args[0]})"
    # DuckDB leaves out what is null; here nothing comes of it.
    missing = " OR ".join(f"{arg} IS NULL" for arg in args)
    function = {"min": "least", "max": "greatest"}[name]
    return f"(CASE WHEN {missing} THEN NULL ELSE {function}({', '.join(args)}) END)"
