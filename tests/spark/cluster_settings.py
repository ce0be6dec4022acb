"""Settings for small clusters on this machine: small heaps, everything on 127.0.0.1."""

from __future__ import annotations

from tests.spark.conftest import SETTINGS

LOCAL_CLUSTER = "local-cluster[2,1,1024]"
CLUSTER = {
    **SETTINGS,
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.executor.defaultJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.locality.wait": "500ms",
}
