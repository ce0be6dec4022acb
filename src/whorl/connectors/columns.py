"""Named columns on their way to a relation: a table of somebody, or a file that is read."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from whorl.connectors.target import Misfit, Place, Target, match_columns
from whorl.diagnostics.errors import UserError
from whorl.model.batch import Batch, Values
from whorl.model.types import Type

Convert: TypeAlias = Callable[[Any, Type], Values]  # a column as its source holds it, hence Any


class StrangeType(Exception):
    """A column of a type that no column of a relation has."""


@dataclass(frozen=True, slots=True)
class Columns:
    """Columns by name, how they become values, and where their rows stand.

    `again` reads the source in another way, slower but exact, when the quick way does not fit.
    """

    names: Sequence[str]
    columns: Sequence[Any]
    count: int
    convert: Convert
    place: Place
    where: str
    again: Callable[[], Columns] | None = None

    def without(self, name: str) -> Columns:
        """Return all columns but one."""
        kept = [(n, c) for n, c in zip(self.names, self.columns, strict=True) if n != name]
        names, columns = [n for n, _c in kept], [c for _n, c in kept]
        return Columns(names, columns, self.count, self.convert, self.place, self.where, self.again)

    def column(self, name: str) -> Any:
        """Return a column by name, None if there is none."""
        return next((c for n, c in zip(self.names, self.columns, strict=True) if n == name), None)


def read_columns(target: Target, source: Columns, weight: int) -> Batch:
    """Check columns against a relation, and return them as a batch."""
    columns = []
    for at, found in enumerate(match_columns(target, source.names, source.where)):
        try:
            columns.append(source.convert(source.columns[found], target.types[at]))
        except Misfit as misfit:
            raise misfit.at(target, at, source.place) from None
        except StrangeType as strange:
            facts = {"name": target.relation, "column": target.label(at), "found": strange}
            raise UserError("E607", None, **facts) from None
    return Batch(target.relation, tuple(columns), source.count, weight)
