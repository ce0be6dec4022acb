"""Files in any file system that Spark reaches by Hadoop's interface: HDFS, object stores, viewfs.

Only the driver has a way to Java. Files get their names as those of Spark's own checkpoints do, by the
CheckpointFileManager that Spark has been told to use for the store; so whatever makes Spark's streams safe there makes
Whorl's epochs safe. The driver's process has folders of its own for what it reads (`layout`).
"""

from __future__ import annotations

import errno
import os
import platform
import shutil
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException

from whorl.diagnostics.errors import UserError
from whorl.hosts.spark.afar import take_chunks
from whorl.hosts.spark.carrying import chunks_of
from whorl.hosts.spark.layout import Lacking, Layout
from whorl.hosts.spark.store import Lock

T = TypeVar("T")
_RENEWED_S, _LEASE_S = 2.0, 10.0


class HadoopStore:
    """Files under an address. The session is pyspark's, hence Any; so are Java's objects."""

    shared = False

    def __init__(self, spark: Any, address: str) -> None:
        self.spark, self._made = spark, set[str]()
        here = Path(tempfile.mkdtemp(prefix="whorl-"))
        weakref.finalize(self, shutil.rmtree, here, ignore_errors=True)
        self.layout = Layout(here / "out", here / "in")
        try:
            with _as_os_error():
                root = self._java_path(address.rstrip("/"))
                self._files = root.getFileSystem(self._configuration)
                self.root = str(self._files.makeQualified(root).toString())
                self._manager = self._managers.create(root, self._configuration)
        except OSError as error:
            reason = f"Spark does not reach it: {error.strerror}"
            raise UserError("E828", None, path=address, reason=reason) from None

    @cached_property
    def _configuration(self) -> Any:
        return self.spark._jsparkSession.sessionState().newHadoopConf()

    @property
    def _managers(self) -> Any:
        streaming = self.spark._jvm.org.apache.spark.sql.execution.streaming
        return streaming.checkpointing.CheckpointFileManager

    def _java_path(self, text: str) -> Any:
        return self.spark._jvm.org.apache.hadoop.fs.Path(text)

    def _at(self, path: Path) -> Any:
        return self._java_path(self.address(path))

    def address(self, path: Path) -> str:
        """Return the address of a file or folder."""
        name = self.layout.name(path)
        return self.root if name == "." else f"{self.root}/{name}"

    def read(self, path: Path) -> bytes:
        """Return the content of a file."""
        with _as_os_error():
            stream = self._manager.open(self._at(path))
            try:
                return bytes(stream.readAllBytes())
            finally:
                stream.close()

    def write(self, path: Path, content: bytes, *, durable: bool = False) -> None:
        """Write a file as a whole, in place of the one that is there. It is as durable as the store makes it."""
        self._create(path, content, lambda: None, replacing=True)

    def commit(self, path: Path, content: bytes, before_name: Callable[[], None]) -> None:
        """Write a file that must not be there."""
        self._create(path, content, before_name, replacing=False)

    def _create(self, path: Path, content: bytes, before_name: Callable[[], None], *, replacing: bool) -> None:
        with _as_os_error():
            self.make(path.parent)
            stream = self._manager.createAtomic(self._at(path), replacing)
            try:
                stream.write(content)
                before_name()
                stream.close()
            except BaseException:
                stream.cancel()
                raise

    def exists(self, path: Path) -> bool:
        """Whether there is such a file or folder."""
        with _as_os_error():
            return bool(self._files.exists(self._at(path)))

    def names(self, folder: Path) -> list[str]:
        """Return what is in a folder, in order; nothing if there is none."""
        try:
            with _as_os_error():
                return sorted(str(each.getPath().getName()) for each in self._files.listStatus(self._at(folder)))
        except FileNotFoundError:
            return []

    def files(self, name: str) -> list[str]:
        """Return the addresses of a file, or of all files in a folder that are not packed."""
        try:
            with _as_os_error():
                listed = self._files.listFiles(self._java_path(f"{self.root}/{name}"), True)  # noqa: FBT003
                found: list[str] = []
                while listed.hasNext():
                    found.append(str(listed.next().getPath().toString()))
        except FileNotFoundError:
            return []
        return [each for each in found if "/pack/" not in each[len(self.root) :]]

    def make(self, folder: Path) -> None:
        """Make a folder, unless it is there."""
        name = self.layout.name(folder)
        if name not in self._made:
            with _as_os_error():
                self._files.mkdirs(self._at(folder))
            if name.count("/") == 0:  # those at the top stay
                self._made.add(name)

    def move(self, staged: Path, target: Path) -> None:
        """Give a folder another name. Where that is no single step, what is left of it is done file by file."""
        with _as_os_error():
            if not self._files.exists(self._at(target)):
                self.make(target.parent)
                if not self._files.rename(self._at(staged), self._at(target)):
                    raise OSError(errno.ENOENT, f"{self.address(staged)} could not be renamed")
                return
            for name in self.names(staged):
                if not self._files.exists(self._at(target / name)):
                    self._files.rename(self._at(staged / name), self._at(target / name))

    def remove(self, path: Path) -> None:
        """Remove a file, or a folder with all that is in it; it may be gone already."""
        with _as_os_error():
            self._files.delete(self._at(path), True)  # noqa: FBT003 - Java's order

    def lock(self) -> Lock:
        """Hold the folder by a lease."""
        try:
            return Lease(self)
        except OSError as error:
            raise UserError("E820", None, path=self.root, reason=error.strerror or str(error)) from None

    def reading(self, read: Callable[[Layout], T]) -> T:
        """Read paths of the layout; what this process lacks is fetched."""
        absent: set[str] = set()
        try:
            while True:
                try:
                    return read(replace(self.layout, absent=absent))
                except Lacking as lacking:
                    absent |= self._fetch(lacking.names)
        finally:
            assert self.layout.fetched is not None, "this process has a folder for it"
            shutil.rmtree(self.layout.fetched, ignore_errors=True)

    def _fetch(self, names: tuple[str, ...]) -> set[str]:
        frame, absent = chunks_of(self, names)
        if frame is not None:
            take_chunks(self.layout, names, frame.toArrow().to_batches())
        return absent


