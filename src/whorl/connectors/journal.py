"""Messages on disk, numbered from 0, for sources that cannot be asked for a message again.

A journal is a folder of segments, each named by the number of its first message. A message is one line: a checksum,
a space, and JSON. `append` returns when the lines are on the disk, so whoever sent them may then be told. A line that
a crash left unfinished was never acknowledged; whoever opens the journal to write cuts it off.

One process may write, any may read. Reading from n to m gives the same messages as long as nobody pruned beyond n.
"""

from __future__ import annotations

import fcntl
import json
import os
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from time import monotonic, sleep
from typing import IO

from whorl.diagnostics.errors import UserError

SEGMENT_MESSAGES = 10_000


@dataclass(frozen=True, slots=True)
class Message:
    """What arrived, where it was published, and when it came, in seconds since 1970."""

    topic: str
    payload: bytes
    received: float


class Journal:
    """A journal to read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._last_read: tuple[int, Path, int] | None = None  # number, segment, place in it

    def segments(self) -> list[tuple[int, Path]]:
        """Return the segments with the number of their first message, in order."""
        return sorted((int(path.stem), path) for path in self.folder.glob("*.log"))

    @property
    def first(self) -> int:
        """The number of the first message that is kept."""
        return next((number for number, _path in self.segments()), 0)

    def read(self, start: int, end: int) -> Iterator[Message]:
        """Yield messages ``start`` up to, not with, ``end``; raise if one of them is not there."""
        number = start
        for path, offset in self._places(start):
            with path.open("rb") as file:
                file.seek(offset)
                while number < end and (message := _decode(file.readline())) is not None:
                    yield message
                    number += 1
                self._last_read = (number, path, file.tell())
            if number >= end:
                return
        if number < end:
            raise UserError("E754", None, path=self.folder, wanted=number, first=self.first)

    def _places(self, start: int) -> Iterator[tuple[Path, int]]:
        """Yield the segments to read, each with the place where to begin."""
        segments = self.segments()
        at = max((place for place, (number, _path) in enumerate(segments) if number <= start), default=None)
        if at is None:
            return
        number, path = segments[at]
        known = self._last_read
        if known is not None and known[:2] == (start, path):
            yield path, known[2]
        else:
            yield path, _skip(path, start - number)
        for _number, later in segments[at + 1 :]:
            yield later, 0


class JournalWriter(Journal):
    """A journal to write, which nobody else may at the same time."""

    def __init__(self, folder: Path, *, wait_s: float = 10.0) -> None:
        super().__init__(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = _take_lock(folder, wait_s)
        except OSError as error:
            raise UserError("E752", None, path=folder, reason=error.strerror or str(error)) from None
        segments = self.segments()
        start, path = segments[-1] if segments else (0, folder / f"{0:020}.log")
        self._start, self._file = start, path.open("ab")
        self.end = start + _repair(path)
        _sync(folder)

    def append(self, messages: Sequence[Message]) -> None:
        """Write messages; when this returns they are on the disk."""
        if self.end - self._start >= SEGMENT_MESSAGES:
            self._roll()
        self._file.write(b"".join(map(_encode, messages)))
        self._file.flush()
        os.fdatasync(self._file.fileno())
        self.end += len(messages)

    def prune(self, upto: int) -> None:
        """Forget segments of which every message comes before ``upto``; the last one stays, it has the numbers."""
        segments = self.segments()
        for (_number, path), (following, _path) in pairwise(segments):
            if following <= upto:
                path.unlink()

    def close(self) -> None:
        """Let others write."""
        self._file.close()
        self._lock.close()

    def _roll(self) -> None:
        self._file.close()
        self._start = self.end
        self._file = (self.folder / f"{self.end:020}.log").open("ab")
        _sync(self.folder)


def _take_lock(folder: Path, wait_s: float) -> IO[str]:
    """Lock the folder; a query that was stopped just now may hold it for a moment."""
    lock = (folder / "lock").open("w", encoding="utf-8")
    until = monotonic() + wait_s
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if monotonic() > until:
                lock.close()
                raise UserError("E753", None, path=folder) from None
            sleep(0.05)
        else:
            return lock


def _encode(message: Message) -> bytes:
    fields = [message.topic, message.payload.decode("latin-1"), message.received]
    content = json.dumps(fields).encode("ascii")
    return b"%08x %s\n" % (zlib.crc32(content), content)


def _decode(line: bytes) -> Message | None:
    """Return the message of a line, None if the line is not whole."""
    check, _space, content = line.rstrip(b"\n").partition(b" ")
    if not line.endswith(b"\n") or check != b"%08x" % zlib.crc32(content):
        return None
    topic, payload, received = json.loads(content)
    return Message(topic, payload.encode("latin-1"), received)


def _skip(path: Path, count: int) -> int:
    """Return where the line after so many begins."""
    with path.open("rb") as file:
        for _ in range(count):
            file.readline()
        return file.tell()


def _repair(path: Path) -> int:
    """Cut off what a crash left behind; return how many whole lines there are."""
    with path.open("r+b") as file:
        count, good = 0, 0
        while _decode(file.readline()) is not None:
            count, good = count + 1, file.tell()
        file.truncate(good)
    return count


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
