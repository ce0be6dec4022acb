"""A worker whose machine does not share the folder of the deployment.

It works in a folder of its own, among those that Spark removes when the application ends: `out` has what it wrote, `in`
what it was given, `held` what is too large to go with a reply and waits to be carried away as rows
(`hosts/spark/carrying.py`). A large view goes as its own rows; other files as *chunks*: name, place in the file, bytes.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from uuid import uuid4

import pyarrow as pa
import pyarrow.parquet as pq

from whorl.hosts.spark.layout import Layout, is_table, unit_of

PARTITION = "WHORL_PARTITION"  # of a worker's environment: the partition that it is for
CHUNKS = pa.schema([("name", pa.string()), ("start", pa.int64()), ("content", pa.binary())])
_CHUNK_BYTES = 4 << 20
_BATCH_ROWS = 50_000


def own_layout(deployment: str, absent: Collection[str]) -> Layout:
    """Return the paths of this machine's folder for the partition of this worker."""
    place = os.environ.get("SPARK_LOCAL_DIRS", "").split(",")[0] or tempfile.gettempdir()
    root = Path(place) / f"whorl-{deployment}" / os.environ[PARTITION]
    return Layout(root / "out", root / "in", absent)


def hand_over(layout: Layout, most: int) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """Return the files that were written: small ones whole, of large ones the folders that are held from now on.

    What was given is used up, save what every epoch needs.
    """
    inputs = _inputs(layout)
    for folder in ("log", "state", "run/letters", "run/facts"):
        shutil.rmtree(inputs / folder, ignore_errors=True)
    whole: dict[str, bytes] = {}
    held: list[str] = []
    for unit, paths in _units(layout).items():
        if unit is None or sum(path.stat().st_size for path in paths) <= most:
            whole |= {layout.name(path): path.read_bytes() for path in paths}
        else:
            held.append(unit)
    if held:
        shutil.rmtree(_held(layout), ignore_errors=True)
    for unit in held:
        target = _held(layout) / unit
        target.parent.mkdir(parents=True, exist_ok=True)
        (layout.folder / unit).replace(target)
    shutil.rmtree(layout.folder, ignore_errors=True)
    return whole, tuple(held)


def _units(layout: Layout) -> Mapping[str | None, list[Path]]:
    """Return the files that were written, by the folder that they would be carried away with."""
    found: dict[str | None, list[Path]] = {}
    for path in sorted(layout.folder.rglob("*")):
        if path.is_file() and not path.name.startswith("."):
            found.setdefault(unit_of(layout.name(path)), []).append(path)
    return found


def read_held(layout: Layout, unit: str, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """Yield what is held of a folder, as rows of a view or as chunks."""
    folder = _held(layout) / unit
    if not folder.is_dir():
        raise FileNotFoundError(folder)
    paths = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    if is_table(unit):
        for path in paths:
            for batch in pq.ParquetFile(path).iter_batches(_BATCH_ROWS):
                yield from pa.Table.from_batches([batch]).cast(schema).to_batches()
        return
    for path in paths:
        name = path.relative_to(_held(layout)).as_posix()
        for start, content in _pieces(path):
            yield pa.record_batch([[name], [start], [content]], schema=CHUNKS)


def _pieces(path: Path) -> Iterator[tuple[int, bytes]]:
    with path.open("rb") as file:
        start = 0
        while content := file.read(_CHUNK_BYTES):
            yield start, content
            start += len(content)


def take_chunks(layout: Layout, names: Sequence[str], chunks: Iterable[pa.RecordBatch]) -> None:
    """Put files where this machine reads them; each of the names appears as a whole."""
    inputs = _inputs(layout)
    temporary = inputs / f".{uuid4().hex[:8]}.tmp"
    for batch in chunks:
        for chunk in batch.to_pylist():
            path = temporary / chunk["name"]
            path.parent.mkdir(parents=True, exist_ok=True)
            with path.open("r+b" if path.exists() else "wb") as file:
                file.seek(chunk["start"])
                file.write(chunk["content"])
    for name in names:
        if (temporary / name).exists():
            target = inputs / name
            shutil.rmtree(target, ignore_errors=True)
            target.parent.mkdir(parents=True, exist_ok=True)
            (temporary / name).replace(target)
    shutil.rmtree(temporary, ignore_errors=True)


def _inputs(layout: Layout) -> Path:
    assert layout.fetched is not None, "machines do not share the folder"
    return layout.fetched


def _held(layout: Layout) -> Path:
    return layout.folder.with_name("held")
