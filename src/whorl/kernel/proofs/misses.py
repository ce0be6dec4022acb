"""Why a row is not there: how far each rule gets towards it, and what then fails.

The row gives values to the variables of a rule's head; the conditions of the body are then tried in the order of the
text, all values that fit so far at once. What is told is the first condition that none of them passes, with the values
of the first that came so far. Work is bounded: of more values than a limit, the first are tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from whorl.analysis.expressions import Binding, Functions, calculates, equal, evaluate, match
from whorl.analysis.program import Rule
from whorl.kernel.operators.expressions import fit
from whorl.kernel.partition import Partition
from whorl.kernel.proofs.cells import rows_with
from whorl.kernel.proofs.derivations import Rows
from whorl.kernel.proofs.instances import Instances, match_row, run_step
from whorl.logical.plan import AntiJoin, Contribution, Join, RulePlan, Step
from whorl.model.values import Row, Value, row_key
from whorl.syntax import ast

TRIED = 1_000  # values tried for each condition


@dataclass(frozen=True, slots=True)
class Way:
    """Values that passed some conditions, and the row that each atom among them took."""

    binding: Binding
    rows: tuple[Row | None, ...] = ()


@dataclass(frozen=True, slots=True)
class Miss:
    """How far a rule gets.

    `column` is the column in which the head does not fit. Else `failed` is the condition that fails after those in
    `way`; for a negated one, `found` is a row that is there. If all conditions hold, `found` is the row that the head
    gives instead; it equals the row asked for if other rows are preferred to it.
    """

    rule: Rule
    plan: RulePlan
    way: Way
    tried: int = 1
    complete: bool = True
    column: int | None = None
    failed: Step | None = None
    found: Row | None = None


class Misses:
    """Looks for what keeps rules from deriving rows, in a partition that holds every relation in full."""

    def __init__(self, partition: Partition, limit: int = TRIED) -> None:
        self._partition = partition
        self._functions: Functions = partition.plan.logical.program.functions
        self._instances = Instances(partition.plan.logical.program)
        self._rows = Rows(partition)
        self._limit = limit

    def of(self, relation: str, values: Sequence[Value | None]) -> list[Miss]:
        """Return how far each rule of a relation gets towards a row; None stands for any value."""
        return [self._rule(rule, plan, values) for rule, plan in self._instances.plans.get(relation, ())]

    def _rule(self, rule: Rule, plan: RulePlan, values: Sequence[Value | None]) -> Miss:
        binding: Binding = {}
        for column, (arg, value) in enumerate(zip(plan.args, values, strict=True)):
            if value is None or isinstance(arg, Contribution) or calculates(arg, self._functions):
                continue
            extended = match(arg, value, binding, self._functions)
            if extended is None:
                return Miss(rule, plan, Way(binding), column=column)
            binding = extended
        ways, complete = [Way(binding)], True
        for step in plan.steps:
            passed, all_tried = self._pass(step, ways)
            complete = complete and all_tried
            if not passed:
                found = self._blocking(step, ways[0].binding) if isinstance(step, AntiJoin) else None
                return Miss(rule, plan, ways[0], len(ways), complete, failed=step, found=found)
            ways = passed
        return self._derived(rule, plan, values, ways, complete=complete)

    def _derived(
        self, rule: Rule, plan: RulePlan, values: Sequence[Value | None], ways: list[Way], *, complete: bool
    ) -> Miss:
        """Return what a rule gives whose conditions all hold: the row that comes nearest to the one asked for."""
        heads = [(way, self._head(plan, way.binding)) for way in ways]
        given = [(way, row) for way, row in heads if row is not None]
        if not given:  # a calculation of the head has no value
            return Miss(rule, plan, ways[0], len(ways), complete)
        fitting = [(way, row) for way, row in given if _fits(values, row)]
        way, row = (fitting or given)[0]
        return Miss(rule, plan, way, len(ways), complete, found=row)

    def _head(self, plan: RulePlan, binding: Binding) -> Row | None:
        out: list[Value] = []
        for arg in plan.args:
            value = evaluate(arg.value if isinstance(arg, Contribution) else arg, binding, self._functions)
            if value is None:
                return None
            out.append(value)
        return tuple(out)

    def _pass(self, step: Step, ways: list[Way]) -> tuple[list[Way], bool]:
        """Return the ways on from a condition, as many as may be tried, and whether that is all of them."""
        passed: dict[tuple[object, ...], Way] = {}
        for way in ways:
            for binding, row in self._step(step, way.binding):
                if len(passed) == self._limit:
                    return list(passed.values()), False
                key = tuple((name, type(binding[name]), binding[name]) for name in sorted(binding))
                passed.setdefault(key, Way(binding, (*way.rows, row)))
        return list(passed.values()), True

    def _step(self, step: Step, binding: Binding) -> Iterator[tuple[Binding, Row | None]]:
        if isinstance(step, Join):
            for row in self.fitting(step, binding):
                extended = match_row(step.args, row, binding, self._functions)
                if extended is not None:
                    yield extended, row
        elif isinstance(step, AntiJoin):
            if self._blocking(step, binding) is None:
                yield binding, None
        else:
            for extended in run_step(step, binding, self._functions):
                yield extended, None

    def _blocking(self, step: AntiJoin, binding: Binding) -> Row | None:
        fitting = (
            r for r in self.fitting(step, binding) if match_row(step.args, r, binding, self._functions) is not None
        )
        return next(fitting, None)

    def fitting(self, step: Join | AntiJoin, binding: Binding) -> list[Row]:
        """Return rows that may fit an atom, in order: those that hold its known values."""
        stored = self._partition.state.relations[step.relation]
        columns: list[int] = []
        encoded: list[int] = []
        for column, arg in enumerate(step.args):
            if isinstance(arg, ast.Constant) or (isinstance(arg, ast.Variable) and arg.name in binding):
                kind = stored.types[column]
                value = fit(evaluate(arg, binding, self._functions), kind)
                if value is None:
                    return []
                columns.append(column)
                encoded.append(self._partition.state.dictionary.encode(value, kind))
        numbers = rows_with(stored, tuple(columns), np.array(encoded, np.int64), self._partition.state)
        # One more than may be tried shows that there are more.
        return sorted(self._rows.decode(step.relation, numbers[: self._limit + 1].tolist()), key=row_key)


def _fits(values: Sequence[Value | None], row: Row) -> bool:
    return all(value is None or equal(value, own) for value, own in zip(values, row, strict=True))
