"""One partition: changes of base relations in, changes of views out, an epoch at a time.

An epoch is taken as a whole or not at all: if a stratum fails, every row is as alive as before, and what strategies
keep beside the rows is built anew at the next epoch. `prepare` leaves the last word to the host, which calls `keep` or
`roll_back` when it knows how the other partitions fared.

Of a relation that every partition holds (see `whorl.physical.placement`), partition 0 alone reports the changes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from whorl.diagnostics.errors import UserError
from whorl.kernel.exchange import Alone, Exchange, Port
from whorl.kernel.operators.pipeline import State
from whorl.kernel.state.base import BaseFacts, FactRows
from whorl.kernel.state.dictionary import Dictionary, TermTooDeep
from whorl.kernel.state.owner import Owner
from whorl.kernel.state.relation import Ints, StoredRelation
from whorl.kernel.strategies import build_strategy
from whorl.kernel.strategies.absorption import Absorption
from whorl.kernel.strategies.cells import Cells
from whorl.kernel.strategies.elastic import Elastic
from whorl.kernel.strategies.fixpoint import Fixpoint
from whorl.kernel.strategies.recompute import Recompute
from whorl.kernel.strategies.rederive import Rederive
from whorl.kernel.strategies.rounds import Rounds
from whorl.kernel.strategies.stratum import Renumbered, Strategy, Stratum
from whorl.model.batch import Batch, Values
from whorl.model.delta import Change, Delta
from whorl.model.limits import Limits
from whorl.model.report import InputCounts, StratumCost, Work
from whorl.model.types import Type
from whorl.model.values import Row, format_value
from whorl.physical.plan import PhysicalPlan, PhysicalStratum


@dataclass(frozen=True)
class StepResult:
    """What one epoch did."""

    deltas: Mapping[str, Delta]
    input: InputCounts
    work: Work
    seconds: Mapping[str, float]
    strata: tuple[StratumCost, ...] = ()


class Partition:
    """The state of one partition, and its only entry: `step`."""

    def __init__(
        self,
        plan: PhysicalPlan,
        limits: Limits,
        previous: Partition | None = None,
        *,
        number: int = 0,
        partitions: int = 1,
    ) -> None:
        """Start from nothing, or with the base facts of a ``previous`` partition for another plan of the program."""
        self.plan = plan
        self.number = number
        self.partitions = partitions
        self._limits = limits
        self._closed: dict[str, tuple[Ints, Ints]] = {}
        self.stale: set[int] = set()  # strata that will be derived anew: what is kept beside their rows means nothing
        relations = {n: StoredRelation(n, [c.type for c in r.columns]) for n, r in plan.relations.items()}
        self.base: dict[str, BaseFacts] = {}
        self.stepped: bool = previous is not None and previous.stepped
        for relation in plan.logical.program.base_relations():
            old = previous.base.get(relation.name) if previous is not None else None
            if old is not None:
                old.stored.types = relations[relation.name].types
                relations[relation.name] = old.stored
                old.relation = plan.relations[relation.name]
            stored = relations[relation.name]
            self.base[relation.name] = old or BaseFacts(plan.relations[relation.name], stored)
        dictionary = previous.state.dictionary if previous is not None else Dictionary(limits.depth)
        owner = Owner(number, partitions, dictionary) if partitions > 1 or plan.exchanges else None
        self.state: State = State(relations, dictionary, plan.logical.program.functions, owner=owner)
        schemas = dict(plan.relations)
        self.strategies: list[Strategy] = []
        self.exchanges: dict[int, Exchange] = {}  # by the place of the stratum
        for at, stratum in enumerate(plan.strata):
            compiled = Stratum(stratum, schemas, self.state, limits)
            if stratum.feeds or stratum.channels:
                self.exchanges[at] = Exchange(plan, stratum, self.state)
                compiled.exchange = self.exchanges[at] if stratum.channels else None
            self.strategies.append(build_strategy(compiled, plan.logical))
        if partitions == 1:
            self.connect(Alone())
        if self.stepped and (partitions == 1 or not self.exchanges):
            self.derive()

    def connect(self, port: Port) -> None:
        """Let what goes to other partitions go through a port."""
        for exchange in self.exchanges.values():
            exchange.port = port

    def start_anew(self) -> None:
        """Let strata whose rows travel start anew at the next epoch, and so everywhere: what was told is not known."""
        for at in self.exchanges:
            self.strategies[at].reset()

    def make_room(self) -> None:
        """Give labels that grow with the data more room, or up, in all strata whose rows travel."""
        for at in self.exchanges:
            strategy = self.strategies[at]
            if isinstance(strategy, Absorption):
                strategy.make_room()

    def derive(self) -> None:
        """Bring the views to where the base facts put them, silently."""
        self.stepped = True
        for at in range(len(self.strategies)):
            self._bring_up_to_date(at)
        self._settle()
        self._closed = {}
        for exchange in self.exchanges.values():
            exchange.keep()

    def _bring_up_to_date(self, at: int) -> None:
        """Exchange what a stratum needs, and let its strategy follow the changes."""
        strategy = self.strategies[at]
        if at in self.exchanges:
            self.exchanges[at].feed(fresh=isinstance(strategy, Rederive | Recompute | Rounds) and strategy.fresh)
        strategy.step()

    def step(self, changes: Sequence[Change], now: int | None, batches: Sequence[Batch] = ()) -> StepResult:
        """Apply one epoch at event time ``now``, ``batches`` last; if it fails, leave everything as it was."""
        result = self.prepare(changes, now, batches)
        self.keep()
        return result

    def prepare(
        self, changes: Sequence[Change], now: int | None, batches: Sequence[Batch] = (), *, decode: bool = True
    ) -> StepResult:
        """Apply one epoch, so that it can still be undone; if it fails, it is.

        Without ``decode``, the result has no deltas: ask `changed_columns` for them, before the epoch is kept.
        """
        try:
            return self._step(changes, batches, now, decode=decode)
        except BaseException:
            self.roll_back()
            raise

    def keep(self) -> None:
        """Take over the epoch that was prepared."""
        for facts in self.base.values():
            facts.keep()
        self._closed = {}
        self.stepped = True
        for exchange in self.exchanges.values():
            exchange.keep()
        self._sweep()

    def _sweep(self) -> None:
        """Forget dead rows where they are many, so that each has paid for its own removal."""
        for name, relation in self.state.relations.items():
            facts = self.base.get(name)
            if facts is not None:
                wasted = facts.wasted()
                if wasted is None:
                    continue
                moved = facts.drop(wasted)
            elif relation.wasteful(relation.living):
                moved = relation.drop(~relation.is_alive(slice(relation.count)))
            else:
                continue
            for at, (stratum, strategy) in enumerate(zip(self.plan.strata, self.strategies, strict=True)):
                if at in self.exchanges:
                    self.exchanges[at].resume()  # between epochs everything alive has been sent
                if name in stratum.relations or name in stratum.inputs():
                    if isinstance(strategy, Renumbered):
                        strategy.renumbered(name, moved)
                    else:
                        strategy.reset()
                        self.stale.add(at)

    def roll_back(self) -> None:
        """Undo the epoch that was prepared, or failed."""
        for name, (appeared, vanished) in self._closed.items():
            self.state.relations[name].reopen(appeared, vanished)
        self._closed = {}
        for relation in self.state.relations.values():
            relation.roll_back()
        for facts in self.base.values():
            facts.roll_back()
        for exchange in self.exchanges.values():
            exchange.roll_back()
        for at, strategy in enumerate(self.strategies):
            strategy.reset()
            self.stale.add(at)

    def _step(
        self, changes: Sequence[Change], batches: Sequence[Batch], now: int | None, *, decode: bool
    ) -> StepResult:
        self.state.work.__init__()  # type: ignore[misc]  # operators hold on to the object
        self.state.now = now
        started = perf_counter()
        base = InputCounts()
        for name, facts in self.base.items():
            runs = list(self._runs(name, changes))
            runs.extend(self._encode(batch) for batch in batches if batch.relation == name)
            counts = facts.apply(runs, now)
            if self._reports(name):
                base.add(counts)
        entered = perf_counter()
        costs: list[StratumCost] = []
        for at, (stratum, strategy) in enumerate(zip(self.plan.strata, self.strategies, strict=True)):
            before = perf_counter()
            try:
                self._bring_up_to_date(at)
            except TermTooDeep as deep:
                names = ", ".join(f'"{name}"' for name in stratum.relations)
                sample = format_value(deep.value)[:160]
                raise UserError(
                    "E508", None, limit=self._limits.depth, relations=names, line="?", sample=sample
                ) from None
            costs.append(_cost(stratum, strategy, perf_counter() - before))
        self.stale = set()
        maintained = perf_counter()
        deltas = self._settle(decode=decode)
        done = perf_counter()
        seconds = {"input": entered - started, "maintain": maintained - entered, "output": done - maintained}
        return StepResult(deltas, base, self.state.work.copy(), seconds, tuple(costs))

    def _reports(self, name: str) -> bool:
        """Whether this partition speaks for a relation: for what it owns, or for what all hold alike."""
        return self.number == 0 or self.plan.split_column(name) is not None

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

    def _encode(self, batch: Batch) -> tuple[int, Ints, Ints | None]:
        """Return a batch as one run of changes."""
        relation = self.plan.relations[batch.relation]
        times = batch.columns[0].data if relation.timed else None
        columns = batch.columns[1:] if relation.lifted else batch.columns
        rows = np.empty((batch.count, len(columns)), np.int64) if columns else np.zeros((batch.count, 1), np.int64)
        for position, kind in enumerate(self._types(batch.relation)):
            rows[:, position] = self.state.dictionary.encode_values(columns[position], kind)
        return batch.weight, rows, times

    def _settle(self, *, decode: bool = True) -> dict[str, Delta]:
        shown: dict[str, list[str]] = {}
        for output in self.plan.outputs:
            shown.setdefault(output.relation, []).append(output.name)
        deltas: dict[str, Delta] = {}
        for name, relation in self.state.relations.items():
            appeared, vanished = relation.settle()
            if not len(appeared) and not len(vanished):
                continue
            self._closed[name] = (appeared, vanished)
            for view in shown.get(name, ()) if decode and self._reports(name) else ():
                deltas[view] = Delta(self._decode(name, appeared), self._decode(name, vanished))
        return deltas

    def _decode(self, name: str, numbers: Ints) -> tuple[Row, ...]:
        types = self._types(name)
        batch = self.state.dictionary.sort_rows(self.state.relations[name].read(numbers), types)
        return tuple(self.state.dictionary.decode_rows(batch, types))

    def changed_columns(self, view: str, *, ordered: bool = True) -> tuple[list[Values], list[Values]] | None:
        """Return the rows that the epoch just prepared made appear and vanish, as `columns` does.

        None if there are none, or if another partition speaks for them.
        """
        name = next(output.relation for output in self.plan.outputs if output.name == view)
        if name not in self._closed or not self._reports(name):
            return None
        appeared, vanished = self._closed[name]
        return self._columns(name, appeared, ordered=ordered), self._columns(name, vanished, ordered=ordered)

    def rows(self, view: str) -> set[Row]:
        """Return the rows of a view."""
        name = next(output.relation for output in self.plan.outputs if output.name == view)
        relation = self.state.relations[name]
        return set(self.state.dictionary.decode_rows(relation.read(relation.alive()), self._types(name)))

    def columns(self, view: str, *, ordered: bool = True) -> list[Values]:
        """Return the rows of a view as columns, sorted if wanted; a relation without columns has one, of zeros."""
        name = next(output.relation for output in self.plan.outputs if output.name == view)
        return self._columns(name, self.state.relations[name].alive(), ordered=ordered)

    def _columns(self, name: str, numbers: Ints, *, ordered: bool) -> list[Values]:
        relation, dictionary = self.state.relations[name], self.state.dictionary
        batch = relation.read(numbers)
        if ordered:
            batch = dictionary.sort_rows(batch, relation.types)
        return [dictionary.decode_values(batch[:, at], kind) for at, kind in enumerate(relation.types)]

    @property
    def limits(self) -> Limits:
        """What each stratum may use."""
        return self._limits

    def facts(self, name: str) -> BaseFacts:
        """Return the facts of a base relation, with their times."""
        return self.base[name]

    def fact_rows(self, name: str) -> FactRows:
        """Return the facts of a base relation, present or still shown, as plain values."""
        relation, known = self.state.relations[name], self.base[name].save()
        shown = relation.is_alive(np.arange(relation.count))
        numbers = np.flatnonzero(known.present | shown)
        rows = self.state.dictionary.decode_rows(relation.read(numbers), self._types(name))
        facts = replace(
            known, present=known.present[numbers], times=known.times[numbers], arrived=known.arrived[numbers]
        )
        return FactRows(rows, shown[numbers], facts)

    def take_facts(self, name: str, facts: FactRows) -> None:
        """Start a base relation, which must be empty, from facts as `fact_rows` gives them."""
        relation = self.state.relations[name]
        assert not relation.count, "facts are placed in a new partition"
        numbers = relation.number(self.state.dictionary.encode_rows(facts.rows, self._types(name)))
        relation.revive(numbers[facts.shown])
        relation.settle()
        self.base[name].load(facts.facts)
        self.base[name].label_all()

    @property
    def nbytes(self) -> int:
        """The memory of the arrays: of rows, tables, indexes, labels, frontiers, and what strategies keep beside them.

        Strings, lists and terms are objects of Python's, and are not in it.
        """
        kept = 0
        for relation in self.state.relations.values():
            kept += relation.nbytes
        for frontier in self.state.frontiers.values():
            kept += frontier.nbytes
        for strategy in self.strategies:
            if isinstance(strategy, (Fixpoint, Elastic, Cells, Rounds)):
                kept += strategy.nbytes
        return kept


def _cost(stratum: PhysicalStratum, strategy: Strategy, seconds: float) -> StratumCost:
    if isinstance(strategy, Elastic):
        return StratumCost(stratum.relations, strategy.strategy, strategy.how, strategy.predicted, seconds)
    if isinstance(strategy, Absorption):
        return StratumCost(stratum.relations, strategy.strategy, strategy.how, None, seconds)
    return StratumCost(stratum.relations, stratum.strategy, "", None, seconds)
