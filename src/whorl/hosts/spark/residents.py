"""Partitions that live in a worker between epochs, and how a worker comes to the state that is meant.

A worker process keeps the partitions it has worked on. Each is at a version (the token of the last epoch that it kept)
and may hold one epoch more, prepared: whether that one counts, the next request tells by its history. So no second job
is needed to say so. A worker that is behind applies entries of the log; one that has nothing starts from the newest
saved state that is whole. The same history always gives the same state.
"""

from __future__ import annotations

import pickle
import platform
import shutil
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from uuid import uuid4

from whorl.diagnostics.errors import UserError
from whorl.hosts.spark.files import sync_folder
from whorl.hosts.spark.garbage import REST
from whorl.hosts.spark.layout import START
from whorl.hosts.spark.protocol import Reply, Request
from whorl.hosts.spark.rebuilding import Written, exchanging, place_one, read_facts, rebuild, split_names
from whorl.hosts.spark.shares import read_share
from whorl.hosts.spark.turns import Turns
from whorl.hosts.spark.view_files import write_rows
from whorl.kernel.partition import Partition
from whorl.kernel.resume import load_partition, save_partition
from whorl.model.limits import Limits
from whorl.physical.plan import PhysicalPlan

_MOST = 16  # deployments that one worker keeps; others start from files again


@dataclass(slots=True)
class Resident:
    """A partition with the version it is at; `prepared` is an epoch more, with what it gave."""

    partition: Partition
    plan: str
    version: str
    prepared: tuple[str, Reply] | None = None
    caught_up: int = 0
    restored: bool = False
    turns: Turns | None = None  # an epoch in the middle
    room: int = 0  # how often labels were given more room

    def stop(self) -> None:
        """Give up an epoch in the middle."""
        if self.turns is not None:
            self.turns.task.abandon()
            self.turns = None
            self.partition.roll_back()

    def make_room(self, room: int) -> None:
        """Give labels as much room as all partitions have."""
        while self.room < room:
            self.partition.make_room()
            self.room += 1

    def settle(self, history: Sequence[str]) -> None:
        """Keep the prepared epoch if it came to count, else undo it."""
        if self.prepared is None:
            return
        token = self.prepared[0]
        if token in history:
            self.partition.keep()
            self.version = token
        else:
            self.partition.roll_back()
        self.prepared = None

    def catch_up(self, request: Request) -> None:
        """Apply what the history has behind the version."""
        missed = request.history[list(request.history).index(self.version) + 1 :]
        assert not missed or not exchanging(self.partition.plan, request.partitions), "it cannot follow others alone"
        request.layout.have(*map(request.layout.entry, missed))
        for token in missed:
            time, batches = read_share(request.layout, token, self.partition.number)
            self.partition.prepare((), time, batches, decode=False)
            self.partition.keep()
            self.version = token
        self.caught_up = len(missed)


_RESIDENTS: OrderedDict[tuple[str, int], Resident] = OrderedDict()  # of this worker process


def resident_for(request: Request, number: int) -> Resident:
    """Return a partition at the state that a request starts from, with nothing or its own entry prepared."""
    key = (request.deployment, number)
    found = _RESIDENTS.get(key)
    if found is not None and found.plan == request.plan:
        found.caught_up, found.restored = 0, False
        _RESIDENTS.move_to_end(key)
        if found.turns is not None and found.turns.is_for(request):
            return found
        found.stop()
        found.make_room(request.room)
        if found.prepared is not None and found.prepared[0] == request.entry and found.version == request.history[-1]:
            return found
        try:
            found.settle(request.history)
            if found.version in request.history and not _left_behind(found, request):
                found.catch_up(request)
                return found
        except BaseException:
            _forget(key)
            raise
    _forget(key)
    found = _restore(request, number)
    _RESIDENTS[key] = found
    while len({deployment for deployment, _number in _RESIDENTS}) > _MOST:
        oldest = next(iter(_RESIDENTS))[0]
        for each in [each for each in _RESIDENTS if each[0] == oldest]:
            _forget(each)
    return found


def _left_behind(found: Resident, request: Request) -> bool:
    """Whether others that exchange rows with a partition have gone on without it."""
    return found.version != request.history[-1] and exchanging(found.partition.plan, request.partitions)


def forget(request: Request, number: int) -> None:
    """Let a partition go that nobody asks for again."""
    _forget((request.deployment, number))


