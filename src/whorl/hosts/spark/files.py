"""Files that are there as a whole or not at all: written under another name, then given their own."""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from uuid import uuid4


def write_file(path: Path, content: bytes, *, durable: bool) -> None:
    """Write a file; with ``durable``, its content is on the disk when this returns. Writers never meet in one name.

    The name itself is there for good once the folder is synced, or any later file: names are kept in their order.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.parent / f".{path.name}.{uuid4().hex[:8]}.tmp"
    with temporary.open("wb") as file:
        file.write(content)
        if durable:
            file.flush()
            os.fsync(file.fileno())
    temporary.replace(path)


def sync_folder(folder: Path) -> None:
    """Put the names in a folder on the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def checksum(content: bytes) -> int:
    """Return the checksum that tells a file from a damaged one."""
    return zlib.crc32(content)
