"""The folder of a deployment: what lies where.

```text
deployment.json                   the program's fingerprint, the number of partitions
manifest/0000000012.json          epoch 12 counts; names everything that is needed to go on from it
log/0000000012-3fa9c1d2.entry     what went into epoch 12; large epochs have a folder of shares beside it
state/<token>/partition-0         state as of that epoch, as `whorl.kernel.resume` writes it
views/<token>/reachable           the rows of a view as of that epoch
staging/<token>/reachable         changes of an epoch that does not count yet
changes/reachable/epoch-...       changes of epochs that count, as Parquet with `_epoch` and `_op`
quarantine/epoch-...              rows that did not fit, with the reason
run                               what only the running driver and its workers need
source                            Spark's own checkpoint of the sources
```

Everything that belongs to an epoch is named by a *token*: its number and a random part. An attempt that fails leaves
files of a name that nobody asks for again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

START = "start"  # the token of the state before the first epoch


def new_token(epoch: int) -> str:
    """Return a name for one attempt at an epoch."""
    return f"{epoch:010}-{uuid4().hex[:8]}"


def epoch_of(token: str) -> int:
    """Return the number of the epoch that a token names."""
    return 0 if token == START else int(token.rpartition("-")[0])


class Lacking(Exception):
    """Names of files that this machine has not got. No fault: whoever reads is given them, and reads again."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(*names)
        self.names = tuple(names)


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths under one folder.

    If machines do not share it, each writes to a folder of its own, and has what came from the store in ``fetched``;
    ``absent`` are names that the store has not got either.
    """

    folder: Path
    fetched: Path | None = None
    absent: Collection[str] = ()

    def have(self, *paths: Path) -> list[Path]:
        """Return where this machine reads some files or folders; raise if it must be given some of them first."""
        if self.fetched is None:
            return list(paths)
        names = [self.name(path) for path in paths]
        lacking = [each for each in names if each not in self.absent and not (self.fetched / each).exists()]
        if lacking:
            raise Lacking(lacking)
        return [self.fetched / each for each in names]

    def name(self, path: Path) -> str:
        """Return what a path is called in the store."""
        return path.relative_to(self.folder).as_posix()

    @property
    def identity(self) -> Path:
        """The file that says whose folder it is."""
        return self.folder / "deployment.json"

    @property
    def manifests(self) -> Path:
        """The folder of manifests, one for each epoch that counts."""
        return self.folder / "manifest"

    @property
    def log(self) -> Path:
        """The folder of what went in."""
        return self.folder / "log"

    def entry(self, token: str) -> Path:
        """The file of what went into an epoch."""
        return self.log / f"{token}.entry"

    def shares(self, token: str) -> Path:
        """The folder of shares that tasks wrote for a large epoch."""
        return self.log / token

    @property
    def states(self) -> Path:
        """The folder of saved states."""
        return self.folder / "state"

    def state(self, token: str, number: int) -> Path:
        """The folder of one partition's saved state."""
        return self.states / token / f"partition-{number}"

    @property
    def saved_views(self) -> Path:
        """The folder of views saved with the states."""
        return self.folder / "views"

    def saved_view(self, token: str, view: str) -> Path:
        """The folder of a view's rows, saved with the state."""
        return self.saved_views / token / view

    @property
    def staging(self) -> Path:
        """The folder of changes that do not count yet."""
        return self.folder / "staging"

    def changes(self, view: str) -> Path:
        """The folder of a view's changes that count."""
        return self.folder / "changes" / view

    def epoch_changes(self, view: str, epoch: int) -> Path:
        """The folder of what an epoch did to a view."""
        return self.changes(view) / f"epoch-{epoch:010}"

    def quarantine(self, epoch: int) -> Path:
        """The folder of an epoch's rows that did not fit."""
        return self.folder / "quarantine" / f"epoch-{epoch:010}"

    @property
    def run(self) -> Path:
        """The folder of what only a running driver needs."""
        return self.folder / "run"

    def plan(self, digest: str) -> Path:
        """The file of a plan for the workers."""
        return self.run / f"plan-{digest}.pickle"

    def reader(self, digest: str) -> Path:
        """The file that tells workers how to read the rows of frames."""
        return self.run / f"reader-{digest}.pickle"

    def facts(self, token: str, number: int) -> Path:
        """The file of one partition's base facts, on their way to other partitions."""
        return self.run / "facts" / token / f"partition-{number}.pickle"

    def letters(self, token: str, attempt: int) -> Path:
        """The folder of what partitions send each other in an epoch."""
        return self.run / "letters" / token / str(attempt)

    @property
    def source(self) -> Path:
        """Spark's own checkpoint."""
        return self.folder / "source"


def part_name(number: int, ending: str) -> str:
    """Return the name of one partition's file."""
    return f"part-{number:05}.{ending}"


# Files that travel, where machines do not share the folder


def unit_of(name: str) -> str | None:
    """Return the folder that a file is carried away with if it is large; None if it never is."""
    first, *rest = name.split("/")
    depth = {"state": 1, "log": 1, "staging": 2, "views": 2}.get(first)
    return None if depth is None or len(rest) <= depth else "/".join((first, *rest[:depth]))


def is_table(unit: str) -> bool:
    """Whether a folder holds rows of a view; others hold files of any kind."""
    return unit.startswith(("staging/", "views/"))


def pack_of(unit: str) -> str:
    """Return the folder where the store has the chunks of large files."""
    return f"{unit}/pack"
