"""What an epoch did and what it cost."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from whorl.model.delta import Delta


@dataclass(slots=True)
class InputCounts:
    """What happened to the changes of an epoch."""

    inserted: int = 0
    deleted: int = 0
    refreshed: int = 0
    absent: int = 0
    late: int = 0
    expired: int = 0

    def add(self, other: InputCounts) -> None:
        """Add the counts of another relation."""
        self.inserted += other.inserted
        self.deleted += other.deleted
        self.refreshed += other.refreshed
        self.absent += other.absent
        self.late += other.late
        self.expired += other.expired


@dataclass(slots=True)
class Work:
    """What maintaining the views took: the reference evaluator counts none of it.

    Probes look rows up, and matches are what they find; derivations are bodies of rules that hold; labels are updates
    of labels. Deletion doubts rows, lets some fall, and some of those return in the same epoch.
    """

    probes: int = 0
    matches: int = 0
    derivations: int = 0
    rounds: int = 0
    labels: int = 0
    doubted: int = 0
    fallen: int = 0
    returned: int = 0

    def copy(self) -> Work:
        """Return the counts so far."""
        copied = Work()
        copied.add(self)
        return copied

    def add(self, other: Work) -> None:
        """Add the counts of another part of the work."""
        self.probes += other.probes
        self.matches += other.matches
        self.derivations += other.derivations
        self.rounds += other.rounds
        self.labels += other.labels
        self.doubted += other.doubted
        self.fallen += other.fallen
        self.returned += other.returned


@dataclass(frozen=True, slots=True)
class Shipment:
    """What one partition sent another through one channel."""

    channel: str
    sender: int
    receiver: int
    rows: int = 0
    bytes: int = 0
    label_bytes: int = 0


@dataclass(frozen=True, slots=True)
class StratumCost:
    """How one stratum was brought up to date, and what that cost in seconds, predicted (if anything was) and actual."""

    relations: tuple[str, ...]
    strategy: str
    how: str
    predicted: float | None
    actual: float


@dataclass(frozen=True, slots=True)
class EpochReport:
    """One epoch: the delta of every view that changed, what happened to the input, what it cost."""

    number: int
    time: int | None
    deltas: Mapping[str, Delta]
    counts: InputCounts
    seconds: float
    work: Work | None = None
    phases: Mapping[str, float] = field(default_factory=dict)
    state_bytes: int | None = None
    strata: tuple[StratumCost, ...] = ()
    shipped: tuple[Shipment, ...] = ()
