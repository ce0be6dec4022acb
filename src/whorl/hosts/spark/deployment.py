"""A program on Spark, as its driver sees it: the folder, the plan, the history of the state, the job that steps it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from hashlib import sha256
from operator import or_
from typing import Any, TypeVar

from pyspark import cloudpickle

from whorl.diagnostics.errors import UserError
from whorl.hosts.exchanging import add_shipment
from whorl.hosts.routing import routing_place
from whorl.hosts.spark.anchors import Anchors, anchors_for
from whorl.hosts.spark.arrivals import batches_of, split_batches
from whorl.hosts.spark.bringing import Arriving
from whorl.hosts.spark.carrying import carry_away, give_files
from whorl.hosts.spark.hadoop import HadoopStore
from whorl.hosts.spark.history import History
from whorl.hosts.spark.layout import START, Layout, epoch_of, is_table, new_token
from whorl.hosts.spark.protocol import FACTS, GO_ON, ROWS, STEP, TAKE, Fed, Origin, Reply, Request
from whorl.hosts.spark.rebuilding import Written, split_names
from whorl.hosts.spark.shares import ShareFile, encode_batches, encode_entry
from whorl.hosts.spark.stepped import Stepped, put_together
from whorl.hosts.spark.store import Store
from whorl.hosts.spark.view_frames import find_output, view_schema
from whorl.model.batch import Batch
from whorl.model.delta import Change
from whorl.model.limits import Limits
from whorl.model.report import Shipment
from whorl.model.values import Row
from whorl.physical.plan import PhysicalPlan

T = TypeVar("T")
_ATTEMPTS = 5  # at an epoch whose partitions exchange rows: one is lost with a worker, or for want of room
_GIVEN = 50  # times that workers ask for files in one epoch, at most
MOST_BYTES = 1 << 20  # of files that come back with a reply; larger ones are written by Spark


@dataclass(slots=True)
class Deployment:
    """The partitions of one program. The context is pyspark's, hence Any."""

    context: Any
    store: Store
    identity: str
    partitions: int
    limits: Limits
    emit: str = "rows"
    durable: bool = False
    once: bool = False  # whether there is but one epoch
    history: History = field(default_factory=History)
    plan: PhysicalPlan = field(init=False)
    _digest: str = field(init=False, default="")
    _anchors: Anchors = field(init=False)
    _room: int = field(init=False, default=0)  # how often labels were given more

    def __post_init__(self) -> None:
        if self.partitions < 1:
            raise UserError("E681", None, found=self.partitions)
        self._anchors = anchors_for(self.context, self.partitions)

    @property
    def layout(self) -> Layout:
        """The paths of the files."""
        return self.store.layout

    def use(self, plan: PhysicalPlan) -> None:
        """Work with a plan from now on: the workers find it in the folder."""
        content = cloudpickle.dumps((plan, self.limits))
        self.plan, self._digest = plan, sha256(content).hexdigest()[:16]
        self.store.write(self.layout.plan(self._digest), content)

    def move(self, plan: PhysicalPlan, epoch: int) -> History:
        """Let the partitions give their base facts to partitions of another plan; return the history before."""
        before, token = self.history, f"facts-{new_token(epoch)}"
        if before.tokens != (START,) or before.origin is not None:
            self._answers(self._request(FACTS, entry=token), "whorl: move facts")
            self.history = History((token,), (), Origin(token, self.partitions, split_names(self.plan)))
        self.use(plan)
        return before

    def take_over(self, written: Written, token: str) -> None:
        """Let the partitions save, under ``token``, the state that others have written. One job."""
        origin = Origin(token, written.partitions, written.split)
        request = replace(self._request(TAKE, entry=token), history=written.history, snapshots=written.snapshots)
        self._answers(replace(request, origin=origin), "whorl: take over a checkpoint")

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
            self.store.address(self.layout.folder),
            self._digest,
            self.partitions,
            self.history.tokens,
            self.history.snapshots,
            self.history.origin,
            durable=self.durable and self.store.shared,
            shared=self.store.shared,
            most_bytes=MOST_BYTES,
            once=self.once,
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
            self.store.write(self.layout.entry(token), encode_entry(time, shares, files), durable=self.durable)
        except OSError as error:
            raise self._cannot_write(error) from None

    def _cannot_write(self, error: OSError) -> UserError:
        path = self.store.address(self.layout.folder)
        return UserError("E820", None, path=path, reason=error.strerror or str(error))

    def step(self, token: str, time: int | None, *, save: bool = False) -> Stepped:
        """Let every partition take its share of a logged epoch. One job."""
        request = self._request(STEP, entry=token, emit=self.emit, save=save)
        replies, shipped = self._ask(request, f"whorl: epoch {epoch_of(token)}")
        return put_together(token, time, replies, shipped, saved=save)

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
        return put_together(token, told[0].time, replies, shipped, saved=save)

    def _ask(
        self, request: Request, what: str, arriving: Arriving | None = None
    ) -> tuple[Sequence[Reply], Sequence[Shipment]]:
        """Ask for an epoch; where partitions exchange rows, in turns until all are done. A job for each turn.

        If a worker is lost in the middle, or labels need more room, all begin again.
        """
        for attempt in range(_ATTEMPTS):
            asked = replace(request, attempt=attempt, room=self._room)
            replies = self._answers(asked, what, arriving)
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
                replies = self._answers(asked, f"{what}, turn {asked.turn}")
            if asked.turn:
                self.store.remove(self.layout.letters(request.entry, attempt))
            if not any(reply.waiting or reply.lost or reply.cramped for reply in replies):
                return replies, list(shipped.values())
            self._room += any(reply.cramped for reply in replies)
        raise UserError("E823", None, what=what, reason=f"Workers were lost in each of {_ATTEMPTS} attempts")

    def _answers(self, request: Request, what: str, arriving: Arriving | None = None) -> Sequence[Reply]:
        """Ask, and let partitions that do not reach the store have and give files. One job, if none is lacking."""
        store, absent = self.store, set[str]()
        for _attempt in range(_GIVEN):
            replies = self._anchors.ask(replace(request, absent=sorted(absent)), what, arriving)
            if store.shared:
                return replies
            assert isinstance(store, HadoopStore), "the other is shared"
            lacking = {reply.number: reply.lacking for reply in replies if reply.lacking}
            if lacking:
                absent |= give_files(store, self._anchors, request, lacking)
            elif carry_away(store, self._anchors, request, replies, self._schemas(replies)):
                self._write_files(replies)
                return replies
        raise UserError("E823", None, what=what, reason="Workers that were given files were lost again and again")

    def _write_files(self, replies: Sequence[Reply]) -> None:
        try:
            for reply in replies:
                for name, content in reply.files.items():
                    self.store.write(self.layout.folder / name, content)
        except OSError as error:
            raise self._cannot_write(error) from None

    def _schemas(self, replies: Sequence[Reply]) -> dict[str, Any]:
        """Return the schemas of views that workers hold."""
        units = {unit for reply in replies for unit in reply.held if is_table(unit)}
        logical = self.plan.logical
        return {
            unit: view_schema(find_output(logical, unit.split("/")[-1]), changes=unit.startswith("staging/"))
            for unit in units
        }

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
            for name in self.store.names(folder):
                if name.removesuffix(".entry") not in needed:
                    self.store.remove(folder / name)

    def reading(self, written: Written, read: Callable[[Written], T]) -> T:
        """Read files in this process."""
        return self.store.reading(lambda layout: read(replace(written, layout=layout)))

    def rows(self, view: str) -> set[Row]:
        """Return the rows of a view as of the last epoch that counts. One job."""
        replies = self._answers(self._request(ROWS, view=view), f"whorl: rows of {view}")
        return {row for reply in replies for row in reply.rows}
