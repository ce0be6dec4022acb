"""Run the partitions of one host together, where they send each other rows.

Each partition runs in a thread of its own, and only one of them at a time: a partition that waits for letters hands
over to the host, which goes on with another. So a step reads like a plain function, and yet stops in the middle. The
same steps run wherever letters are carried by something else than this process: see `Carrier`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue
from threading import Thread
from typing import Generic, Protocol, TypeVar

from whorl.kernel.exchange import Letter
from whorl.kernel.labels.diagrams import TooManyNodes
from whorl.kernel.partition import Partition
from whorl.model.report import Shipment

Result = TypeVar("Result")


class Carrier(Protocol):
    """Brings letters from partition to partition, each once, and in the order in which one sends them to another."""

    shipped: dict[tuple[str, int, int], Shipment]
    clock: float  # seconds

    def begin(self) -> None:
        """Count what is shipped from here."""

    def forget(self) -> None:
        """Drop what is under way."""

    def post(self, letters: Sequence[Letter]) -> None:
        """Take letters."""

    def deliver(self, until: float | None = None) -> tuple[int, list[Letter]] | None:
        """Return the next partition that gets letters, and these; None if none arrive until then, or at all."""


@dataclass
class Direct:
    """Carries letters at once; counts what it carries. Time passes only when all wait for it."""

    shipped: dict[tuple[str, int, int], Shipment] = field(default_factory=dict)
    clock: float = 0.0
    _waiting: dict[int, list[Letter]] = field(default_factory=dict)

    def begin(self) -> None:
        """Count anew."""
        self.shipped = {}

    def forget(self) -> None:
        """Drop what is under way."""
        self._waiting = {}

    def post(self, letters: Sequence[Letter]) -> None:
        """Take letters."""
        for letter in letters:
            count_letter(self.shipped, letter)
            self._waiting.setdefault(letter.receiver, []).append(letter)

    def deliver(self, until: float | None = None) -> tuple[int, list[Letter]] | None:
        """Return all letters for one partition."""
        if not self._waiting:
            self.clock = max(self.clock, until or 0.0)
            return None
        receiver = next(iter(self._waiting))
        return receiver, self._waiting.pop(receiver)


def count_letter(shipped: dict[tuple[str, int, int], Shipment], letter: Letter) -> None:
    """Add a letter to what has been shipped."""
    sizes = (letter.count, letter.nbytes, letter.label_bytes)
    add_shipment(shipped, Shipment(letter.channel, letter.sender, letter.receiver, *sizes))


def add_shipment(shipped: dict[tuple[str, int, int], Shipment], more: Shipment) -> None:
    """Add to what has been shipped the same way."""
    key = (more.channel, more.sender, more.receiver)
    old = shipped.get(key, Shipment(*key))
    shipped[key] = Shipment(*key, old.rows + more.rows, old.bytes + more.bytes, old.label_bytes + more.label_bytes)


def run_with_room(
    partitions: Sequence[Partition], works: Sequence[Callable[[], Result]], carrier: Carrier
) -> list[Result]:
    """Let every partition do its work; where labels need more room than one has, all start anew with more."""
    while True:
        try:
            return run_together(partitions, works, carrier)
        except TooManyNodes:
            for partition in partitions:
                partition.roll_back()
                partition.make_room()


def run_together(
    partitions: Sequence[Partition], works: Sequence[Callable[[], Result]], carrier: Carrier
) -> list[Result]:
    """Let every partition do its work; if one fails, the others are stopped where they wait, and it is raised."""
    tasks = [Task(partition, work) for partition, work in zip(partitions, works, strict=True)]
    for task in tasks:
        task.clock = carrier.clock
    try:
        events = [task.start() for task in tasks]
        while not all(isinstance(event, Done) for event in events):
            events = _trade(tasks, events, carrier) if isinstance(events[0], Trade) else _swap(tasks, events, carrier)
        return [event.result for event in events if isinstance(event, Done)]
    except BaseException:
        for task in tasks:
            task.abandon()
        carrier.forget()
        raise


@dataclass(frozen=True, slots=True)
class Trade:
    """A partition has sent its letters, and waits for those of all."""

    letters: list[Letter]
    ballot: int


@dataclass(frozen=True, slots=True)
class Swap:
    """A partition has sent letters, and waits for others, until a time, or for the end of the phase."""

    letters: list[Letter]
    due: float | None = None


@dataclass(frozen=True, slots=True)
class Done(Generic[Result]):
    """The work is done."""

    result: Result


@dataclass(frozen=True, slots=True)
class Failed:
    """The work has failed."""

    error: BaseException


Event = Trade | Swap | Done[Result] | Failed


def _trade(tasks: Sequence[Task[Result]], events: Sequence[Event[Result]], carrier: Carrier) -> list[Event[Result]]:
    """Bring what all send to all, and let them go on."""
    ballot = 0
    for event in events:
        assert isinstance(event, Trade), "partitions go through the same phases"
        ballot |= event.ballot
        carrier.post(event.letters)
    boxes: list[list[Letter]] = [[] for _ in tasks]
    while (delivery := carrier.deliver()) is not None:
        boxes[delivery[0]] += delivery[1]
    return [task.resume((box, ballot)) for task, box in zip(tasks, boxes, strict=True)]


def _swap(tasks: Sequence[Task[Result]], events: Sequence[Event[Result]], carrier: Carrier) -> list[Event[Result]]:
    """Bring letters until nobody sends any, nor waits for a time, and let all go on."""
    dues: dict[int, float] = {}

    def post(number: int, event: Event[Result]) -> None:
        assert isinstance(event, Swap), "partitions go through the same phases"
        carrier.post(event.letters)
        dues.pop(number, None)
        if event.due is not None:
            dues[number] = event.due

    for number, event in enumerate(events):
        post(number, event)
    while True:
        first = min(dues, key=dues.__getitem__, default=None)
        delivery = carrier.deliver(None if first is None else dues[first])
        if delivery is None and first is None:
            return [task.resume(None) for task in tasks]
        number, letters = delivery or (first or 0, [])
        tasks[number].clock = carrier.clock
        post(number, tasks[number].resume(letters))


class _Abandoned(Exception):
    """The step is given up, because another partition failed."""


_ABANDON = object()


class Task(Generic[Result]):
    """The work of one partition, and the port through which it waits."""

    def __init__(self, partition: Partition, work: Callable[[], Result]) -> None:
        self._work = work
        self._letters_in: SimpleQueue[object] = SimpleQueue()
        self._events: SimpleQueue[Event[Result]] = SimpleQueue()
        self._thread = Thread(target=self._run, daemon=True, name=f"whorl-partition-{partition.number}")
        self._waiting = False
        self.clock = 0.0
        partition.connect(self)

    def start(self) -> Event[Result]:
        """Run until the work waits or is done."""
        self._thread.start()
        return self._next()

    def resume(self, answer: object) -> Event[Result]:
        """Go on with what was waited for."""
        self._waiting = False
        self._letters_in.put(answer)
        return self._next()

    def abandon(self) -> None:
        """Stop work that waits."""
        if self._waiting:
            self._waiting = False
            self._letters_in.put(_ABANDON)
        if self._thread.ident is not None:
            self._thread.join()

    def _next(self) -> Event[Result]:
        event = self._events.get()
        if isinstance(event, Failed):
            raise event.error
        self._waiting = not isinstance(event, Done)
        return event

    def _run(self) -> None:
        try:
            self._events.put(Done(self._work()))
        except BaseException as error:
            self._events.put(Failed(error))

    def trade(self, letters: list[Letter], ballot: int) -> tuple[list[Letter], int]:
        """Send letters; wait for those of all."""
        self._events.put(Trade(letters, ballot))
        return self._wait()  # type: ignore[return-value]

    def swap(self, letters: list[Letter], due: float | None) -> list[Letter] | None:
        """Send letters; wait for some, until a time, or for the end of the phase."""
        self._events.put(Swap(letters, due))
        return self._wait()  # type: ignore[return-value]

    def _wait(self) -> object:
        answer = self._letters_in.get()
        if answer is _ABANDON:
            raise _Abandoned
        return answer
