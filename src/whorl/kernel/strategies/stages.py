"""Stages: recursion that climbs, one stage after the other, and inside a stage one layer of relations after the other.

A layer starts from the rows of the stage before, and of earlier layers, that its rules climb from; then rounds follow
until nothing changes. Rules that read no stage are evaluated once, and each stage takes what they say of it.

When something changes, the stages below the first that a change can reach stay as they are. To find it, rules are
entered at the rows that changed, as if nothing were negated: no stage below the least one that they derive for can
differ, since up to there everything else is as before.

Cost: the rules that read no stage; the derivations that the changes take part in; all derivations of the stages from
the first that they reach.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from whorl.kernel.state.relation import Ints, no_rows
from whorl.kernel.strategies.rounds import Rounds
from whorl.kernel.strategies.stratum import EITHER, Entry, Stratum

NOTHING = 0  # needed of a row that must be absent, no row has it: whatever is negated is taken to be absent


class Stages(Rounds):
    """Derives a staged stratum."""

    def __init__(self, stratum: Stratum) -> None:
        super().__init__(stratum)
        self._plan = stratum.stages
        self._columns = [self._plan.columns[rule.relation] for rule in stratum.rules]
        self._entries = {(entry.rule, entry.atom): entry for entry in stratum.entries}
        self._stage = 0
        self._reached: dict[str, dict[int, Ints]] = {}  # the rows of each stage
        self._given: dict[int, list[tuple[int, Ints]]] = {}  # what rules say that read no stage
        self._ran: list[int] | None = None  # the stages that ran, in their order; None if they are not known

    def resume(self) -> None:
        """Go on from the rows that were saved; the next change starts from nothing."""
        super().resume()
        self._ran = None

    def step(self) -> None:
        """Run the stages again from the first that a change can reach."""
        if self.fresh or self._ran is None or not self.stratum.changed():
            super().step()
            return
        with self.stratum.state.faults.ignored() as passed:
            first = self._first_reached()
        if passed.any:  # nobody knows at which stage, or whether rows that stand together are at fault
            super().step()
        elif first is not None:
            self.fresh = True  # unless it ends well
            self._drop(first)
            self._run_from(first)
            self.fresh = False

    def run(self) -> None:
        """Run all stages in their order."""
        self._reached = {name: {} for name in self.stratum.plan.relations}
        self._ran = []
        self._run_from(None)

    def _first_reached(self) -> int | None:
        """Return a stage below which nothing differs from what it was; None if nothing differs at all."""
        least: int | None = None
        for entry in self.stratum.entries:
            if not entry.inside:
                rows = np.concatenate(self.stratum.relation(entry.relation).pending())
                atoms = self.stratum.rules[entry.rule].atoms
                needs = [EITHER if positive else NOTHING for _step, positive in atoms]
                for chunk in self.entered(entry, rows, needs):
                    found = int(chunk[:, self._columns[entry.rule]].min())
                    least = found if least is None else min(least, found)
        return least

    def _drop(self, first: int) -> None:
        """Let the rows die from a stage on."""
        for name, reached in self._reached.items():
            late = [stage for stage in reached if stage >= first]
            gone = [reached.pop(stage) for stage in late]
            width = self.stratum.relation(name).width
            rows = np.concatenate(gone) if gone else no_rows(width)
            self.shown[name].forget(rows, self._plan.columns[name], first)
        assert self._ran is not None, "whoever drops stages knows them"
        self._ran = [stage for stage in self._ran if stage < first]

    def _run_from(self, first: int | None) -> None:
        """Run stages from one on, or all."""
        self._given = self._givens()
        starts = {stage for stage in self._given if first is None or stage >= first}
        if first is not None and self._last(first - 1):
            starts.add(first)
        waiting = sorted(starts, reverse=True)
        assert self._ran is not None, "whoever runs stages notes them"
        while waiting:
            stage = waiting.pop()
            if self._plan.bound is not None and stage > self._plan.bound:
                break
            self._ran.append(stage)
            self._check_rounds(len(self._ran), self._last(stage - 1))
            if self._run_stage(stage) and (not waiting or waiting[-1] != stage + 1):
                waiting.append(stage + 1)

    def _givens(self) -> dict[int, list[tuple[int, Ints]]]:
        """Evaluate the rules that read no stage; return what they derive, by stage."""
        given: dict[int, list[tuple[int, Ints]]] = defaultdict(list)
        for number, rule in enumerate(self.stratum.rules):
            if rule.climb is None:
                for chunk in self.derivations(number):
                    stages = chunk[:, self._columns[number]]
                    for stage in np.unique(stages).tolist():
                        given[stage].append((number, chunk[stages == stage]))
        return dict(given)

    def _last(self, stage: int) -> dict[str, Ints]:
        return {name: rows[stage] for name, rows in self._reached.items() if stage in rows}

    def _run_stage(self, stage: int) -> bool:
        """Run the layers of a stage; tell whether it has any rows."""
        self._stage = stage
        found = False
        for layer in self._plan.layers:
            rules = [number for number, rule in enumerate(self.stratum.rules) if rule.relation in layer]
            self.fixpoint(lambda rules=rules: self._start_layer(rules), self._inside(rules, layer))  # type: ignore[misc]
            for name in layer:
                rows = self.shown[name].flush()
                if len(rows):
                    self._reached[name][stage] = rows
                    found = True
        return found

    def _inside(self, rules: list[int], layer: tuple[str, ...]) -> list[Entry]:
        """Return the atoms at which rows of a layer lead to more of it."""
        entries: list[Entry] = []
        for number in rules:
            climb = self.stratum.rules[number].climb
            if climb is not None:
                found = (self._entries[number, atom] for atom in climb.same)
                entries.extend(entry for entry in found if entry.relation in layer)
        return entries

    def _start_layer(self, rules: list[int]) -> None:
        for number, chunk in self._given.get(self._stage, ()):
            if number in rules:
                super().offer(number, chunk)
        for number in rules:
            climb = self.stratum.rules[number].climb
            if climb is not None:
                entry = self._entries[number, climb.anchor]
                rows = self._reached[entry.relation].get(self._stage - climb.below)
                for chunk in () if rows is None else self.entered(entry, rows):
                    self.offer(number, chunk)

    def offer(self, rule: int, chunk: Ints) -> None:
        """Hand over what belongs to the stage."""
        own = chunk[chunk[:, self._columns[rule]] == self._stage]
        if len(own):
            super().offer(rule, own)
