"""What runs in a worker: one request for one partition.

A task is a function of the request alone: state and input come from the worker's memory or from files, and are the same
either way. So a task that is tried again, or twice at a time, does no harm.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import pyarrow as pa

from whorl.diagnostics.errors import UserError
from whorl.hosts.routing import routing_place
from whorl.hosts.spark.afar import CHUNKS, PARTITION, hand_over, own_layout, read_held, take_chunks
from whorl.hosts.spark.arrivals import batches_of
from whorl.hosts.spark.ending import end_quietly
from whorl.hosts.spark.garbage import REST
from whorl.hosts.spark.layout import Lacking, epoch_of
from whorl.hosts.spark.protocol import FACTS, GO_ON, IDLE, ROWS, STEP, TAKE, Brought, Reply, Request, Waiting
from whorl.hosts.spark.rebuilding import exchanging
from whorl.hosts.spark.residents import Resident, forget, resident_for, save_facts, save_state, take_over
from whorl.hosts.spark.shares import read_share
from whorl.hosts.spark.taking import current_request, take_in
from whorl.hosts.spark.turns import Turns, begin, go_on, read_letters
from whorl.hosts.spark.view_files import write_changes
from whorl.kernel.labels.diagrams import TooManyNodes
from whorl.kernel.partition import Partition, StepResult
from whorl.model.batch import Batch
from whorl.model.delta import Change


def run_task(numbers: Iterable[int]) -> Iterator[Reply]:
    """Answer the request of the job for the partitions of this task."""
    REST.begin()
    end_quietly()
    request = current_request()
    for number in numbers:
        yield answer(request, number)


def run_fed_task(pairs: Iterable[tuple[bytes, bytes]]) -> Iterator[Reply]:
    """Answer the request of the job for the partition of this worker; rows come with it, each beside the anchor."""
    REST.begin()
    end_quietly()
    yield answer(current_request(), int(os.environ[PARTITION]), [content for _anchor, content in pairs])


def run_given_task(pairs: Iterable[tuple[bytes, bytes]]) -> Iterator[Reply]:
    """Put files that come with the job where the partition of this worker reads them."""
    end_quietly()
    request, number = current_request(), os.environ[PARTITION]
    chunks = (pa.ipc.read_record_batch(pa.py_buffer(content), CHUNKS) for _anchor, content in pairs)
    take_chunks(request.layout, request.wanted[number], chunks)
    yield Reply(int(number), os.getpid())


@dataclass(frozen=True, slots=True)
class Holding:
    """What a worker holds of a folder, as Spark asks for it."""

    deployment: str
    unit: str
    schema: pa.Schema

    def __call__(self, _anchor: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield it."""
        end_quietly()
        yield from read_held(own_layout(self.deployment, ()), self.unit, self.schema)


def answer(request: Request, number: int, contents: Sequence[bytes] = ()) -> Reply:
    """Do what is asked for one partition."""
    if request.do == IDLE:
        return Reply(number, os.getpid())
    try:
        if request.do == TAKE:
            take_over(request, number)
            return replace(Reply(number, os.getpid()), **_handed_over(request))
        resident = resident_for(request, number)
        if request.do in (STEP, GO_ON):
            reply = _step(request, resident, contents) if request.do == STEP else _go_on(request, resident)
            if request.once and reply.result is not None:
                forget(request, number)
            return reply
        partition = resident.partition
        if request.do == ROWS:
            name = next(each.relation for each in partition.plan.outputs if each.name == request.view)
            speaks = number == 0 or partition.plan.split_column(name) is not None
            return _reply(request, resident, rows=tuple(partition.rows(request.view)) if speaks else ())
        assert request.do == FACTS, f"nobody asks for {request.do}"
        save_facts(request, partition)
        return _reply(request, resident)
    except UserError as error:
        if request.once:
            forget(request, number)
        return Reply(number, os.getpid(), error=_as_named(request, error))
    except Lacking as lacking:
        return Reply(number, os.getpid(), lacking=lacking.names)


