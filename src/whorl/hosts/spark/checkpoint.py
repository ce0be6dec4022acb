"""The folder of a streaming deployment: taken by one driver at a time, for one program."""

from __future__ import annotations

import fcntl
from dataclasses import dataclass
from pathlib import Path
from typing import IO
from uuid import uuid4

from whorl.diagnostics.errors import UserError
from whorl.hosts.spark.layout import Layout
from whorl.hosts.spark.manifest import Manifest, last_manifest, publish, read_sealed, write_sealed
from whorl.physical.fingerprint import fingerprint_layout, fingerprint_program
from whorl.physical.plan import PhysicalPlan


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A folder that this driver holds: its identity, its number of partitions, and the last epoch that counts."""

    layout: Layout
    identity: str
    partitions: int
    last: Manifest | None
    lock: IO[str]

    def release(self) -> None:
        """Let another driver have the folder."""
        self.lock.close()


def open_checkpoint(folder: Path, plan: PhysicalPlan, partitions: int | None, usual: int) -> Checkpoint:
    """Take a folder: a new one for this program, or one of this program to go on from."""
    layout = Layout(folder.absolute())
    lock = _lock(layout)
    try:
        if not layout.identity.exists():
            _check_empty(layout)
            _write_identity(layout, plan, usual if partitions is None else partitions)
        found = read_sealed(layout.identity)
        _check(layout, found, plan, partitions)
        last = last_manifest(layout)
        if last is not None:
            publish(layout, last)
    except BaseException:
        lock.close()
        raise
    return Checkpoint(layout, found["identity"], found["partitions"], last, lock)


def _lock(layout: Layout) -> IO[str]:
    try:
        layout.run.mkdir(parents=True, exist_ok=True)
        lock = (layout.run / "lock").open("w", encoding="utf-8")
    except OSError as error:
        raise UserError("E820", None, path=layout.folder, reason=error.strerror or str(error)) from None
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.close()
        raise UserError("E813", None, path=layout.folder) from None
    return lock


def _check_empty(layout: Layout) -> None:
    """Refuse a folder that somebody else uses for something else."""
    strange = [path.name for path in layout.folder.iterdir() if path.name != layout.run.name]
    if strange:
        raise UserError("E815", None, path=layout.folder, found=strange[0])


def _write_identity(layout: Layout, plan: PhysicalPlan, partitions: int) -> None:
    if partitions < 1:
        raise UserError("E681", None, found=partitions)
    content = {
        "identity": uuid4().hex,
        "program": fingerprint_program(plan.logical.program),
        "layout": fingerprint_layout(plan),
        "partitions": partitions,
    }
    write_sealed(layout.identity, content)


def _check(layout: Layout, found: dict[str, object], plan: PhysicalPlan, partitions: int | None) -> None:
    program, kept = fingerprint_program(plan.logical.program), fingerprint_layout(plan)
    if found["program"] != program:
        raise UserError("E810", None, path=layout.folder, found=found["program"], expected=program)
    if found["layout"] != kept:
        raise UserError("E811", None, path=layout.folder, found=found["layout"], expected=kept)
    if partitions not in (None, found["partitions"]):
        raise UserError("E812", None, path=layout.folder, found=found["partitions"], expected=partitions)
