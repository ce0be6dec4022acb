"""The folder of a streaming deployment: taken by one driver at a time, for one program.

A checkpoint may go on with another number of partitions or another strategy than it was written with. The partitions
that there shall be save the state as theirs, under a name of its own; then `deployment.json` is written anew and names
it. Until then the folder is what it was, and afterwards the last epoch starts from there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from uuid import uuid4

from whorl.diagnostics.errors import UserError
from whorl.hosts.spark.deployment import Deployment
from whorl.hosts.spark.layout import Layout, epoch_of, new_token
from whorl.hosts.spark.manifest import Manifest, last_manifest, publish, read_sealed, write_sealed
from whorl.hosts.spark.rebuilding import Written, split_names
from whorl.hosts.spark.store import Lock, Store
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

    store: Store
    found: Identity
    wanted: Identity
    last: Manifest | None
    lock: Lock

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
            deployment.take_over(self.found.written(self.store.layout, self.last), token)
            wanted = replace(wanted, taken=token)
        _write(self.store, wanted)
        return replace(self, found=wanted, wanted=wanted, last=wanted.start(self.last))

    def release(self) -> None:
        """Let another driver have the folder."""
        self.lock.close()


def open_checkpoint(
    store: Store, plan: PhysicalPlan, types: DataTypes, partitions: int | None, usual: int
) -> Checkpoint:
    """Take a folder: a new one for this program, or one of this program to go on from."""
    lock = store.lock()
    try:
        if not store.exists(store.layout.identity):
            _check_empty(store)
            _write(store, _identity(plan, types, usual if partitions is None else partitions))
        found = read_identity(store)
        check_program(store, found, plan)
        wanted = _identity(plan, types, found.partitions if partitions is None else partitions)
        if (wanted.layout, wanted.partitions) == (found.layout, found.partitions):
            wanted = found
        last = found.start(last_manifest(store))
        if last is not None:
            publish(store, last)
    except BaseException:
        lock.close()
        raise
    return Checkpoint(store, found, wanted, last, lock)


def _check_empty(store: Store) -> None:
    """Refuse a folder that somebody else uses for something else."""
    folder, own = store.layout.folder, store.layout.run.name
    strange = [name for name in store.names(folder) if name != own]
    if strange:
        raise UserError("E815", None, path=store.address(folder), found=strange[0])


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


def _write(store: Store, identity: Identity) -> None:
    write_sealed(store, store.layout.identity, asdict(identity))


def read_identity(store: Store) -> Identity:
    """Return whose folder it is; raise if that is damaged."""
    return Identity(**read_sealed(store, store.layout.identity))


def check_program(store: Store, found: Identity, plan: PhysicalPlan) -> None:
    """Raise if a folder belongs to another program."""
    program = fingerprint_program(plan.logical.program)
    if found.program != program:
        raise UserError("E810", None, path=store.address(store.layout.folder), found=found.program, expected=program)
