"""Changes: what goes into an epoch and what comes out of it.

An `Epoch` is one batch of changes to base relations, taken as a whole or not at all. A `Delta` is what an epoch
did to one view: exactly the rows that appeared and those that vanished, each sorted.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from whorl.model.values import Row, row_key

if TYPE_CHECKING:
    from whorl.model.batch import Batch


@dataclass(frozen=True, slots=True)
class Change:
    """One row inserted into (`weight` 1) or deleted from (`weight` -1) a base relation."""

    relation: str
    row: Row
    weight: int
    line: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Epoch:
    """One input batch; `time` moves the event time when given.

    Changes come row by row, then as whole columns in `batches`; either may be empty.
    """

    number: int
    changes: tuple[Change, ...]
    time: int | None = None
    line: int = field(default=0, compare=False)
    batches: tuple[Batch, ...] = ()

    def by_row(self) -> Epoch:
        """Return the epoch with every change as a row of its own."""
        rows = (Change(batch.relation, row, batch.weight) for batch in self.batches for row in batch.rows())
        return replace(self, changes=(*self.changes, *rows), batches=()) if self.batches else self


@dataclass(frozen=True, slots=True)
class Delta:
    """The rows of one view that appeared and vanished in an epoch."""

    inserted: tuple[Row, ...] = ()
    deleted: tuple[Row, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.inserted or self.deleted)


def difference(before: Iterable[Row], after: Iterable[Row]) -> Delta:
    """Return the delta that turns the rows ``before`` into the rows ``after``."""
    old, new = frozenset(before), frozenset(after)
    return Delta(tuple(sorted(new - old, key=row_key)), tuple(sorted(old - new, key=row_key)))
