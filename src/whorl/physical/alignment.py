"""What ties the places of relations together: rules, seen as the columns of atoms that share a value with the head.

A physical stratum in, its links out. For `p(X, Y) :- e(X, Z), p(Z, Y)` the second column of the head is aligned with
the second of the second atom, and the first with the first of the first.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from whorl.analysis.program import Relation
from whorl.logical.plan import AntiJoin, Contribution, Extend, Filter, Join, RulePlan, SemiJoin
from whorl.model.types import Type
from whorl.physical.plan import PhysicalStratum
from whorl.syntax import ast

_INTEGERS = frozenset({Type.INTEGER, Type.TIMESTAMP})


class Needs(Enum):
    """How many of its atoms a rule must read from split relations, when its head is split."""

    NONE = "the partition checks what it derives"
    SOME = "one at least: nothing checks what it derives"
    ALL = "all: they are taken as they are"


@dataclass(frozen=True, slots=True, eq=False)
class Link:
    """A rule as placement sees it: what it reads, and where the variables of its head's columns stand.

    `aligned[c]` holds the places (atom, column) that have the value of the head's column c.
    """

    head: str
    atoms: tuple[tuple[str, bool], ...]
    aligned: Mapping[int, frozenset[tuple[int, int]]]
    needs: Needs
    stratum: int
    line: int | None

    def place(self, atom: int, column: int) -> int | None:
        """Return the column of an atom that has the value of the head's column."""
        found = sorted(place[1] for place in self.aligned.get(column, ()) if place[0] == atom)
        return found[0] if found else None


def alignments(stratum: PhysicalStratum, relations: Mapping[str, Relation]) -> Iterator[Link]:
    """Yield what the rules and cells of a stratum tie together."""
    for cell in stratum.cells:
        (name,) = stratum.relations
        plain = [c for c in range(len(relations[name].columns)) if c not in relations[name].aggregates]
        aligned = {
            column: frozenset((at, place) for at in range(len(cell.sources))) for place, column in enumerate(plain)
        }
        read = tuple((source, True) for source in cell.sources)
        yield Link(name, read, aligned, Needs.ALL, stratum.number, _line(stratum))
    for rule in stratum.rules:
        yield _link(rule.rule, relations, Needs.NONE, stratum.number, rule.types)
    if stratum.kind == "reference" and stratum.source is not None:
        for source_rule in stratum.source.rules:
            yield _link(source_rule, relations, Needs.SOME, stratum.number, {})


def _line(stratum: PhysicalStratum) -> int | None:
    spans = [rule.span for rule in stratum.source.rules] if stratum.source is not None else []
    return next((span.line for span in spans if span is not None), None)


def _link(
    rule: RulePlan, relations: Mapping[str, Relation], needs: Needs, stratum: int, types: Mapping[str, Type]
) -> Link:
    atoms = [step for step in rule.steps if isinstance(step, Join | SemiJoin | AntiJoin)]
    same = _equal_variables(rule, types)
    kinds = [column.type for column in relations[rule.relation].columns]
    aligned: dict[int, frozenset[tuple[int, int]]] = {}
    for column, arg in enumerate(rule.args):
        if isinstance(arg, Contribution) or not isinstance(arg, ast.Variable):
            continue
        names = same.get(arg.name, frozenset({arg.name}))
        aligned[column] = frozenset(
            (at, place)
            for at, atom in enumerate(atoms)
            for place, each in enumerate(atom.args)
            if isinstance(each, ast.Variable)
            and each.name in names
            and same_kind(kinds[column], relations[atom.relation].columns[place].type)
        )
    line = rule.span.line if rule.span is not None else None
    read = tuple((atom.relation, not isinstance(atom, AntiJoin)) for atom in atoms)
    return Link(rule.relation, read, aligned, needs, stratum, line)


def same_kind(left: Type, right: Type) -> bool:
    """Whether a value is stored alike in two columns; an Integer that becomes a Float has another owner."""
    return left is right or (left in _INTEGERS and right in _INTEGERS)


def _equal_variables(rule: RulePlan, types: Mapping[str, Type]) -> dict[str, frozenset[str]]:
    """Return for each variable those that a rule says are equal to it, and stored alike."""
    same: dict[str, frozenset[str]] = {}
    for step in rule.steps:
        if isinstance(step, Filter) and step.operator == "=":
            sides = (step.left, step.right)
        elif isinstance(step, Extend):
            sides = (step.pattern, step.value)
        else:
            continue
        if isinstance(sides[0], ast.Variable) and isinstance(sides[1], ast.Variable):
            left, right = sides[0].name, sides[1].name
            kinds = [types.get(name, Type.UNKNOWN) for name in (left, right)]
            if Type.UNKNOWN not in kinds and same_kind(*kinds):
                joined = same.get(left, frozenset({left})) | same.get(right, frozenset({right}))
                same |= dict.fromkeys(joined, joined)
    return same
