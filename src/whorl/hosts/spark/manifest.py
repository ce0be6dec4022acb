"""Which epochs count. The manifest of an epoch is written last, in one rename; before it, the epoch does not exist.

A manifest names all that is needed to go on from its epoch. Changes of views are moved to where readers look only after
it is there; a driver that starts again does that for the last epoch once more.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from whorl.diagnostics.errors import UserError
from whorl.hosts.spark.deployment import History
from whorl.hosts.spark.faults import HALF_MANIFEST, HALF_PUBLISHED, reach
from whorl.hosts.spark.files import checksum, sync_folder, write_file
from whorl.hosts.spark.layout import Layout

VERSION = 2


@dataclass(frozen=True, slots=True)
class Manifest:
    """An epoch that counts: the micro-batch it came from (None: the frames that do not stream), and how to go on."""

    epoch: int
    batch: int | None
    token: str
    time: int | None
    history: tuple[str, ...]
    snapshots: tuple[str, ...]
    rows: int = 0
    views: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    counts: Mapping[str, int] = field(default_factory=dict)
    misfits: Mapping[str, int] = field(default_factory=dict)

    def to_history(self) -> History:
        """Return how the state came about."""
        return History(self.history, self.snapshots)


def write_manifest(layout: Layout, manifest: Manifest) -> None:
    """Let an epoch count."""
    path = layout.manifests / f"{manifest.epoch:010}.json"
    content = json.dumps(asdict(manifest), sort_keys=True)
    whole = json.dumps({"whorl": VERSION, "checksum": checksum(content.encode()), "content": content})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.parent / f".{path.name}.{uuid4().hex[:8]}.tmp"
        with temporary.open("w", encoding="utf-8") as file:
            file.write(whole)
            file.flush()
            os.fsync(file.fileno())
        reach(HALF_MANIFEST, manifest.epoch)
        temporary.replace(path)
        sync_folder(path.parent)
    except OSError as error:
        raise UserError("E820", None, path=layout.folder, reason=error.strerror or str(error)) from None


def last_manifest(layout: Layout) -> Manifest | None:
    """Return the manifest of the last epoch that counts, None before the first."""
    if not layout.manifests.is_dir():
        return None
    names = sorted(path.name for path in layout.manifests.iterdir() if path.suffix == ".json" and path.name[0] != ".")
    return _read(layout.manifests / names[-1]) if names else None


def _read(path: Path) -> Manifest:
    content = read_sealed(path)
    views = {name: (int(counts[0]), int(counts[1])) for name, counts in content.pop("views").items()}
    content |= {"history": tuple(content["history"]), "snapshots": tuple(content["snapshots"])}
    return Manifest(**content, views=views)


def read_sealed(path: Path) -> dict[str, Any]:
    """Return the content of a file that `write_manifest` or `write_identity` wrote; raise if it is damaged."""
    try:
        whole = json.loads(path.read_text(encoding="utf-8"))
        content = whole["content"]
        fits = whole["checksum"] == checksum(content.encode())
    except OSError as error:
        raise UserError("E824", None, path=path, reason=error.strerror or str(error)) from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UserError("E824", None, path=path, reason="It is no manifest") from None
    if not fits:
        raise UserError("E824", None, path=path, reason="Its checksum does not fit its content")
    if whole["whorl"] != VERSION:
        raise UserError("E814", None, path=path.parent, found=whole["whorl"], expected=VERSION)
    found: dict[str, Any] = json.loads(content)
    return found


def write_sealed(path: Path, content: Mapping[str, Any]) -> None:
    """Write a file that `read_sealed` reads."""
    text = json.dumps(content, sort_keys=True)
    whole = json.dumps({"whorl": VERSION, "checksum": checksum(text.encode()), "content": text})
    write_file(path, whole.encode(), durable=True)


def publish(layout: Layout, manifest: Manifest) -> None:
    """Move the changes of an epoch that counts to where readers look; what is there already stays."""
    for done, view in enumerate(sorted(manifest.views)):
        target = layout.epoch_changes(view, manifest.epoch)
        if not target.exists():
            _move(layout.staging / manifest.token / view, target)
        if done == 0:
            reach(HALF_PUBLISHED, manifest.epoch)


def _move(staged: Path, target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        staged.replace(target)
    except OSError as error:
        raise UserError("E824", None, path=staged, reason=error.strerror or str(error)) from None


def forget_manifests(layout: Layout, before: int) -> None:
    """Remove the manifests of epochs that nothing will start from again."""
    for path in layout.manifests.iterdir():
        if path.name[0] == "." or (path.suffix == ".json" and int(path.stem) < before):
            path.unlink(missing_ok=True)
