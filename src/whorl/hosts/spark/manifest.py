"""Which epochs count. The manifest of an epoch is written last, in one rename; before it, the epoch does not exist.

A manifest names all that is needed to go on from its epoch. Changes of views are moved to where readers look only after
it is there; a driver that starts again does that for the last epoch once more.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from whorl.diagnostics.errors import UserError
from whorl.hosts.spark.faults import HALF_MANIFEST, HALF_PUBLISHED, reach
from whorl.hosts.spark.files import checksum
from whorl.hosts.spark.history import History
from whorl.hosts.spark.store import Store

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


def write_manifest(store: Store, manifest: Manifest) -> None:
    """Let an epoch count."""
    path = store.layout.manifests / f"{manifest.epoch:010}.json"
    try:
        store.commit(path, _seal(asdict(manifest)), lambda: reach(HALF_MANIFEST, manifest.epoch))
    except FileExistsError:
        raise UserError("E813", None, path=store.address(store.layout.folder)) from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise UserError("E820", None, path=store.address(store.layout.folder), reason=reason) from None


def last_manifest(store: Store) -> Manifest | None:
    """Return the manifest of the last epoch that counts, None before the first."""
    folder = store.layout.manifests
    names = [name for name in store.names(folder) if name.endswith(".json") and name[0] != "."]
    return _read(store, folder / names[-1]) if names else None


def _read(store: Store, path: Path) -> Manifest:
    content = read_sealed(store, path)
    views = {name: (int(counts[0]), int(counts[1])) for name, counts in content.pop("views").items()}
    content |= {"history": tuple(content["history"]), "snapshots": tuple(content["snapshots"])}
    return Manifest(**content, views=views)


def read_sealed(store: Store, path: Path) -> dict[str, Any]:
    """Return the content of a file that `write_manifest` or `write_sealed` wrote; raise if it is damaged."""
    shown = store.address(path)
    try:
        whole = json.loads(store.read(path))
        content = whole["content"]
        fits = whole["checksum"] == checksum(content.encode())
    except OSError as error:
        raise UserError("E824", None, path=shown, reason=error.strerror or str(error)) from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise UserError("E824", None, path=shown, reason="It is no manifest") from None
    if not fits:
        raise UserError("E824", None, path=shown, reason="Its checksum does not fit its content")
    if whole["whorl"] != VERSION:
        raise UserError("E814", None, path=store.address(path.parent), found=whole["whorl"], expected=VERSION)
    found: dict[str, Any] = json.loads(content)
    return found


def write_sealed(store: Store, path: Path, content: Mapping[str, Any]) -> None:
    """Write a file that `read_sealed` reads."""
    store.write(path, _seal(content), durable=True)


def _seal(content: Mapping[str, Any]) -> bytes:
    text = json.dumps(content, sort_keys=True)
    return json.dumps({"whorl": VERSION, "checksum": checksum(text.encode()), "content": text}).encode()


def publish(store: Store, manifest: Manifest) -> None:
    """Move the changes of an epoch that counts to where readers look; what is there already stays."""
    layout = store.layout
    for done, view in enumerate(sorted(manifest.views)):
        staged = layout.staging / manifest.token / view
        try:
            store.move(staged, layout.epoch_changes(view, manifest.epoch))
        except OSError as error:
            raise UserError("E824", None, path=store.address(staged), reason=error.strerror or str(error)) from None
        if done == 0:
            reach(HALF_PUBLISHED, manifest.epoch)


def forget_manifests(store: Store, before: int) -> None:
    """Remove the manifests of epochs that nothing will start from again."""
    folder = store.layout.manifests
    for name in store.names(folder):
        if name[0] == "." or (name.endswith(".json") and int(name.removesuffix(".json")) < before):
            store.remove(folder / name)
