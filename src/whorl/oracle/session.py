"""Epochs in, view deltas out, by recomputing everything: what every other way of maintaining views must equal."""

from __future__ import annotations

from time import perf_counter

from whorl.logical.intake import Compile, Intake
from whorl.logical.plan import LogicalPlan
from whorl.model.delta import Epoch, difference
from whorl.model.limits import Limits
from whorl.model.report import EpochReport, InputCounts
from whorl.model.values import Row
from whorl.oracle.base import BaseRelation
from whorl.oracle.model import evaluate_plan


class Oracle:
    """Maintains the views of a program by evaluating it from scratch after every epoch.

    ``compile_plan`` is called again when data tells the types of undeclared columns.
    """

    def __init__(self, compile_plan: Compile, limits: Limits | None = None) -> None:
        self._intake = Intake(compile_plan)
        self._limits = limits or Limits()
        self._base = {r.name: BaseRelation(r) for r in self.plan.program.base_relations()}
        self._views: dict[str, set[Row]] = {output.name: set() for output in self.plan.outputs}

    @property
    def plan(self) -> LogicalPlan:
        """The plan as far as types are known."""
        return self._intake.plan

    @property
    def time(self) -> int | None:
        """The event time reached, None before the first."""
        return self._intake.time

    def rows(self, view: str) -> set[Row]:
        """Return the rows of a view as of the last epoch."""
        return set(self._views[view])

    def commit(self, epoch: Epoch) -> EpochReport:
        """Apply one epoch; on an error nothing of it is kept."""
        started = perf_counter()
        checked = self._intake.take(epoch)
        base = {name: relation.copy() for name, relation in self._base.items()}
        counts = InputCounts()
        for name, relation in base.items():
            relation.relation = checked.plan.relations[name]
            own = [change for change in checked.changes if change.relation == name]
            counts.add(relation.apply(own, checked.time))
        visible = {name: set(relation.visible) for name, relation in base.items()}
        views = evaluate_plan(checked.plan, visible, self._limits)
        deltas = {name: difference(self._views[name], views[name]) for name in views}
        self._intake.keep(checked)
        self._base, self._views = base, views
        changed = {name: delta for name, delta in deltas.items() if delta}
        return EpochReport(epoch.number, epoch.time, changed, counts, perf_counter() - started)
