"""The derivations of rows: every way in which a row follows from rows that are alive.

A row is named by its relation and its number. Rows of base relations have no derivations. Rules that the compiler added
to restrict what is computed are not shown: a premise that only asks for a row is left out.

An aggregated row is derived by gathering: its premises are contributions, each of which a rule derives. A gathering
takes no step of its own, so that an aggregate is one step above the rows it is computed from.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from whorl.analysis.expressions import Binding
from whorl.kernel.arrays.rowset import NEW
from whorl.kernel.operators.compiling import compile_at_head
from whorl.kernel.operators.pipeline import State
from whorl.kernel.partition import Partition
from whorl.logical.plan import Contribution, RulePlan
from whorl.model.values import Row
from whorl.physical.plan import PhysicalRule, PhysicalStratum
from whorl.physical.rules import build_rule

Key = tuple[str, int]
_LINES = 4096


@dataclass(frozen=True, slots=True, eq=False)
class Derivation:
    """One use of a rule: the rows that its positive atoms take. Without a rule, it gathers contributions.

    `left_out` counts contributions that a gathering has beyond those named.
    """

    rule: RulePlan | None
    premises: tuple[Key, ...]
    binding: Binding | None = None
    left_out: int = 0

    @property
    def cost(self) -> int:
        """How much higher the derived row stands than its highest premise."""
        return 0 if self.rule is None else 1


class Finder(Protocol):
    """Finds the derivations of the rows of some relations."""

    def find(self, relation: str, numbers: Sequence[int]) -> Iterator[tuple[Key, Derivation]]:
        """Yield each derivation with the row that it derives."""


class Rows:
    """Rows by name: those stored, and those that only a search knows, under negative numbers."""

    def __init__(self, partition: Partition) -> None:
        self.state = partition.state
        self.made: dict[Key, Row] = {}
        self._read: dict[Key, Row] = {}
        self._schemas = partition.plan.relations

    def make(self, relation: str, row: Row) -> Key:
        """Name a row that is not stored."""
        key = (relation, -1 - len(self.made))
        self.made[key] = row
        return key

    def read(self, key: Key) -> Row:
        """Return the values of a row."""
        if key not in self.made and key not in self._read:
            self._read[key] = self.decode(key[0], [key[1]])[0]
        return self.made[key] if key in self.made else self._read[key]

    def read_all(self, keys: Iterable[Key]) -> None:
        """Read many rows at once, so that `read` knows them."""
        by_relation: dict[str, list[int]] = defaultdict(list)
        for relation, number in keys:
            if number >= 0:
                by_relation[relation].append(number)
        for relation, numbers in by_relation.items():
            names = ((relation, number) for number in numbers)
            self._read.update(zip(names, self.decode(relation, numbers), strict=True))

    def decode(self, relation: str, numbers: Sequence[int]) -> list[Row]:
        """Return the values of stored rows."""
        batch = self.state.relations[relation].read(np.array(numbers, np.int64))
        types = [column.type for column in self._schemas[relation].columns]
        return self.state.dictionary.decode_rows(batch, types)

    def numbered(self, relation: str) -> dict[Row, int]:
        """Return every row of a relation that is alive, with its number."""
        numbers = self.state.relations[relation].alive().tolist()
        return dict(zip(self.decode(relation, numbers), numbers, strict=True))


class RuleFinder:
    """Finds derivations by the rules themselves, entered at their heads."""

    def __init__(self, rules: Iterable[PhysicalRule], state: State, hidden: frozenset[str]) -> None:
        self._state = state
        self._rules = [(rule, compile_at_head(rule, state), _shown(rule, hidden)) for rule in rules]

    def find(self, relation: str, numbers: Sequence[int]) -> Iterator[tuple[Key, Derivation]]:
        """Yield each derivation with the row that it derives."""
        stored = self._state.relations[relation]
        for low in range(0, len(numbers), _LINES):
            part = np.array(numbers[low : low + _LINES], np.int64)
            batch = np.column_stack((stored.read(part), np.arange(low, low + len(part), dtype=np.int64)))
            for rule, pipeline, shown in self._rules:
                if rule.relation != relation:
                    continue
                for chunk in pipeline.run(batch, [NEW] * len(rule.atoms)):
                    for line in chunk.tolist():
                        premises = tuple((name, line[column]) for column, name in shown)
                        yield (relation, numbers[line[0]]), Derivation(rule.rule, premises)


def _shown(rule: PhysicalRule, hidden: frozenset[str]) -> list[tuple[int, str]]:
    """Return the columns of a traced derivation that name premises, with the relation of each."""
    names = [step.relation for step, positive in rule.atoms if positive]  # type: ignore[union-attr]
    return [(column, name) for column, name in enumerate(names, 1) if name not in hidden]


def plain_rules(stratum: PhysicalStratum, partition: Partition) -> tuple[PhysicalRule, ...]:
    """Return the rules of a stratum, with contributions as plain columns: what they derive must be the value itself."""
    functions = partition.plan.logical.program.functions
    source = stratum.source.rules if stratum.source is not None else ()
    plans = [rule.rule for rule in stratum.rules] or source
    rules: list[PhysicalRule] = []
    for plan in plans:
        args = tuple(arg.value if isinstance(arg, Contribution) else arg for arg in plan.args)
        plain = replace(plan, args=args)
        rules.append(build_rule(plain, partition.plan.relations, functions, frozenset(stratum.relations)))
    return tuple(rules)


def hidden_relations(partition: Partition) -> frozenset[str]:
    """Return the relations that only say what is asked for."""
    return frozenset(rule.relation for rule in partition.plan.logical.rules() if rule.origin == -1)


def strata_by_relation(partition: Partition) -> dict[str, PhysicalStratum]:
    """Return the stratum of each derived relation, as a proof sees it.

    Where the kernel splits a stratum of the program into several, as it does to keep the frontiers of groups, a proof
    is about the stratum as a whole, and rests on the rows that its relations show.
    """
    found: dict[str, PhysicalStratum] = {}
    for stratum in partition.plan.strata:
        if stratum.kind in ("rows", "cells", "best"):
            found.update(dict.fromkeys(stratum.relations, stratum))
            continue
        for name in stratum.relations:
            source = stratum.source or next((s for s in partition.plan.logical.strata if name in s.relations), None)
            if source is not None and name not in found:
                kind = "best" if stratum.kind in ("front", "frontier") else "reference"
                whole = replace(
                    stratum, relations=source.relations, rules=(), kind=kind, recursive=source.recursive, source=source
                )
                found.update(dict.fromkeys(source.relations, whole))
    return found
