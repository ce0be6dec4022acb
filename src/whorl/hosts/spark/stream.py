"""`whorl.stream`: views that follow streaming data frames, with state that survives."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from os import PathLike
from threading import RLock
from typing import Any, TypeVar

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from whorl.diagnostics.errors import UserError
from whorl.hosts.spark.bringing import bringer_for
from whorl.hosts.spark.checkpoint import open_checkpoint
from whorl.hosts.spark.deployment import Deployment
from whorl.hosts.spark.epochs import Epochs, Listener
from whorl.hosts.spark.lanes import Frame, gather, lanes_of, match_inputs
from whorl.hosts.spark.opening import open_store
from whorl.hosts.spark.program import GivenProgram
from whorl.hosts.spark.progress import observe
from whorl.hosts.spark.session import check_session
from whorl.hosts.spark.view_frames import find_output, read_snapshot, stream_changes
from whorl.logical.plan import LogicalPlan
from whorl.model.limits import Limits
from whorl.model.report import EpochReport
from whorl.physical.lower import lower_plan

Query = TypeVar("Query", bound="StreamQuery")


@dataclass(frozen=True, slots=True)
class StreamOptions:
    """How a streaming query runs."""

    checkpoint: str | PathLike[str]
    strategy: str = "auto"
    limits: Limits = field(default_factory=Limits)
    partitions: int | None = None
    trigger: Mapping[str, Any] | None = None
    snapshot_every: int = 50
    name: str | None = None
    listeners: Sequence[Listener] = ()


def start_stream(
    spark: Any,
    program: GivenProgram,
    inputs: Mapping[str, Frame],
    event_time: Mapping[str, str],
    options: StreamOptions,
    make: Callable[[Any, Epochs, Frame, StreamOptions], Query],
) -> Query:
    """Start a query, of the kind that ``make`` makes.

    Frames that do not stream are the first epoch; those that do make one for each micro-batch.
    """
    context = check_session(spark)
    matched, types = match_inputs(inputs, program.compile, program.names, event_time)
    streaming = [each.frame.isStreaming for each in matched]
    if not any(streaming):
        raise UserError("E808")
    plan = lower_plan(program.compile(types), options.strategy, "auto")
    store = open_store(spark, options.checkpoint)
    checkpoint = open_checkpoint(store, plan, types, options.partitions, context.defaultParallelism)
    try:
        deployment = Deployment(
            context,
            store,
            checkpoint.identity,
            checkpoint.partitions,
            options.limits,
            "files",
            durable=True,
        )
        deployment.use(plan)
        checkpoint = checkpoint.fit(deployment)
        lanes = lanes_of(matched, plan)
        live = gather(matched, lambda each: bool(each.frame.isStreaming))
        bringer = bringer_for(live, lanes, store)
        epochs = Epochs(spark, checkpoint, deployment, bringer, options.listeners, options.snapshot_every)
        if not all(streaming):
            still = gather(matched, lambda each: not each.frame.isStreaming)
            epochs.take(still, None, bringer_for(still, lanes, store))
        return make(spark, epochs, live, options)
    except BaseException:
        checkpoint.release()
        raise


class StreamQuery:
    """A running query. It keeps Spark's names for what Spark's own queries do too."""

    def __init__(self, spark: Any, epochs: Epochs, frame: Frame, options: StreamOptions) -> None:
        self._spark = spark
        self._epochs = epochs
        self._failure: BaseException | None = None
        self._at_hand = RLock()  # held during an epoch, whose listeners may stop the query
        self._stopping = False
        self._progress = observe(spark, frame)
        store = epochs.checkpoint.store
        source = store.address(store.layout.source)
        try:
            writer = self._progress.frame.writeStream.foreachBatch(self._take).option("checkpointLocation", source)
            writer = writer.queryName(options.name) if options.name else writer
            writer = writer.trigger(**options.trigger) if options.trigger else writer
            self.spark_query = writer.start()
        except (Py4JError, PySparkException, TypeError, ValueError) as error:
            raise UserError("E825", None, reason=_first_line(error)) from error

    def _take(self, frame: Frame, batch: int) -> None:
        with self._at_hand:
            if self._stopping:
                self._failure = StoppedError(batch)
                raise self._failure
            try:
                if self._epochs.take(frame, batch) and self._epochs.last and self._epochs.report:
                    self._progress.tell(self._epochs.last, self._epochs.report)
            except BaseException as error:
                self._failure = error
                raise

    # What came out

    def changes(self, view: str) -> Frame:
        """Return the changes of a view that count, as a frame that streams: its columns, `_epoch` and `_op`."""
        return stream_changes(self._spark, self._epochs.checkpoint.store, find_output(self.plan, view))

    def snapshot(self, view: str) -> Frame:
        """Return the rows of a view as of the last epoch that counts."""
        store, last = self._epochs.checkpoint.store, self._epochs.last
        return read_snapshot(self._spark, store, find_output(self.plan, view), last)

    @property
    def plan(self) -> LogicalPlan:
        """The plan that runs."""
        return self._epochs.plan

    @property
    def views(self) -> tuple[str, ...]:
        """The names of the views."""
        return tuple(output.name for output in self.plan.outputs)

    # How far it is

    @property
    def epoch(self) -> int:
        """The last epoch that counts, 0 before the first."""
        return 0 if self._epochs.last is None else self._epochs.last.epoch

    @property
    def time(self) -> int | None:
        """The event time reached."""
        return None if self._epochs.last is None else self._epochs.last.time

    @property
    def report(self) -> EpochReport | None:
        """What the last epoch of this run did and what it cost; the rows themselves are in `changes`."""
        return self._epochs.report

    @property
    def lastProgress(self) -> dict[str, Any] | None:  # noqa: N802 - Spark's name
        """Spark's progress of the last micro-batch, and under `whorl` that of the last epoch."""
        progress = self.spark_query.lastProgress
        last, report = self._epochs.last, self._epochs.report
        if progress is None or last is None:
            return None
        own: dict[str, Any] = {"epoch": last.epoch, "time": last.time, "rows": last.rows, "quarantined": last.misfits}
        own |= {"views": last.views, "counts": last.counts, "seconds": self._epochs.seconds}
        if report is not None:
            own |= {"stateBytes": report.state_bytes, "work": None if report.work is None else asdict(report.work)}
        return {**json.loads(progress.json), "whorl": own}

    # Spark's own

    @property
    def isActive(self) -> bool:  # noqa: N802 - Spark's name
        """Whether the query runs."""
        return bool(self.spark_query.isActive)

    def processAllAvailable(self) -> None:  # noqa: N802 - Spark's name
        """Wait until all that the sources have now is in the views."""
        self._waiting(self.spark_query.processAllAvailable)

    def awaitTermination(self, timeout: float | None = None) -> bool:  # noqa: N802 - Spark's name
        """Wait until the query ends, or for so many seconds; tell whether it has. Its error is raised here."""
        ended = self._waiting(lambda: self.spark_query.awaitTermination(timeout))
        return True if timeout is None else bool(ended)

    def _waiting(self, wait: Any) -> Any:
        try:
            return wait()
        except (Py4JError, PySparkException) as error:
            self._epochs.checkpoint.release()
            if isinstance(self._failure, StoppedError):
                return True
            if isinstance(self._failure, UserError):
                raise self._failure from None
            raise UserError("E825", None, reason=_first_line(self._failure or error)) from error

    def stop(self) -> None:
        """Stop the query, after the epoch at hand; the folder is free for another.

        Spark alone would break off the epoch, and tell at length what it broke.
        """
        with self._at_hand:
            self._stopping = True
        self.spark_query.stop()
        self._epochs.checkpoint.release()

    def __repr__(self) -> str:
        return f"<query of {', '.join(self.views)}; {self.epoch} epochs>"


class StoppedError(Exception):
    """A micro-batch came after the query was told to stop; it stays for the next run."""


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:300].rstrip(".")
