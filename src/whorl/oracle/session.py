"""Epochs in, view deltas out, by recomputing everything: what every other way of maintaining views must equal."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import TypeVar

from whorl.analysis.program import Relation
from whorl.diagnostics.errors import UserError
from whorl.diagnostics.names import suggest
from whorl.logical.plan import LogicalPlan
from whorl.model.delta import Change, Delta, Epoch, difference
from whorl.model.limits import Limits
from whorl.model.types import Type, type_of
from whorl.model.values import Row
from whorl.oracle.base import BaseRelation, Counts, check_row
from whorl.oracle.model import evaluate_plan

T = TypeVar("T")
DataTypes = Mapping[str, Sequence[Type]]
Compile = Callable[[DataTypes], LogicalPlan]


@dataclass(frozen=True, slots=True)
class EpochResult:
    """What one epoch did: the delta of every view that changed, and what happened to the input."""

    number: int
    time: int | None
    deltas: Mapping[str, Delta]
    counts: Counts
    seconds: float


class Oracle:
    """Maintains the views of a program by evaluating it from scratch after every epoch.

    ``compile_plan`` is called again when data tells the types of undeclared columns.
    """

    def __init__(self, compile_plan: Compile, limits: Limits | None = None) -> None:
        self._compile = compile_plan
        self._limits = limits or Limits()
        self._data_types: dict[str, list[Type]] = {}
        self.plan = compile_plan({})
        self._base = {r.name: BaseRelation(r) for r in self.plan.program.base_relations()}
        self._views: dict[str, set[Row]] = {output.name: set() for output in self.plan.outputs}
        self._started = False
        self.time: int | None = None

    def rows(self, view: str) -> set[Row]:
        """Return the rows of a view as of the last epoch."""
        return set(self._views[view])

    def commit(self, epoch: Epoch) -> EpochResult:
        """Apply one epoch; on an error nothing of it is kept."""
        started = perf_counter()
        changes = self._initial_facts() + list(epoch.changes)
        data_types = self._learn_types(changes)
        plan = self.plan if data_types == self._data_types else self._compile(data_types)
        rows = [_at_line(change, lambda c: self._check(c, plan, data_types)) for change in changes]
        now = self._event_time(epoch, rows)
        base = {name: relation.copy() for name, relation in self._base.items()}
        counts = Counts()
        for name, relation in base.items():
            relation.relation = plan.relations[name]
            counts.add(relation.apply([change for change in rows if change.relation == name], now))
        visible = {name: set(relation.visible) for name, relation in base.items()}
        views = evaluate_plan(plan, visible, self._limits)
        deltas = {name: difference(self._views[name], views[name]) for name in views}
        self.plan, self._base, self._views, self.time = plan, base, views, now
        self._data_types, self._started = data_types, True
        changed = {name: delta for name, delta in deltas.items() if delta}
        return EpochResult(epoch.number, epoch.time, changed, counts, perf_counter() - started)

    def _initial_facts(self) -> list[Change]:
        if self._started:
            return []
        return [Change(fact.relation, fact.row, 1) for fact in self.plan.program.facts]

    def _relation(self, change: Change) -> Relation:
        relation = self.plan.program.relations.get(change.relation)
        if relation is None:
            known = [r.name for r in self.plan.program.base_relations()]
            hint = suggest(change.relation, known) or "Base relations: " + (", ".join(known) or "none") + "."
            raise UserError("E503", None, name=change.relation, hint=hint)
        if not relation.base:
            raise UserError("E504", None, name=change.relation)
        return relation

    def _learn_types(self, changes: list[Change]) -> dict[str, list[Type]]:
        """Take the type of each undeclared column from the first value that arrives."""
        learnt = {name: list(types) for name, types in self._data_types.items()}
        for change in changes:
            relation = _at_line(change, self._relation)
            if relation.declared or len(change.row) != relation.arity:
                continue
            types = learnt.setdefault(relation.name, [Type.UNKNOWN] * len(relation.columns))
            for position, value in enumerate(change.row):
                if types[position] is Type.UNKNOWN and change.weight > 0:
                    fixed = relation.columns[position].type
                    types[position] = type_of(value) if fixed is Type.UNKNOWN else fixed
        return learnt

    def _check(self, change: Change, plan: LogicalPlan, data_types: DataTypes) -> Change:
        relation = plan.program.relations[change.relation]
        types = data_types.get(relation.name) or [column.type for column in relation.columns]
        return Change(change.relation, check_row(relation, types, change.row), change.weight, change.line)

    def _event_time(self, epoch: Epoch, changes: list[Change]) -> int | None:
        if epoch.time is not None:
            if self.time is not None and epoch.time < self.time:
                raise UserError("E505", None, current=self.time, found=epoch.time)
            return epoch.time
        times = [self.time] if self.time is not None else []
        for change in changes:
            stamp = change.row[0] if change.row else None
            if change.weight > 0 and self._base[change.relation].relation.timed and isinstance(stamp, int):
                times.append(stamp)
        return max(times, default=None)


def _at_line(change: Change, action: Callable[[Change], T]) -> T:
    """Do something with a change; an error then knows the line that the change came from."""
    try:
        return action(change)
    except UserError as error:
        error.line = change.line or None
        raise
