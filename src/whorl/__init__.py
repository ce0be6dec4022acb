"""Whorl keeps recursive views over changing data up to date."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from whorl.diagnostics.errors import ProgramErrors, UserError, WhorlError
from whorl.model.delta import Delta
from whorl.model.functions import function
from whorl.model.limits import Limits
from whorl.model.values import Term

if TYPE_CHECKING:
    from os import PathLike

    from whorl.hosts.spark.host import SparkHost
    from whorl.hosts.spark.mqtt import MqttSource
    from whorl.hosts.spark.session import spark_session
    from whorl.views.session import Functions, HostFactory, Session
    from whorl.views.spark import evaluate, stream

__version__ = "0.1.0"
__all__ = [
    "Delta",
    "Limits",
    "MqttSource",
    "ProgramErrors",
    "SparkHost",
    "Term",
    "UserError",
    "WhorlError",
    "__version__",
    "evaluate",
    "function",
    "open",
    "spark_session",
    "stream",
]
# What needs pyspark is imported when it is asked for.
_ON_SPARK = {
    "MqttSource": "whorl.hosts.spark.mqtt",
    "SparkHost": "whorl.hosts.spark.host",
    "evaluate": "whorl.views.spark",
    "spark_session": "whorl.hosts.spark.session",
    "stream": "whorl.views.spark",
}


def __getattr__(name: str) -> Any:
    module = _ON_SPARK.get(name)
    if module is None:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in ("py4j", "pyspark"):
            raise
        raise UserError("E800", None, name=name) from None


def open(
    program: str | PathLike[str],
    *,
    functions: Functions = (),
    strategy: str = "auto",
    limits: Limits | None = None,
    partitions: int | None = None,
    placement: str = "auto",
    host: HostFactory | None = None,
    restore: str | PathLike[str] | None = None,
) -> Session:
    """Open a program, and return a session that maintains its views.

    ``program`` is a path (`*.dl`) or the text of the rules. ``functions`` are Python functions for the rules, or a path
    to a file of them. ``strategy`` says how views are maintained; `reference` recomputes them. Several ``partitions``
    share the state as ``placement`` says. ``host`` makes whoever maintains the views, instead of the kernel in this
    process. ``restore`` names the folder of a session that was saved, from which this one goes on.
    """
    from whorl.views.session import open_session

    return open_session(
        program,
        functions=functions,
        strategy=strategy,
        limits=limits,
        partitions=partitions,
        placement=placement,
        host=host,
        restore=restore,
    )
