"""The label of a row: what its strategy keeps of it, as people read it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TypeAlias

import numpy as np

from whorl.diagnostics.errors import UserError
from whorl.kernel.arrays.facts import FOREVER
from whorl.kernel.labels.minimal import minimal_sets
from whorl.kernel.labels.variables import Present
from whorl.kernel.partition import Partition
from whorl.kernel.strategies.absorption import Absorption
from whorl.kernel.strategies.counting import Counting
from whorl.kernel.strategies.derivations import Derivations
from whorl.kernel.strategies.dred import Dred
from whorl.kernel.strategies.elastic import Elastic
from whorl.kernel.strategies.expiry import Expiry
from whorl.kernel.strategies.staged_derivations import StagedDerivations
from whorl.kernel.strategies.stratum import Strategy
from whorl.kernel.strategies.support import Support
from whorl.model.values import format_row
from whorl.views.asking import Asked
from whorl.views.explaining import find_row

Alternatives: TypeAlias = tuple[frozenset[str], ...]
_SHOWN = 20  # alternatives of a Boolean function


@dataclass(frozen=True, slots=True)
class Label:
    """A row's label: of which strategy, and its value.

    A number of derivations (`counting`, `derivations`, and `dred` for those without recursion), a rank (`support`), a
    time of death, None for a row that lives for ever (`expiry`), or alternatives of what the stratum reads, smallest
    first (`absorption`). A strategy without labels has None.
    """

    strategy: str
    value: int | Alternatives | None

    def __str__(self) -> str:
        if self.strategy == "expiry":
            return "lives for ever" if self.value is None else f"dies at {self.value}"
        if isinstance(self.value, tuple):
            return " or ".join(" and ".join(sorted(each)) or "always" for each in self.value)
        if self.value is None:
            return f"{self.strategy} keeps no label"
        if self.strategy in ("counting", "derivations", "dred"):
            kind = " without recursion" if self.strategy == "dred" else ""
            return f"{self.value} derivation{'' if self.value == 1 else 's'}{kind}"
        return f"rank {self.value}"


def label_row(partitions: Sequence[Partition], asked: Asked, *, hint: str) -> Label:
    """Return the label of the first row that fits; raise with a ``hint`` if there is none."""
    found = find_row(partitions, asked)
    if found is None:
        raise UserError("E647", None, row=asked, hint=hint)
    partition, _target, (name, number) = found
    at = next((at for at, stratum in enumerate(partition.plan.strata) if name in stratum.relations), None)
    if at is None:
        dies = partition.state.relations[name].dying
        return Label("expiry" if dies else "facts", _death(partition, name, number) if dies else None)
    label = _label(partition, partition.strategies[at], name, number)
    return label or Label(partition.plan.strata[at].strategy, None)


def _label(partition: Partition, strategy: Strategy, name: str, number: int) -> Label | None:
    if isinstance(strategy, Elastic):
        labelled = strategy.labelled
        return Label("recompute", None) if labelled is None else _label(partition, labelled, name, number)
    labels = partition.state.relations[name].labels
    if isinstance(strategy, Absorption):
        return Label("absorption", _alternatives(partition, strategy, name, number))
    if isinstance(strategy, Expiry):
        return Label("expiry", _death(partition, name, number))
    if isinstance(strategy, Derivations | StagedDerivations):
        return Label("derivations", strategy.count_derivations(name, number))
    if isinstance(strategy, Support):
        return Label("support", int(labels[number]) >> 32)
    if isinstance(strategy, Counting):
        return Label("counting", int(labels[number]))
    if isinstance(strategy, Dred):
        return Label("dred", int(labels[number]) if partition.state.relations[name].labelled else None)
    return None


def _death(partition: Partition, name: str, number: int) -> int | None:
    death = int(partition.state.relations[name].labels[number])
    return None if death >= FOREVER else death


def _alternatives(partition: Partition, strategy: Absorption, name: str, number: int) -> Alternatives | None:
    """Return the smallest alternatives of a label, in the words of the rows that the stratum reads."""
    if strategy.strategy != "absorption":
        return None
    found = islice(minimal_sets(strategy.diagrams, strategy.label(name, number)), _SHOWN)
    return tuple(frozenset(_meaning(partition, strategy, each) for each in names) for names in found)


def _meaning(partition: Partition, strategy: Absorption, variable: int) -> str:
    meaning = strategy.meaning(variable)
    if isinstance(meaning, Present):
        stored = partition.state.relations[meaning.relation]
        types = [column.type for column in partition.plan.relations[meaning.relation].columns]
        row = partition.state.dictionary.decode_rows(stored.read(np.array([meaning.number])), types)[0]
        return format_row(meaning.relation, row)
    return f"fact {variable:x}" if meaning is None else f"absence {variable:x}"