def _forget(key: tuple[str, int]) -> None:
    found = _RESIDENTS.pop(key, None)
    if found is not None:
        found.stop()  # a step that waits for others would keep it
        REST.end()


def _restore(request: Request, number: int) -> Resident:
    """Start from the newest state that is whole, and apply what came after it."""
    plan, limits = _plan(request)
    if exchanging(plan, request.partitions) and len(request.history) > 1:
        written = Written(
            request.layout,
            request.history,
            request.snapshots,
            request.origin,
            request.partitions,
            split_names(plan),
        )
        whole = rebuild(written, plan, limits, number, request.partitions)
        found = Resident(whole, request.plan, request.history[-1], restored=True)
        found.make_room(request.room)
        return found
    reasons: list[str] = []
    for token in reversed(request.history):
        partition = _start(request, number, token, plan, limits, reasons)
        if partition is not None:
            found = Resident(partition, request.plan, token, restored=token != START)
            found.catch_up(request)
            return found
    reason = reasons[0] if reasons else f"No saved state before epoch {request.history[-1]}"
    raise UserError("E822", None, partition=number, path=request.folder, reason=reason)


def _start(
    request: Request, number: int, token: str, plan: PhysicalPlan, limits: Limits, reasons: list[str]
) -> Partition | None:
    if request.origin is not None and token == request.origin.token:
        return _from_facts(request, number, plan, limits)
    if token == START:
        return Partition(plan, limits, number=number, partitions=request.partitions)
    if token not in request.snapshots:
        return None
    try:
        (folder,) = request.layout.have(request.layout.state(token, number))
        return load_partition(folder, plan, limits)
    except UserError as error:
        reasons.append(error.detail.rstrip("."))
        return None


def _plan(request: Request) -> tuple[PhysicalPlan, Limits]:
    (path,) = request.layout.have(request.layout.plan(request.plan))
    return load_plan(str(path))


@lru_cache(maxsize=_MOST)
def load_plan(path: str) -> tuple[PhysicalPlan, Limits]:
    """Return the plan and the limits that the driver wrote for its workers."""
    try:
        with open(path, "rb") as file:
            plan, limits = pickle.load(file)
    except FileNotFoundError:
        raise UserError("E829", None, machine=platform.node(), path=path) from None
    return plan, limits


def save_state(request: Request, partition: Partition, token: str) -> None:
    """Save the state of a partition under a token, and the rows of the views."""
    folder = request.layout.state(token, partition.number)
    temporary = folder.parent / f".{folder.name}.{uuid4().hex[:8]}.tmp"
    try:
        save_partition(partition, temporary)
        shutil.rmtree(folder, ignore_errors=True)
        temporary.replace(folder)
        sync_folder(folder.parent)
        for output in partition.plan.outputs:
            if partition.number == 0 or partition.plan.split_column(output.relation) is not None:
                target = request.layout.saved_view(token, output.name)
                write_rows(target, partition, output, durable=request.durable)
    except OSError as error:
        raise UserError("E686", None, path=folder, reason=error.strerror or str(error)) from None


# Facts on their way to partitions of another plan, or of another number


def take_over(request: Request, number: int) -> None:
    """Save the state that others have written as one of these partitions has it."""
    origin = request.origin
    assert origin is not None, "says who has written it"
    written = Written(
        request.layout, request.history, request.snapshots, partitions=origin.partitions, split=origin.split
    )
    plan, limits = _plan(request)
    save_state(request, rebuild(written, plan, limits, number, request.partitions), request.entry)


def save_facts(request: Request, partition: Partition) -> None:
    """Write the base facts for others to start from."""
    path = request.layout.facts(request.entry, partition.number)
    path.parent.mkdir(parents=True, exist_ok=True)
    facts = {name: partition.fact_rows(name) for name in partition.base}
    temporary = path.with_name(f".{path.name}.{uuid4().hex[:8]}.tmp")
    temporary.write_bytes(pickle.dumps((partition.stepped, facts)))
    temporary.replace(path)


def _from_facts(request: Request, number: int, plan: PhysicalPlan, limits: Limits) -> Partition:
    """Start from the facts of all partitions that there were: those that the plan places here."""
    assert request.origin is not None, "asked for by its token"
    stepped, facts = read_facts(request.layout, request.origin)
    return place_one(facts, plan, limits, number, request.partitions, stepped=stepped)
