"""One partition: changes of base relations in, changes of views out, an epoch at a time.

An epoch is taken as a whole or not at all: if a stratum fails, every row is as alive as before, and what strategies
keep beside the rows is built anew at the next epoch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from whorl.diagnostics.errors import UserError
from whorl.kernel.operators.pipeline import State
from whorl.kernel.state.base import BaseFacts
from whorl.kernel.state.dictionary import Dictionary, TermTooDeep
from whorl.kernel.state.relation import Ints, StoredRelation
from whorl.kernel.strategies import build_strategy
from whorl.kernel.strategies.stratum import Stratum
from whorl.model.delta import Change, Delta
from whorl.model.limits import Limits
from whorl.model.report import InputCounts, Work
from whorl.model.types import Type
from whorl.model.values import Row, format_value, row_key
from whorl.physical.plan import PhysicalPlan


@dataclass(frozen=True)
class StepResult:
    """What one epoch did."""

    deltas: Mapping[str, Delta]
    input: InputCounts
    work: Work
    seconds: Mapping[str, float]


class Partition:
    """The state of one partition, and its only entry: `step`."""

    def __init__(self, plan: PhysicalPlan, limits: Limits, previous: Partition | None = None) -> None:
        """Start from nothing, or with the base facts of a ``previous`` partition for another plan of the program."""
        self.plan = plan
        self._limits = limits
        relations = {n: StoredRelation(n, [c.type for c in r.columns]) for n, r in plan.relations.items()}
        self._base: dict[str, BaseFacts] = {}
        self._stepped: bool = previous is not None and previous._stepped
        for relation in plan.logical.program.base_relations():
            old = previous._base.get(relation.name) if previous is not None else None
            if old is not None:
                old.stored.types = relations[relation.name].types
                relations[relation.name] = old.stored
                old.relation = plan.relations[relation.name]
            stored = relations[relation.name]
            self._base[relation.name] = old or BaseFacts(plan.relations[relation.name], stored)
        dictionary = previous.state.dictionary if previous is not None else Dictionary(limits.depth)
        self.state: State = State(relations, dictionary, plan.logical.program.functions)
        schemas = dict(plan.relations)
        self._strategies = [
            build_strategy(Stratum(stratum, schemas, self.state, limits), plan.logical) for stratum in plan.strata
        ]
        if self._stepped:  # bring the views to where they were, silently
            for strategy in self._strategies:
                strategy.step()
            self._settle()

    def step(self, changes: Sequence[Change], now: int | None) -> StepResult:
        """Apply one epoch at event time ``now``; if it fails, leave everything as it was."""
        try:
            return self._step(changes, now)
        except BaseException:
            self._roll_back()
            raise

    def _roll_back(self) -> None:
        for relation in self.state.relations.values():
            relation.roll_back()
        for facts in self._base.values():
            facts.roll_back()
        for strategy in self._strategies:
            strategy.reset()

    def _step(self, changes: Sequence[Change], now: int | None) -> StepResult:
        self.state.work.__init__()  # type: ignore[misc]  # operators hold on to the object
        started = perf_counter()
        base = InputCounts()
        for name, facts in self._base.items():
            runs = list(self._runs(name, changes))
            base.add(facts.apply(runs, now))
        entered = perf_counter()
        for stratum, strategy in zip(self.plan.strata, self._strategies, strict=True):
            try:
                strategy.step()
            except TermTooDeep as deep:
                names = ", ".join(f'"{name}"' for name in stratum.relations)
                sample = format_value(deep.value)[:160]
                raise UserError(
                    "E508", None, limit=self._limits.depth, relations=names, line="?", sample=sample
                ) from None
        maintained = perf_counter()
        deltas = self._settle()
        for facts in self._base.values():
            facts.keep()
        self._stepped = True
        done = perf_counter()
        seconds = {"input": entered - started, "maintain": maintained - entered, "output": done - maintained}
        return StepResult(deltas, base, replace(self.state.work), seconds)

    def _types(self, name: str) -> list[Type]:
        return [column.type for column in self.plan.relations[name].columns]

    def _runs(self, name: str, changes: Sequence[Change]) -> Iterable[tuple[int, Ints, Ints | None]]:
        """Yield the changes of one relation as runs of insertions and deletions, in their order."""
        relation = self.plan.relations[name]
        own = [change for change in changes if change.relation == name]
        start = 0
        while start < len(own):
            stop = start
            while stop < len(own) and own[stop].weight == own[start].weight:
                stop += 1
            rows = [change.row for change in own[start:stop]]
            times = None
            if relation.timed:
                times = np.array([row[0] for row in rows], np.int64)
                rows = [row[1:] for row in rows] if relation.lifted else rows
            yield own[start].weight, self.state.dictionary.encode_rows(rows, self._types(name)), times
            start = stop

    def _settle(self) -> dict[str, Delta]:
        shown: dict[str, list[str]] = {}
        for output in self.plan.outputs:
            shown.setdefault(output.relation, []).append(output.name)
        deltas: dict[str, Delta] = {}
        for name, relation in self.state.relations.items():
            appeared, vanished = relation.settle()
            if not len(appeared) and not len(vanished):
                continue
            for view in shown.get(name, ()):
                deltas[view] = Delta(self._decode(name, appeared), self._decode(name, vanished))
        return deltas

    def _decode(self, name: str, numbers: Ints) -> tuple[Row, ...]:
        batch = self.state.relations[name].read(numbers)
        rows = self.state.dictionary.decode_rows(batch, self._types(name))
        return tuple(sorted(rows, key=row_key))

    def rows(self, view: str) -> set[Row]:
        """Return the rows of a view."""
        name = next(output.relation for output in self.plan.outputs if output.name == view)
        relation = self.state.relations[name]
        return set(self.state.dictionary.decode_rows(relation.read(relation.alive()), self._types(name)))

    @property
    def nbytes(self) -> int:
        """The memory that rows, tables, indexes and labels take."""
        return sum(relation.nbytes for relation in self.state.relations.values())
