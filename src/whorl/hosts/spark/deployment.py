"""A program on Spark, as its driver sees it: the folder, the plan, the history of the state, the job that steps it."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from hashlib import sha256
from operator import or_
from typing import Any

from pyspark import cloudpickle

from whorl.diagnostics.errors import UserError
from whorl.hosts.exchanging import add_shipment
from whorl.hosts.routing import merge_results, routing_place
from whorl.hosts.spark.anchors import Anchors, anchors_for
from whorl.hosts.spark.arrivals import batches_of, split_batches
from whorl.hosts.spark.bringing import Arriving
from whorl.hosts.spark.files import write_file
from whorl.hosts.spark.layout import START, Layout, epoch_of, new_token
from whorl.hosts.spark.protocol import FACTS, GO_ON, ROWS, STEP, TAKE, Brought, Fed, Origin, Reply, Request
from whorl.hosts.spark.rebuilding import Written, split_names
from whorl.hosts.spark.shares import ShareFile, encode_batches, write_entry
from whorl.kernel.partition import StepResult
from whorl.model.batch import Batch
from whorl.model.delta import Change
from whorl.model.limits import Limits
from whorl.model.report import EpochReport, Shipment
from whorl.model.values import Row
from whorl.physical.plan import PhysicalPlan

_ATTEMPTS = 5  # at an epoch whose partitions exchange rows: one is lost with a worker, or for want of room


@dataclass(frozen=True, slots=True)
class History:
    """How the state came about: tokens, oldest first, and which of them were saved."""

    tokens: tuple[str, ...] = (START,)
    snapshots: tuple[str, ...] = ()
    origin: Origin | None = None

    @property
    def base(self) -> str:
        """The token of the state that counts."""
        return self.tokens[-1]

    def after(self, token: str, *, saved: bool) -> History:
        """Return the history with one epoch more; if the state before it was saved, only two saved states are kept."""
        if not saved:
            return replace(self, tokens=(*self.tokens, token))
        snapshots = (*self.snapshots, self.base)[-2:]
        first = self.tokens.index(snapshots[0]) if len(snapshots) == 2 else 0
        return replace(self, tokens=(*self.tokens[first:], token), snapshots=snapshots)


@dataclass(frozen=True, slots=True)
class Stepped:
    """An epoch that all partitions have prepared, and that does not count yet."""

    token: str
    time: int | None
    result: StepResult
    replies: Sequence[Reply]
    saved: bool
    shipped: Sequence[Shipment] = ()

    @property
    def brought(self) -> Brought:
        """What came with the job, as all partitions together tell it."""
        told = [reply.brought for reply in self.replies if reply.brought is not None]
        if not told:
            return Brought(time=self.time)
        return replace(told[0], shares={owner: share for each in told for owner, share in each.shares.items()})

    @property
    def changed(self) -> dict[str, tuple[int, int]]:
        """How many rows of each view appeared and vanished."""
        found: dict[str, tuple[int, int]] = {}
        for reply in self.replies:
            for view, (inserted, deleted) in reply.changed.items():
                before = found.get(view, (0, 0))
                found[view] = (before[0] + inserted, before[1] + deleted)
        return found

    def report(self, time: int | None, seconds: float) -> EpochReport:
        """Return what the epoch did and what it cost; ``time`` is the event time that it was given, if any."""
        result = self.result
        return EpochReport(
            epoch_of(self.token),
            time,
            result.deltas,
            result.input,
            seconds,
            result.work,
            result.seconds,
            sum(reply.state_bytes for reply in self.replies),
            result.strata,
            tuple(self.shipped),
        )


@dataclass(slots=True)
class Deployment:
    """The partitions of one program. The context is pyspark's, hence Any."""

    context: Any
    layout: Layout
    identity: str
    partitions: int
    limits: Limits
    emit: str = "rows"
    durable: bool = False
    history: History = field(default_factory=History)
    plan: PhysicalPlan = field(init=False)
    _digest: str = field(init=False, default="")
    _anchors: Anchors = field(init=False)
    _room: int = field(init=False, default=0)  # how often labels were given more

    def __post_init__(self) -> None:
        if self.partitions < 1:
            raise UserError("E681", None, found=self.partitions)
        self._anchors = anchors_for(self.context, self.partitions)

    def use(self, plan: PhysicalPlan) -> None:
        """Work with a plan from now on: the workers find it in the folder."""
        content = cloudpickle.dumps((plan, self.limits))
        self.plan, self._digest = plan, sha256(content).hexdigest()[:16]
        write_file(self.layout.plan(self._digest), content, durable=False)

    def move(self, plan: PhysicalPlan, epoch: int) -> History:
        """Let the partitions give their base facts to partitions of another plan; return the history before."""
        before, token = self.history, f"facts-{new_token(epoch)}"
        if before.tokens != (START,) or before.origin is not None:
            self._anchors.ask(self._request(FACTS, entry=token), "whorl: move facts")
            self.history = History((token,), (), Origin(token, self.partitions, split_names(self.plan)))
        self.use(plan)
        return before

    def take_over(self, written: Written, token: str) -> None:
        """Let the partitions save, under ``token``, the state that others have written. One job."""
        origin = Origin(token, written.partitions, written.split)
        request = replace(self._request(TAKE, entry=token), history=written.history, snapshots=written.snapshots)
        self._anchors.ask(replace(request, origin=origin), "whorl: take over a checkpoint")

    @property
    def written(self) -> Written:
        """The state that counts, as files have it."""
        history = self.history
        return Written(
            self.layout, history.tokens, history.snapshots, history.origin, self.partitions, split_names(self.plan)
        )

    @property
    def base_names(self) -> list[str]:
        """The names of the base relations."""
        return [relation.name for relation in self.plan.logical.program.base_relations()]

    def _request(self, do: str, **more: Any) -> Request:
        return Request(
            do,
            self.identity,
            str(self.layout.folder),
            self._digest,
            self.partitions,
            self.history.tokens,
            self.history.snapshots,
            self.history.origin,
            durable=self.durable,
            **more,
        )

    # Epochs

    def log(self, token: str, time: int | None, changes: Sequence[Change], batches: Sequence[Batch]) -> None:
        """Write what goes into an epoch."""
        places = {name: routing_place(self.plan, name) for name in self.base_names}
        shares = split_batches([*batches_of(changes), *batches], places, self.partitions)
        self._write(token, time, {owner: encode_batches(own) for owner, own in shares.items()}, ())

    def log_brought(self, stepped: Stepped) -> None:
        """Write what came with the job of an epoch."""
        brought = stepped.brought
        self._write(stepped.token, stepped.time, brought.shares, brought.files)

    def _write(self, token: str, time: int | None, shares: Mapping[str, bytes], files: Sequence[ShareFile]) -> None:
        try:
            write_entry(self.layout.entry(token), time, shares, files, durable=self.durable)
        except OSError as error:
            raise UserError("E820", None, path=self.layout.folder, reason=error.strerror or str(error)) from None

    def step(self, token: str, time: int | None, *, save: bool = False) -> Stepped:
        """Let every partition take its share of a logged epoch. One job."""
        request = self._request(STEP, entry=token, emit=self.emit, save=save)
        replies, shipped = self._ask(request, f"whorl: epoch {epoch_of(token)}")
        return _stepped(token, time, replies, shipped, saved=save)

    def step_with(
        self, arriving: Arriving, token: str, time: int | None, *, facts: bool, save: bool = False
    ) -> Stepped:
        """Let every partition take its share of rows that arrive; ``time`` is the event time before. One job."""
        fed = Fed(arriving.reader, arriving.many, time, facts)
        request, what = self._request(STEP, entry=token, emit=self.emit, save=save, fed=fed), f"epoch {epoch_of(token)}"
        replies, shipped = self._ask(request, f"whorl: {what}", arriving)
        told = [reply.brought for reply in replies if reply.brought is not None]
        if len({each.digest for each in told}) != 1:
            raise UserError("E823", None, what=what, reason="Its source gave different rows when it was read again")
        return _stepped(token, told[0].time, replies, shipped, saved=save)

    def _ask(
        self, request: Request, what: str, arriving: Arriving | None = None
    ) -> tuple[Sequence[Reply], Sequence[Shipment]]:
        """Ask for an epoch; where partitions exchange rows, in turns until all are done. A job for each turn.

        If a worker is lost in the middle, or labels need more room, all begin again.
        """
        for attempt in range(_ATTEMPTS):
            asked = replace(request, attempt=attempt, room=self._room)
            replies = self._anchors.ask(asked, what, arriving)
            shipped: dict[tuple[str, int, int], Shipment] = {}
            while all(reply.waiting for reply in replies):
                turn = [reply.waiting for reply in replies if reply.waiting is not None]
                sent = [each for waiting in turn for each in waiting.shipped]
                for each in sent:
                    add_shipment(shipped, each)
                ballot = reduce(or_, (waiting.ballot for waiting in turn), 0)
                asked = replace(
                    asked,
                    do=GO_ON,
                    turn=asked.turn + 1,
                    ballot=ballot,
                    quiet=not sent and not turn[0].for_all,
                    fed=None,
                )
                replies = self._anchors.ask(asked, f"{what}, turn {asked.turn}")
            if asked.turn:
                shutil.rmtree(self.layout.letters(request.entry, attempt), ignore_errors=True)
            if not any(reply.waiting or reply.lost or reply.cramped for reply in replies):
                return replies, list(shipped.values())
            self._room += any(reply.cramped for reply in replies)
        raise UserError("E823", None, what=what, reason=f"Workers were lost in each of {_ATTEMPTS} attempts")

    def keep(self, stepped: Stepped) -> None:
        """Let an epoch count; the workers learn it with the next request."""
        self.history = self.history.after(stepped.token, saved=stepped.saved)

    def prune(self) -> None:
        """Remove what no history needs: failed attempts, and what is older than two saved states."""
        entries, states = set(self.history.tokens), set(self.history.snapshots)
        for folder, needed in (
            (self.layout.log, entries),
            (self.layout.staging, set[str]()),
            (self.layout.states, states),
            (self.layout.saved_views, states),
        ):
            for path in folder.iterdir() if folder.is_dir() else ():
                if path.name.removesuffix(".entry") not in needed:
                    shutil.rmtree(path, ignore_errors=True) if path.is_dir() else path.unlink(missing_ok=True)

    def rows(self, view: str) -> set[Row]:
        """Return the rows of a view as of the last epoch that counts. One job."""
        replies = self._anchors.ask(self._request(ROWS, view=view), f"whorl: rows of {view}")
        return {row for reply in replies for row in reply.rows}


def _stepped(
    token: str, time: int | None, replies: Sequence[Reply], shipped: Sequence[Shipment], *, saved: bool
) -> Stepped:
    results = [reply.result for reply in replies if reply.result is not None]
    return Stepped(token, time, merge_results(results, max), replies, saved, shipped)
