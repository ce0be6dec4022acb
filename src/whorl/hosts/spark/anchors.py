"""The one job of every epoch: a task for each partition, which always comes to the same worker.

Each partition has an anchor, a cached row that keeps its tasks on one executor, and a word in its environment that no
other partition has. Spark keeps workers of different environments apart, so the tasks of a partition come to one
process as long as it lives. What the job does is told by a property (`protocol.PROPERTY`), so its functions are pickled
once; and if no rows come with it, the job is the same every time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, reduce
from typing import Any

from py4j.protocol import Py4JError
from pyspark.core.rdd import RDD, _wrap_function
from pyspark.errors import PySparkException
from pyspark.serializers import AutoBatchedSerializer, CPickleSerializer, NoOpSerializer, PairDeserializer
from pyspark.sql import DataFrame
from pyspark.sql.pandas.types import to_arrow_schema
from pyspark.sql.udf import UserDefinedFunction
from pyspark.util import PythonEvalType

from whorl.diagnostics.errors import UserError
from whorl.hosts.spark.afar import PARTITION
from whorl.hosts.spark.bringing import Arriving, JavaRdd
from whorl.hosts.spark.protocol import PROPERTY, Reply, Request
from whorl.hosts.spark.taking import route_rows
from whorl.hosts.spark.worker import Holding, run_fed_task, run_given_task, run_task

_DESCRIPTION = "spark.job.description"
_CRASHED = "Python worker exited unexpectedly"
_MISSING = "No module named 'whorl'"
_ATTEMPTS = 3


class Anchors:
    """As many tasks as there are partitions, for all deployments of a context that have so many.

    The context is pyspark's, hence Any.
    """

    def __init__(self, context: Any, partitions: int) -> None:
        self._context = context
        self._rows = [context.parallelize([number], 1).persist() for number in range(partitions)]
        tasks = []
        for number, row in enumerate(self._rows):
            with self._environment(number):
                task = row.mapPartitions(run_task)
                task.id()  # builds it, with the environment of now
                tasks.append(task)
        self._job = context.union(tasks)

    @contextmanager
    def _environment(self, number: int) -> Iterator[None]:
        self._context.environment[PARTITION] = str(number)
        try:
            yield
        finally:
            self._context.environment.pop(PARTITION, None)

    def ask(self, request: Request, description: str, arriving: Arriving | None = None) -> list[Reply]:
        """Run the job; return the replies in the order of the partitions, or raise the first error among them."""
        job = self._job if arriving is None else self._job_with(arriving)
        with self.asking(request, description):
            replies = self._collect(job, description)
        for reply in replies:
            if reply.error is not None:
                raise reply.error
        return sorted(replies, key=lambda reply: reply.number)

    @contextmanager
    def asking(self, request: Request, description: str) -> Iterator[None]:
        """Let the jobs of this thread have a request."""
        self._context.setLocalProperty(PROPERTY, request.to_json())
        self._context.setLocalProperty(_DESCRIPTION, description)
        try:
            yield
        finally:
            self._context.setLocalProperty(PROPERTY, None)
            self._context.setLocalProperty(_DESCRIPTION, None)

    # Jobs with rows

    @cached_property
    def _steps(self) -> list[Any]:
        """Java's functions that step a partition, each with its environment."""
        return self._functions(run_fed_task)

    @cached_property
    def _gives(self) -> list[Any]:
        """Java's functions that give a partition files, each with its environment."""
        return self._functions(run_given_task)

    def _functions(self, run: Callable[[Any], Any]) -> list[Any]:
        found = []
        for number in range(len(self._rows)):
            with self._environment(number):
                pairs = PairDeserializer(NoOpSerializer(), NoOpSerializer())
                found.append(self._function(run, pairs, AutoBatchedSerializer(CPickleSerializer())))
        return found

    def give(self, request: Request, rows: Mapping[int, JavaRdd]) -> None:
        """Give some partitions chunks of files, each its own."""
        tasks = [
            self._apply(self._gives[number], self._rows[number]._jrdd.cartesian(own.coalesce(1)))
            for number, own in rows.items()
        ]
        description = "whorl: give files"
        with self.asking(request, description):
            self._collect(self._together(tasks), description)

    def held(self, spark: Any, request: Request, unit: str, numbers: Sequence[int], schema: Any) -> Any:
        """Return what some partitions hold of a folder, as a frame; its rows come from their machines."""
        frames = []
        for number in numbers:
            rows = spark._jsparkSession.createDataset(self._rows[number]._jrdd.rdd(), self._bytes)
            with self._environment(number):
                holding = Holding(request.deployment, unit, to_arrow_schema(schema))
                map_rows = UserDefinedFunction(holding, schema, evalType=PythonEvalType.SQL_MAP_ARROW_ITER_UDF)
                function = map_rows(DataFrame(rows.toDF(), spark)["value"])._jc
            # As DataFrame.mapInArrow does, which asks for pandas first.
            frames.append(DataFrame(rows.toDF().mapInArrow(function, False, None), spark))  # noqa: FBT003 - Java's order
        return reduce(lambda left, right: left.unionByName(right), frames)

    @cached_property
    def _bytes(self) -> Any:
        return self._context._jvm.org.apache.spark.sql.Encoders.BINARY()

    @cached_property
    def _route(self) -> Any:
        """Java's function that routes rows."""
        return self._function(route_rows, NoOpSerializer(), CPickleSerializer())

    def _function(self, run: Callable[[Any], Any], reads: Any, writes: Any) -> Any:
        return _wrap_function(self._context, _WithoutSplit(run), reads, writes)

    def _job_with(self, arriving: Arriving) -> Any:
        """Return the job whose tasks all read the rows that arrive, each beside its anchor."""
        rows = self._apply(self._route, arriving.rows) if arriving.many else arriving.rows
        once = arriving.many or len(self._rows) > 1  # through a shuffle, so that nobody reads the source again
        together = rows.coalesce(1, once)
        anchored = [row._jrdd.cartesian(together) for row in self._rows]
        tasks = [self._apply(step, each) for step, each in zip(self._steps, anchored, strict=True)]
        return self._together(tasks)

    def _together(self, tasks: Sequence[JavaRdd]) -> Any:
        job = reduce(lambda left, right: left.union(right), tasks)
        return RDD(job, self._context, AutoBatchedSerializer(CPickleSerializer()))

    def _apply(self, function: Any, rows: JavaRdd) -> JavaRdd:
        return self._python_rdd(rows.rdd(), function, False, False).asJavaRDD()  # noqa: FBT003 - Java's order

    @cached_property
    def _python_rdd(self) -> Any:
        return self._context._jvm.PythonRDD

    def _collect(self, job: Any, description: str) -> Sequence[Reply]:
        """Run the job; once more, and once again, if a worker died: a local Spark does not try a task twice."""
        for attempt in range(_ATTEMPTS):
            try:
                found: Sequence[Reply] = job.collect()
            except (Py4JError, PySparkException) as error:
                if attempt + 1 < _ATTEMPTS and _CRASHED in str(error):
                    continue
                if _MISSING in str(error):
                    raise UserError("E826", None, python=self._context.pythonExec) from None
                raise UserError("E823", None, what=description, reason=_reason(error)) from error
            return found
        raise AssertionError("the last attempt returns or raises")


class _WithoutSplit:
    """A function over the items of a task, as Spark's workers call it: with the number of the task before them."""

    def __init__(self, run: Callable[[Any], Any]) -> None:
        self._run = run

    def __call__(self, _split: int, items: Any) -> Any:
        return self._run(items)


_ANCHORS: dict[tuple[str, int], Anchors] = {}  # of this driver, by application


def anchors_for(context: Any, partitions: int) -> Anchors:
    """Return the anchors for a number of partitions, made when they are first asked for."""
    application = str(context.applicationId)
    for key in [key for key in _ANCHORS if key[0] != application]:
        del _ANCHORS[key]  # their application has ended
    key = (application, partitions)
    if key not in _ANCHORS:
        _ANCHORS[key] = Anchors(context, partitions)
    return _ANCHORS[key]


def _reason(error: Exception) -> str:
    """Return the line of a failed job that says most."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [line for line in lines if line.startswith(("Caused by", "org.apache.spark.SparkException"))]
    chosen = (
        causes or [line for line in lines if "Error" in line or "Exception" in line] or lines or ["No reason given"]
    )
    return chosen[0][:300].rstrip(".")
