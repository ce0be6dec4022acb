"""A host for sessions: `whorl.open("reach.dl", host=whorl.SparkHost(spark))`. One Spark job for each commit.

Rows are checked on the driver, as in one process. The folder holds the log from which a lost worker comes back; without
one that all machines share, it is a temporary folder of this machine, which goes with the session.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable
from os import PathLike
from time import perf_counter
from typing import Any
from uuid import uuid4

from whorl.hosts.spark.deployment import Deployment
from whorl.hosts.spark.layout import new_token
from whorl.hosts.spark.opening import discard, temporary_store
from whorl.hosts.spark.rebuilding import Mirror
from whorl.hosts.spark.session import check_session
from whorl.kernel.partition import Partition
from whorl.logical.intake import Compile, Intake
from whorl.logical.plan import LogicalPlan
from whorl.model.delta import Epoch
from whorl.model.limits import Limits
from whorl.model.report import EpochReport
from whorl.model.values import Row
from whorl.physical.lower import lower_plan
from whorl.physical.plan import PhysicalPlan

_SAVE_EVERY = 100  # epochs between two saved states


class SparkHost:
    """Makes hosts on a Spark session. The session is pyspark's, hence Any."""

    def __init__(
        self,
        spark: Any,
        *,
        partitions: int | None = None,
        strategy: str = "auto",
        placement: str = "auto",
        folder: str | PathLike[str] | None = None,
    ) -> None:
        """Say where: ``partitions`` are as many as Spark has cores, unless given; ``folder`` is one that all share."""
        self._spark, self._context = spark, check_session(spark)
        self._partitions = self._context.defaultParallelism if partitions is None else partitions
        self._strategy = strategy
        self._placement = placement
        self._folder = folder

    def __call__(self, compile_plan: Compile, limits: Limits) -> SparkPartitions:
        """Start a program."""
        store = temporary_store(self._spark, self._folder)
        deployment = Deployment(self._context, store, uuid4().hex, self._partitions, limits)
        return SparkPartitions(compile_plan, lambda plan: lower_plan(plan, self._strategy, self._placement), deployment)


class SparkPartitions:
    """Maintains the views of a program in partitions that live in Spark's workers."""

    def __init__(
        self, compile_plan: Compile, lower: Callable[[LogicalPlan], PhysicalPlan], deployment: Deployment
    ) -> None:
        self._intake = Intake(compile_plan, columnar=True)
        self._lower = lower
        self._deployment = deployment
        self._mirror = Mirror()
        deployment.use(self._lower(self._intake.plan))
        weakref.finalize(self, discard, deployment.store)

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
        return self._deployment.rows(view)

    @property
    def partitions(self) -> tuple[Partition, ...]:
        """The state, for questions about it: one partition of this process, which reads what the workers have read."""
        deployment = self._deployment
        plan, limits = deployment.plan, deployment.limits
        return (deployment.reading(deployment.written, lambda written: self._mirror.at(written, plan, limits)),)

    def commit(self, epoch: Epoch) -> EpochReport:
        """Apply one epoch; on an error nothing of it is kept, in no partition."""
        started = perf_counter()
        checked = self._intake.take(epoch)
        deployment = self._deployment
        token = new_token(epoch.number)
        before, plan = deployment.history, deployment.plan
        try:
            if checked.plan is not self._intake.plan:
                deployment.move(self._lower(checked.plan), epoch.number)
            deployment.log(token, checked.time, checked.changes, checked.batches)
            stepped = deployment.step(token, checked.time, save=len(deployment.history.tokens) % _SAVE_EVERY == 0)
        except BaseException:
            if deployment.plan is not plan:
                deployment.use(plan)
            deployment.history = before
            raise
        deployment.keep(stepped)
        self._intake.keep(checked)
        if stepped.saved:
            deployment.prune()
        return stepped.report(epoch.time, perf_counter() - started)
