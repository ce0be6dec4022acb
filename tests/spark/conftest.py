"""One small Spark session for all tests of a process, on this machine only."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import Any

import pytest

os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
os.environ["PYSPARK_PYTHON"] = sys.executable  # workers see what the tests see

SETTINGS = {
    "spark.driver.memory": "700m",
    "spark.sql.shuffle.partitions": "2",
    "spark.task.maxFailures": "4",
    # One compiler is enough for short tests, and starts sooner.
    "spark.driver.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    from whorl.hosts.spark.session import spark_session

    session = spark_session("local[2]", SETTINGS)
    yield session
    session.stop()
