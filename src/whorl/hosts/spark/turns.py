"""An epoch in turns, in a worker: where partitions exchange rows, each stops until the others have sent theirs.

The step waits in a thread of the worker between two jobs. Letters are files in the folder that all share, named by the
turn, the sender and the receiver. A task that is tried again finds the turn done, and gives the same answer; a worker
that is new, or has let its partition go, knows nothing of the epoch and says so, and then all begin it again.
"""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from uuid import uuid4

from whorl.hosts.exchanging import Done, Event, Swap, Task, Trade, count_letter
from whorl.hosts.spark.protocol import Reply, Request, Waiting
from whorl.kernel.exchange import Letter
from whorl.kernel.partition import Partition, StepResult
from whorl.model.report import Shipment


@dataclass(slots=True)
class Turns:
    """A step that has begun: the entry and the attempt that it is for, and what it answered last."""

    entry: str
    attempt: int
    task: Task[StepResult]
    turn: int = 0
    for_all: bool = False
    reply: Reply | None = field(default=None)

    def is_for(self, request: Request) -> bool:
        """Whether a request means this step."""
        return (self.entry, self.attempt) == (request.entry, request.attempt)


def begin(request: Request, partition: Partition, work: Callable[[], StepResult]) -> tuple[Turns, Waiting | StepResult]:
    """Begin a step; return it, and what it waits for or gave."""
    turns = Turns(request.entry, request.attempt, Task(partition, work))
    return turns, _after(request, turns, turns.task.start(), partition.number)


def go_on(request: Request, turns: Turns, letters: Sequence[Letter], number: int) -> Waiting | StepResult:
    """Go on with a step after others have sent their letters; return what it waits for now, or gave."""
    assert request.turn == turns.turn + 1, "partitions go through the same turns"
    answer: object = (letters, request.ballot) if turns.for_all else None if request.quiet else letters
    turns.turn = request.turn
    return _after(request, turns, turns.task.resume(answer), number)


def _after(request: Request, turns: Turns, event: Event[StepResult], number: int) -> Waiting | StepResult:
    if isinstance(event, Done):
        return event.result
    assert isinstance(event, Trade | Swap)
    turns.for_all = isinstance(event, Trade)
    shipped: dict[tuple[str, int, int], Shipment] = {}
    by_receiver: dict[int, list[Letter]] = {}
    for letter in event.letters:
        count_letter(shipped, letter)
        by_receiver.setdefault(letter.receiver, []).append(letter)
    folder = request.layout.letters(turns.entry, turns.attempt)
    for receiver, letters in by_receiver.items():
        folder.mkdir(parents=True, exist_ok=True)
        temporary = folder / f".{uuid4().hex[:8]}.tmp"
        temporary.write_bytes(pickle.dumps(letters))
        temporary.replace(folder / f"{turns.turn}-{number}-{receiver}")
    ballot = event.ballot if isinstance(event, Trade) else 0
    return Waiting(turns.for_all, ballot, tuple(shipped.values()))


def read_letters(request: Request, turns: Turns, number: int) -> list[Letter]:
    """Return the letters of a turn for one partition, in the order of their senders."""
    if request.quiet:
        return []
    folder = request.layout.letters(request.entry, request.attempt)
    paths = request.layout.have(*(folder / f"{turns.turn}-{sender}-{number}" for sender in range(request.partitions)))
    return [letter for path in paths if path.exists() for letter in pickle.loads(path.read_bytes())]
