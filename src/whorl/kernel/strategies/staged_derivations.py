"""`derivations` for strata with stages: a change goes up through the stages, and touches what it concerns in each.

A *cell* is what one layer of relations holds at one stage. Cells are brought up to date in their order, which is the
order in which they depend on each other: a rule reads its own cell, without negation, and cells before it. So when the
turn of a cell comes, everything else that its rules read is settled.

What a cell hears of the changes before it: rows that lost a derivation, which are doubtful, and derivations that it may
have gained, found when the first of the rows they use changed. These are looked at once more in its turn, since the
other rows may have gone, or what is negated may be there by then. In its turn

1. a doubtful row falls unless a derivation is left that uses no row of the cell itself, and makes those doubtful that
   use it there;
2. rows that fell come back if a derivation is left whose rows are alive;
3. derivations that were gained and still hold make rows alive, and what follows from these in the cell is derived;
4. the rows that are now other than before are told to the cells behind it, through the derivations that use them.

Only what is told leaves the cell, so a row that falls and comes back costs the others nothing; and a circle of rows
that keep each other alive lies inside one cell, and is undone there by 1 and 2.

Cost: the derivations that are lost or gained; inside a cell that reads itself, also those of the rows that fall.
Memory: every derivation.
"""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from whorl.kernel.arrays.rowset import NEW
from whorl.kernel.operators.compiling import compile_absence
from whorl.kernel.operators.pipeline import Pipeline
from whorl.kernel.state.derivations import KeptDerivations
from whorl.kernel.state.relation import Ints
from whorl.kernel.strategies.derivations import lost_derivations
from whorl.kernel.strategies.fixpoint import Rows
from whorl.kernel.strategies.rederive import Mask, Rederive
from whorl.kernel.strategies.stratum import EITHER, Entry, Stratum, needs_for

Place = tuple[int, int]  # a stage, and a layer


@dataclass
class _News:
    """What a cell has heard: rows that lost a derivation, and derivations that it may have gained, by rule."""

    doubtful: Rows = field(default_factory=dict)
    gained: list[tuple[int, Ints]] = field(default_factory=list)


class _Agenda:
    """The cells that have heard something, first things first."""

    def __init__(self) -> None:
        self._news: dict[Place, _News] = {}
        self._places: list[Place] = []

    def at(self, place: Place) -> _News:
        """Return what a cell has heard."""
        if place not in self._news:
            self._news[place] = _News()
            heapq.heappush(self._places, place)
        return self._news[place]

    def __iter__(self) -> Iterator[tuple[Place, _News]]:
        """Yield cells in their order, those too that are added on the way, behind the last one."""
        while self._places:
            place = heapq.heappop(self._places)
            yield place, self._news.pop(place)


