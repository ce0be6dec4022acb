"""The host in this process: epochs in, view deltas out, maintained by the kernel."""

from __future__ import annotations

from collections.abc import Callable
from time import perf_counter

from whorl.kernel.partition import Partition
from whorl.logical.intake import Compile, Intake
from whorl.logical.plan import LogicalPlan
from whorl.model.delta import Epoch
from whorl.model.limits import Limits
from whorl.model.report import EpochReport
from whorl.model.values import Row
from whorl.physical.lower import lower_plan
from whorl.physical.plan import PhysicalPlan


class InProcess:
    """Maintains the views of a program in one partition."""

    def __init__(self, compile_plan: Compile, limits: Limits | None = None, strategy: str = "auto") -> None:
        self._intake = Intake(compile_plan)
        self._limits = limits or Limits()
        self._lower: Callable[[LogicalPlan], PhysicalPlan] = lambda plan: lower_plan(plan, strategy)
        self._partition = Partition(self._lower(self._intake.plan), self._limits)

    @property
    def plan(self) -> LogicalPlan:
        """The plan as far as types are known."""
        return self._intake.plan

    @property
    def partition(self) -> Partition:
        """The state."""
        return self._partition

    @property
    def time(self) -> int | None:
        """The event time reached, None before the first."""
        return self._intake.time

    def rows(self, view: str) -> set[Row]:
        """Return the rows of a view as of the last epoch."""
        return self._partition.rows(view)

    def commit(self, epoch: Epoch) -> EpochReport:
        """Apply one epoch; on an error nothing of it is kept."""
        started = perf_counter()
        checked = self._intake.take(epoch)
        if checked.plan is not self._intake.plan:
            self._partition = Partition(self._lower(checked.plan), self._limits, self._partition)
            self._intake.plan = checked.plan
        result = self._partition.step(checked.changes, checked.time)
        self._intake.keep(checked)
        return EpochReport(
            epoch.number,
            epoch.time,
            result.deltas,
            result.input,
            perf_counter() - started,
            result.work,
            result.seconds,
            self._partition.nbytes,
        )