class Lease:
    """A file that says who holds a folder, written anew every other second.

    Whoever finds one waits for a while: if it is written anew, somebody is there. A holder of this machine whose
    process has ended is passed over at once.
    """

    def __init__(self, store: HadoopStore) -> None:
        self._store, self._path = store, store.layout.run / "lock"
        self._owner, self._beat, self._ended = f"{platform.node()} {os.getpid()} {uuid4().hex}", 0, threading.Event()
        self._turn = threading.Lock()  # while a file is replaced there is none for a moment, in some stores
        self._await_others()
        self._renew()
        threading.Thread(target=self._keep, daemon=True, name="whorl-lease").start()

    def _await_others(self) -> None:
        found = self._read() or self._read_again()
        deadline = time.monotonic() + _LEASE_S
        while found and not _has_ended(found):
            if (self._read() or self._read_again()) != found:
                raise UserError("E813", None, path=self._store.root)
            if time.monotonic() > deadline:
                return
            time.sleep(0.2)

    def _read(self) -> str:
        try:
            return self._store.read(self._path).decode()
        except FileNotFoundError:
            return ""

    def _read_again(self) -> str:
        """Read what was not there: perhaps it was just being replaced."""
        time.sleep(0.1)
        return self._read()

    def _renew(self) -> None:
        self._beat += 1
        self._store.write(self._path, f"{self._owner} {self._beat}".encode())

    def _keep(self) -> None:
        while not self._ended.wait(_RENEWED_S):
            try:
                with self._turn:
                    if not self._read().startswith(self._owner):
                        return
                    self._renew()
            except (OSError, Py4JError):  # Spark has ended, or the store is away for a while
                continue

    def check(self) -> None:
        """Raise if another driver has taken the folder."""
        with self._turn:
            held = self._read().startswith(self._owner)
        if not held:
            raise UserError("E813", None, path=self._store.root)

    def close(self) -> None:
        """Let another driver have the folder."""
        if self._ended.is_set():
            return
        self._ended.set()
        try:
            with self._turn:
                if self._read().startswith(self._owner):
                    self._store.remove(self._path)
        except (OSError, Py4JError):
            return


def _has_ended(owner: str) -> bool:
    """Whether the holder was a process of this machine that has ended."""
    machine, process, *_rest = owner.split()
    if machine != platform.node():
        return False
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False


@contextmanager
def _as_os_error() -> Iterator[None]:
    """Turn what Java says of files into what Python does."""
    try:
        yield
    except Py4JJavaError as error:
        kind = str(error.java_exception.getClass().getSimpleName())
        reason = str(error.java_exception.getMessage() or kind).splitlines()[0].rstrip(".")
        raise _os_error(kind, reason) from None
    except PySparkException as error:
        raise OSError(errno.EIO, str(error).splitlines()[0].rstrip(".")) from None


def _os_error(kind: str, reason: str) -> OSError:
    number = {"FileNotFoundException": errno.ENOENT, "FileAlreadyExistsException": errno.EEXIST}.get(kind, errno.EIO)
    return OSError(number, reason)
