"""What `absorption` asks of labels, whichever kind they are; a batch of labels is known to its kind only."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, TypeVar

from whorl.kernel.labels.circles import Steps
from whorl.kernel.labels.diagrams import Diagrams, Function
from whorl.kernel.labels.losses import Losses
from whorl.kernel.state.relation import Ints

Batch = TypeVar("Batch")


class Labels(Protocol[Batch]):
    """The labels of the rows of a stratum, by relation and number."""

    @property
    def diagrams(self) -> Diagrams:
        """The manager of the functions that `label` and `told` return."""

    @property
    def nbytes(self) -> int:
        """The memory that labels take."""

    def inputs(self, places: Ints) -> Batch:
        """Return the labels of inputs, which are variables."""

    def premises(self, name: str, numbers: Ints) -> Batch:
        """Return what derivations may use of rows that have labels."""

    def straight(self, used: Batch, steps: Steps, heads: Ints) -> tuple[Ints, Batch]:
        """Leave out what leads back to the rows that are derived; return the lines that are left, and what they use."""

    def together(self, factors: Sequence[Batch], count: int) -> Batch:
        """Return what each of some derivations needs, from what it needs of each premise."""

    def offer(self, name: str, numbers: Ints, offers: Batch) -> Ints:
        """Add derivations to labels; return the rows of which others have to be told."""

    def forget(self, lost: Ints) -> Iterator[tuple[str, Losses]]:
        """Set variables to false."""

    def label(self, name: str, number: int) -> Function:
        """Return what is known of a row: false if it is not there."""

    def told(self, name: str, number: int) -> Function:
        """Return what other rows were told of a row."""

    def waiting(self, name: str, copy: str, numbers: Ints, /) -> tuple[Ints, Ints]:
        """Tell which rows those who have a copy have to know of, and of which they know less than there is."""

    def ship(self, name: str, copy: str, numbers: Ints, /) -> Batch:
        """Return what those who have a copy are told of rows from now on."""

    def encode(self, receiver: int, labels: Batch) -> bytes:
        """Return labels as bytes for one partition, in the order in which letters are sent to it."""

    def decode(self, sender: int, content: bytes, count: int) -> Batch:
        """Return the labels that a partition has sent."""
