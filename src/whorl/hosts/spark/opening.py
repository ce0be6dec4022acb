"""The store of a folder that was given: by a path, or by an address that Spark reaches."""

from __future__ import annotations

from os import PathLike
from typing import Any
from uuid import uuid4

from py4j.protocol import Py4JError

from whorl.hosts.spark.hadoop import HadoopStore
from whorl.hosts.spark.store import PathStore, Store, far_address, folder_of, temporary_folder


def open_store(spark: Any, given: str | PathLike[str]) -> Store:
    """Return the store of a folder."""
    address = far_address(given)
    return PathStore(folder_of(given).absolute()) if address is None else HadoopStore(spark, address)


def temporary_store(spark: Any, within: str | PathLike[str] | None) -> Store:
    """Return a store for the life of a session, within a folder; by default where this machine keeps such."""
    address = None if within is None else far_address(within)
    if address is not None:
        return HadoopStore(spark, f"{address.rstrip('/')}/whorl-{uuid4().hex[:8]}")
    return PathStore(temporary_folder(None if within is None else folder_of(within)))


def discard(store: Store) -> None:
    """Remove all that a store has, if it can still be reached."""
    try:
        store.remove(store.layout.folder)
    except (OSError, Py4JError):
        return
