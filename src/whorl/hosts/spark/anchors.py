"""The one job of every epoch: a task for each partition, which always comes to the same worker.

Each partition has an anchor, a cached row that keeps its tasks on one executor, and a word in its environment that no
other partition has. Spark keeps workers of different environments apart, so the tasks of a partition come to one
process as long as it lives. The job is built once; what it does is told by a property (`protocol.PROPERTY`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from whorl.diagnostics.errors import UserError
from whorl.hosts.spark.protocol import PROPERTY, Reply, Request
from whorl.hosts.spark.worker import run_task

_ENVIRONMENT = "WHORL_PARTITION"
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
        try:
            for number, row in enumerate(self._rows):
                context.environment[_ENVIRONMENT] = str(number)
                task = row.mapPartitions(run_task)
                task.id()  # builds it, with the environment of now
                tasks.append(task)
        finally:
            context.environment.pop(_ENVIRONMENT, None)
        self._job = context.union(tasks)

    def ask(self, request: Request, description: str) -> list[Reply]:
        """Run the job; return the replies in the order of the partitions, or raise the first error among them."""
        self._context.setLocalProperty(PROPERTY, request.to_json())
        self._context.setLocalProperty(_DESCRIPTION, description)
        try:
            replies = self._collect(description)
        finally:
            self._context.setLocalProperty(PROPERTY, None)
            self._context.setLocalProperty(_DESCRIPTION, None)
        for reply in replies:
            if reply.error is not None:
                raise reply.error
        return sorted(replies, key=lambda reply: reply.number)

    def _collect(self, description: str) -> Sequence[Reply]:
        """Run the job; once more, and once again, if a worker died: a local Spark does not try a task twice."""
        for attempt in range(_ATTEMPTS):
            try:
                found: Sequence[Reply] = self._job.collect()
            except (Py4JError, PySparkException) as error:
                if attempt + 1 < _ATTEMPTS and _CRASHED in str(error):
                    continue
                if _MISSING in str(error):
                    raise UserError("E826", None, python=self._context.pythonExec) from None
                raise UserError("E823", None, what=description, reason=_reason(error)) from error
            return found
        raise AssertionError("the last attempt returns or raises")


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
