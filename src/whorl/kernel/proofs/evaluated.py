"""Derivations of rows whose stratum only the reference evaluator runs.

Its rules are evaluated once over the rows alive, all of them, by the reference's own function; what each assignment of
the variables derives, or contributes to a group, is kept. That costs about one round of the fixpoint.

Some rows have no proof from rows alive alone: a best value may have been improved through itself, and a sum may go
round in a circle. Then `replay_rounds` evaluates the stratum again from nothing, round by round, and keeps how each row
came about when it first appeared. Values that were improved later are then part of the proof; they are not stored.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from whorl.analysis.expressions import Binding, Functions, evaluate
from whorl.analysis.program import Relation
from whorl.kernel.partition import Partition
from whorl.kernel.proofs.cells import CONTRIBUTIONS
from whorl.kernel.proofs.derivations import Derivation, Key, Rows
from whorl.logical.plan import AntiJoin, Contribution, Join, Project, RulePlan, Selection, SemiJoin, Step
from whorl.model.types import Type
from whorl.model.values import Row, Value, order_key
from whorl.oracle.steps import run_rule
from whorl.physical.plan import PhysicalStratum
from whorl.syntax import ast

Database = dict[str, set[Row]]
Premises = tuple[tuple[str, Row], ...]
# group -> column -> key -> the contributions with the best value for it
Gathered = dict[Row, dict[int, dict[object, tuple[Value, list["Assignment"]]]]]


@dataclass(frozen=True, slots=True, eq=False)
class Assignment:
    """Values under which a rule's body holds: the row that the head makes of them, and the rows they come from."""

    rule: RulePlan
    row: Row
    premises: Premises
    binding: Binding


def open_rule(rule: RulePlan) -> RulePlan:
    """Return a rule that keeps every value it meets: no projections, each column of an atom under a name."""
    steps: list[Step] = []
    for at, step in enumerate(rule.steps):
        if isinstance(step, Project):
            continue
        if isinstance(step, Join | SemiJoin):
            args = tuple(_name_gaps(arg, f"{at}_{place}") for place, arg in enumerate(step.args))
            steps.append(Join(step.relation, args))
        else:
            steps.append(step)
    return replace(rule, steps=tuple(steps))


def _name_gaps(expr: ast.Expr, name: str) -> ast.Expr:
    """Return an argument with variables in the place of underscores; no variable of a text starts with a digit."""
    if isinstance(expr, ast.Anonymous):
        return ast.Variable(name)
    if isinstance(expr, ast.Call):
        return replace(expr, args=tuple(_name_gaps(arg, f"{name}_{at}") for at, arg in enumerate(expr.args)))
    if isinstance(expr, ast.ListExpr):
        items = tuple(_name_gaps(item, f"{name}_{at}") for at, item in enumerate(expr.items))
        prefix = None if expr.prefix is None else _name_gaps(expr.prefix, f"{name}_prefix")
        tail = None if expr.tail is None else _name_gaps(expr.tail, f"{name}_tail")
        return replace(expr, items=items, prefix=prefix, tail=tail)
    return expr


def assignments(rule: RulePlan, database: Database, relation: Relation, functions: Functions) -> Iterator[Assignment]:
    """Yield the assignments of an open rule that derive a row."""
    for binding in run_rule(rule, database, functions):
        values: list[Value] = []
        for arg, column in zip(rule.args, relation.columns, strict=True):
            value = evaluate(arg.value if isinstance(arg, Contribution) else arg, binding, functions)
            if value is None or (isinstance(arg, Contribution) and not _adds(arg.function, value)):
                break
            widened = column.type is Type.FLOAT and isinstance(value, int)
            values.append(float(value) if widened else value)  # type: ignore[arg-type]
        else:
            yield Assignment(rule, tuple(values), tuple(_premises(rule, binding, functions)), binding)


def _adds(function: str, value: Value) -> bool:
    return function in ("min", "max") or (isinstance(value, int | float) and not isinstance(value, bool))


