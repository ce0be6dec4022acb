"""What a partition has told others through one channel, and what it still holds back."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import numpy as np

from whorl.kernel.state.distinct import distinct
from whorl.kernel.state.relation import Ints, Mask, StoredRelation
from whorl.model.batching import Batching
from whorl.physical.plan import Channel


class Sender:
    """What the other side of a channel inside a fixpoint was told, by the number of the row."""

    def __init__(self, channel: Channel, relations: Mapping[str, StoredRelation]) -> None:
        self.channel = channel
        self.source = relations[channel.source]
        self._target = relations[channel.target]
        self.seen = 0  # changes of the source that were looked at, in this epoch
        self._told: Mask = np.zeros(32, np.bool_)
        self._held: list[Ints] = []  # rows that may be new, while only what falls is sent
        self.buffer = Buffer()

    def clear(self) -> None:
        """Take the other side to know nothing."""
        self._told[:] = False
        self._held = []
        self.buffer = Buffer()

    def resume(self) -> None:
        """Take the other side to know what is alive."""
        self.clear()
        self._reserve()
        self._told[self.source.alive()] = True

    def changed(self) -> Ints:
        """Return the rows of which there may be something to tell, each once."""
        parts, self.seen = self.source.changed_since(self.seen)
        parts, self._held = [*self._held, *parts], []
        return distinct(parts[0] if len(parts) == 1 else np.concatenate(parts)) if parts else np.empty(0, np.int64)

    def news(self, *, growing: bool) -> Iterator[tuple[Ints, int, Ints | None]]:
        """Yield rows that are gone (-1), and while things grow those that are there (1), with their labels."""
        numbers = self.changed()
        if not len(numbers):
            return
        self._reserve()
        alive, told = self.source.is_alive(numbers), self._told[numbers]
        gone, fresh = numbers[~alive & told], numbers[alive & ~told]
        if len(gone):
            self._told[gone] = False
            yield gone, -1, None
        if not growing:
            self._held = [fresh]
        elif len(fresh):
            self._told[fresh] = True
            yield fresh, 1, self.source.labels[fresh] if self._target.labelled else None

    def _reserve(self) -> None:
        if self.source.count > len(self._told):
            larger = np.zeros(max(self.source.count, 2 * len(self._told)), np.bool_)
            larger[: len(self._told)] = self._told
            self._told = larger


class Buffer:
    """Rows whose labels say more than the other side was told: they wait until they are many, or have waited long.

    >>> buffer, bounds = Buffer(), Batching(rows=3, seconds=2.0)
    >>> buffer.add(np.array([4, 7]), 1.0)
    >>> buffer.add(np.array([7]), 2.5)
    >>> buffer.due(bounds), buffer.full(bounds, 2.9), buffer.full(bounds, 3.0)
    (3.0, False, True)
    >>> buffer.empty().tolist(), buffer.due(bounds)
    ([4, 7], None)
    """

    def __init__(self) -> None:
        self._rows: dict[int, None] = {}
        self._since = 0.0  # when the first of them came

    def add(self, numbers: Ints, now: float) -> None:
        """Let rows wait."""
        if len(numbers):
            self._since = self._since if self._rows else now
            self._rows.update(dict.fromkeys(numbers.tolist()))

    def due(self, bounds: Batching) -> float | None:
        """Return the time at which what waits has waited long enough."""
        return self._since + bounds.seconds if self._rows and bounds.seconds is not None else None

    def full(self, bounds: Batching, now: float) -> bool:
        """Whether it is time to send what waits."""
        due = self.due(bounds)
        return (bounds.rows is not None and len(self._rows) >= bounds.rows) or (due is not None and now >= due)

    def empty(self) -> Ints:
        """Return what waits; it does no longer."""
        numbers = np.array(sorted(self._rows), np.int64)
        self._rows = {}
        return numbers
