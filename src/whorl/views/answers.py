"""What a row rests on, as data and as text: minimal proofs, smallest cuts, its life; and what a fact carries."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from whorl.diagnostics.wording import listed
from whorl.model.delta import Delta
from whorl.model.values import Row, format_row
from whorl.views.proof import value_json


@dataclass(frozen=True, slots=True)
class Fact:
    """A base fact, with the event time until which it lives, if it ends by itself."""

    relation: str
    row: Row
    until: int | None = None

    def __str__(self) -> str:
        return format_row(self.relation, self.row)

    def to_json(self) -> dict[str, object]:
        """Return the fact as plain data."""
        plain: dict[str, object] = {"relation": self.relation, "row": [value_json(value) for value in self.row]}
        return plain if self.until is None else plain | {"until": self.until}


Facts = tuple[Fact, ...]


@dataclass(frozen=True, slots=True)
class Proofs:
    """The minimal sets of facts from which a row follows, smallest first; `complete` if there are no others."""

    row: str
    sets: tuple[Facts, ...]
    complete: bool

    def __iter__(self) -> Iterator[Facts]:
        return iter(self.sets)

    def __len__(self) -> int:
        return len(self.sets)

    def __str__(self) -> str:
        if not any(self.sets):
            return f"{self.row} follows from the rules alone."
        lines = [f"{self.row} follows from" + (":" if len(self.sets) == 1 else " any of:")]
        lines += [f"  {_together(facts)}" for facts in self.sets]
        return "\n".join(lines if self.complete else [*lines, "  and from other facts."])

    def to_json(self) -> dict[str, object]:
        """Return the sets as plain data."""
        return {"row": self.row, "proofs": _sets_json(self.sets), "complete": self.complete}


@dataclass(frozen=True, slots=True)
class Cuts:
    """The smallest sets of facts whose loss takes a row away; `complete` if there are no others of that size."""

    row: str
    sets: tuple[Facts, ...]
    complete: bool

    def __iter__(self) -> Iterator[Facts]:
        return iter(self.sets)

    def __len__(self) -> int:
        return len(self.sets)

    @property
    def size(self) -> int | None:
        """How many facts have to go; None if no loss takes the row away."""
        return len(self.sets[0]) if self.sets else None

    def __str__(self) -> str:
        if not self.sets:
            return f"{self.row} stays whatever facts are lost."
        lines = [f"{self.row} goes with" + (":" if len(self.sets) == 1 else " any of:")]
        lines += [f"  {_together(facts)}" for facts in self.sets]
        return "\n".join(lines if self.complete else [*lines, f"  and with other {self.size} facts."])

    def to_json(self) -> dict[str, object]:
        """Return the sets as plain data."""
        return {"row": self.row, "size": self.size, "cuts": _sets_json(self.sets), "complete": self.complete}


@dataclass(frozen=True, slots=True)
class Lifetime:
    """The event time until which a row holds if nothing arrives or is deleted, and the facts that bound it.

    `until` is None if it does not end by itself. It is a lower bound if not `exact`: other rows may take over.
    """

    row: str
    until: int | None
    bounds: Facts
    exact: bool = True

    def __str__(self) -> str:
        if self.until is None:
            return f"{self.row} does not expire."
        least = "" if self.exact else " at least"
        with_it = f", when {_together(self.bounds)} {'expires' if len(self.bounds) == 1 else 'expire'}"
        return f"{self.row} holds until {self.until}{least}{with_it if self.bounds else ''}."

    def to_json(self) -> dict[str, object]:
        """Return the life as plain data."""
        bounds = [fact.to_json() for fact in self.bounds]
        return {"row": self.row, "until": self.until, "exact": self.exact, "bounds": bounds}


@dataclass(frozen=True, slots=True)
class Critical:
    """What would change in the views if one fact alone went."""

    fact: Fact
    deltas: Mapping[str, Delta]

    def __str__(self) -> str:
        if not self.deltas:
            return f"Without {self.fact} nothing changes."
        lines = [f"Without {self.fact}:"]
        for view, delta in self.deltas.items():
            lines += [f"  -{format_row(view, row)}" for row in delta.deleted]
            lines += [f"  +{format_row(view, row)}" for row in delta.inserted]
        return "\n".join(lines)

    def to_json(self) -> dict[str, object]:
        """Return the changes as plain data."""
        return {
            "fact": self.fact.to_json(),
            "views": {
                view: {
                    "deleted": [[value_json(value) for value in row] for row in delta.deleted],
                    "inserted": [[value_json(value) for value in row] for row in delta.inserted],
                }
                for view, delta in self.deltas.items()
            },
        }


def _together(facts: Facts) -> str:
    return listed([str(fact) for fact in facts], "and") if facts else "no facts at all"


def _sets_json(sets: tuple[Facts, ...]) -> list[list[dict[str, object]]]:
    return [[fact.to_json() for fact in facts] for facts in sets]
