"""A network between partitions, simulated: letters take time, arrive out of order, twice, or at the second try.

Everything random comes from one seed, so a run can be repeated. Between two partitions letters are numbered; the
receiver drops those it has had and holds those that come too early, as any reliable transport does. What crosses is
counted as often as it is sent.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from whorl.hosts.exchanging import count_letter
from whorl.kernel.exchange import Letter
from whorl.model.report import Shipment


@dataclass(frozen=True, slots=True)
class Conditions:
    """How a network behaves.

    `latency` gives the seconds that a letter takes from one partition to another, of which `jitter` is the largest
    part that chance adds. `duplicated` and `lost` are the shares of letters that arrive twice, or have to be sent again
    after `patience` seconds. `bandwidth` is in bytes a second. When a letter arrives, a partition waits for `pause`
    seconds, and takes what has arrived by then together.
    """

    latency: Callable[[int, int], float] = lambda _sender, _receiver: 0.002
    jitter: float = 0.0
    duplicated: float = 0.0
    lost: float = 0.0
    patience: float = 0.2
    bandwidth: float = 1.25e8
    pause: float = 0.0001
    seed: int = 0


@dataclass(order=True, slots=True)
class _Arrival:
    time: float
    ticket: int
    serial: int = field(compare=False)
    letter: Letter = field(compare=False)


@dataclass
class Network:
    """Carries letters as its conditions say; `clock` is the time that has passed on it, in seconds."""

    conditions: Conditions
    clock: float = 0.0
    shipped: dict[tuple[str, int, int], Shipment] = field(default_factory=dict)
    letters: int = 0  # letters sent, every try counted
    _luck: random.Random = field(init=False)
    _tickets: int = 0
    _under_way: dict[int, list[_Arrival]] = field(default_factory=dict)  # by receiver, the next first
    _sent: dict[tuple[int, int], int] = field(default_factory=dict)
    _due: dict[tuple[int, int], int] = field(default_factory=dict)
    _early: dict[tuple[int, int], dict[int, Letter]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._luck = random.Random(self.conditions.seed)

    def begin(self) -> None:
        """Count anew; the clock goes on."""
        self.shipped, self.letters = {}, 0

    def post(self, letters: Sequence[Letter]) -> None:
        """Send letters."""
        for letter in letters:
            pair = (letter.sender, letter.receiver)
            serial = self._sent.get(pair, 0)
            self._sent[pair] = serial + 1
            self._send(letter, serial)

    def deliver(self, until: float | None = None) -> tuple[int, list[Letter]] | None:
        """Let time pass until letters can be handed over; return to whom, and these; None if none are, until then."""
        while self._under_way:
            receiver = min(self._under_way, key=lambda each: self._under_way[each][0])
            arrivals = self._under_way[receiver]
            look = arrivals[0].time + self.conditions.pause
            if until is not None and look > until:
                break
            self.clock = max(self.clock, look)
            ready: list[Letter] = []
            while arrivals and arrivals[0].time <= look:
                ready += self._receive(heapq.heappop(arrivals))
            if not arrivals:
                del self._under_way[receiver]
            if ready:
                return receiver, ready
        self.clock = max(self.clock, until or 0.0)
        return None

    def forget(self) -> None:
        """Drop what is under way: the epoch was given up."""
        self._under_way, self._early = {}, {}
        self._due = dict(self._sent)

    def _send(self, letter: Letter, serial: int) -> None:
        now = self.clock
        while True:
            count_letter(self.shipped, letter)
            self.letters += 1
            if self._luck.random() >= self.conditions.lost:
                break
            now += self.conditions.patience
        for _copy in range(2 if self._luck.random() < self.conditions.duplicated else 1):
            delay = self.conditions.latency(letter.sender, letter.receiver) + letter.nbytes / self.conditions.bandwidth
            delay += self.conditions.jitter * self._luck.random()
            self._tickets += 1
            arrivals = self._under_way.setdefault(letter.receiver, [])
            heapq.heappush(arrivals, _Arrival(now + delay, self._tickets, serial, letter))

    def _receive(self, arrival: _Arrival) -> list[Letter]:
        """Return the letters that are next from a sender, now that one has arrived."""
        pair = (arrival.letter.sender, arrival.letter.receiver)
        due = self._due.get(pair, 0)
        early = self._early.setdefault(pair, {})
        if arrival.serial >= due:
            early[arrival.serial] = arrival.letter
        ready: list[Letter] = []
        while due in early:
            ready.append(early.pop(due))
            due += 1
        self._due[pair] = due
        return ready
