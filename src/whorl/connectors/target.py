"""Where rows go: a base relation with all its attributes, and the errors of rows that do not fit it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from whorl.analysis.program import Relation
from whorl.diagnostics.errors import UserError
from whorl.diagnostics.wording import listed, quoted, shortened
from whorl.model.types import Type

Place: TypeAlias = Callable[[int], str]  # says where a row stands, given its position


def row_place(position: int) -> str:
    """Name a row by its position, counted from one."""
    return f"row {position + 1}"


@dataclass(frozen=True, slots=True)
class Target:
    """A base relation as rows see it: the timestamp of a stream comes first, also where it is lifted.

    `names` is None if the program does not declare the relation: rows then go by position.
    """

    relation: str
    types: tuple[Type, ...]
    names: tuple[str, ...] | None = None

    def label(self, column: int) -> str:
        """Return how a message calls a column."""
        return str(column + 1) if self.names is None else quoted(self.names[column])


def target_of(relation: Relation, names: Sequence[str] | None) -> Target:
    """Return the target of a relation; ``names`` are those of its declaration."""
    types = tuple(column.type for column in relation.columns)
    types = (Type.TIMESTAMP, *types) if relation.lifted else types
    return Target(relation.name, types, None if names is None else tuple(names))


class Misfit(Exception):
    """A value that does not fit its column; whoever knows the row's place makes it an error."""

    def __init__(self, row: int, found: str | None = None) -> None:
        super().__init__(row)
        self.row = row
        self.found = found  # None if there is no value

    def at(self, target: Target, column: int, place: Place) -> UserError:
        """Return the error."""
        where = {"name": target.relation, "column": target.label(column), "place": place(self.row)}
        if self.found is None:
            return UserError("E602", None, **where)
        kind = target.types[column]
        expected = "value of the language" if kind is Type.UNKNOWN else kind
        return UserError("E605", None, expected=expected, found=shortened(self.found), **where)


def match_columns(target: Target, found: Sequence[str], where: str) -> list[int]:
    """Return for each attribute of a relation the position of its column among those ``found``.

    By name if all names of the declaration are there, in whatever case; by position if none is.
    """
    if target.names is not None:
        for spelled in (str, str.lower):
            places = {spelled(name): place for place, name in reversed(list(enumerate(found)))}
            wanted = [places.get(spelled(name)) for name in target.names]
            if None not in wanted:
                return [place for place in wanted if place is not None]
        lower = {name.lower() for name in found}
        if any(name.lower() in lower for name in target.names):
            missing = [quoted(name) for name in target.names if name.lower() not in lower]
            hint = f"Add {listed(missing, 'and')}, or let all names agree with the declaration."
            raise _mismatch(target, found, where, hint)
    if len(found) != len(target.types):
        hint = "Name the columns as the program declares them." if target.names else "Give a column for each attribute."
        raise _mismatch(target, found, where, hint)
    return list(range(len(found)))


def _mismatch(target: Target, found: Sequence[str], where: str, hint: str) -> UserError:
    has = ", ".join(target.names) if target.names else f"{len(target.types)} attributes"
    return UserError(
        "E603", None, name=target.relation, where=where, found=", ".join(found) or "none", expected=has, hint=hint
    )
