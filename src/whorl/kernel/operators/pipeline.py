"""A rule as a pipeline: a batch of bindings enters, chunks of head rows come out.

Each operator takes a batch (a line a binding, a column a variable) and gives chunks. Joins are in `joins`, what looks
at one line at a time in `lines`; `compiling` builds pipelines from the steps of a rule.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from whorl.kernel.operators.expressions import Faults
from whorl.kernel.state.dictionary import Dictionary
from whorl.kernel.state.frontier import Frontier
from whorl.kernel.state.owner import Owner
from whorl.kernel.state.relation import Ints, StoredRelation
from whorl.model.functions import Function
from whorl.model.report import Work


@dataclass
class State:
    """What pipelines run on."""

    relations: Mapping[str, StoredRelation]
    dictionary: Dictionary
    functions: Mapping[str, Function]
    work: Work = field(default_factory=Work)
    owner: Owner | None = None  # which partition this is, if there are several
    now: int | None = None  # event time
    frontiers: dict[str, Frontier] = field(default_factory=dict)
    faults: Faults = field(default_factory=Faults)


class Operator(Protocol):
    """Batches in, chunks out; ``needs`` gives for each atom the flag bit that its rows must have."""

    def chunks(self, batch: Ints, needs: Sequence[int]) -> Iterator[Ints]:
        """Yield what a batch becomes."""


class Pipeline:
    """One entry of a rule, compiled."""

    def __init__(self, operators: Sequence[Operator], width: int) -> None:
        self._operators = tuple(operators)
        self.width = width

    @property
    def only(self) -> Operator | None:
        """The operator, if there is but one."""
        return self._operators[0] if len(self._operators) == 1 else None

    def run(self, batch: Ints, needs: Sequence[int]) -> Iterator[Ints]:
        """Yield the chunks that a batch leads to."""
        return self._operators[0].chunks(batch, needs) if len(self._operators) == 1 else self._from(0, batch, needs)

    def _from(self, at: int, batch: Ints, needs: Sequence[int]) -> Iterator[Ints]:
        if at == len(self._operators):
            yield batch
        elif at == len(self._operators) - 1:
            yield from self._operators[at].chunks(batch, needs)
        else:
            for chunk in self._operators[at].chunks(batch, needs):
                yield from self._from(at + 1, chunk, needs)
