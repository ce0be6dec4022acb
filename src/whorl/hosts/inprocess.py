"""The host in this process: epochs in, view deltas out, maintained by one partition of the kernel or several."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from time import perf_counter

from whorl.diagnostics.errors import UserError
from whorl.hosts.exchanging import Carrier, Direct, run_with_room
from whorl.hosts.moving import move_facts
from whorl.hosts.routing import merge_results, route_changes
from whorl.hosts.snapshots import Progress, open_snapshot, save_host
from whorl.kernel.partition import Partition, StepResult
from whorl.logical.intake import Checked, Compile, Intake
from whorl.logical.plan import LogicalPlan
from whorl.model.batch import Values
from whorl.model.batching import Batching
from whorl.model.delta import Epoch
from whorl.model.limits import Limits
from whorl.model.report import EpochReport, Shipment
from whorl.model.types import Type
from whorl.model.values import Row
from whorl.physical.lower import lower_plan
from whorl.physical.plan import PhysicalPlan


class InProcess:
    """Maintains the views of a program in partitions, which run one after the other."""

    def __init__(
        self,
        compile_plan: Compile,
        limits: Limits | None = None,
        strategy: str = "auto",
        partitions: int = 1,
        placement: str = "auto",
        ship: str = "lazy",
        batching: Batching = Batching(),  # noqa: B008  # frozen
    ) -> None:
        if partitions < 1:
            raise UserError("E681", None, found=partitions)
        self._intake = Intake(compile_plan, columnar=True)
        self._limits = limits or Limits()
        self._lower: Callable[[LogicalPlan], PhysicalPlan] = lambda plan: lower_plan(
            plan, strategy, placement if partitions > 1 else "apart", ship, batching
        )
        self.carrier: Carrier = Direct()
        self._shipped: tuple[Shipment, ...] = ()
        self._data_types: Mapping[str, Sequence[Type]] = {}
        self._epoch = 0
        physical = self._lower(self._intake.plan)
        self._partitions = [
            Partition(physical, self._limits, number=number, partitions=partitions) for number in range(partitions)
        ]

    @classmethod
    def restore(
        cls,
        folder: str | Path,
        compile_plan: Compile,
        limits: Limits | None = None,
        strategy: str = "auto",
        partitions: int | None = None,
        placement: str = "auto",
    ) -> InProcess:
        """Go on from a snapshot of the same program, in as many partitions as it has, or in another number."""
        snapshot = open_snapshot(Path(folder))
        host = cls(compile_plan, limits, strategy, snapshot.partitions if partitions is None else partitions, placement)
        progress = snapshot.progress
        plan = compile_plan(progress.data_types) if progress.data_types else host.plan
        host._partitions = snapshot.load(host._lower(plan), host._limits, len(host._partitions))
        if progress.started:
            host._intake.keep(Checked(plan, (), progress.time, progress.data_types))
        host._data_types, host._epoch = progress.data_types, progress.epoch
        return host

    def save(self, folder: str | Path) -> None:
        """Write a snapshot of the state as of the last epoch; until it is whole, an older one there stays."""
        started = self.partition.stepped
        save_host(Path(folder), self._partitions, Progress(self._epoch, self.time, self._data_types, started))

    @property
    def plan(self) -> LogicalPlan:
        """The plan as far as types are known."""
        return self._intake.plan

    @property
    def partition(self) -> Partition:
        """The first partition: all of the state, if there is one only."""
        return self._partitions[0]

    @property
    def partitions(self) -> tuple[Partition, ...]:
        """The state."""
        return tuple(self._partitions)

    @property
    def time(self) -> int | None:
        """The event time reached, None before the first."""
        return self._intake.time

    @property
    def epoch(self) -> int:
        """The number of the last epoch, 0 before the first."""
        return self._epoch

    def rows(self, view: str) -> set[Row]:
        """Return the rows of a view as of the last epoch."""
        return set[Row]().union(*(partition.rows(view) for partition in self._holders(view)))

    def columns(self, view: str) -> list[Values] | None:
        """Return the rows of a view as columns, sorted, if one partition holds them all."""
        holders = self._holders(view)
        return holders[0].columns(view) if len(holders) == 1 else None

    def _holders(self, view: str) -> Sequence[Partition]:
        """Return the partitions that together hold each row of a view once."""
        plan = self.partition.plan
        name = next(output.relation for output in plan.outputs if output.name == view)
        return self._partitions if plan.split_column(name) is not None else self._partitions[:1]

    def commit(self, epoch: Epoch) -> EpochReport:
        """Apply one epoch; on an error nothing of it is kept, in no partition."""
        started = perf_counter()
        checked = self._intake.take(epoch)
        result = self._step(checked) if checked.plan is self._intake.plan else self._step_anew(checked)
        self._intake.keep(checked)
        self._data_types, self._epoch = checked.data_types, epoch.number
        return EpochReport(
            epoch.number,
            epoch.time,
            result.deltas,
            result.input,
            perf_counter() - started,
            result.work,
            result.seconds,
            sum(partition.nbytes for partition in self._partitions),
            result.strata,
            self._shipped,
        )

    def _step_anew(self, checked: Checked) -> StepResult:
        """Take an epoch that tells the types of columns, and so gives another plan; if it fails, keep the old one."""
        old = self.partition.plan
        try:
            self._partitions = move_facts(self._partitions, self._lower(checked.plan), self._limits)
            return self._step(checked)
        except BaseException:
            self._partitions = move_facts(self._partitions, old, self._limits)
            raise

    def _step(self, checked: Checked) -> StepResult:
        """Let every partition take its share; if one fails, undo what the others did."""
        shares = route_changes(self.partition.plan, checked.changes, checked.batches, len(self._partitions))
        works = [
            partial(partition.prepare, share.changes, checked.time, share.batches)
            for partition, share in zip(self._partitions, shares, strict=True)
        ]
        results = self._exchange(works) if self.partition.exchanges else self._one_by_one(works)
        for partition in self._partitions:
            partition.keep()
        return merge_results(results)

    def _one_by_one(self, works: Sequence[Callable[[], StepResult]]) -> list[StepResult]:
        results: list[StepResult] = []
        try:
            for work in works:
                results.append(work())
        except BaseException:
            for partition in self._partitions[: len(results)]:
                partition.roll_back()
            raise
        return results

    def _exchange(self, works: Sequence[Callable[[], StepResult]]) -> list[StepResult]:
        """Run partitions that wait for each other; whoever was stopped has undone its part, and so do all."""
        self.carrier.begin()
        try:
            results = run_with_room(self._partitions, works, self.carrier)
        except BaseException:
            for partition in self._partitions:
                partition.roll_back()
            raise
        self._shipped = tuple(self.carrier.shipped.values())
        return results
