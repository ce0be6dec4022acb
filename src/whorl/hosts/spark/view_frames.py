"""Views and their changes as data frames, from the files of a deployment."""

from __future__ import annotations

from typing import Any

from pyspark.sql import functions as F  # noqa: N812 - as everybody writes it
from pyspark.sql import types as spark_types

from whorl.diagnostics.errors import UserError
from whorl.diagnostics.names import suggest
from whorl.hosts.spark.lanes import Frame
from whorl.hosts.spark.layout import epoch_of
from whorl.hosts.spark.manifest import Manifest
from whorl.hosts.spark.store import Store
from whorl.hosts.spark.view_files import EPOCH, OPERATION, column_names
from whorl.logical.plan import LogicalPlan, Output
from whorl.model.types import Type

_TYPES = {
    Type.INTEGER: spark_types.LongType(),
    Type.TIMESTAMP: spark_types.LongType(),
    Type.FLOAT: spark_types.DoubleType(),
    Type.BOOLEAN: spark_types.BooleanType(),
}


def find_output(plan: LogicalPlan, view: str) -> Output:
    """Return an output by name; raise if there is none."""
    names = [output.name for output in plan.outputs]
    if view not in names:
        hint = suggest(view, names) or f"Views: {', '.join(names) or 'none'}."
        raise UserError("E601", None, name=view, hint=hint)
    return plan.outputs[names.index(view)]


def view_schema(output: Output, *, changes: bool) -> Any:
    """Return the schema of a view, or of its changes. Lists and terms are text."""
    fields = [
        spark_types.StructField(name, _TYPES.get(kind, spark_types.StringType()))
        for name, kind in zip(column_names(output), output.types, strict=True)
    ]
    if changes or not fields:
        fields.append(spark_types.StructField(EPOCH, spark_types.LongType()))
    if changes:
        fields.append(spark_types.StructField(OPERATION, spark_types.StringType()))
    return spark_types.StructType(fields)


def stream_changes(spark: Any, store: Store, output: Output) -> Frame:
    """Return the changes of epochs that count, as a frame that streams."""
    folder = store.layout.changes(output.name)
    store.make(folder)
    reader = spark.readStream.schema(view_schema(output, changes=True)).option("recursiveFileLookup", "true")
    return reader.parquet(store.address(folder))


def read_changes(spark: Any, store: Store, output: Output, after: int, until: int) -> Frame:
    """Return the changes of epochs that count: those behind ``after``, up to ``until``."""
    schema = view_schema(output, changes=True)
    folder = store.layout.changes(output.name)
    names = [name for name in store.names(folder) if after < int(name.removeprefix("epoch-")) <= until]
    wanted = [store.address(folder / name) for name in names]
    return spark.read.schema(schema).parquet(*wanted) if wanted else spark.createDataFrame([], schema)


def read_snapshot(spark: Any, store: Store, output: Output, last: Manifest | None) -> Frame:
    """Return the rows of a view as of the last epoch that counts: those saved last, and what changed since."""
    epoch = 0 if last is None else last.epoch
    saved = last.snapshots[-1] if last is not None and last.snapshots else None
    changed = read_changes(spark, store, output, 0 if saved is None else epoch_of(saved), epoch)
    weight = F.when(F.col(OPERATION) == "+", 1).otherwise(-1).alias("_weight")
    names = column_names(output)
    weighed = changed.select(*names, weight)
    if saved is not None:
        folder = store.address(store.layout.saved_view(saved, output.name))
        rows = spark.read.schema(view_schema(output, changes=False)).parquet(folder)
        weighed = weighed.unionByName(rows.select(*names, F.lit(1).alias("_weight")))
    return weighed.groupBy(*names).agg(F.sum("_weight").alias("_weight")).where("_weight > 0").select(*names)
