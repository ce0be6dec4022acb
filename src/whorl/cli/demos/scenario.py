"""What a demo consists of: a program, a world that changes by a seed, and how to tell what happened.

The runner (`run`) hands each step to whoever keeps the views, and gives back to the scenario what changed. A scenario
never computes a view itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import ClassVar, Protocol, TypeAlias

from rich.text import Text

from whorl.model.delta import Delta, Epoch
from whorl.model.values import Row
from whorl.views.proof import Proof

Deltas: TypeAlias = Mapping[str, Delta]
Views: TypeAlias = Mapping[str, set[Row]]

# How a line looks.
CAME, WENT, BETTER, WORSE, DIM = "green", "red", "green", "yellow", "dim"


@dataclass(frozen=True, slots=True)
class Step:
    """One epoch, and what happens in it, in words: one line for each thing worth a line."""

    epoch: Epoch
    incoming: Sequence[Text]


@dataclass(frozen=True, slots=True)
class Question:
    """A change of a view that the demo explains: the row that vanished, the row that came, or both."""

    view: str
    before: Row | None
    after: Row | None


@dataclass(frozen=True, slots=True)
class Evidence:
    """The proofs of the rows of a question: of the old row before the epoch, of the new one after it."""

    question: Question
    before: Proof | None
    after: Proof | None


@dataclass(frozen=True, slots=True)
class Told:
    """What an epoch did, ready to be shown: the columns of a table, and where things stand."""

    columns: Mapping[str, Sequence[Text]]
    totals: str


class Scenario(Protocol):
    """A demo. It knows its world and its words; whoever keeps the views knows neither."""

    name: ClassVar[str]
    summary: ClassVar[str]
    seed: ClassVar[int]

    def steps(self, count: int) -> Iterator[Step]:
        """Yield what happens, epoch by epoch. Only the first may change several relations."""

    def tell(self, deltas: Deltas, views: Views) -> Told:
        """Return what an epoch did. ``views`` are as of after it."""

    def ask(self, deltas: Deltas) -> Question | None:
        """Return the change that is most worth explaining."""

    def explain(self, evidence: Evidence) -> str:
        """Return a sentence on a change, from its proofs."""

    def draw(self, views: Views) -> str:
        """Return a picture of how things stand, as SVG."""


def program_path(name: str) -> Path:
    """Return where the program of a demo lies."""
    return Path(str(files("whorl.cli.demos").joinpath(f"{name}.dl")))


@dataclass(slots=True)
class Pairing:
    """What a delta did to each key: the old rest of the row, the new rest, either may be missing."""

    delta: Delta
    keys: int
    old: dict[Row, Row] = field(init=False)
    new: dict[Row, Row] = field(init=False)

    def __post_init__(self) -> None:
        self.old = {row[: self.keys]: row for row in self.delta.deleted}
        self.new = {row[: self.keys]: row for row in self.delta.inserted}

    def __iter__(self) -> Iterator[tuple[Row, Row | None, Row | None]]:
        """Yield each key with the row before and the row after."""
        for key in dict.fromkeys([*self.old, *self.new]):
            yield key, self.old.get(key), self.new.get(key)


def number_of(row: Row | None, column: int = -1) -> float:
    """Return a number of a row; 0 if there is no row."""
    value = 0 if row is None else row[column]
    assert isinstance(value, int | float), "a column of numbers"
    return float(value)


def counted(count: int, noun: str, nouns: str | None = None) -> str:
    """Return a number with its noun, as in `1 link` and `2 links`."""
    return f"{count} {noun if count == 1 else nouns or noun + 's'}"