def _premises(rule: RulePlan, binding: Binding, functions: Functions) -> Iterator[tuple[str, Row]]:
    for step in rule.steps:
        if isinstance(step, Join):
            values = [evaluate(arg, binding, functions) for arg in step.args]
            yield step.relation, tuple(value for value in values if value is not None)


def key_of(rule: RulePlan, arg: Contribution, binding: Binding, functions: Functions) -> object | None:
    """Return what tells a contribution from others; None if there is none."""
    if arg.function in ("min", "max"):
        return ()
    if arg.key is None:
        named = ((name, type(binding[name]), binding[name]) for name in rule.assignment if name in binding)
        return (rule.origin, *named)
    values = [evaluate(expr, binding, functions) for expr in arg.key]
    return None if None in values else tuple((type(value), value) for value in values)


def gather(gathered: Gathered, found: Assignment, functions: Functions, *, every: bool) -> None:
    """Add what an assignment contributes to its group; of equal contributions keep the first, or ``every`` one."""
    rule = found.rule
    own = {column: arg for column, arg in enumerate(rule.args) if isinstance(arg, Contribution)}
    keys = {column: key_of(rule, arg, found.binding, functions) for column, arg in own.items()}
    if None in keys.values():
        return
    group = tuple(value for column, value in enumerate(found.row) if column not in keys)
    cell = gathered.setdefault(group, {})
    for column, key in keys.items():
        known, value = cell.setdefault(column, {}), found.row[column]
        old = known.get(key)
        lower = own[column].function == "min"
        if old is None or (order_key(value) != order_key(old[0]) and (order_key(value) < order_key(old[0])) is lower):
            known[key] = (value, [found])
        elif every and order_key(value) == order_key(old[0]):
            old[1].append(found)


def total(function: str, values: Sequence[Value]) -> Value:
    """Return what contributions come to."""
    if function in ("min", "max"):
        return values[0]
    numbers = [value for value in values if isinstance(value, int | float)]
    whole = all(isinstance(number, int) for number in numbers)
    try:
        amount = sum(numbers) if whole else math.fsum(numbers)
        return amount / len(numbers) if function == "avg" else amount
    except OverflowError:
        return math.inf


def selected(rows: set[Row], selections: Sequence[Selection]) -> set[Row]:
    """Return the rows that some selection wants; all of them if there is none."""
    kept: set[Row] = set()
    for selection in selections:
        groups: dict[Row, list[Row]] = defaultdict(list)
        for row in rows:
            groups[tuple(row[column] for column in selection.group)].append(row)
        choose = min if selection.function == "min" else max
        for members in groups.values():
            best = choose(order_key(row[selection.value]) for row in members)
            kept.update(row for row in members if order_key(row[selection.value]) == best)
    return kept if selections else rows


