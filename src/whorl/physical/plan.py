"""The physical plan: per stratum the strategy and why; per rule the order of its steps for every way it can be entered.

A rule is entered at an atom, when rows of that atom's relation changed; at its head, when a row of the head looks
for a derivation; or at nothing, when it has no atoms. In each case the rest of the body is joined in the order that
the entry binds best, and each join is a look-up in an index.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from whorl.analysis.program import Relation
from whorl.logical.plan import Contribution, Fixpoint, LogicalPlan, Output, RulePlan, Step
from whorl.model.batching import Batching
from whorl.model.types import Type
from whorl.syntax import ast


@dataclass(frozen=True, slots=True)
class KeySpace:
    """The keys that tell contributions to a sum apart: those of one rule of the text, or explicit ones of some length.

    `kinds` are the types of the parts of a key.
    """

    name: str
    kinds: tuple[Type, ...]


@dataclass(frozen=True, slots=True)
class Keyed:
    """How a rule contributes to an aggregated column: the parts of its key, and the number of their space.

    A minimum or maximum has no key, and the space -1.
    """

    column: int
    parts: tuple[ast.Expr, ...]
    space: int


@dataclass(frozen=True, slots=True)
class Climb:
    """Where a rule of a staged stratum takes its stage from.

    The atom `anchor` reads the head's stage, or the one `below`. The atoms `same` may read the head's own stage.
    """

    anchor: int
    below: bool
    same: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class GroupEntry:
    """How a rule is entered at a group that it may lead to: the columns of its head that are known, and the steps."""

    columns: tuple[int, ...]
    steps: tuple[Step, ...]


@dataclass(frozen=True, slots=True)
class PhysicalRule:
    """A rule with its entries.

    `atoms` are the relations that the body reads, in the order of the text, with whether positively. `at_atom[i]` is
    what remains to be done after atom i is bound, `at_head` what finds the derivations of a given row. `owned` is the
    column of the head that says which partition a derived row belongs to, where the body alone does not. Where rows are
    selected inside the recursion, `at_groups` finds what derives the groups of each choice. `keyed` says
    how it contributes to each aggregated column, where contributions are added up in the recursion itself, and `climb`
    where its stage comes from.
    """

    rule: RulePlan
    atoms: tuple[tuple[Step, bool], ...]
    at_atom: tuple[tuple[Step, ...], ...]
    at_head: tuple[Step, ...]
    at_nothing: tuple[Step, ...]
    types: Mapping[str, Type]
    owned: int | None = None
    at_groups: tuple[GroupEntry, ...] = ()
    keyed: tuple[Keyed, ...] = ()
    climb: Climb | None = None

    @property
    def relation(self) -> str:
        """The relation that the rule derives."""
        return self.rule.relation

    @property
    def args(self) -> tuple[ast.Expr | Contribution, ...]:
        """The columns of its head."""
        return self.rule.args


@dataclass(frozen=True, slots=True)
class Cell:
    """An aggregated column: its function, and the relations that hold its contributions.

    A contribution is a row of the group's columns, its key, and its value; of two values for one key the larger counts.
    """

    column: int
    function: str
    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Best:
    """A relation of which only the best row of each group lives: its column, and `min` or `max`."""

    relation: str
    column: int
    function: str


@dataclass(frozen=True, slots=True)
class Channel:
    """A copy of a relation's rows that partitions send each other: whatever `source` holds, `target` holds elsewhere.

    A row goes to the owner of its value in `column`, or (None) to all. Where several partitions may send the same row,
    the target is `signed`: its last column is the number of the sender.
    """

    source: str
    target: str
    column: int | None
    signed: bool = False


@dataclass(frozen=True, slots=True)
class Circles:
    """How a derivation shows that its row was on the way already: see `whorl.physical.circles`.

    It uses a fact that has the row's values in `columns`; `steps` says in which columns a relation's facts have them,
    and those of its copies.
    `rules` are those that make a step: others only hand a row on.
    """

    columns: tuple[int, ...]
    steps: Mapping[str, tuple[int, ...]]
    rules: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class PhysicalStratum:
    """One stratum with the strategy that maintains it.

    `kind` tells what its relations are: `rows` (plain sets), `cells` (an aggregate over complete inputs), `best` (`min`
    or `max` in recursion), `frontier` (likewise, with all rows that may yet become the best), `front` (the best of
    those), `totals` (sums and counts in recursion, or several aggregates at once), `selected` (rows of which only those
    that are best in some choice live), `staged` (one stage after the other), or `reference` (what only the reference
    evaluator does). `spaces` holds the key spaces of each aggregated column that adds up, if contributions are kept.
    """

    number: int
    relations: tuple[str, ...]
    rules: tuple[PhysicalRule, ...]
    recursive: bool
    kind: str
    strategy: str
    reason: str
    cells: tuple[Cell, ...] = ()
    best: tuple[Best, ...] = ()
    source: Fixpoint | None = None
    spaces: Mapping[tuple[str, int], tuple[KeySpace, ...]] = field(default_factory=dict)
    # Ways to follow changes that may be taken in turn; in every epoch everything may be derived again instead.
    arms: tuple[str, ...] = ()
    feeds: tuple[Channel, ...] = ()  # what partitions send each other before the stratum is brought up to date
    channels: tuple[Channel, ...] = ()  # what they send each other until its fixpoint is reached
    # Which derivations labels tell others of: the first, and more only when that is lost (`lazy`), whatever changes the
    # label (`eager`), or all that are sent to other partitions (`plain`).
    ship: str = "lazy"
    batching: Batching = field(default_factory=Batching)  # how long `eager` gathers
    circles: Circles | None = None  # where labels leave out derivations that lead back to their own row

    @property
    def imports(self) -> tuple[str, ...]:
        """The relations through which the stratum's own rows come back from other partitions."""
        return tuple(channel.target for channel in self.channels)

    def inputs(self) -> tuple[str, ...]:
        """Return the relations that the rules read and other strata or the outside own."""
        names = [name for rule in self.rules for name, _positive in rule.rule.relations()]
        names += [name for cell in self.cells for name in cell.sources]
        if self.kind == "reference" and self.source is not None:
            names += [name for rule in self.source.rules for name, _positive in rule.relations()]
        return tuple(dict.fromkeys(name for name in names if name not in self.relations))


@dataclass(frozen=True, slots=True)
class Placed:
    """Where the tuples of a relation live: with the owner of their value in a column, or (None) in every partition."""

    column: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class PhysicalPlan:
    """A whole program, ready to run in partitions."""

    logical: LogicalPlan
    relations: Mapping[str, Relation]
    strata: tuple[PhysicalStratum, ...]
    outputs: tuple[Output, ...]
    placement: Mapping[str, Placed] = field(default_factory=dict)

    @property
    def exchanges(self) -> bool:
        """Whether partitions send each other rows."""
        return any(stratum.feeds or stratum.channels for stratum in self.strata)

    def split_column(self, relation: str) -> int | None:
        """Return the column by which a relation is split, None if it is copied."""
        placed = self.placement.get(relation)
        return None if placed is None else placed.column
