"""`expiry`: the label of a row is the time at which it dies; a window that moves costs no join.

A derivation lives as long as the first of the rows it uses, a row as long as the last of its derivations. Rows wait in
a queue for their time; when event time passes it, they go, and nothing is derived or looked up. A fact that arrives
again, or late, raises labels, and only what got a larger label is followed.

Under `min` and `max` a group keeps every row that no other beats in both value and death, so that when the best dies
its successor is there.

Explicit deletions follow the four phases: a row is doubtful if its label is one that a lost derivation reached.

Cost: of an insertion the derivations that get longer lives through it, which in dense data may be many more than the
rows that are new; of expiry a visit for each row that dies or was put off; of a deletion as for `dred`, on labels.
"""

from __future__ import annotations

import numpy as np

from whorl.kernel.arrays import growth
from whorl.kernel.arrays import labels as arithmetic
from whorl.kernel.arrays.facts import FOREVER, NEVER
from whorl.kernel.state.distinct import distinct
from whorl.kernel.state.queue import DeathQueue
from whorl.kernel.state.relation import Ints, Moves, StoredRelation
from whorl.kernel.strategies.fixpoint import Rows
from whorl.kernel.strategies.rederive import Rederive
from whorl.kernel.strategies.stratum import Entry, Stratum

_DEAD = np.iinfo(np.int64).min


