"""A file system that is not this machine's, as far as Spark can tell: `viewfs`, with a link to a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

MOUNT = "fs.viewfs.mounttable.{name}.link./there"


def mount(spark: Any, folder: Path) -> str:
    """Let Spark see a folder in another file system; return its address there."""
    name = f"t{abs(hash(folder)):x}"
    spark._jsc.hadoopConfiguration().set(MOUNT.format(name=name), folder.as_uri())
    return f"viewfs://{name}/there"
