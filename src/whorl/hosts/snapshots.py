"""All partitions of a host to a folder and back.

The folder holds a manifest and, beside it, one folder of state: `state-<n>/partition-<k>`. A snapshot is written to a
new folder of state; renaming the manifest makes it the one that counts; then the old state goes. Whatever happens on
the way, the manifest names state that is whole.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from whorl.diagnostics.errors import UserError
from whorl.hosts.moving import gather_facts, place_facts
from whorl.kernel.partition import Partition
from whorl.kernel.resume import check_fingerprint, load_base, load_partition, save_partition
from whorl.kernel.state.snapshot import MANIFEST, Content, read_manifest, write_manifest
from whorl.model.limits import Limits
from whorl.model.types import Type
from whorl.physical.fingerprint import fingerprint_layout, fingerprint_program
from whorl.physical.plan import PhysicalPlan

_STATE = re.compile(r"state-(\d+)")


@dataclass(frozen=True, slots=True)
class Progress:
    """How far a host has come: its last epoch, event time, and the types that data has told."""

    epoch: int
    time: int | None
    data_types: Mapping[str, Sequence[Type]]
    started: bool


def save_host(folder: Path, partitions: Sequence[Partition], progress: Progress) -> None:
    """Write a snapshot; until it is whole, the one before it stays."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        name = f"state-{max(_numbers(folder), default=0) + 1}"
        parts = [(f"partition-{each.number}", each) for each in partitions]
        checksums = {part: save_partition(each, folder / name / part) for part, each in parts}
        write_manifest(folder, _content(name, checksums, partitions, progress))
        for number in _numbers(folder):
            if f"state-{number}" != name:
                shutil.rmtree(folder / f"state-{number}", ignore_errors=True)
    except OSError as error:
        raise UserError("E686", None, path=folder, reason=error.strerror or str(error)) from None


def _numbers(folder: Path) -> list[int]:
    found = [_STATE.fullmatch(path.name) for path in folder.iterdir()]
    return [int(match[1]) for match in found if match is not None]


def _content(name: str, checksums: Mapping[str, int], partitions: Sequence[Partition], progress: Progress) -> Content:
    plan = partitions[0].plan
    return {
        "program": fingerprint_program(plan.logical.program),
        "layout": fingerprint_layout(plan),
        "state": name,
        "parts": dict(checksums),
        "split": sorted(each for each in partitions[0].base if plan.split_column(each) is not None),
        "epoch": progress.epoch,
        "time": progress.time,
        "started": progress.started,
        "data_types": {relation: [str(t) for t in types] for relation, types in progress.data_types.items()},
    }


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A snapshot as its manifest describes it."""

    folder: Path
    content: Content

    @property
    def progress(self) -> Progress:
        """How far the host had come."""
        types = {name: [Type(t) for t in own] for name, own in self.content["data_types"].items()}
        return Progress(self.content["epoch"], self.content["time"], types, self.content["started"])

    @property
    def partitions(self) -> int:
        """The number of partitions saved."""
        return len(self.content["parts"])

    def load(self, plan: PhysicalPlan, limits: Limits, partitions: int) -> list[Partition]:
        """Return partitions that go on from the snapshot.

        Where number, strategies and placement are those it was saved with, the state is taken as it is; else the base
        facts are placed anew, and the views derived from them.
        """
        check_fingerprint(self.folder, self.content["program"], fingerprint_program(plan.logical.program))
        parts = [self._part(name, checksum) for name, checksum in self.content["parts"].items()]
        parts.sort(key=lambda part: int(part.name.split("-")[1]))
        if partitions == self.partitions and self.content["layout"] == fingerprint_layout(plan):
            return [load_partition(part, plan, limits) for part in parts]
        old = [load_base(part, plan, limits) for part in parts]
        facts = gather_facts(old, self.content["split"])
        return place_facts(facts, plan, limits, partitions, stepped=self.content["started"])

    def _part(self, name: str, checksum: int) -> Path:
        part = self.folder / str(self.content["state"]) / name
        try:
            read_manifest(part, checksum)
        except UserError as error:
            if error.code != "E682":
                raise
            raise UserError("E685", None, path=part / MANIFEST, reason="It is missing") from None
        return part


def open_snapshot(folder: Path) -> Snapshot:
    """Read the manifest of a snapshot."""
    return Snapshot(folder, read_manifest(folder))
