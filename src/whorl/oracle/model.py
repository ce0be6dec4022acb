"""The meaning of a program: its model over a set of base facts, computed from scratch.

Every stratum is applied to everything, again and again, until nothing changes. Aggregated columns are cells: for each
group the contributions that rules have made, one for each key, of which the larger counts. A staged stratum does the
same for one stage after the other.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import NoReturn

from whorl.analysis.expressions import Binding, Functions, equal, evaluate, same
from whorl.analysis.program import variable_names
from whorl.diagnostics.errors import UserError
from whorl.logical.plan import Contribution, Fixpoint, Join, LogicalPlan, Output, RulePlan, Selection
from whorl.logical.watching import watch_rule
from whorl.model.limits import Limits
from whorl.model.types import Type, row_type
from whorl.model.values import ExactRow, Row, Term, Value, format_row, order_key, row_key, storable
from whorl.oracle.steps import run_rule
from whorl.syntax import ast

Key = tuple[object, ...]
Cell = dict[int, dict[Key, Value]]  # column -> key -> contribution
# The last round that changed something: what the rules found, and the rows before it.
_Growth = tuple[list[tuple[RulePlan, Binding]], dict[str, set[Row]]]


def evaluate_plan(plan: LogicalPlan, base: Mapping[str, set[Row]], limits: Limits) -> dict[str, set[Row]]:
    """Return the rows of every output view over the base facts."""
    database: dict[str, set[Row]] = {name: set(base.get(name, ())) for name in plan.relations}
    for stratum in plan.strata:
        evaluate_stratum(plan, stratum, database, limits)
    return {output.name: _show(output, database[output.relation]) for output in plan.outputs}


def evaluate_stratum(plan: LogicalPlan, stratum: Fixpoint, database: dict[str, set[Row]], limits: Limits) -> None:
    """Bring the relations of one stratum to their fixpoint, given those below."""
    _Stratum(plan, stratum, database, limits).run()


def _show(output: Output, rows: set[Row]) -> set[Row]:
    shown: set[Row] = set()
    for row in rows:
        seen: dict[str, Value] = {}
        fits = same if isinstance(row, ExactRow) else equal
        if all(_fits(arg, value, seen, fits) for arg, value in zip(output.args, row, strict=True)):
            pairs = zip(output.args, row, strict=True)
            shown.add(type(row)(value for arg, value in pairs if not isinstance(arg, ast.Anonymous)))
    return shown


def _fits(arg: ast.Expr, value: Value, seen: dict[str, Value], fits: Callable[[Value, Value], bool]) -> bool:
    if isinstance(arg, ast.Anonymous):
        return True
    if isinstance(arg, ast.Variable):
        return fits(seen.setdefault(arg.name, value), value)
    constant = evaluate(arg, {}, {})
    return constant is not None and fits(constant, value)


class _Stratum:
    """One stratum on its way to its fixpoint; its rows live in the shared database."""

    def __init__(self, plan: LogicalPlan, stratum: Fixpoint, database: dict[str, set[Row]], limits: Limits) -> None:
        self._plan = plan
        self._stratum = stratum
        self._database = database
        self._limits = limits
        self._functions: Functions = plan.program.functions
        self._cells: dict[str, dict[Row, Cell]] = defaultdict(dict)
        self._growth: _Growth = ([], {})
        self._known: list[Mapping[Row, Value]] = []  # the best values of each selection, when they are found
        self._kinds: dict[str, type[Row]] = {
            name: row_type(column.type for column in plan.relations[name].columns) for name in stratum.relations
        }

    def run(self) -> None:
        if self._stratum.stages is not None:
            self._run_stages()
            return
        if self._stratum.selections:
            self._run_selecting()
        else:
            self._fixpoint(self._stratum.rules, lambda _relation, _row: True)

    def _run_selecting(self) -> None:
        """Derive a second time with the best values known, so that nothing stays that followed from a row that went.

        What leaves its range counts when only the best rows are left.
        """
        rules = tuple(watch_rule(rule, {}, self._functions) for rule in self._stratum.rules)
        self._fixpoint(rules, lambda _relation, _row: True)
        self._known = self._best_values()
        for relation in self._stratum.relations:
            self._database[relation] = set()
        self._fixpoint(rules, lambda _relation, _row: True)
        for rule in self._stratum.rules:
            for binding in run_rule(rule, self._database, self._functions):
                self._row(rule, binding)

    def _run_stages(self) -> None:
        stages = self._stratum.stages
        assert stages is not None
        inside = set(self._stratum.relations)
        entries = [rule for rule in self._stratum.rules if not any(name in inside for name, _ in rule.relations())]
        starts = {row[stages.columns[rule.relation]] for rule in entries for row in self._entry_rows(rule)}
        waiting = sorted((stage for stage in starts if isinstance(stage, int)), reverse=True)
        count = 0
        while waiting:
            stage = waiting.pop()
            if stages.bound is not None and stage > stages.bound:
                break
            count += 1
            if count > self._limits.rounds:
                self._limit("E506", self._limits.rounds, self._growing())
            here = self._stage_test(stages.columns, stage)
            for layer in stages.layers:
                rules = tuple(rule for rule in self._stratum.rules if rule.relation in layer)
                self._fixpoint(rules, here)
            derived = any(here(name, row) for name in inside for row in self._database[name])
            if derived and (not waiting or waiting[-1] != stage + 1):
                waiting.append(stage + 1)

    def _entry_rows(self, rule: RulePlan) -> set[Row]:
        """Return the rows of a rule that refers to no stage; aggregated columns are left out of account."""
        rows: set[Row] = set()
        for binding in run_rule(rule, self._database, self._functions):
            row = [evaluate(a.value if isinstance(a, Contribution) else a, binding, self._functions) for a in rule.args]
            if None not in row:
                rows.add(tuple(row))  # type: ignore[arg-type]
        return rows

    @staticmethod
    def _stage_test(columns: Mapping[str, int], stage: int) -> Callable[[str, Row], bool]:
        return lambda relation, row: row[columns[relation]] == stage

    def _fixpoint(self, rules: tuple[RulePlan, ...], accepts: Callable[[str, Row], bool]) -> None:
        rounds = 0
        changed = True
        while changed:
            rounds += 1
            if rounds > self._limits.rounds:
                self._limit("E506", self._limits.rounds, self._growing())
            before = {name: set(self._database[name]) for name in self._stratum.relations}
            found = [(rule, b) for rule in rules for b in run_rule(rule, self._database, self._functions)]
            for rule, binding in found:
                row = self._row(rule, binding)
                if row is None:
                    continue
                if _too_deep(row, self._limits):
                    self._growth = (found, before)
                    self._limit("E508", self._limits.depth, lambda _rule, other: _too_deep(other, self._limits))
                if accepts(rule.relation, row):
                    self._derive(rule, binding, row)
            self._publish_cells()
            for relation in self._stratum.relations:
                self._select(relation)
            changed = any(self._database[name] != before[name] for name in self._stratum.relations)
            if changed:
                self._growth = (found, before)
            if sum(len(self._database[name]) for name in self._stratum.relations) > self._limits.tuples:
                self._limit("E507", self._limits.tuples, self._growing())

    def _row(self, rule: RulePlan, binding: Binding) -> Row | None:
        """Return the row that a rule makes of a binding, contributions in the place of aggregated values."""
        columns = self._plan.relations[rule.relation].columns
        values: list[Value] = []
        for column, arg in enumerate(rule.args):
            value = evaluate(arg.value if isinstance(arg, Contribution) else arg, binding, self._functions)
            if value is None or (isinstance(arg, Contribution) and not _adds(arg.function, value)):
                return None
            is_float = columns[column].type is Type.FLOAT and isinstance(value, int)
            values.append(float(value) if is_float else value)  # type: ignore[arg-type]
        return self._kinds[rule.relation](values)

    def _derive(self, rule: RulePlan, binding: Binding, row: Row) -> None:
        if self._plan.relations[rule.relation].aggregates:
            self._contribute(rule, binding, row)
        else:
            self._database[rule.relation].add(row)

    def _contribute(self, rule: RulePlan, binding: Binding, row: Row) -> None:
        group = type(row)(v for v, arg in zip(row, rule.args, strict=True) if not isinstance(arg, Contribution))
        keyed: list[tuple[int, Contribution, Key]] = []
        for column, arg in enumerate(rule.args):
            if isinstance(arg, Contribution):
                key = self._key(rule, arg, binding)
                if key is None:
                    return
                keyed.append((column, arg, key))
        cell = self._cells[rule.relation].setdefault(group, {})
        for column, arg, key in keyed:
            known = cell.setdefault(column, {})
            lower = arg.function == "min"
            old = known.get(key)
            if old is None or (order_key(row[column]) < order_key(old)) is lower:
                known[key] = row[column]

    def _key(self, rule: RulePlan, arg: Contribution, binding: Binding) -> Key | None:
        if arg.function in ("min", "max"):
            return ()
        if arg.key is None:
            named = ((name, type(binding[name]), binding[name]) for name in rule.assignment if name in binding)
            return (rule.origin, *named)
        values = [evaluate(expr, binding, self._functions) for expr in arg.key]
        return None if None in values else tuple((type(value), value) for value in values)

    def _publish_cells(self) -> None:
        """Turn the cells into rows, one for each group."""
        for relation, groups in self._cells.items():
            aggregates = self._plan.relations[relation].aggregates
            rows: set[Row] = set()
            for group, cell in groups.items():
                if len(cell) < len(aggregates):
                    continue
                plain = iter(group)
                width = len(self._plan.relations[relation].columns)
                row = type(group)(
                    _total(aggregates[i], cell[i], relation) if i in aggregates else next(plain) for i in range(width)
                )
                rows.add(row)
            self._database[relation] = rows

    def _select(self, relation: str) -> None:
        """Drop the rows that no selection wants."""
        best = self._known or self._best_values()
        pairs = [(s, b) for s, b in zip(self._stratum.selections, best, strict=True) if s.relation == relation]
        if pairs:
            rows = self._database[relation]
            self._database[relation] = {row for row in rows if any(_is_best(row, s, b) for s, b in pairs)}

    def _best_values(self) -> list[Mapping[Row, Value]]:
        return [_best(each, self._database[each.relation]) for each in self._stratum.selections]

    def _growing(self) -> Callable[[RulePlan, Row], bool]:
        """Return the test for rows that the last round with a change has made, or whose group it has changed."""

        def group(relation: str, row: Row) -> Row:
            aggregates = self._plan.relations[relation].aggregates
            return tuple(value for column, value in enumerate(row) if column not in aggregates)

        before = self._growth[1]
        new = {name: {group(name, row) for row in self._database[name] - old} for name, old in before.items()}
        return lambda rule, row: group(rule.relation, row) in new[rule.relation]

    def _limit(self, code: str, limit: int, grew: Callable[[RulePlan, Row], bool]) -> NoReturn:
        """Refuse the epoch; of the tuples that grew, name the first in the order of rules and values.

        The order of sets must not show; rules that feed on their own stratum come first, since they make it grow.
        """
        rows = ((rule, self._row(rule, binding), binding) for rule, binding in self._growth[0])
        grown = [(rule, row, binding) for rule, row, binding in rows if row is not None and grew(rule, row)]
        assert grown, "only a change can lead to a limit"
        inside = set(self._stratum.relations)

        def order(each: tuple[RulePlan, Row, Binding]) -> tuple[object, ...]:
            rule, row, binding = each
            outside = not any(name in inside for name, _ in rule.relations())
            return outside, rule.origin, row_key(row), _binding_key(binding)

        rule, row, binding = min(grown, key=order)
        feeding = [
            format_row(step.relation, values)
            for step in rule.steps
            if isinstance(step, Join) and (values := self._instance(step, binding)) is not None
        ]
        sample = _shorten(format_row(rule.relation, row))
        if feeding:
            sample += " from " + _shorten(", ".join(feeding))
        names = ", ".join(f'"{name}"' for name in self._stratum.relations)
        line = rule.span.line if rule.span else "?"
        raise UserError(code, rule.span, limit=limit, relations=names, line=line, sample=sample)

    def _instance(self, step: Join, binding: Binding) -> Row | None:
        """Return the row that a binding took from a join, if it still knows all of it."""
        if not all(variable_names(arg) <= binding.keys() for arg in step.args):
            return None
        values = [evaluate(arg, binding, self._functions) for arg in step.args if not isinstance(arg, ast.Anonymous)]
        return tuple(value for value in values if value is not None)


def _too_deep(row: Row, limits: Limits) -> bool:
    return any(isinstance(value, Term) and value.depth > limits.depth for value in row)


def _binding_key(binding: Binding) -> tuple[tuple[str, tuple[object, ...]], ...]:
    return tuple((name, order_key(binding[name])) for name in sorted(binding))


def _shorten(text: str, width: int = 160) -> str:
    return text if len(text) <= width else text[: width - 3] + "..."


def _best(selection: Selection, rows: set[Row]) -> dict[Row, Value]:
    best: dict[Row, Value] = {}
    for row in sorted(rows, key=row_key):
        group = type(row)(row[i] for i in selection.group)
        value = row[selection.value]
        lower = selection.function == "min"
        if group not in best or (order_key(value) < order_key(best[group])) is lower:
            best[group] = value
    return best


def _is_best(row: Row, selection: Selection, best: Mapping[Row, Value]) -> bool:
    return order_key(row[selection.value]) == order_key(best[type(row)(row[i] for i in selection.group)])


def _adds(function: str, value: Value) -> bool:
    """Whether an aggregate can take a value: only numbers have a sum, and what lists hold may be of any kind."""
    return function in ("min", "max") or (isinstance(value, int | float) and not isinstance(value, bool))


def _total(function: str, contributions: Mapping[Key, Value], relation: str) -> Value:
    """Combine contributions; float sums are exactly rounded, so that their order does not matter."""
    values = list(contributions.values())
    if function in ("min", "max"):
        return values[0]
    numbers = [value for value in values if isinstance(value, int | float)]
    assert len(numbers) == len(values), "only numbers are added"
    whole = all(isinstance(number, int) for number in numbers)
    total: int | float
    try:
        total = sum(numbers) if whole else math.fsum(numbers)
        result = total / len(numbers) if function == "avg" else total
    except OverflowError:
        result = math.inf
    if not storable(result):
        raise UserError("E509", None, function=function, relation=relation)
    return result
