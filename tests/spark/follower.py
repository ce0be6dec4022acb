"""A driver that follows a folder until it is told to stop: `python -m tests.spark.follower FOLDER MASTER`.

It reads `FOLDER/in`, keeps `FOLDER/ckpt`, and ends when `FOLDER/stop` is there and everything is in the views. While
`FOLDER/hold` is there, a worker that comes to evaluate a row writes its id to `FOLDER/held` and goes no further.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import whorl
from tests.spark.cluster_settings import CLUSTER
from tests.spark.feeding import REACH

SCHEMA = "op string, x string, y string"
PROGRAM = REACH.replace("reachable(X, Y) :- link(X, Y).", "reachable(X, Z) :- link(X, Y), Z = same(Y).")


def main(folder: Path, master: str) -> None:
    @whorl.function
    def same(x: str) -> str:
        if (folder / "hold").exists():
            (folder / "held").write_text(str(os.getpid()))
            while (folder / "hold").exists():
                time.sleep(0.01)
        return x

    spark = whorl.spark_session(master, CLUSTER)
    frame = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder / "in"))
    checkpoint = folder / "ckpt"
    query = whorl.stream(
        spark, PROGRAM, {"link": frame}, checkpoint=checkpoint, functions=[same], partitions=2, snapshot_every=3
    )
    while not (folder / "stop").exists():
        query.awaitTermination(0.1)
    query.processAllAvailable()
    query.stop()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
