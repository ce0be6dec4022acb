"""What a generated program is, and what it may be made of."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product

from whorl.model.values import Row, Value


@dataclass(frozen=True)
class Domain:
    """The values that a column of a base relation takes."""

    type: str
    values: tuple[Value, ...]


NODE = Domain("Integer", (0, 1, 2, 3))
WEIGHT = Domain("Integer", (1, 2, 3))
NAME = Domain("String", ("a", "b", "c"))
RATIO = Domain("Float", (0.5, 1.0, 2.5))


@dataclass(frozen=True)
class BaseRelation:
    """A relation that takes changes; the rows of a `stream` start with a timestamp that `domains` leaves out."""

    name: str
    domains: tuple[Domain, ...]
    stream: bool = False
    keyed: bool = False
    counted: bool = False

    @property
    def rows(self) -> tuple[Row, ...]:
        """Every row over the domains, without a timestamp."""
        return _rows(self.domains)


@cache
def _rows(domains: tuple[Domain, ...]) -> tuple[Row, ...]:
    return tuple(product(*(domain.values for domain in domains)))


POOL = (
    BaseRelation("e", (NODE, NODE)),
    BaseRelation("w", (NODE, NODE, WEIGHT)),
    BaseRelation("n", (NODE,)),
    BaseRelation("f", (NODE, NODE)),
    BaseRelation("s", (NODE, NAME)),
    BaseRelation("d", (NODE, NODE, RATIO)),
)


@dataclass(frozen=True)
class GeneratedProgram:
    """A program's text, with what is needed to feed it."""

    text: str
    base: tuple[BaseRelation, ...]
    features: frozenset[str]

    @property
    def timed(self) -> bool:
        """Whether event time matters to it."""
        return bool(self.features & {"stream", "ttl"})

    @property
    def ordered(self) -> bool:
        """Whether the order of the changes inside an epoch may matter, even for distinct rows."""
        return any(relation.keyed or relation.counted for relation in self.base)


@dataclass(frozen=True)
class Shape:
    """What programs may use: types of columns, kinds of strata (see `strata.KINDS`), windows.

    The recursions of a `linear` shape have one relation, and one recursive atom in one rule. A `queried` one asks for
    constants wherever it can.
    """

    types: frozenset[str] = frozenset({"Integer", "String", "Float"})
    kinds: frozenset[str] = frozenset(
        {"join", "recursion", "aggregate", "best", "threshold", "stages", "lists", "terms", "choice", "stamped"}
    )
    windows: bool = False
    linear: bool = False
    queried: bool = False
    max_strata: int = 3


PLAIN = Shape()
WINDOWED = Shape(windows=True)
