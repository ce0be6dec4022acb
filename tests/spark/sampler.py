"""A driver that runs some golden cases and a streaming query: `python -m tests.spark.sampler FOLDER MASTER`.

It reads `FOLDER/in` and keeps `FOLDER/ckpt`; the files of sessions lie in `FOLDER/shared`.
"""

from __future__ import annotations

import sys
from pathlib import Path

import whorl
from tests.golden_cases import cases
from tests.spark.cluster_settings import CLUSTER
from tests.spark.driver import SCHEMA
from tests.spark.feeding import REACH

SAMPLE = cases()[::12]


def main(folder: Path, master: str) -> None:
    spark = whorl.spark_session(master, CLUSTER)
    assert spark.sparkContext.master == master
    (folder / "shared").mkdir()
    for case in SAMPLE:
        case.check(whorl.SparkHost(spark, partitions=3, folder=folder / "shared"))
        print("golden", case.name, flush=True)
    frame = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder / "in"))
    query = whorl.stream(
        spark, REACH, {"link": frame}, checkpoint=folder / "ckpt", snapshot_every=2, trigger={"availableNow": True}
    )
    query.awaitTermination()
    query.stop()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