class Expiry(Rederive):
    """Times of death as labels."""

    trace = True
    better = True
    algebra = growth.DEATHS

    def __init__(self, stratum: Stratum) -> None:
        super().__init__(stratum)
        self.follow_returned = True  # one that came back before its premise did may live longer
        self._ageless = False  # whether rows are taken to live for ever
        self._touched: Rows = self.nothing()
        self._premises = [
            [(place, stratum.relation(name)) for place, name in enumerate(stratum.premises(rule))]
            for rule in range(len(stratum.rules))
        ]
        self._queues = {name: DeathQueue() for name in stratum.plan.relations}
        for name in stratum.plan.relations:
            stratum.relation(name).keep_labels()
        self.prepare()

    def prepare(self) -> None:
        """Let the labels of the stratum be times of death."""
        for name in self.stratum.plan.relations:
            self.stratum.relation(name).dying = True
            self.stratum.relation(name).expect_new()

    def resume(self) -> None:
        """Go on from rows and their times of death."""
        self.fresh = False
        self._touched = self.nothing()
        self._queues = {name: DeathQueue() for name in self.stratum.plan.relations}
        for name in self.stratum.plan.relations:
            alive = self.stratum.relation(name).alive()
            self._touched[name].append(alive)
            if name in self.stratum.frontiers:
                self.stratum.frontiers[name].resume()
        self._queue_up()

    def renumbered(self, name: str, moved: Moves) -> None:
        """Let rows wait under their new numbers, and build a frontier anew. Labels name no rows."""
        if self.fresh:
            return  # everything will be
        if name in self._queues:
            self._queues[name].renumbered(moved)
        if name in self.stratum.frontiers:
            self.stratum.frontiers[name].resume()

    def offers(self, rule: int, batch: Ints, first: int) -> Ints:
        """Return when a derivation dies: with the first of the rows it uses."""
        deaths = np.empty(len(batch), np.int64)
        take = arithmetic.take_deaths
        for place, relation in self._premises[rule]:
            if relation.dying and not self._ageless:
                take(batch, first + place, relation.labels, deaths)
                take = arithmetic.fold_deaths
        if take is arithmetic.take_deaths:
            deaths.fill(FOREVER)
        return deaths

    def accept(self, rule: int, chunk: Ints) -> Ints:
        """Make rows alive, or let them live longer."""
        name = self.stratum.rules[rule].relation
        relation, frontier = self.stratum.relation(name), self.stratum.frontiers.get(name)
        offers = self.offers(rule, chunk, relation.width)
        if frontier is not None:
            changed = frontier.offer(chunk[:, : relation.width], offers)
            self.accepted(name, changed)
            return changed
        changed = relation.adopt_rows(chunk, offers, better=True)
        death = arithmetic.common_death(offers)
        if death == NEVER:
            self.accepted(name, changed)
        else:  # facts that come together mostly die together, and so does what follows from each alone
            self.stratum.state.work.labels += len(changed)
            if death != FOREVER:
                self._queues[name].wait_together(changed.copy(), death)
        return changed

    def accepted(self, name: str, numbers: Ints) -> None:
        """Let rows wait for their time."""
        self._touched[name].append(numbers)
        self.stratum.state.work.labels += len(numbers)

    def start(self, *, plain: bool = False) -> None:
        """Derive everything; ``plain`` takes all rows to live for ever, so that a frontier is one row."""
        self._ageless = plain
        self._touched = self.nothing()
        self._queues = {name: DeathQueue() for name in self.stratum.plan.relations}
        for name in self.stratum.plan.relations:
            self.stratum.relation(name).lowered = True  # for all that is known here
        if plain and not self.stratum.frontiers:
            super().start(plain=True)
        else:
            super().start()
        self._ageless = False
        self._queue_up()

    def follow_changes(self) -> None:
        """Let die what is due; then the four phases, for what arrived, was refreshed or deleted."""
        self._expire()
        super().follow_changes()
        self._queue_up()

    def _expire(self) -> None:
        now = self.stratum.state.now
        if now is None:
            return
        for name, queue in self._queues.items():
            numbers = queue.due(now)
            if len(numbers):
                self._retire(name, numbers, now)

    def _retire(self, name: str, numbers: Ints, now: int) -> None:
        relation = self.stratum.relation(name)
        if name in self.stratum.frontiers:
            self.stratum.retire(name, numbers[relation.labels[numbers] <= now])
            return
        gone = np.empty(len(numbers), np.int64)
        relation.note_changes(gone[: arithmetic.retire_due(numbers, now, relation.arrays, relation.labels, gone)])

    def _queue_up(self) -> None:
        for name, parts in self._touched.items():
            if not parts:
                continue
            relation = self.stratum.relation(name)
            touched = parts[0] if len(parts) == 1 else np.concatenate(parts)
            numbers, deaths = np.empty(len(touched), np.int64), np.empty(len(touched), np.int64)
            made = arithmetic.find_mortals(touched, relation.arrays, relation.labels, numbers, deaths)
            self._queues[name].wait(numbers[:made], deaths[:made])
        self._touched = self.nothing()

    def doubt_inputs(self, doubtful: Rows) -> None:
        """Collect the rows that deletions make doubtful; what died of age took its derivations along."""
        early: dict[str, Ints] = {}
        for entry in self.stratum.entries:
            if entry.inside:
                continue
            relation = self.stratum.relation(entry.relation)
            if not entry.positive:
                self.doubt(entry, relation.pending()[0], doubtful)
                continue
            if entry.relation not in early:
                early[entry.relation] = self._vanished_early(relation)
            self.doubt(entry, early[entry.relation], doubtful)
            if relation.dying and relation.lowered:
                self.doubt(entry, relation.relabelled(), doubtful, arithmetic.ABOVE)

    def _vanished_early(self, relation: StoredRelation) -> Ints:
        """Return the rows that vanished before their time."""
        vanished, now = relation.pending()[1], self.stratum.state.now
        if not relation.dying or now is None:
            return vanished
        early = np.empty(len(vanished), np.int64)
        return early[: arithmetic.find_early(vanished, now, relation.labels, early)]

    def doubt(self, entry: Entry, gone: Ints, doubtful: Rows, whom: int | None = None) -> None:
        """Collect doubtful rows; of a frontier the whole group, since what it dropped may be wanted again."""
        name = self.stratum.rules[entry.rule].relation
        frontier = self.stratum.frontiers.get(name)
        if frontier is None or not len(gone):
            super().doubt(entry, gone, doubtful, whom)
            return
        for chunk in self.met(entry, gone):
            self.stratum.state.work.derivations += len(chunk)
            rows = frontier.rows_of(distinct(frontier.groups(chunk)))
            doubtful[name].append(frontier.relation.mark(rows))

    def concerned(self, rule: int, chunk: Ints, whom: int | None) -> Ints:
        """Mark and return the rows whose label a derivation reached."""
        return super().concerned(rule, chunk, arithmetic.REACHED if whom is None else whom)

    def fall(self, doubtful: Rows) -> Rows:
        """Let doubtful rows die; those that come back may do so with a smaller label."""
        for name, parts in doubtful.items():
            if parts:
                self.stratum.relation(name).lowered = True
        return super().fall(doubtful)

    def revive(self, name: str, numbers: Ints) -> Ints:
        """Make rows alive again that have a derivation, with the longest life they can have."""
        if name in self.stratum.frontiers:
            return self._choose(name, numbers)
        best = np.full(len(numbers), _DEAD, np.int64)
        for rule, chunk in self.supports(name, numbers):
            arithmetic.highest_offers(chunk, self.offers(rule, chunk, 1), best)
        derived = best > _DEAD
        back = self.stratum.relation(name).adopt(numbers[derived], best[derived], better=True)
        self._touched[name].append(back)
        return back

    def _choose(self, name: str, numbers: Ints) -> Ints:
        """Give groups again what still follows."""
        stratum, frontier = self.stratum, self.stratum.frontiers[name]
        rows = stratum.relation(name).read(numbers)
        groups = np.unique(rows[:, :-1], axis=0) if rows.shape[1] > 1 else rows[:1, :0]
        chosen = [
            frontier.offer(np.column_stack((part, chunk[:, 0])), self.offers(rule, chunk, 2))
            for rule, part, chunk in self.derivations_into(name, groups)
        ]
        self._touched[name] += chosen
        return np.concatenate(chosen) if chosen else np.empty(0, np.int64)

    def enter_inputs(self, grown: Rows) -> None:
        """Derive what arrived leads to, and what lives longer now."""
        super().enter_inputs(grown)
        for entry in self.stratum.entries:
            relation = self.stratum.relation(entry.relation)
            if not entry.inside and entry.positive and relation.dying:
                numbers = relation.relabelled()
                if len(numbers):
                    self.follow(entry, numbers, grown)