class StagedDerivations(Rederive):
    """Sets of derivations, stage by stage."""

    trace = True

    def __init__(self, stratum: Stratum) -> None:
        super().__init__(stratum)
        self._stages = stratum.stages
        self._layer = {name: at for at, layer in enumerate(self._stages.layers) for name in layer}
        self._uses = [len(stratum.premises(rule)) for rule in range(len(stratum.rules))]
        self._own = [self._own_atoms(rule) for rule in range(len(stratum.rules))]
        self._negated = [stratum.negated_variables(rule) for rule in range(len(stratum.rules))]
        self._absences: dict[int, Pipeline] = {}
        self._kept = KeptDerivations(self._uses)
        self._living: Counter[Place] = Counter()  # rows by cell
        self._rows = 0  # of all cells
        self._when = NEW  # when the rows were alive that meet those that come
        self._agenda = _Agenda()
        self._here: Place | None = None  # the cell whose turn it is
        self._risen = self.nothing()  # rows that came alive in it

    def _own_atoms(self, rule: int) -> tuple[int, ...]:
        """Return the atoms of a rule that may read the cell that it derives for."""
        plan = self.stratum.rules[rule]
        own = self._layer[plan.relation]
        same = () if plan.climb is None else plan.climb.same
        return tuple(at for at in same if self._layer[plan.atoms[at][0].relation] == own)  # type: ignore[union-attr]

    def resume(self) -> None:
        """Start anew: sets of derivations are not saved."""

    @property
    def nbytes(self) -> int:
        """The memory that derivations take."""
        return self._kept.nbytes

    def also(self, rule: int) -> tuple[str, ...]:
        """Return the variables that say what must be absent."""
        return self._negated[rule]

    def start(self, *, plain: bool = False) -> None:
        """Derive everything, and keep how."""
        assert not plain, "nobody asks for rows without their derivations"
        self.fresh = False
        self.stratum.clear()
        self._kept.clear()
        self._when = NEW
        self._living.clear()
        self._rows = 0
        self._agenda, self._here = _Agenda(), None  # an epoch that was refused on the way has left others
        for rule, plan in enumerate(self.stratum.rules):
            if plan.climb is None:
                for chunk in self.derivations(rule):
                    self._gain(rule, chunk)
        self._climb()

    def follow_changes(self) -> None:
        """Tell cells what changed, and bring them up to date; start anew if something failed for rows on the way."""
        self._when = EITHER  # what fell may return in its turn
        with self.stratum.state.faults.ignored() as passed:
            for entry in self.stratum.entries:
                if not entry.inside:
                    self._tell(entry, *self.stratum.relation(entry.relation).pending())
            self._climb()
        if passed.any:
            self.start()

    # What cells hear

    def _tell(self, entry: Entry, appeared: Ints, vanished: Ints) -> None:
        """Tell the cells behind of the rows that are other than before at an atom."""
        gone, come = (vanished, appeared) if entry.positive else (appeared, vanished)
        if len(gone):
            with self.stratum.state.faults.ignored():
                for lost in lost_derivations(self, self._kept, entry, gone):
                    self.stratum.state.work.derivations += len(lost)
                    self._lose(self.stratum.rules[entry.rule].relation, self._kept.retire(entry.rule, lost))
        if len(come):
            for chunk in self._counted(self.met(entry, come, self._when)):
                self._gain(entry.rule, chunk)

    def _lose(self, name: str, numbers: Ints) -> None:
        """Let rows be doubtful in their cells."""
        numbers = numbers[self.stratum.relation(name).is_alive(numbers)]
        for stage, which in self._by_stage(name, self._stage_of(name, numbers)):
            self._agenda.at((stage, self._layer[name])).doubtful.setdefault(name, []).append(numbers[which])

    def _gain(self, rule: int, chunk: Ints) -> None:
        """Let cells look at derivations in their turn."""
        name = self.stratum.rules[rule].relation
        for stage, which in self._by_stage(name, chunk[:, self._stages.columns[name]]):
            self._agenda.at((stage, self._layer[name])).gained.append((rule, chunk[which]))

    def _by_stage(self, name: str, stages: Ints) -> Iterator[tuple[int, Mask]]:
        """Yield the stages of some rows, and which they are, without those of this cell and those nobody asks for."""
        bound = self._stages.bound
        for stage in np.unique(stages).tolist():
            if (stage, self._layer[name]) != self._here and (bound is None or stage <= bound):
                yield stage, stages == stage

    def _stage_of(self, name: str, numbers: Ints) -> Ints:
        return self.stratum.relation(name).read(numbers)[:, self._stages.columns[name]]

    # The turn of a cell

    def _climb(self) -> None:
        """Bring up to date the cells that have heard something."""
        grew: tuple[int, Ints] | None = None  # a rule that made rows, and one of them
        for place, news in self._agenda:
            if grew is not None and (self._here is None or place[0] != self._here[0]):
                self._check_stages(place[0], *grew)
            self._here = place
            self._risen = self.nothing()
            fallen = self._update(news)
            if not self._living[place]:
                del self._living[place]
            for name in self._stages.layers[place[1]]:
                appeared = self._settle(name, fallen[name])
                if len(appeared):
                    grew = self._maker(name), self.stratum.relation(name).read(appeared[:1])
                    self.check_limits(0, *grew)
        self._here = None
        if grew is not None and self._living:
            self.check_limits(0, *grew)
            self._check_stages(max(self._living)[0] + 1, *grew)
        self._kept.settle()

    def _update(self, news: _News) -> Rows:
        """Bring this cell up to date; return the rows that fell."""
        doubtful = self.nothing()
        for name, parts in news.doubtful.items():
            doubtful[name].append(self.stratum.relation(name).mark(np.concatenate(parts)))
        fallen = self.fall(doubtful)
        self._add(-sum(len(part) for parts in fallen.values() for part in parts))
        grown = self.bring_back(fallen)
        for rule, chunk in news.gained:
            self.take(rule, [self._still(rule, chunk)], grown)
        self.grow(grown)
        return fallen

    def _settle(self, name: str, fallen: list[Ints]) -> Ints:
        """Tell the cells behind this one which rows of a relation are other than before; return those that are new."""
        relation = self.stratum.relation(name)
        fell, risen = (np.concatenate(parts) if parts else _NONE for parts in (fallen, self._risen[name]))
        alive = relation.is_alive(fell)
        self.stratum.state.work.returned += int(np.count_nonzero(alive))
        appeared = risen[~np.isin(risen, fell)] if len(fell) else risen
        for entry in self.stratum.readers(name):
            self._tell(entry, appeared, fell[~alive])
        return appeared

    def _add(self, rows: int) -> None:
        """Count rows that came into this cell, or fell in it."""
        assert self._here is not None, "rows come and fall in the turn of their cell"
        self._living[self._here] += rows
        self._rows += rows

    def _maker(self, name: str) -> int:
        """Return a rule that derives a relation, one that climbs if there is any."""
        rules = self.stratum.rules_of(name)
        return next((rule for rule in rules if self.stratum.rules[rule].climb is not None), rules[0])

    def check_limits(self, rounds: int, rule: int, sample: Ints | None) -> None:
        """Raise if there are more rows than there may be, counted up to this cell, or more rounds in it.

        What stands behind it has still to hear of the changes, and may go.
        """
        limits, here = self.stratum.limits, self._here
        if self._rows > limits.tuples:
            counted = (count for place, count in self._living.items() if here is None or place <= here)
            if sum(counted) > limits.tuples:
                self.stratum.refuse("E507", limits.tuples, rule, sample)
        if rounds > limits.rounds:
            self.stratum.refuse("E506", limits.rounds, rule, sample)

    def _check_stages(self, last: int, rule: int, sample: Ints) -> None:
        """Raise if there are too many stages before one: with rows, or behind such a one, where more may follow."""
        most, bound = self.stratum.limits.rounds, self._stages.bound
        if 2 * len(self._living) <= most:
            return
        held = {stage for stage, _layer in self._living if stage < last}
        if len(held.union(stage + 1 for stage in held if stage != bound)) > most:
            self.stratum.refuse("E506", most, rule, sample)

    # Phases: what they ask for, inside this cell

    def doubt(self, entry: Entry, gone: Ints, doubtful: Rows, _whom: int | None = None) -> None:
        """Collect the rows of this cell that use what fell in it; their derivations stay until all is settled."""
        if not self._reads_itself(entry):
            return
        name = self.stratum.rules[entry.rule].relation
        head = self.stratum.relation(name)
        assert self._here is not None, "rows fall in the turn of their cell"
        for found in lost_derivations(self, self._kept, entry, gone):
            self.stratum.state.work.derivations += len(found)
            heads = self._kept.heads(entry.rule, found)
            heads = heads[head.is_alive(heads) & (self._stage_of(name, heads) == self._here[0])]
            doubtful[name].append(head.mark(heads))

    def _reads_itself(self, entry: Entry) -> bool:
        """Whether an atom may read the cell whose turn it is, for a row of it."""
        return entry.positive and entry.atom in self._own[entry.rule]

    def saved(self, name: str, numbers: Ints) -> Mask:
        """Tell which doubtful rows have a derivation that uses no row of this cell."""
        found = np.zeros(len(numbers), np.bool_)
        for rule in self.stratum.rules_of(name):
            if not self._own[rule]:
                for chunk in self._kept.of_rows(rule, numbers):
                    self.stratum.state.work.derivations += len(chunk)
                    found[chunk[:, 0]] = True
        return found

    def revive(self, name: str, numbers: Ints) -> Ints:
        """Make rows alive again that have a derivation whose rows are."""
        found = np.zeros(len(numbers), np.bool_)
        for rule in self.stratum.rules_of(name):
            for chunk in self._kept.of_rows(rule, numbers):
                self.stratum.state.work.derivations += len(chunk)
                found[chunk[self._alive(rule, chunk, 1), 0]] = True
        back = self.stratum.relation(name).revive(numbers[found])
        self._add(len(back))
        return back

    def _alive(self, rule: int, chunk: Ints, first: int) -> Mask:
        """Tell of which derivations all rows are alive; they stand from column ``first``."""
        alive = np.ones(len(chunk), np.bool_)
        for place, name in enumerate(self.stratum.premises(rule)):
            alive &= self.stratum.relation(name).is_alive(chunk[:, first + place])
        return alive

    def _still(self, rule: int, chunk: Ints) -> Ints:
        """Return the derivations that hold now: all rows are alive, and nothing negated is."""
        width = self.stratum.head(rule).width
        chunk = chunk[self._alive(rule, chunk, width)]
        if not self.stratum.negates(rule) or not len(chunk):
            return chunk
        if rule not in self._absences:
            plan, state = self.stratum.rules[rule], self.stratum.state
            self._absences[rule] = compile_absence(plan, state, self._negated[rule])
        batch = np.column_stack((chunk[:, width + self._uses[rule] :], np.arange(len(chunk))))
        lines = [found[:, 0] for found in self._absences[rule].run(batch, needs_for(self.stratum, rule, NEW))]
        return chunk[np.concatenate(lines)] if lines else chunk[:0]

    def follow(self, entry: Entry, numbers: Ints, grown: Rows) -> None:
        """Derive what rows of this cell lead to in it."""
        if self._reads_itself(entry):
            super().follow(entry, numbers, grown)

    def accept(self, rule: int, chunk: Ints) -> Ints:
        """Keep derivations of rows of this cell, and make these alive."""
        assert self._here is not None, "rows come in the turn of their cell"
        name = self.stratum.rules[rule].relation
        chunk = chunk[chunk[:, self._stages.columns[name]] == self._here[0]]
        head = self.stratum.relation(name)
        numbers = head.number(np.ascontiguousarray(chunk[:, : head.width]))
        self._kept.add(rule, numbers, chunk[:, head.width : head.width + self._uses[rule]])
        fresh = head.revive(numbers)
        self._risen[name].append(fresh)
        self._add(len(fresh))
        return fresh


_NONE = np.empty(0, np.int64)
