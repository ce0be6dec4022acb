"""The way in for every epoch: check the rows, learn types from data, move event time.

Whoever maintains views asks `take` for an epoch in checked form, and calls `keep` once the epoch has succeeded; so a
refused epoch leaves no trace here either.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from whorl.analysis.program import Relation
from whorl.diagnostics.errors import UserError
from whorl.diagnostics.names import suggest
from whorl.logical.batches import fit_batch, learn_batch_types
from whorl.logical.plan import LogicalPlan
from whorl.model.batch import Batch, batch_of
from whorl.model.delta import Change, Epoch
from whorl.model.types import Type, type_of
from whorl.model.values import Row, Value, format_row, storable

T = TypeVar("T")
DataTypes = Mapping[str, Sequence[Type]]
Compile = Callable[[DataTypes], LogicalPlan]


@dataclass(frozen=True, slots=True)
class Checked:
    """An epoch that passed every check: its changes, the event time, and the plan for its types."""

    plan: LogicalPlan
    changes: tuple[Change, ...]
    time: int | None
    data_types: Mapping[str, Sequence[Type]]
    batches: tuple[Batch, ...] = ()


class Intake:
    """Checks epochs. ``compile_plan`` is called again when data tells the types of undeclared columns.

    Batches become rows, unless the caller takes them as they are (``columnar``).
    """

    def __init__(self, compile_plan: Compile, *, columnar: bool = False) -> None:
        self._compile = compile_plan
        self._columnar = columnar
        self._data_types: Mapping[str, Sequence[Type]] = {}
        self._started = False
        self.plan = compile_plan({})
        self.time: int | None = None

    def take(self, epoch: Epoch) -> Checked:
        """Return an epoch in checked form; the first one brings the facts of the program along."""
        epoch = epoch if self._columnar else epoch.by_row()
        changes = list(epoch.changes)
        if not self._started:
            changes = [Change(fact.relation, fact.row, 1) for fact in self.plan.program.facts] + changes
        data_types = self._learn_types(changes)
        for batch in epoch.batches:
            learn_batch_types(batch, self.relation(batch.relation), data_types)
        plan = self.plan if data_types == self._data_types else self._compile(data_types)
        rows = tuple(_at_line(change, lambda c: _check(c, plan, data_types)) for change in changes)
        batches = tuple(_check_whole(batch, plan, data_types) for batch in epoch.batches)
        return Checked(plan, rows, self._event_time(epoch, rows, batches), data_types, batches)

    def keep(self, checked: Checked) -> None:
        """Take over what an epoch that succeeded has told."""
        self.plan, self.time, self._data_types = checked.plan, checked.time, checked.data_types
        self._started = True

    def relation(self, name: str) -> Relation:
        """Return a base relation by name; raise if there is none."""
        relation = self.plan.program.relations.get(name)
        if relation is None:
            known = [r.name for r in self.plan.program.base_relations()]
            hint = suggest(name, known) or "Base relations: " + (", ".join(known) or "none") + "."
            raise UserError("E503", None, name=name, hint=hint)
        if not relation.base:
            raise UserError("E504", None, name=name)
        return relation

    def _learn_types(self, changes: Sequence[Change]) -> dict[str, list[Type]]:
        """Take the type of each undeclared column from the first value that arrives."""
        learnt = {name: list(types) for name, types in self._data_types.items()}
        for change in changes:
            relation = _at_line(change, lambda c: self.relation(c.relation))
            if relation.declared or len(change.row) != relation.arity:
                continue
            types = learnt.setdefault(relation.name, [Type.UNKNOWN] * len(relation.columns))
            for position, value in enumerate(change.row):
                if types[position] is Type.UNKNOWN and change.weight > 0:
                    fixed = relation.columns[position].type
                    types[position] = type_of(value) if fixed is Type.UNKNOWN else fixed
        return learnt

    def _event_time(self, epoch: Epoch, changes: Sequence[Change], batches: Sequence[Batch]) -> int | None:
        if epoch.time is not None:
            if self.time is not None and epoch.time < self.time:
                raise UserError("E505", None, current=self.time, found=epoch.time)
            return epoch.time
        times = [self.time] if self.time is not None else []
        for change in changes:
            stamp = change.row[0] if change.row else None
            if change.weight > 0 and self.plan.relations[change.relation].timed and isinstance(stamp, int):
                times.append(stamp)
        for batch in batches:
            if batch.weight > 0 and batch.count and self.plan.relations[batch.relation].timed:
                times.append(int(batch.columns[0].data.max()))
        return max(times, default=None)


def _at_line(change: Change, action: Callable[[Change], T]) -> T:
    """Do something with a change; an error then knows the line that the change came from."""
    try:
        return action(change)
    except UserError as error:
        error.line = change.line or None
        raise


def _check(change: Change, plan: LogicalPlan, data_types: DataTypes) -> Change:
    relation = plan.program.relations[change.relation]
    types = data_types.get(relation.name) or [column.type for column in relation.columns]
    return Change(change.relation, check_row(relation, types, change.row), change.weight, change.line)


def _check_whole(batch: Batch, plan: LogicalPlan, data_types: DataTypes) -> Batch:
    relation = plan.program.relations[batch.relation]
    types = data_types.get(relation.name) or [column.type for column in relation.columns]
    expected = [Type.TIMESTAMP, *types] if relation.lifted else list(types)
    fitting = fit_batch(batch, expected)
    if fitting is not None:
        return fitting
    return batch_of(batch.relation, [check_row(relation, types, row) for row in batch.rows()], batch.weight)


def check_row(relation: Relation, types: Sequence[Type], row: Row) -> Row:
    """Return a row with its integers widened where the column holds floats; raise if it does not fit."""
    if len(row) != relation.arity:
        shown = format_row(relation.name, row)
        raise UserError("E501", None, name=relation.name, expected=relation.arity, found=len(row), row=shown)
    expected = [Type.TIMESTAMP, *types] if relation.lifted else list(types)
    return tuple(_check_value(relation, position, value, expected[position], row) for position, value in enumerate(row))


def _check_value(relation: Relation, position: int, value: Value, expected: Type, row: Row) -> Value:
    found = type_of(value)
    if expected is Type.FLOAT and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    fits = expected in (Type.UNKNOWN, found) or (expected is Type.TIMESTAMP and found is Type.INTEGER)
    if not fits or not storable(value):
        shown = format_row(relation.name, row)
        what = found if storable(value) else f"{found} out of range"
        raise UserError(
            "E502", None, name=relation.name, position=position + 1, expected=expected, found=what, row=shown
        )
    return value
