"""Rounds: all rules look at the same rows, and what they derive shows when the round is over.

So strata run whose rows come and go on the way to their fixpoint: sums and counts in recursion, several aggregates at
once, selections. Each round follows only the rows that the last one brought. A value that a better one replaced is not
taken back: what followed from it is beaten by what follows from its successor. The rounds are those of the definition
(`whorl.oracle.model`), with the same rows after each and the same number of them.

Cost: all derivations of the stratum, whenever something it reads changes, unless whoever builds on this knows better; a
group of a sum that changes in several rounds is followed in each.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np

from whorl.kernel.arrays.rowset import NEW
from whorl.kernel.operators.compiling import compile_at_atom, compile_at_nothing
from whorl.kernel.operators.pipeline import Pipeline
from whorl.kernel.state.doubts import Doubts
from whorl.kernel.state.relation import Ints, Moves, StoredRelation, no_rows
from whorl.kernel.state.totals import Totals
from whorl.kernel.strategies.pruning import Pruned, compile_pruned
from whorl.kernel.strategies.selection import SelectedRows
from whorl.kernel.strategies.stratum import READ, Entry, Stratum, needs_for
from whorl.logical.plan import Contribution
from whorl.model.types import Type
from whorl.physical.plan import PhysicalRule

Delta = dict[str, Ints]


class Shown(Protocol):
    """The rows of a relation on their way to the fixpoint."""

    size: int

    @property
    def negative(self) -> bool:
        """Whether something negative was added up."""

    def offer(self, batch: Ints, spaces: Sequence[int]) -> None:
        """Take what a rule derives."""

    def publish(self) -> Ints:
        """Close a round; return the rows that are new."""

    def flush(self) -> Ints:
        """End a fixpoint, so that others can read the rows; return those that it brought."""

    def clear(self) -> None:
        """Forget everything; the rows are dead."""

    def forget(self, rows: Ints, column: int, least: int) -> None:
        """Let rows die: all that have at least some number in a column."""

    def doubt(self, batch: Ints) -> Ints:
        """Doubt the rows, or the groups, of what a rule derived; return the rows that were not in doubt."""

    def empty(self) -> list[Ints]:
        """Let go what is in doubt; return the columns of its groups, for each kind of groups that rows are in."""

    def renumbered(self) -> None:
        """Take over new numbers of the rows stored."""

    @property
    def nbytes(self) -> int:
        """The memory kept beside the rows."""


class PlainRows:
    """A plain set of rows."""

    negative = False
    nbytes = 0

    def __init__(self, relation: StoredRelation) -> None:
        self._relation = relation
        self._doubts = Doubts(relation)
        self.clear()

    def clear(self) -> None:
        """Forget what was derived."""
        self._doubts.clear()
        self._waiting: list[Ints] = []
        self._brought: list[Ints] = []
        self.size = 0

    def offer(self, batch: Ints, _spaces: Sequence[int]) -> None:
        """Take rows."""
        numbers = self._relation.number(batch)
        numbers = numbers[~self._relation.is_alive(numbers)]
        if len(numbers):
            self._waiting.append(numbers)

    def publish(self) -> Ints:
        """Close a round; return the rows that are new."""
        if not self._waiting:
            return no_rows(self._relation.width)
        fresh = self._relation.read(self._relation.revive(np.concatenate(self._waiting)))
        self._waiting = []
        self._brought.append(fresh)
        self.size += len(fresh)
        return fresh

    def flush(self) -> Ints:
        """End a fixpoint; return the rows that it brought."""
        brought = np.concatenate(self._brought) if self._brought else no_rows(self._relation.width)
        self._brought = []
        return brought

    def forget(self, rows: Ints, _column: int, _least: int) -> None:
        """Let rows die."""
        self.size -= len(self._relation.retire(self._relation.find(rows)))

    def doubt(self, batch: Ints) -> Ints:
        """Doubt rows; return those that were not in doubt."""
        return self._doubts.add(batch)

    def empty(self) -> list[Ints]:
        """Let the rows go that are in doubt; return them."""
        gone = self._doubts.retire()
        self.size -= len(gone)
        return [gone]

    def renumbered(self) -> None:
        """Nothing is kept by number."""


class Rounds:
    """Derives everything again, round by round, when an input changed."""

    def __init__(self, stratum: Stratum) -> None:
        self.stratum = stratum
        self.fresh = True
        self._wide = [_with_keys(rule) for rule in stratum.rules]
        self._spaces = [[keyed.space for keyed in rule.keyed] for rule in stratum.rules]
        self._pipelines: dict[tuple[int, int], Pipeline | Pruned] = {}
        self.shown = {name: self._shown(name) for name in stratum.plan.relations}

    def _shown(self, name: str) -> Shown:
        plan, relation = self.stratum.plan, self.stratum.relation(name)
        source = plan.source
        assert source is not None, "who runs in rounds says what it comes from"
        selections = [each for each in source.selections if each.relation == name]
        if selections:
            return SelectedRows(relation, selections, self.stratum.state)
        aggregates = self.stratum.aggregates(name)
        if not aggregates:
            return PlainRows(relation)
        spaces = {column: plan.spaces.get((name, column), ()) for column in aggregates}
        dictionary = self.stratum.state.dictionary
        return Totals(relation, aggregates, spaces, dictionary, prompt=self._looked_up(name))

    def _looked_up(self, name: str) -> bool:
        """Whether a rule looks rows up that may still change: one that reads the stratum twice."""
        for rule in range(len(self.stratum.rules)):
            inside = [entry.relation for entry in self.stratum.entries if entry.rule == rule and entry.inside]
            if len(inside) > 1 and name in inside:
                return True
        return False

    def reset(self) -> None:
        """Derive anew at the next step."""
        self.fresh = True

    def resume(self) -> None:
        """Go on from the rows that were saved."""
        self.fresh = False

    def renumbered(self, name: str, _moved: Moves) -> None:
        """Take over new numbers."""
        if name in self.shown:
            self.shown[name].renumbered()

    @property
    def nbytes(self) -> int:
        """The memory kept beside the rows."""
        return sum(shown.nbytes for shown in self.shown.values())

    def step(self) -> None:
        """Let every row die, and derive again what follows."""
        if self.stratum.fresh(own=self.fresh) or self.stratum.changed():
            self.fresh = False
            self.clear()
            self.run()

    def clear(self) -> None:
        """Let every row die."""
        self.stratum.clear()
        for shown in self.shown.values():
            shown.clear()

    def run(self) -> None:
        """Derive everything."""
        rules = range(len(self.stratum.rules))
        first = [rule for rule in rules if not self._reads_itself(rule)]
        self.fixpoint(lambda: self._start(first), [entry for entry in self.stratum.entries if entry.inside])
        self.flush()

    def flush(self) -> None:
        """Store what rules did not look up on the way."""
        for shown in self.shown.values():
            shown.flush()

    def _reads_itself(self, rule: int) -> bool:
        return any(entry.inside for entry in self.stratum.entries if entry.rule == rule)

    def _start(self, rules: Collection[int]) -> None:
        for rule in rules:
            for chunk in self.derivations(rule):
                self.offer(rule, chunk)

    def fixpoint(self, start: Callable[[], None], entries: Sequence[Entry]) -> None:
        """Derive what ``start`` offers and all that follows from it, here and wherever rows travel."""
        rounds = self._fixpoint_here(start, entries, None, 0)
        exchange = self.stratum.exchange
        while exchange is not None and (arrived := exchange.grew()) is not None:
            if arrived:
                rounds = self._fixpoint_here(start, entries, arrived, rounds)
        self.stratum.state.work.rounds += rounds

    def _fixpoint_here(
        self, start: Callable[[], None], entries: Sequence[Entry], delta: Delta | None, rounds: int
    ) -> int:
        """Derive what follows from ``start``, or from new rows, after some rounds before; return how many then."""
        while delta is None or delta:
            rounds += 1
            self._check_rounds(rounds, delta)
            if delta is None:
                start()
            else:
                self._follow(delta, entries)
            delta = {}
            for name, shown in self.shown.items():
                rows = shown.publish()
                if len(rows):
                    delta[name] = rows
            self._check_tuples(delta)
        return rounds

    def _follow(self, delta: Delta, entries: Sequence[Entry]) -> None:
        for entry in entries:
            if entry.relation in delta:
                for chunk in self.entered(entry, delta[entry.relation]):
                    self.offer(entry.rule, chunk)

    def offer(self, rule: int, chunk: Ints) -> None:
        """Hand over what a rule derives."""
        self.shown[self.stratum.rules[rule].relation].offer(chunk, self._spaces[rule])

    def derivations(self, rule: int) -> Iterator[Ints]:
        """Yield all that a rule derives which does not read the stratum."""
        stratum = self.stratum
        positive = [entry for entry in stratum.entries if entry.rule == rule and entry.positive]
        if positive:
            entry = min(positive, key=lambda each: stratum.relation(each.relation).count)
            yield from self.entered(entry, stratum.relation(entry.relation).alive())
        else:
            chunks = self._pipeline(rule, -1).run(np.zeros((1, 1), np.int64), needs_for(stratum, rule, NEW))
            yield from self.counted(chunks)

    def entered(self, entry: Entry, rows: Ints, needs: list[int] | None = None) -> Iterator[Ints]:
        """Yield what a rule derives that takes some rows at an atom: given as a batch, or by their numbers."""
        needs = needs_for(self.stratum, entry.rule, NEW) if needs is None else needs
        pipeline = self._pipeline(entry.rule, entry.atom)
        relation = self.stratum.relation(entry.relation)
        for low in range(0, len(rows), READ):
            part = rows[low : low + READ]
            yield from self.counted(pipeline.run(relation.read(part) if part.ndim == 1 else part, needs))

    def counted(self, chunks: Iterator[Ints]) -> Iterator[Ints]:
        """Yield chunks, and count the derivations."""
        for chunk in chunks:
            self.stratum.state.work.derivations += len(chunk)
            yield chunk

    def _pipeline(self, rule: int, atom: int) -> Pipeline | Pruned:
        """Return the pipeline of a rule whose head also gives the keys of its contributions."""
        if (rule, atom) not in self._pipelines:
            (wide, kinds), state = self.wide_rule(rule), self.stratum.state
            if atom < 0:
                self._pipelines[rule, atom] = compile_at_nothing(wide, state, kinds, trace=False)
            elif isinstance(rows := self.shown[wide.relation], SelectedRows):
                self._pipelines[rule, atom] = compile_pruned(wide, atom, state, kinds, rows)
            else:
                self._pipelines[rule, atom] = compile_at_atom(wide, atom, state, kinds, trace=False)
        return self._pipelines[rule, atom]

    def wide_rule(self, rule: int) -> tuple[PhysicalRule, list[Type]]:
        """Return a rule whose head also gives the keys of its contributions, and the types of all that."""
        wide = self._wide[rule]
        return wide, self.stratum.types(wide.relation) + self._key_kinds(self.stratum.rules[rule])

    def _key_kinds(self, rule: PhysicalRule) -> list[Type]:
        spaces = self.stratum.plan.spaces
        parts = (spaces[rule.relation, keyed.column][keyed.space].kinds for keyed in rule.keyed if keyed.space >= 0)
        return [kind for kinds in parts for kind in kinds]

    def _check_rounds(self, rounds: int, delta: Delta | None) -> None:
        if rounds > self.stratum.limits.rounds:
            self._refuse("E506", self.stratum.limits.rounds, delta)

    def _check_tuples(self, delta: Delta) -> None:
        if sum(shown.size for shown in self.shown.values()) > self.stratum.limits.tuples:
            self._refuse("E507", self.stratum.limits.tuples, delta)

    def _refuse(self, code: str, limit: int, delta: Delta | None) -> None:
        """Refuse the epoch; name a rule that feeds on its own stratum, and one of the last new rows."""
        heads = [(rule, self.stratum.rules[rule].relation) for rule in range(len(self.stratum.rules))]
        new = [(rule, name) for rule, name in heads if delta and name in delta]
        rule, name = next((each for each in new if self._reads_itself(each[0])), (new or heads)[0])
        self.stratum.refuse(code, limit, rule, delta.get(name) if delta else None)


def _with_keys(rule: PhysicalRule) -> PhysicalRule:
    """Return a rule whose head has the parts of all keys behind its columns."""
    plain = tuple(arg.value if isinstance(arg, Contribution) else arg for arg in rule.args)
    keys = tuple(part for keyed in rule.keyed for part in keyed.parts)
    return replace(rule, rule=replace(rule.rule, args=(*plain, *keys)))