class Evaluated:
    """The derivations of every row of one stratum, by evaluation over the rows alive."""

    def __init__(self, stratum: PhysicalStratum, partition: Partition, rows: Rows, hidden: frozenset[str]) -> None:
        assert stratum.source is not None, "whoever is not compiled says what it comes from"
        self._relations = partition.plan.relations
        self._functions = partition.plan.logical.program.functions
        self._own = stratum.relations
        self._hidden = hidden
        self._rows = rows
        self._rules = tuple(open_rule(rule) for rule in stratum.source.rules)
        self._selections = stratum.source.selections
        self._staged = stratum.source.stages is not None
        self._limits = partition.limits
        names = {step.relation for rule in self._rules for step in rule.steps if isinstance(step, Join | AntiJoin)}
        self._numbers = {name: rows.numbered(name) for name in sorted(names | set(stratum.relations))}
        self._table: dict[Key, list[Derivation]] = defaultdict(list)
        self._keys: dict[tuple[str, Row], Key] = {}
        self._evaluate()

    def find(self, relation: str, numbers: Sequence[int]) -> Iterator[tuple[Key, Derivation]]:
        """Yield each derivation with the row that it derives."""
        for number in numbers:
            for derivation in self._table.get((relation, number), ()):
                yield (relation, number), derivation

    def names(self) -> list[str]:
        """Return the relations whose rows it knows: those of the stratum, and those made for contributions."""
        return [*self._own, *(f"{n}^{c + 1}^used" for n in self._own for c in self._relations[n].aggregates)]

    def _key(self, relation: str, row: Row) -> Key:
        """Return the name of a row; one that is not alive gets a name of its own."""
        number = self._numbers[relation].get(row)
        if number is not None:
            return relation, number
        if (relation, row) not in self._keys:
            self._keys[relation, row] = self._rows.make(relation, row)
        return self._keys[relation, row]

    def _derivation(self, found: Assignment) -> Derivation:
        shown = tuple(self._key(name, row) for name, row in found.premises if name not in self._hidden)
        return Derivation(found.rule, shown, found.binding)

    def _evaluate(self) -> None:
        database: Database = {name: set(rows) for name, rows in self._numbers.items()}
        gathered: dict[str, Gathered] = {name: {} for name in self._own}
        for found in self._round(database):
            name = found.rule.relation
            if self._relations[name].aggregates:
                gather(gathered[name], found, self._functions, every=True)
            elif found.row in self._numbers[name]:
                self._table[self._key(name, found.row)].append(self._derivation(found))
        for name, groups in gathered.items():
            for row, cell in self._published(name, groups).items():
                if row in self._numbers[name]:
                    self._gathering(name, row, cell)

    def _round(self, database: Database) -> list[Assignment]:
        return [
            found
            for rule in self._rules
            for found in assignments(rule, database, self._relations[rule.relation], self._functions)
        ]

    def _published(
        self, name: str, groups: Gathered
    ) -> dict[Row, Mapping[int, Mapping[object, tuple[Value, list[Assignment]]]]]:
        """Return the row of each group, with what it is made of."""
        relation = self._relations[name]
        out: dict[Row, Mapping[int, Mapping[object, tuple[Value, list[Assignment]]]]] = {}
        for group, cell in groups.items():
            if len(cell) == len(relation.aggregates):
                plain = iter(group)
                row = tuple(
                    total(relation.aggregates[i], [value for value, _ in cell[i].values()])
                    if i in relation.aggregates
                    else next(plain)
                    for i in range(len(relation.columns))
                )
                out[row] = {column: dict(known) for column, known in cell.items()}
        return out

    def _gathering(
        self, name: str, row: Row, cell: Mapping[int, Mapping[object, tuple[Value, list[Assignment]]]]
    ) -> None:
        premises: list[Key] = []
        left_out = 0
        for column, known in sorted(cell.items()):
            contributions = sorted(known.values(), key=lambda each: order_key(each[0]))
            left_out += max(0, len(contributions) - CONTRIBUTIONS)
            for value, ways in contributions[:CONTRIBUTIONS]:
                key = self._rows.make(f"{name}^{column + 1}^used", (*row[:column], value, *row[column + 1 :]))
                self._table[key] = [self._derivation(found) for found in ways]
                premises.append(key)
        self._table[self._key(name, row)].append(Derivation(None, tuple(premises), left_out=left_out))

    def replay_rounds(self) -> None:
        """Forget the derivations found so far; keep for each row those of the round in which it first appeared."""
        self._table.clear()
        if self._staged:
            return
        database: Database = {n: set() if n in self._own else set(rows) for n, rows in self._numbers.items()}
        gathered: dict[str, Gathered] = {name: {} for name in self._own}
        for _round in range(self._limits.rounds):
            fresh: dict[str, set[Row]] = {name: set(database[name]) for name in self._own}
            for found in self._round(database):
                name = found.rule.relation
                if self._relations[name].aggregates:
                    gather(gathered[name], found, self._functions, every=False)
                elif found.row not in database[name]:
                    self._table[self._key(name, found.row)].append(self._derivation(found))
                    fresh[name].add(found.row)
            for name in self._own:
                if self._relations[name].aggregates:
                    published = self._published(name, gathered[name])
                    fresh[name] = set(published)
                    for row, cell in published.items():
                        if row not in database[name] and self._key(name, row) not in self._table:
                            self._gathering(name, row, cell)
                fresh[name] = selected(fresh[name], [s for s in self._selections if s.relation == name])
            if fresh == {name: database[name] for name in self._own}:
                return
            database.update(fresh)
