"""The folder of a streaming deployment: taken by one driver at a time, for one program.

A checkpoint may go on with another number of partitions or another strategy than it was written with. The partitions
that there shall be save the state as theirs, under a name of its own; then `deployment.json` is written anew and names
it. Until then the folder is what it was, and afterwards the last epoch starts from there.
"""

from __future__ import annotations

import fcntl
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO
from uuid import uuid4

from whorl.diagnostics.errors import UserError
from whorl.hosts.spark.deployment import Deployment
from whorl.hosts.spark.layout import Layout, epoch_of, folder_of, new_token
from whorl.hosts.spark.manifest import Manifest, last_manifest, publish, read_sealed, write_sealed
from whorl.hosts.spark.rebuilding import Written, split_names
from whorl.logical.intake import DataTypes
from whorl.model.types import Type
from whorl.physical.fingerprint import fingerprint_layout, fingerprint_program
from whorl.physical.plan import PhysicalPlan


@dataclass(frozen=True, slots=True)
class Identity:
    """Whose folder it is, and how its state is kept; `taken` names a state that came from other partitions."""

    identity: str
    program: str
    layout: str
    partitions: int
    split: Sequence[str] = ()
    types: Mapping[str, Sequence[str]] | None = None  # those that frames told
    taken: str | None = None

    def start(self, manifest: Manifest | None) -> Manifest | None:
        """Return the last manifest as the epoch after it sees it: a state that was taken over is all there is."""
        if manifest is None or self.taken is None or epoch_of(self.taken) != manifest.epoch:
            return manifest
        return replace(manifest, history=(self.taken,), snapshots=(self.taken,))

    def written(self, layout: Layout, manifest: Manifest) -> Written:
        """Return the state of an epoch as files have it."""
        return Written(layout, manifest.history, manifest.snapshots, None, self.partitions, self.split)

    @property
    def data_types(self) -> DataTypes:
        """The types that frames told."""
        return {name: [Type(each) for each in types] for name, types in (self.types or {}).items()}


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """A folder that this driver holds: its identity, and the last epoch that counts."""

    layout: Layout
    found: Identity
    wanted: Identity
    last: Manifest | None
    lock: IO[str]

    @property
    def identity(self) -> str:
        """The name under which workers know the state."""
        return self.wanted.identity

    @property
    def partitions(self) -> int:
        """The number of partitions."""
        return self.wanted.partitions

    def fit(self, deployment: Deployment) -> Checkpoint:
        """Return the checkpoint with its state as the deployment keeps it; one job, if it was kept otherwise."""
        if self.found is self.wanted:
            return self
        wanted = self.wanted
        if self.last is not None:
            token = new_token(self.last.epoch)
            deployment.take_over(self.found.written(self.layout, self.last), token)
            wanted = replace(wanted, taken=token)
        _write(self.layout, wanted)
        return replace(self, found=wanted, wanted=wanted, last=wanted.start(self.last))

    def release(self) -> None:
        """Let another driver have the folder."""
        self.lock.close()


def open_checkpoint(
    folder: Path, plan: PhysicalPlan, types: DataTypes, partitions: int | None, usual: int
) -> Checkpoint:
    """Take a folder: a new one for this program, or one of this program to go on from."""
    layout = Layout(folder_of(folder).absolute())
    lock = _lock(layout)
    try:
        if not layout.identity.exists():
            _check_empty(layout)
            _write(layout, _identity(plan, types, usual if partitions is None else partitions))
        found = read_identity(layout)
        check_program(layout, found, plan)
        wanted = _identity(plan, types, found.partitions if partitions is None else partitions)
        if (wanted.layout, wanted.partitions) == (found.layout, found.partitions):
            wanted = found
        last = found.start(last_manifest(layout))
        if last is not None:
            publish(layout, last)
    except BaseException:
        lock.close()
        raise
    return Checkpoint(layout, found, wanted, last, lock)


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


def _identity(plan: PhysicalPlan, types: DataTypes, partitions: int) -> Identity:
    if partitions < 1:
        raise UserError("E681", None, found=partitions)
    return Identity(
        uuid4().hex,
        fingerprint_program(plan.logical.program),
        fingerprint_layout(plan),
        partitions,
        split_names(plan),
        {name: [str(each) for each in own] for name, own in types.items()},
    )


def _write(layout: Layout, identity: Identity) -> None:
    write_sealed(layout.identity, asdict(identity))


def read_identity(layout: Layout) -> Identity:
    """Return whose folder it is; raise if that is damaged."""
    return Identity(**read_sealed(layout.identity))


def check_program(layout: Layout, found: Identity, plan: PhysicalPlan) -> None:
    """Raise if a folder belongs to another program."""
    program = fingerprint_program(plan.logical.program)
    if found.program != program:
        raise UserError("E810", None, path=layout.folder, found=found.program, expected=program)
