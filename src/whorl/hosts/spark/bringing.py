"""A micro-batch on its way into the job of its epoch. Nothing runs here; the job is asked for afterwards.

All partitions read the rows from one place. So that the source is read once, and that all partitions see the same rows,
a shuffle brings them there: Spark's first stage reads, its second steps the kernel. A single partition needs none. Many
rows are routed in the first stage, and only notes on them go through the shuffle; but for this, tasks must share files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, TypeAlias

from pyspark import cloudpickle
from pyspark.sql.pandas.types import to_arrow_schema

from whorl.hosts.spark.lanes import Frame, Lane
from whorl.hosts.spark.store import Store
from whorl.hosts.spark.taking import Reader

SMALL_ROWS = 50_000
SMALL_BYTES = 8 << 20
_CHUNK = 100_000  # rows of an Arrow batch, if there are many
JavaRdd: TypeAlias = Any  # py4j's view of a JavaRDD of bytes


@dataclass(frozen=True, slots=True)
class Arriving:
    """Rows that wait for a job: batches of Arrow, and what names the file that tells how to read them."""

    rows: JavaRdd
    reader: str
    many: bool


@dataclass(frozen=True, slots=True)
class Bringer:
    """Turns frames of one schema into what a job takes."""

    store: Store
    reader: str

    def bring(self, frame: Frame, epoch: int, last_rows: int | None) -> Arriving:
        """Let the rows of a frame wait for a job; ``last_rows`` is how many came before, None before the first."""
        self.store.remove(self.store.layout.quarantine(epoch))
        size = estimate(frame)
        few = size <= SMALL_BYTES if size is not None else last_rows is not None and last_rows <= SMALL_ROWS
        batches = frame._jdf.toArrowBatchRdd(0 if few else _CHUNK, "UTC", True, False)  # noqa: FBT003 - Java's order
        return Arriving(batches.toJavaRDD(), self.reader, not few and self.store.shared)


def bringer_for(frame: Frame, lanes: Sequence[Lane], store: Store) -> Bringer:
    """Return what brings frames with the schema of a gathered one; the workers find it in the folder."""
    schema = to_arrow_schema(frame.schema, error_on_duplicated_field_names_in_struct=True, timezone="UTC")
    content = cloudpickle.dumps(Reader(lanes, schema))
    digest = sha256(content).hexdigest()[:16]
    store.write(store.layout.reader(digest), content)
    return Bringer(store, digest)


def estimate(frame: Frame) -> int | None:
    """Return Spark's guess at the size of a frame in bytes, None if it has none."""
    size = int(str(frame._jdf.queryExecution().optimizedPlan().stats().sizeInBytes()))
    return None if size >= 1 << 60 else size
