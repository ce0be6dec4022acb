"""A checkpoint that is read and not held: the state as of an epoch, while its query runs or afterwards.

A running query forgets old states and the log before them. So a reader that has begun with an epoch may find a file
gone; then it begins again, with the epoch that counts by now.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from whorl.diagnostics.errors import UserError
from whorl.hosts.spark.checkpoint import Identity, check_program, read_identity
from whorl.hosts.spark.layout import START, epoch_of
from whorl.hosts.spark.manifest import last_manifest
from whorl.hosts.spark.rebuilding import Written, rebuild
from whorl.hosts.spark.store import PathStore, Store, folder_of
from whorl.kernel.partition import Partition
from whorl.logical.intake import Compile
from whorl.model.limits import Limits
from whorl.physical.lower import lower_plan

T = TypeVar("T")


def read_state(
    folder: Path, compile_plan: Compile, limits: Limits, strategy: str = "auto", epoch: int | None = None
) -> Partition:
    """Return one partition with all of a checkpoint's state, as of its last epoch or an earlier one."""
    store, found = _open(folder)
    plan = lower_plan(compile_plan(found.data_types), strategy)
    check_program(store, found, plan)
    return steadily(lambda: _until(_last(store, found), epoch), lambda written: rebuild(written, plan, limits))


def kept_epochs(folder: Path) -> tuple[int, int]:
    """Return the first and the last epoch of which a checkpoint has the state; 0 is before the first of all."""
    history = _last(*_open(folder)).history
    return epoch_of(history[0]), epoch_of(history[-1])


def _open(folder: Path) -> tuple[Store, Identity]:
    store = PathStore(folder_of(folder).absolute())
    if not store.exists(store.layout.identity):
        raise UserError("E819", None, path=folder)
    return store, read_identity(store)


def steadily(find: Callable[[], Written], read: Callable[[Written], T]) -> T:
    """Read the state that counts; again, if another counts by now and the files of the first have gone."""
    written = find()
    while True:
        try:
            return read(written)
        except UserError:
            newer = find()
            if newer.history[-1] == written.history[-1]:
                raise
            written = newer


def _last(store: Store, found: Identity) -> Written:
    manifest = found.start(last_manifest(store))
    if manifest is None:
        return Written(store.layout, (START,), (), None, found.partitions, found.split)
    return found.written(store.layout, manifest)


def _until(written: Written, epoch: int | None) -> Written:
    """Return the state as of an epoch; raise if the files do not go back so far, or have not come so far."""
    if epoch is None:
        return written
    first, last = epoch_of(written.history[0]), epoch_of(written.history[-1])
    if not first <= epoch <= last:
        raise UserError("E827", None, path=written.layout.folder, epoch=epoch, first=first, last=last)
    return replace(written, history=[token for token in written.history if epoch_of(token) <= epoch])
