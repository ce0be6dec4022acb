"""What a partition sends to others and takes from them, for one stratum: see `whorl.physical.localize`.

A channel copies the rows of a relation to where they are needed. For each row the exchange remembers what the other
side was told, and sends only what differs from that: rows that are there now, rows that are gone. Copies of finished
relations are sent once an epoch, before the stratum is brought up to date (`feed`). Inside a fixpoint rows go back and
forth in two phases: first all that falls falls everywhere (`fell`), then what comes back or is new grows (`grew`); a
phase ends when no partition has anything left to send.

Cost: the rows that changed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Protocol, TypeAlias

import numpy as np

from whorl.kernel.labels.variables import Naming
from whorl.kernel.operators.pipeline import State
from whorl.kernel.sending import Sender
from whorl.kernel.state.distinct import distinct
from whorl.kernel.state.relation import Ints, StoredRelation
from whorl.logical.plan import AntiJoin
from whorl.model.batch import Values
from whorl.physical.plan import Channel, PhysicalPlan, PhysicalStratum

VARIABLES = "^variables"  # the channel of variables that are false from now on
Labels: TypeAlias = "Ints | bytes | None"
FRESH, CHANGED, LOST = 1, 2, 4  # what partitions tell each other about a stratum before they bring it up to date


@dataclass(frozen=True, slots=True, eq=False)
class Letter:
    """Rows of one channel for one partition: there from now on (`weight` 1), or gone (-1)."""

    channel: str
    sender: int
    receiver: int
    weight: int
    columns: tuple[Values, ...]
    count: int
    labels: Labels = None

    @property
    def nbytes(self) -> int:
        """The size of the rows on the wire: eight bytes a number, the text of everything else."""
        return sum(_size(column) for column in self.columns) + self.label_bytes

    @property
    def label_bytes(self) -> int:
        """The part of it that labels take."""
        if self.labels is None:
            return 0
        return len(self.labels) if isinstance(self.labels, bytes) else 8 * len(self.labels)


def _size(column: Values) -> int:
    if column.distinct is None:
        return 8 * len(column)
    sizes = np.array([len(str(value).encode("utf-8", "surrogatepass")) for value in column.distinct], np.int64)
    return int(sizes[column.data].sum()) if len(column) else 0


class Port(Protocol):
    """The way out of a partition; its host is at the other end."""

    clock: float  # the time that the host has reached, in seconds

    def trade(self, letters: list[Letter], ballot: int) -> tuple[list[Letter], int]:
        """Send letters; when all partitions have, return those for this one, and the ballots of all together."""

    def swap(self, letters: list[Letter], due: float | None) -> list[Letter] | None:
        """Send letters, and wait for some, or until a time; return None when no partition has anything left to send."""


class Alone:
    """The port of a partition that is the only one: nobody sends it anything."""

    clock = 0.0

    def trade(self, letters: list[Letter], ballot: int) -> tuple[list[Letter], int]:
        """Return what was said, and no letters."""
        assert not letters, "there is nobody to send them to"
        return [], ballot

    def swap(self, letters: list[Letter], due: float | None) -> list[Letter] | None:
        """Return that nobody has anything left to send."""
        assert not letters, "there is nobody to send them to"
        if due is None:
            return None
        self.clock = max(self.clock, due)
        return []


class Labelling(Protocol):
    """A strategy whose labels are no numbers, and travel as bytes. Only it knows what a batch of them is, hence Any."""

    def waiting(self, channel: Channel, numbers: Ints) -> tuple[Ints, Ints]:
        """Tell which rows the other side has to know of, and of which it knows less than there is."""

    def ship(self, channel: Channel, numbers: Ints) -> Any:
        """Return the labels of rows, which the other side is told from now on."""

    def encode(self, receiver: int, labels: Any) -> bytes:
        """Return labels as bytes for another partition, which gets them in this order."""

    def decode(self, sender: int, content: bytes, count: int) -> Any:
        """Return the labels that another partition has sent."""

    def take_over(self, name: str, rows: Ints, labels: Any) -> Ints:
        """Take labels over; return the rows, by number, whose labels changed for those who read them."""


class Exchange:
    """One partition's end of the channels of a stratum."""

    def __init__(self, whole: PhysicalPlan, plan: PhysicalStratum, state: State) -> None:
        self._plan = plan
        self._state = state
        self._arities = {name: len(relation.columns) for name, relation in whole.relations.items()}
        self._split = {name for name in whole.relations if whole.split_column(name) is not None}
        self.sources = {each.target: each.source for stratum in whole.strata for each in stratum.feeds}
        self._feeding = [each for stratum in whole.strata for each in stratum.feeds if each.target in plan.inputs()]
        self.labelling: Labelling | None = None
        self.port: Port | None = None
        self.agreed = 0  # what partitions said before this step, together
        self._fed = False  # whether what the channels feed holds what there was before this epoch
        self._senders = [Sender(channel, state.relations) for channel in plan.channels]
        self._targets = {channel.target: channel for channel in (*plan.feeds, *plan.channels)}
        self._outbox: list[Letter] = []
        self._negated = {step.relation for rule in plan.rules for step, _ in rule.atoms if isinstance(step, AntiJoin)}

    def clear(self) -> None:
        """Forget what was sent and received inside the fixpoint: it starts anew everywhere."""
        self._outbox = []
        for sender in self._senders:
            sender.clear()

    def resume(self) -> None:
        """Go on where everything alive has been sent."""
        self._fed = True
        for sender in self._senders:
            sender.resume()

    def keep(self) -> None:
        """The epoch is over: changes are counted from here."""
        self._fed = True
        for sender in self._senders:
            sender.seen = 0

    def roll_back(self) -> None:
        """Nothing of the epoch counts; the fixpoint starts anew."""
        self.clear()
        for sender in self._senders:
            sender.seen = 0

    # Before the stratum

    def feed(self, *, fresh: bool) -> None:
        """Bring copies of finished relations up to date, and learn what the other partitions have to follow."""
        ballot = (FRESH if fresh else 0) | self._changes()
        letters: list[Letter] = []
        for channel in self._plan.feeds:
            source = self._state.relations[channel.source]
            appeared, vanished = source.pending() if self._fed else (source.alive(), np.empty(0, np.int64))
            for numbers, weight in ((vanished, -1), (appeared, 1)):
                for receiver, rows in self._shares(channel, source, numbers):
                    if receiver == self._number:
                        self._apply(channel, self._signed(channel, rows.batch, receiver), weight)
                    else:
                        letters.append(self._letter(channel, receiver, rows, weight))
        assert self.port is not None, "partitions that exchange need a port"
        arrived, self.agreed = self.port.trade(letters, ballot)
        for _taken in self._take(arrived):
            pass

    def _changes(self) -> int:
        """Tell whether anything that the stratum reads, here or through a channel, has changed, and what was lost."""
        copies = {channel.source: channel.target for channel in self._plan.feeds}
        ballot = 0
        for name in dict.fromkeys((*self._plan.inputs(), *copies)):
            appeared, vanished = self._state.relations[name].pending()
            if len(appeared) or len(vanished):
                ballot |= CHANGED
            if len(vanished) or (len(appeared) and {name, copies.get(name)} & self._negated):
                ballot |= LOST
        return ballot

    # Inside the fixpoint

    def fell(self) -> dict[str, Ints] | None:
        """Send what fell; return the copies that fell in turn, by relation, or None when all partitions are done."""
        return self._swap(growing=False) if self.agreed & LOST else None

    def grew(self) -> dict[str, Ints] | None:
        """Send what is there now; return the copies that are new, by relation, or None when all are done."""
        return self._swap(growing=True)

    def _swap(self, *, growing: bool) -> dict[str, Ints] | None:
        wanted = 1 if growing else -1
        changed: dict[str, list[Ints]] = {}
        for sender in self._senders:
            for numbers, weight, labels in self._news(sender, growing=growing):
                self._post(sender, numbers, weight, labels, changed if weight == wanted else {})
        if changed:
            return {name: np.concatenate(parts) for name, parts in changed.items()}
        letters, self._outbox = self._outbox, []
        assert self.port is not None
        dues = [due for sender in self._senders if (due := sender.buffer.due(self._plan.batching)) is not None]
        arrived = self.port.swap(letters, min(dues, default=None) if growing else None)
        if arrived is None:
            return None
        for name, weight, numbers in self._take(arrived):
            if weight == wanted and len(numbers):
                changed.setdefault(name, []).append(numbers)
        return {name: np.concatenate(parts) for name, parts in changed.items()}

    def _news(self, sender: Sender, *, growing: bool) -> Iterator[tuple[Ints, int, Any]]:
        """Yield what the other side has to be told; labels that travel as bytes say themselves when a row is gone."""
        if self.labelling is None:
            yield from sender.news(growing=growing)
        elif growing:
            numbers = self._to_tell(sender, self.labelling)
            if len(numbers):
                yield numbers, 1, self.labelling.ship(sender.channel, numbers)

    def _to_tell(self, sender: Sender, labelling: Labelling) -> Ints:
        """Return the rows to tell of: those that others do not know, and those of which more is known if it is time."""
        assert self.port is not None
        channel, buffer, bounds = sender.channel, sender.buffer, self._plan.batching
        numbers = sender.changed()
        unknown, more = labelling.waiting(channel, numbers[sender.source.is_alive(numbers)])
        buffer.add(more, self.port.clock)
        if not buffer.full(bounds, self.port.clock):
            return unknown
        waited = buffer.empty()
        more = labelling.waiting(channel, waited[sender.source.is_alive(waited)])[1]
        return distinct(np.concatenate((unknown, more)))

    def announce(self, ended: frozenset[int], naming: Naming) -> frozenset[int]:
        """Return the variables that are false from now on: of rows that vanished, and of absences that ended, anywhere.

        The home of a row tells of it, and of an absence whoever saw it end. Whoever holds a copy of the row that this
        stratum reads learns of it through that.
        """
        if not self.agreed & LOST:
            return frozenset()
        owner = self._state.owner
        assert owner is not None
        assert self.port is not None
        lost = set(ended)
        told: list[list[int]] = [sorted(ended) for _ in range(owner.partitions)]
        for relation in dict.fromkeys((*self._plan.inputs(), *(channel.source for channel in self._feeding))):
            _appeared, vanished = self._state.relations[relation].pending()
            names = naming.present(relation, vanished.tolist())
            lost.update(names)
            if relation in self._split and relation not in self.sources:
                for name, number in zip(names, vanished.tolist(), strict=True):
                    for receiver in set(range(owner.partitions)) - self._copied_to(relation, number):
                        told[receiver].append(name)
        letters = [
            Letter(VARIABLES, owner.number, receiver, -1, (), len(names), np.array(names, np.int64))
            for receiver, names in enumerate(told)
            if names and receiver != owner.number
        ]
        arrived, _ballot = self.port.trade(letters, 0)
        for letter in arrived:
            lost.update(() if letter.labels is None else map(int, letter.labels))
        return frozenset(lost)

    def _copied_to(self, relation: str, number: int) -> set[int]:
        """Return the partitions that have a copy of a row which this stratum reads."""
        source = self._state.relations[relation]
        own = [channel for channel in self._feeding if channel.source == relation]
        shares = [self._shares(channel, source, np.array([number])) for channel in own]
        return {receiver for share in shares for receiver, _rows in share}

    def _post(self, sender: Sender, numbers: Ints, weight: int, labels: Any, changed: dict[str, list[Ints]]) -> None:
        """Hand rows over: those for this partition at once, the others by letter."""
        channel = sender.channel
        for receiver, rows in self._shares(channel, sender.source, numbers):
            own = self._pick(labels, rows.lines)
            if receiver != self._number:
                if self.labelling is not None:
                    own = self.labelling.encode(receiver, own)
                self._outbox.append(self._letter(channel, receiver, rows, weight, own))
                continue
            taken = self._apply(channel, self._signed(channel, rows.batch, receiver), weight, own)
            if len(taken):
                changed.setdefault(channel.target, []).append(taken)

    def _pick(self, labels: Any, lines: Ints) -> Any:
        if labels is None:
            return None
        return labels[lines] if self.labelling is None else labels.picked(lines)

    # Rows

    @property
    def _number(self) -> int:
        return 0 if self._state.owner is None else self._state.owner.number

    def _shares(self, channel: Channel, source: StoredRelation, numbers: Ints) -> Iterator[tuple[int, _Rows]]:
        """Yield for each partition the rows that go there."""
        if not len(numbers):
            return
        batch = source.read(numbers)
        owner = self._state.owner
        assert owner is not None
        if channel.column is None:
            everything = _Rows(batch, np.arange(len(batch)))
            yield from ((receiver, everything) for receiver in range(owner.partitions))
            return
        owners = owner.owners(np.ascontiguousarray(batch[:, channel.column]), source.types[channel.column])
        for receiver in distinct(owners).tolist():
            lines = np.flatnonzero(owners == receiver)
            yield receiver, _Rows(np.ascontiguousarray(batch[lines]), lines)

    def _letter(self, channel: Channel, receiver: int, rows: _Rows, weight: int, labels: Labels = None) -> Letter:
        kinds = self._state.relations[channel.source].types[: self._arities[channel.source]]
        columns = tuple(
            self._state.dictionary.decode_values(np.ascontiguousarray(rows.batch[:, at]), kind)
            for at, kind in enumerate(kinds)
        )
        return Letter(channel.target, self._number, receiver, weight, columns, len(rows.batch), labels)

    def _take(self, letters: Sequence[Letter]) -> Iterator[tuple[str, int, Ints]]:
        """Take over the rows of letters, those of one channel and weight that follow each other at once.

        Yield the channel, the weight, and the numbers of the rows that were changed.
        """
        for (name, weight), run in groupby(letters, key=lambda letter: (letter.channel, letter.weight)):
            channel, own = self._targets[name], list(run)
            batches = [self._signed(channel, self._batch(channel, letter), letter.sender) for letter in own]
            labels = [self._labels(letter) for letter in own]
            if len(own) == 1:
                yield name, weight, self._apply(channel, batches[0], weight, labels[0])
            else:
                yield name, weight, self._apply(channel, np.concatenate(batches), weight, self._joined(labels))

    def _batch(self, channel: Channel, letter: Letter) -> Ints:
        kinds = self._state.relations[channel.source].types
        batch = np.zeros((letter.count, len(kinds)), np.int64)
        for at, column in enumerate(letter.columns):
            batch[:, at] = self._state.dictionary.encode_values(column, kinds[at])
        return batch

    def _labels(self, letter: Letter) -> Any:
        if not isinstance(letter.labels, bytes):
            return letter.labels
        assert self.labelling is not None
        return self.labelling.decode(letter.sender, letter.labels, letter.count)

    def _joined(self, labels: Sequence[Any]) -> Any:
        if labels[0] is None:
            return None
        return np.concatenate(labels) if self.labelling is None else labels[0].joined(labels[1:])

    def _signed(self, channel: Channel, batch: Ints, sender: int) -> Ints:
        """Return rows with the number of their sender behind, if the channel wants that."""
        if not channel.signed:
            return batch
        arity = self._arities[channel.source]
        signed = np.empty((len(batch), arity + 1), np.int64)
        signed[:, :arity], signed[:, arity] = batch[:, :arity], sender
        return signed

    def _apply(self, channel: Channel, batch: Ints, weight: int, labels: Any = None) -> Ints:
        target = self._state.relations[channel.target]
        if weight < 0:
            found = target.find(batch)
            return target.retire(found[found >= 0])
        if labels is None:
            return target.add(batch)
        if self.labelling is not None:
            return self.labelling.take_over(channel.target, batch, labels)
        return target.adopt_rows(batch, labels)


@dataclass(frozen=True, slots=True, eq=False)
class _Rows:
    """Rows that go one way, and their lines in the batch they come from."""

    batch: Ints
    lines: Ints
