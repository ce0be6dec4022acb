"""Micro-batches to epochs that count once.

1. step: every partition takes its share of the micro-batch and writes its changes aside (one job);
2. log: what they took stands in the log;
3. commit: the manifest takes its name, and from then on the epoch counts;
4. publish: the changes move to where readers look;
5. tell: whoever wants to know is called, with the number of the epoch.

A driver that dies before 3 leaves an epoch that never was: Spark gives the same micro-batch again. One that dies after
3 finds the manifest, publishes once more, and passes the micro-batch over. Telling happens at least once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from time import perf_counter
from typing import Any, TypeAlias

from whorl.hosts.spark.bringing import Bringer
from whorl.hosts.spark.checkpoint import Checkpoint
from whorl.hosts.spark.deployment import Deployment
from whorl.hosts.spark.faults import (
    AFTER_CALLBACK,
    AFTER_LOG,
    AFTER_MANIFEST,
    AFTER_PUBLISHED,
    AFTER_STEP,
    BEFORE_STEP,
    reach,
)
from whorl.hosts.spark.lanes import Frame
from whorl.hosts.spark.layout import epoch_of, new_token
from whorl.hosts.spark.manifest import Manifest, forget_manifests, publish, write_manifest
from whorl.hosts.spark.stepped import Stepped
from whorl.hosts.spark.store import Store
from whorl.hosts.spark.view_frames import find_output, read_changes
from whorl.logical.plan import LogicalPlan
from whorl.model.report import EpochReport


@dataclass(frozen=True, slots=True)
class CommittedEpoch:
    """An epoch that counts, for whoever wants to know. The session is pyspark's, hence Any."""

    number: int
    time: int | None
    rows: int
    views: dict[str, tuple[int, int]]
    quarantined: dict[str, int]
    plan: LogicalPlan = field(repr=False)
    _spark: Any = field(repr=False)
    _store: Store = field(repr=False)

    def changes(self, view: str) -> Frame:
        """Return what the epoch did to a view: its columns, `_epoch` and `_op`."""
        output = find_output(self.plan, view)
        return read_changes(self._spark, self._store, output, self.number - 1, self.number)


Listener: TypeAlias = Callable[[CommittedEpoch], None]


@dataclass(slots=True)
class Epochs:
    """Turns micro-batches into epochs, one after the other."""

    spark: Any
    checkpoint: Checkpoint
    deployment: Deployment
    bringer: Bringer
    listeners: Sequence[Listener]
    snapshot_every: int
    last: Manifest | None = None
    report: EpochReport | None = None
    seconds: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.last = self.checkpoint.last
        if self.last is not None:
            self.deployment.history = self.last.to_history()
        self.deployment.prune()
        if self.last is not None and self._told() < self.last.epoch:
            self._tell(self.last)

    @property
    def plan(self) -> LogicalPlan:
        """The plan that runs."""
        return self.deployment.plan.logical

    def take(self, frame: Frame, batch: int | None, bringer: Bringer | None = None) -> bool:
        """Make a micro-batch an epoch, unless it is one already; ``bringer`` is for a frame of another schema."""
        last = self.last
        if last is not None and (batch is None or (last.batch is not None and batch <= last.batch)):
            return False
        clock = _Clock()
        epoch = 1 if last is None else last.epoch + 1
        token = new_token(epoch)
        reach(BEFORE_STEP, epoch)
        arriving = (bringer or self.bringer).bring(frame, epoch, None if last is None else last.rows)
        before = None if last is None else last.time
        stepped = self.deployment.step_with(arriving, token, before, facts=last is None, save=self._save_due())
        clock.lap("step")
        reach(AFTER_STEP, epoch)
        self.deployment.log_brought(stepped)
        clock.lap("log")
        reach(AFTER_LOG, epoch)
        manifest = self._commit(stepped, batch)
        clock.lap("commit")
        publish(self.checkpoint.store, manifest)
        clock.lap("publish")
        reach(AFTER_PUBLISHED, epoch)
        self.report, self.seconds = stepped.report(stepped.time, clock.total), clock.laps
        self._tell(manifest)
        if stepped.saved:
            self.deployment.prune()
            forget_manifests(self.checkpoint.store, epoch_of(self.deployment.history.tokens[0]))
        return True

    def _save_due(self) -> bool:
        """Whether the state is saved before the next epoch."""
        if self.last is None:
            return False
        saved = epoch_of(self.last.snapshots[-1]) if self.last.snapshots else 0
        return self.last.epoch - saved >= self.snapshot_every

    def _commit(self, stepped: Stepped, batch: int | None) -> Manifest:
        history = self.deployment.history.after(stepped.token, saved=stepped.saved)
        brought = stepped.brought
        before = None if self.last is None else self.last.batch
        manifest = Manifest(
            epoch_of(stepped.token),
            before if batch is None else batch,
            stepped.token,
            stepped.time,
            history.tokens,
            history.snapshots,
            brought.rows,
            stepped.changed,
            asdict(stepped.result.input),
            brought.misfits,
        )
        self.checkpoint.lock.check()
        write_manifest(self.checkpoint.store, manifest)
        self.deployment.keep(stepped)
        self.last = manifest
        reach(AFTER_MANIFEST, manifest.epoch)
        return manifest

    # Telling

    def _told(self) -> int:
        """Return the last epoch that listeners were told of."""
        store = self.checkpoint.store
        path = store.layout.run / "told"
        return int(store.read(path) or 0) if store.exists(path) else 0

    def _tell(self, manifest: Manifest) -> None:
        if not self.listeners:
            return
        epoch = CommittedEpoch(
            manifest.epoch,
            manifest.time,
            manifest.rows,
            dict(manifest.views),
            dict(manifest.misfits),
            self.plan,
            self.spark,
            self.checkpoint.store,
        )
        for listener in self.listeners:
            listener(epoch)
        reach(AFTER_CALLBACK, manifest.epoch)
        store = self.checkpoint.store
        store.write(store.layout.run / "told", f"{manifest.epoch}".encode())


class _Clock:
    """How long each part of an epoch took."""

    def __init__(self) -> None:
        self._start = self._last = perf_counter()
        self.laps: dict[str, float] = {}

    def lap(self, name: str) -> None:
        now = perf_counter()
        self.laps[name], self._last = now - self._last, now

    @property
    def total(self) -> float:
        return self._last - self._start


def print_epoch(epoch: CommittedEpoch) -> None:
    """Print an epoch to the console: what changed in each view, and the first rows of it."""
    time = "" if epoch.time is None else f" time={epoch.time}"
    print(f"@{epoch.number}{time}")
    for view, (inserted, deleted) in sorted(epoch.views.items()):
        print(f"{view}: +{inserted} -{deleted}")
        epoch.changes(view).show(20, truncate=False)
    for name, count in epoch.quarantined.items():
        print(f"{name}: {count} rows set aside")
