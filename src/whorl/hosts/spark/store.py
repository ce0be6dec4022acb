"""Where the files of a deployment are: under a path that all machines share, or in a file system that Spark reaches.

The driver does everything with files through a store, and names them by the paths of its `layout`. A store that is
shared lets workers read and write the same paths themselves. One that is not gives every machine a folder of its own
instead, and files travel with jobs: small ones come back with the replies, large ones are written by Spark
(`hosts/spark/carrying.py`), and a worker that lacks a file says so (`layout.Lacking`) and is given it.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from os import PathLike, fspath
from pathlib import Path
from typing import Protocol, TypeVar
from uuid import uuid4

from whorl.diagnostics.errors import UserError
from whorl.hosts.spark.files import sync_folder, write_file
from whorl.hosts.spark.layout import Layout

T = TypeVar("T")
_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]+):/+", re.IGNORECASE)


class Lock(Protocol):
    """A folder that is held."""

    def check(self) -> None:
        """Raise if another driver holds it by now."""

    def close(self) -> None:
        """Let another driver have it."""


class Store(Protocol):
    """The files of one deployment. What fails for the file system's sake is an OSError."""

    layout: Layout

    @property
    def shared(self) -> bool:
        """Whether workers read and write the paths of the layout themselves."""

    def address(self, path: Path) -> str:
        """Return what Spark's readers and people call a file or folder."""

    def read(self, path: Path) -> bytes:
        """Return the content of a file."""

    def write(self, path: Path, content: bytes, *, durable: bool = False) -> None:
        """Write a file as a whole, in place of the one that is there."""

    def commit(self, path: Path, content: bytes, before_name: Callable[[], None]) -> None:
        """Write a file that is there for good when this returns; ``before_name`` is called before it has its name."""

    def exists(self, path: Path) -> bool:
        """Whether there is such a file or folder."""

    def names(self, folder: Path) -> list[str]:
        """Return what is in a folder, in order; nothing if there is none."""

    def make(self, folder: Path) -> None:
        """Make a folder, unless it is there."""

    def move(self, staged: Path, target: Path) -> None:
        """Give a folder another name; if that was done before, do what is left of it."""

    def remove(self, path: Path) -> None:
        """Remove a file, or a folder with all that is in it; it may be gone already."""

    def lock(self) -> Lock:
        """Hold the folder; raise if another driver does."""

    def reading(self, read: Callable[[Layout], T]) -> T:
        """Read paths of the layout in this process."""


class PathStore:
    """Files under a path that all machines share."""

    shared = True

    def __init__(self, folder: Path) -> None:
        self.layout = Layout(folder)

    def address(self, path: Path) -> str:
        """Return the path."""
        return str(path)

    def read(self, path: Path) -> bytes:
        """Return the content of a file."""
        return path.read_bytes()

    def write(self, path: Path, content: bytes, *, durable: bool = False) -> None:
        """Write a file as a whole, in place of the one that is there."""
        write_file(path, content, durable=durable)

    def commit(self, path: Path, content: bytes, before_name: Callable[[], None]) -> None:
        """Write a file in one rename, and put its name on the disk."""
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.parent / f".{path.name}.{uuid4().hex[:8]}.tmp"
        with temporary.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        before_name()
        temporary.replace(path)
        sync_folder(path.parent)

    def exists(self, path: Path) -> bool:
        """Whether there is such a file or folder."""
        return path.exists()

    def names(self, folder: Path) -> list[str]:
        """Return what is in a folder, in order; nothing if there is none."""
        return sorted(os.listdir(folder)) if folder.is_dir() else []

    def make(self, folder: Path) -> None:
        """Make a folder, unless it is there."""
        folder.mkdir(parents=True, exist_ok=True)

    def move(self, staged: Path, target: Path) -> None:
        """Give a folder another name, in one rename; if it has that already, nothing is left to do."""
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            staged.replace(target)

    def remove(self, path: Path) -> None:
        """Remove a file, or a folder with all that is in it; it may be gone already."""
        if path.is_dir():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)

    def lock(self) -> Lock:
        """Hold the folder, until this process ends or lets go."""
        return _FileLock(self.layout)

    def reading(self, read: Callable[[Layout], T]) -> T:
        """Read paths of the layout."""
        return read(self.layout)


class _FileLock:
    """A lock of the operating system."""

    def __init__(self, layout: Layout) -> None:
        try:
            layout.run.mkdir(parents=True, exist_ok=True)
            self._file = (layout.run / "lock").open("w", encoding="utf-8")
        except OSError as error:
            raise UserError("E820", None, path=layout.folder, reason=error.strerror or str(error)) from None
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self._file.close()
            raise UserError("E813", None, path=layout.folder) from None

    def check(self) -> None:
        """Nobody can take it away."""

    def close(self) -> None:
        """Let another driver have the folder."""
        self._file.close()


def far_address(given: str | PathLike[str]) -> str | None:
    """Return the address of a folder in another file system than this machine's; None if it has a path."""
    text = fspath(given)
    address = _ADDRESS.match(text)
    if address is None or address[1].lower() == "file":
        return None
    return text if isinstance(given, str) else f"{address[1]}://{text[address.end() :]}"


def folder_of(given: str | PathLike[str]) -> Path:
    """Return a folder that was given as a path, or as an address of a file; raise if it has no path."""
    if far_address(given) is not None:
        raise UserError("E828", None, path=given, reason="Without Spark, files are read under a path only")
    address = _ADDRESS.match(fspath(given))
    return Path(given) if address is None else Path("/" + fspath(given)[address.end() :])


def temporary_folder(within: Path | None) -> Path:
    """Make a folder for the life of a session; by default where this machine keeps such."""
    try:
        return Path(tempfile.mkdtemp(prefix="whorl-", dir=within))
    except OSError as error:
        raise UserError(
            "E820", None, path=within or tempfile.gettempdir(), reason=error.strerror or str(error)
        ) from None
