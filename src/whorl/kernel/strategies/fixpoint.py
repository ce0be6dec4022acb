"""Deriving: everything from nothing, or what new rows lead to, semi-naively. All recursive strategies build on it.

Cost: each derivation once; a round touches the rows that the last one brought, and nothing in proportion to the state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from time import thread_time

import numpy as np

from whorl.kernel.arrays import growth
from whorl.kernel.arrays.rowset import NEW
from whorl.kernel.operators.joins import ProbeIndex
from whorl.kernel.state.relation import Ints
from whorl.kernel.strategies.one_join import OneJoin
from whorl.kernel.strategies.stratum import Entry, Stratum, needs_for

Rows = dict[str, list[Ints]]


class TooLong(Exception):
    """A step was given up because it took longer than it may."""


class Fixpoint:
    """Derives the rows of a stratum. Strategies with labels say what a derivation offers."""

    trace = False  # whether derivations must come with the rows they use
    better = False  # whether a row takes a larger label than it has, and is then new again
    algebra: int | None = growth.PLAIN  # what labels are in `whorl.kernel.arrays.growth`, None if it does not know them

    def __init__(self, stratum: Stratum) -> None:
        self.stratum = stratum
        self.deadline: float | None = None  # when to give up, in seconds of this thread
        self._joins: dict[Entry, OneJoin | None] = {}  # what is followed in one call

    @property
    def nbytes(self) -> int:
        """The memory kept beside the rows."""
        return 0

    def offers(self, rule: int, batch: Ints, first: int) -> Ints | None:
        """Return the label that each derivation offers; the rows it uses stand from column ``first``."""
        raise NotImplementedError

    def also(self, _rule: int) -> tuple[str, ...]:
        """Return the variables of a rule whose values derivations must come with, after the rows they use."""
        return ()

    def nothing(self) -> Rows:
        """Return no rows of any relation."""
        return {name: [] for name in self.stratum.names}

    def check_deadline(self) -> None:
        """Give up if it is time."""
        if self.deadline is not None and thread_time() > self.deadline:
            raise TooLong

    def derive_all(self) -> None:
        """Derive everything that follows."""
        grown = self.nothing()
        for rule in range(len(self.stratum.rules)):
            if not any(entry.inside for entry in self.stratum.entries if entry.rule == rule):
                self.take(rule, self.derivations(rule), grown)
        self.stratum.state.work.rounds += 1
        self.grow(grown)

    def derivations(self, rule: int) -> Iterator[Ints]:
        """Yield every derivation of a rule, as things are now."""
        stratum = self.stratum
        needs = needs_for(stratum, rule, NEW)
        positive = [entry for entry in stratum.entries if entry.rule == rule and entry.positive]
        if not positive:
            pipeline = stratum.at_nothing(rule, trace=self.trace, also=self.also(rule))
            chunks = pipeline.run(np.zeros((1, 1), np.int64), needs)
        else:
            entry = min(positive, key=lambda each: stratum.relation(each.relation).count)
            chunks = self.joined(entry, stratum.relation(entry.relation).alive(), needs)
        for chunk in chunks:
            stratum.state.work.derivations += len(chunk)
            yield chunk

    def joined(self, entry: Entry, numbers: Ints, needs: list[int]) -> Iterator[Ints]:
        """Yield the derivations that use one of some rows at an atom."""
        pipeline = self.stratum.at_atom(entry, trace=self.trace, also=self.also(entry.rule))
        for batch in self.stratum.batches(entry.relation, numbers, trace=self.trace and entry.positive):
            self.check_deadline()
            yield from pipeline.run(batch, needs)

    def grow(self, grown: Rows) -> None:
        """Derive what new rows lead to, here and wherever else rows travel."""
        rounds = self._grow_here(grown, 0)
        exchange = self.stratum.exchange
        while exchange is not None and (arrived := exchange.grew()) is not None:
            grown = self.nothing()
            for entry in self.stratum.entries:
                if entry.relation in arrived:
                    self.follow(entry, arrived[entry.relation], grown)
            rounds = self._grow_here(grown, rounds)
        self.stratum.state.work.rounds += rounds

    def _grow_here(self, grown: Rows, rounds: int) -> int:
        """Derive what new rows lead to, round by round, after some rounds before; return how many there were then."""
        stratum = self.stratum
        linear = self._linear()
        if linear is not None:
            return self._grow_at_once(linear, grown, rounds)
        while any(len(part) for parts in grown.values() for part in parts):
            rounds += 1
            delta = {name: self._once(name, parts) for name, parts in grown.items() if parts}
            grown = self.nothing()
            for entry in stratum.entries:
                if entry.inside and entry.relation in delta:
                    self.follow(entry, delta[entry.relation], grown)
                    if rounds > stratum.limits.rounds or stratum.stored > stratum.limits.tuples:
                        derived, head = grown[stratum.rules[entry.rule].relation], stratum.head(entry.rule)
                        self.check_limits(rounds, entry.rule, head.read(derived[-1][:1]) if derived else None)
        return rounds

    def check_limits(self, rounds: int, rule: int, sample: Ints | None) -> None:
        """Raise if more was used than there may be, after some rounds, naming a rule and a row that it derived."""
        self.stratum.check_limits(rounds, rule, sample)

    def _linear(self) -> OneJoin | None:
        """Return the rounds in one call, if the stratum is one linear recursion."""
        inside = [entry for entry in self.stratum.entries if entry.inside]
        return self._one_join(inside[0]) if len(inside) == 1 and len(self.stratum.names) == 1 else None

    def _one_join(self, entry: Entry) -> OneJoin | None:
        """Return the rule of an entry as one call, if it is one join from there."""
        if entry not in self._joins:
            self._joins[entry] = self._find_join(entry)
        return self._joins[entry]

    def _find_join(self, entry: Entry) -> OneJoin | None:
        stratum = self.stratum
        if self.algebra is None or not entry.positive or stratum.exchange is not None:
            return None
        if stratum.best or stratum.frontiers:
            return None
        only = stratum.at_atom(entry, trace=self.trace, also=self.also(entry.rule)).only
        return OneJoin(stratum, entry, only, self.algebra) if isinstance(only, ProbeIndex) else None

    def _grow_at_once(self, linear: OneJoin, grown: Rows, rounds: int) -> int:
        ((name, parts),) = grown.items()
        if not any(map(len, parts)):
            return rounds
        changed, rounds = linear.grow(parts, rounds, self.check_deadline)
        for part in changed:
            self.accepted(name, part)
        return rounds

    def accepted(self, name: str, numbers: Ints) -> None:
        """Take notice of rows that became alive, or got another label."""

    def _once(self, name: str, parts: list[Ints]) -> Ints:
        numbers = parts[0] if len(parts) == 1 else np.concatenate(parts)
        if not self.better:
            return numbers
        return self.stratum.relation(name).each_once(numbers)

    def follow(self, entry: Entry, numbers: Ints, grown: Rows) -> None:
        """Derive what rows lead to at one atom."""
        join = self._one_join(entry) if self.algebra != growth.RANKS else None
        if join is not None:
            name = self.stratum.rules[entry.rule].relation
            for changed in join.follow(numbers, self.check_deadline):
                self.accepted(name, changed)
                grown[name].append(changed)
            return
        chunks = self.joined(entry, numbers, needs_for(self.stratum, entry.rule, NEW))
        self.take(entry.rule, self._counted(chunks), grown)

    def _counted(self, chunks: Iterable[Ints]) -> Iterator[Ints]:
        for chunk in chunks:
            self.stratum.state.work.derivations += len(chunk)
            yield chunk

    def take(self, rule: int, chunks: Iterable[Ints], grown: Rows) -> None:
        """Make derived rows alive, and collect those that were not."""
        name = self.stratum.rules[rule].relation
        for chunk in chunks:
            fresh = self.accept(rule, chunk)
            if len(fresh):
                grown[name].append(fresh)

    def accept(self, rule: int, chunk: Ints) -> Ints:
        """Make the rows of a chunk alive; return the numbers of those that are new."""
        head = self.stratum.head(rule)
        offers = self.offers(rule, chunk, head.width) if self.trace else None
        if offers is None:
            return self.stratum.take(rule, head.only_rows(chunk))
        return head.adopt_rows(chunk, offers, better=self.better)