def _step(request: Request, resident: Resident, contents: Sequence[bytes]) -> Reply:
    if resident.prepared is not None:
        return resident.prepared[1]
    if resident.turns is not None and resident.turns.reply is not None:
        return resident.turns.reply
    if request.save:
        save_state(request, resident.partition, request.history[-1])
    partition = resident.partition
    time, batches, brought = _input(request, partition, contents)
    work = partial(partition.prepare, (), time, batches, decode=request.emit == "rows")
    if not exchanging(partition.plan, partition.partitions):
        return _prepared(request, resident, work(), brought)
    try:
        turns, found = begin(request, partition, work)
    except TooManyNodes:
        return _reply(request, resident, cramped=True)
    return _turned(request, resident, turns, found, brought)


def _go_on(request: Request, resident: Resident) -> Reply:
    """Take the next turn of an epoch in the middle; a turn that was taken is answered as it was."""
    turns = resident.turns
    if turns is None:
        known = resident.prepared is not None and resident.prepared[0] == request.entry
        return resident.prepared[1] if known and resident.prepared else _reply(request, resident, lost=True)
    if request.turn == turns.turn and turns.reply is not None:
        return turns.reply
    letters = read_letters(request, turns, resident.partition.number)
    resident.turns = None  # unless it goes well
    try:
        found = go_on(request, turns, letters, resident.partition.number)
    except TooManyNodes:
        return _reply(request, resident, cramped=True)
    brought = None if turns.reply is None else turns.reply.brought
    return _turned(request, resident, turns, found, brought)


def _turned(
    request: Request, resident: Resident, turns: Turns, found: Waiting | StepResult, brought: Brought | None
) -> Reply:
    if isinstance(found, StepResult):
        return _prepared(request, resident, found, brought)
    resident.turns, turns.reply = turns, _reply(request, resident, waiting=found, brought=brought)
    return turns.reply


def _prepared(request: Request, resident: Resident, result: StepResult, brought: Brought | None) -> Reply:
    """Write what an epoch did; it is prepared from now on."""
    try:
        reply = _reply(request, resident, result=result, changed=_emit(request, resident), brought=brought)
    except BaseException:
        resident.partition.roll_back()
        raise
    resident.prepared = (request.entry, reply)
    return reply


def _input(
    request: Request, partition: Partition, contents: Sequence[bytes]
) -> tuple[int | None, list[Batch], Brought | None]:
    """Return the event time and the batches of an epoch: from the log, or from what came with the job."""
    if request.fed is None:
        return *read_share(request.layout, request.entry, partition.number), None
    program = partition.plan.logical.program
    facts = [Change(fact.relation, fact.row, 1) for fact in program.facts] if request.fed.facts else []
    places = {relation.name: routing_place(partition.plan, relation.name) for relation in program.base_relations()}
    batches, brought = take_in(request, partition.number, contents, batches_of(facts), places)
    return brought.time, batches, brought


def _emit(request: Request, resident: Resident) -> dict[str, tuple[int, int]]:
    """Write the changes of the views, if they go to files."""
    if request.emit != "files":
        return {}
    changed: dict[str, tuple[int, int]] = {}
    for output in resident.partition.plan.outputs:
        folder = request.layout.staging / request.entry / output.name
        counts = write_changes(folder, resident.partition, output, epoch_of(request.entry), durable=request.durable)
        if any(counts):
            changed[output.name] = counts
    return changed


def _as_named(request: Request, error: UserError) -> UserError:
    """Return an error with the name that a file has in the store, not on this machine."""
    layout, path = request.layout, str(error.facts.get("path", ""))
    for here in (layout.fetched, layout.folder):
        if not request.shared and path.startswith(f"{here}/"):
            return UserError(error.code, error.span, **{**error.facts, "path": request.folder + path[len(str(here)) :]})
    return error


def _handed_over(request: Request) -> dict[str, Any]:
    """Return the files that this task wrote, as a reply has them; nothing, where they are where they belong."""
    if request.shared:
        return {}
    files, held = hand_over(request.layout, request.most_bytes)
    return {"files": files, "held": held}


def _reply(request: Request, resident: Resident, **found: object) -> Reply:
    partition = resident.partition
    return Reply(
        partition.number,
        os.getpid(),
        state_bytes=partition.nbytes,
        caught_up=resident.caught_up,
        restored=resident.restored,
        **_handed_over(request),
        **found,  # type: ignore[arg-type]
    )
