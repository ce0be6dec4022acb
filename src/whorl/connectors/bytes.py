"""Files as bytes and as text, compressed or not, with word of how much was read."""

from __future__ import annotations

import gzip
import io
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, TypeAlias

Advance: TypeAlias = Callable[[int], None]  # is told how many bytes were read


class _Counted(io.RawIOBase):
    """A file that tells how much of it was read."""

    def __init__(self, path: Path, advance: Advance) -> None:
        self._file = path.open("rb", buffering=0)
        self._advance = advance

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:  # Any: the library takes whatever can be written to
        count = self._file.readinto(buffer) or 0
        self._advance(count)
        return count

    def close(self) -> None:
        self._file.close()
        super().close()


def open_bytes(path: Path, advance: Advance | None = None) -> IO[bytes]:
    """Open a file for reading, without its compression."""
    raw = io.BufferedReader(_Counted(path, advance or (lambda _count: None)), 1 << 20)
    if path.name.lower().endswith(".gz"):
        return io.BufferedReader(gzip.GzipFile(fileobj=raw), 1 << 20)
    return raw


def open_text(path: Path) -> IO[str]:
    """Open a file as text, without its compression and its byte order mark; what is no UTF-8 is replaced."""
    return io.TextIOWrapper(open_bytes(path), encoding="utf-8-sig", errors="replace", newline="")
