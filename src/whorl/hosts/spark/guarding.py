"""Java ends with this process, however this process ends.

Spark's Java process reads from a pipe, and goes when the pipe closes. That is not enough: a child that this process has
forked keeps the pipe open, and whoever is told to go can still hang on the way. So Java also watches this process by
its id, and halts some seconds after it has ended.
"""

from __future__ import annotations

import os
from typing import Any

_GRACE_S = 5  # for an orderly end: temporary folders are removed in it
_MARK = "whorl.watches"


def end_with_this_process(spark: Any) -> None:
    """Let the Java process of a session watch this one; once is enough. The session is pyspark's, hence Any."""
    jvm, gateway = spark._jvm, spark.sparkContext._gateway
    java, own = jvm.java, str(os.getpid())
    if java.lang.System.getProperty(_MARK) == own:
        return
    watched = java.lang.ProcessHandle.of(os.getpid())
    if not watched.isPresent():  # it runs elsewhere
        return
    later = java.util.concurrent.CompletableFuture.delayedExecutor(_GRACE_S, java.util.concurrent.TimeUnit.SECONDS)
    watched.get().onExit().thenRunAsync(_halting(java, gateway), later)
    java.lang.System.setProperty(_MARK, own)


def _halting(java: Any, gateway: Any) -> Any:
    """Return what halts Java when it is run."""
    runtime, invoke = java.lang.Runtime.getRuntime(), java.lang.invoke
    kind = invoke.MethodType.methodType(java.lang.Void.TYPE, java.lang.Integer.TYPE)
    halt = invoke.MethodHandles.publicLookup().findVirtual(runtime.getClass(), "halt", kind).bindTo(runtime)
    status = gateway.new_array(java.lang.Object, 1)
    status[0] = 1
    halt = invoke.MethodHandles.insertArguments(halt, 0, status)
    runnable = java.lang.Class.forName("java.lang.Runnable")
    return invoke.MethodHandleProxies.asInterfaceInstance(runnable, halt)
