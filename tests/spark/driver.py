"""A driver in a process of its own, to be killed: it follows a folder until all files are in the views.

`python -m tests.spark.driver FOLDER` reads `FOLDER/in` and keeps `FOLDER/ckpt`. It writes each epoch that it is told of
to `FOLDER/told`. `WHORL_TEST_AFAR` says that the checkpoint is in a file system that only Spark reaches; it is the
size from which files are large there.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import whorl
from tests.spark.afar import mount
from tests.spark.conftest import SETTINGS
from tests.spark.feeding import REACH
from whorl.hosts.spark import deployment

SCHEMA = "op string, x string, y string"


def _checkpoint(spark: Any, folder: Path) -> str | Path:
    afar = os.environ.get("WHORL_TEST_AFAR")
    if afar is None:
        return folder / "ckpt"
    deployment.MOST_BYTES = int(afar)
    return f"{mount(spark, folder)}/ckpt"


def main(folder: Path) -> None:
    spark = whorl.spark_session(os.environ.get("WHORL_TEST_MASTER", "local[2]"), SETTINGS)
    frame = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(str(folder / "in"))

    def tell(epoch: object) -> None:
        with (folder / "told").open("a") as file:
            file.write(f"{epoch.number}\n")  # type: ignore[attr-defined]

    query = whorl.stream(
        spark,
        REACH,
        {"link": frame},
        checkpoint=_checkpoint(spark, folder),
        partitions=2,
        trigger={"availableNow": True},
        snapshot_every=3,
        on_epoch=tell,
    )
    query.awaitTermination()
    query.stop()
    spark.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
