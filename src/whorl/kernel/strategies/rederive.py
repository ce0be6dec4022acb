"""`dred` and `support`: let doubtful rows die, and derive again those that other derivations keep.

Both follow the same four phases, and differ in who is doubtful.

1. Doubt. A row is doubtful if a derivation of it used something that went.
   `dred`: any such derivation.
   `support`: the one derivation that the row keeps (see below).
2. Fall. `dred`: a doubtful row dies at once, and makes those derived from it doubtful. `support`: it first looks for
   another derivation whose rows have smaller rank; if there is one, it takes it and nothing spreads; else it dies.
3. Return. Rows that died but still follow from what is left come back.
4. Growth. What the new rows lead to is derived, semi-naively.

The label of a row under `support` is a rank and the fingerprint of one derivation. Rows that need nothing of the
stratum itself have rank 0, others a rank above those of all the rows they are derived from; so derivations kept
cannot go in circles. A fingerprint names the rule and the rows it used; that two derivations share one only makes a
row look once more than it had to.

Cost: `dred` all derivations that used what went, and those of what died; `support` the same for the derivations that
were kept, usually far fewer.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from whorl.kernel.arrays.rowset import NEW, OLD
from whorl.kernel.state.relation import Ints
from whorl.kernel.strategies.recompute import derive_all
from whorl.kernel.strategies.stratum import EITHER, Entry, Stratum, needs_for

_PRINT = np.int64(0xFFFFFFFF)
_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
Rows = dict[str, list[Ints]]


class Rederive:
    """The four phases; `support` keeps labels, `dred` none."""

    def __init__(self, stratum: Stratum, *, ranked: bool) -> None:
        self._stratum = stratum
        self._ranked = ranked
        self._fresh = True
        if ranked:
            for name in stratum.plan.relations:
                stratum.relation(name).keep_labels()

    def reset(self) -> None:
        """Derive again from nothing at the next step."""
        self._fresh = True

    def step(self) -> None:
        """Follow the changes of the inputs."""
        stratum = self._stratum
        if self._fresh:
            self._fresh = False
            self._start()
            return
        if not stratum.changed():
            return
        fallen = self._fall(self._doubtful())
        grown = self._return(fallen)
        self._enter(grown)
        self._grow(grown)

    def _start(self) -> None:
        stratum = self._stratum
        stratum.clear()
        if not self._ranked:
            derive_all(stratum)
            return
        grown: Rows = self._nothing()
        for number in stratum.groundless():
            line = np.zeros((1, 1), np.int64)
            chunks = stratum.at_nothing(number, trace=True).run(line, needs_for(stratum, number, NEW))
            self._take(number, chunks, grown)
        for number in range(len(stratum.rules)):
            own = [entry for entry in stratum.entries if entry.rule == number]
            positive = [entry for entry in own if entry.positive]
            if positive and not any(entry.inside for entry in own):
                entry = positive[0]
                pipeline = stratum.at_atom(entry, trace=True)
                needs = needs_for(stratum, number, NEW)
                numbers = stratum.relation(entry.relation).alive()
                for batch in stratum.batches(entry.relation, numbers, trace=True):
                    self._take(number, pipeline.run(batch, needs), grown)
        self._grow(grown)

    def _nothing(self) -> Rows:
        return {name: [] for name in self._stratum.plan.relations}

    # Phase 1 and 2: doubt and fall

    def _doubtful(self) -> Rows:
        doubtful = self._nothing()
        stratum = self._stratum
        for entry in stratum.entries:
            if entry.inside:
                continue
            appeared, vanished = stratum.relation(entry.relation).pending()
            self._doubt(entry, vanished if entry.positive else appeared, doubtful)
        return doubtful

    def _doubt(self, entry: Entry, gone: Ints, doubtful: Rows) -> None:
        """Collect the rows that a derivation with one of the ``gone`` rows supports."""
        if not len(gone):
            return
        stratum = self._stratum
        head = stratum.head(entry.rule)
        pipeline = stratum.at_atom(entry, trace=self._ranked)
        atoms = stratum.rules[entry.rule].atoms
        needs = [EITHER if positive else 0 for _step, positive in atoms]
        if not self._ranked:
            needs = [OLD] * len(atoms)
            needs[entry.atom] = OLD if entry.positive else 0
        with_numbers = self._ranked and entry.positive
        for batch in stratum.batches(entry.relation, gone, trace=with_numbers):
            for chunk in pipeline.run(batch, needs):
                stratum.state.work.derivations += len(chunk)
                numbers = self._holders(entry.rule, chunk)
                known = numbers >= 0
                known[known] = head.is_alive(numbers[known])
                if self._ranked:
                    kept = head.labels[numbers] & _PRINT
                    known &= kept == self._fingerprints(entry.rule, chunk[:, head.width :])
                if known.any():
                    doubtful[stratum.rules[entry.rule].relation].append(numbers[known])

    def _holders(self, rule: int, chunk: Ints) -> Ints:
        """Return the rows that derivations support: the derived row, or whatever row is best in its group.

        A best row may rest on a derivation of a worse value, which made its group and was then improved through itself;
        so every derivation into a group counts, whatever its value.
        """
        stratum = self._stratum
        best = stratum.best.get(stratum.rules[rule].relation)
        if best is not None:
            return best.holders(chunk)
        head = stratum.head(rule)
        return head.find(np.ascontiguousarray(chunk[:, : head.width]))

    def _fall(self, doubtful: Rows) -> Rows:
        fallen = self._nothing()
        rounds = 0
        while any(doubtful.values()):
            rounds += 1
            following = self._nothing()
            for name, parts in doubtful.items():
                if not parts:
                    continue
                relation = self._stratum.relation(name)
                numbers = np.unique(np.concatenate(parts))
                numbers = numbers[relation.is_alive(numbers)]
                if self._ranked and len(numbers):
                    numbers = numbers[~self._find_other(name, numbers)]
                gone = self._stratum.retire(name, numbers)
                if len(gone):
                    fallen[name].append(gone)
                    for entry in self._stratum.entries:
                        if entry.inside and entry.relation == name:
                            self._doubt(entry, gone, following)
            doubtful = following
        self._stratum.state.work.rounds += rounds
        return fallen

    def _find_other(self, name: str, numbers: Ints) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        """Give rows another derivation of smaller rank where there is one; tell which have found it."""
        relation = self._stratum.relation(name)
        found = np.zeros(len(numbers), np.bool_)
        ranks = relation.labels[numbers] >> 32
        for line, rank, prints in self._derivations(name, numbers):
            fits = (rank < ranks[line]) & ~found[line]
            lucky, first = np.unique(line[fits], return_index=True)
            found[lucky] = True
            relation.labels[numbers[lucky]] = (ranks[lucky] << 32) | prints[fits][first]
            self._stratum.state.work.labels += len(lucky)
        return found

    def _derivations(self, name: str, numbers: Ints) -> Iterator[tuple[Ints, Ints, Ints]]:
        """Yield derivations that rows have now: the line of the row, the largest rank used (or -1), the fingerprint."""
        stratum = self._stratum
        relation = stratum.relation(name)
        for number, rule in enumerate(stratum.rules):
            if rule.relation != name:
                continue
            pipeline = stratum.at_head(number)
            needs = needs_for(stratum, number, NEW)
            for low in range(0, len(numbers), 4096):
                part = numbers[low : low + 4096]
                lines = np.arange(low, low + len(part), dtype=np.int64)
                for chunk in pipeline.run(np.column_stack((relation.read(part), lines)), needs):
                    stratum.state.work.derivations += len(chunk)
                    used = chunk[:, 1:]
                    yield chunk[:, 0], self._largest_rank(number, used), self._fingerprints(number, used)

    # Phase 3 and 4: return and growth

    def _return(self, fallen: Rows) -> Rows:
        """Bring back what still follows directly."""
        grown = self._nothing()
        for name, parts in fallen.items():
            if not parts:
                continue
            relation = self._stratum.relation(name)
            numbers = np.concatenate(parts)
            if name in self._stratum.best:
                self._choose_again(name, numbers, grown)
                continue
            best = np.full(len(numbers), np.iinfo(np.int64).max)
            for line, rank, prints in self._derivations(name, numbers):
                np.minimum.at(best, line, ((rank + 1) << 32) | prints)
            derived = best < np.iinfo(np.int64).max
            if self._ranked:
                back = relation.adopt(numbers[derived], best[derived])
            else:
                back = relation.revive(numbers[derived])
            if len(back):
                grown[name].append(back)
        return grown

    def _choose_again(self, name: str, numbers: Ints, grown: Rows) -> None:
        """Give groups that lost their best row the best that still follows."""
        stratum = self._stratum
        best = stratum.best[name]
        groups = np.empty((1, 0), np.int64)  # without group columns there is one group
        if best.group:
            groups = np.unique(stratum.relation(name).read(numbers)[:, best.group], axis=0)
        for number, rule in enumerate(stratum.rules):
            if rule.relation != name:
                continue
            pipeline = stratum.at_head(number)
            for low in range(0, len(groups), 4096):
                part = groups[low : low + 4096]
                lines = np.arange(len(part), dtype=np.int64)
                batch = np.column_stack((part if best.group else lines, lines))
                for chunk in pipeline.run(np.ascontiguousarray(batch), needs_for(stratum, number, NEW)):
                    stratum.state.work.derivations += len(chunk)
                    rows = np.insert(part[chunk[:, 1]], best.column, chunk[:, 0], axis=1)
                    fresh = best.improve(np.ascontiguousarray(rows))
                    if len(fresh):
                        grown[name].append(fresh)

    def _enter(self, grown: Rows) -> None:
        """Derive what the changed inputs lead to."""
        stratum = self._stratum
        for entry in stratum.entries:
            if entry.inside:
                continue
            appeared, vanished = stratum.relation(entry.relation).pending()
            numbers = appeared if entry.positive else vanished
            if not len(numbers):
                continue
            pipeline = stratum.at_atom(entry, trace=self._ranked)
            needs = needs_for(stratum, entry.rule, NEW)
            with_numbers = self._ranked and entry.positive
            for batch in stratum.batches(entry.relation, numbers, trace=with_numbers):
                self._take(entry.rule, pipeline.run(batch, needs), grown)

    def _grow(self, grown: Rows) -> None:
        stratum = self._stratum
        rounds = 0
        while any(grown.values()):
            rounds += 1
            delta = {name: np.concatenate(parts) for name, parts in grown.items() if parts}
            grown = self._nothing()
            for entry in stratum.entries:
                if not entry.inside or entry.relation not in delta:
                    continue
                pipeline = stratum.at_atom(entry, trace=self._ranked)
                needs = needs_for(stratum, entry.rule, NEW)
                for batch in stratum.batches(entry.relation, delta[entry.relation], trace=self._ranked):
                    self._take(entry.rule, pipeline.run(batch, needs), grown)
                head = stratum.head(entry.rule)
                if rounds > stratum.limits.rounds or head.count > stratum.limits.tuples:
                    sample = stratum.relation(entry.relation).read(delta[entry.relation][:1])
                    stratum.check_limits(rounds, entry.rule, sample)
        stratum.state.work.rounds += rounds

    def _take(self, rule: int, chunks: Iterator[Ints], grown: Rows) -> None:
        """Make derived rows alive, with the derivation they came from."""
        stratum = self._stratum
        head = stratum.head(rule)
        name = stratum.rules[rule].relation
        for chunk in chunks:
            stratum.state.work.derivations += len(chunk)
            if self._ranked:
                used = chunk[:, head.width :]
                offers = ((self._largest_rank(rule, used) + 1) << 32) | self._fingerprints(rule, used)
                numbers = head.number(np.ascontiguousarray(chunk[:, : head.width]))
                fresh = head.adopt(numbers, offers)
            else:
                fresh = stratum.take(rule, chunk)
            if len(fresh):
                grown[name].append(fresh)

    # Labels

    def _largest_rank(self, rule: int, used: Ints) -> Ints:
        """Return the largest rank among the rows of the stratum that derivations use, -1 if they use none."""
        largest = np.full(len(used), -1, np.int64)
        if not self._ranked:
            return largest
        column = 0
        for step, positive in self._stratum.rules[rule].atoms:
            if not positive:
                continue
            name = step.relation  # type: ignore[union-attr]
            if name in self._stratum.plan.relations:
                labels = self._stratum.relation(name).labels
                np.maximum(largest, labels[used[:, column]] >> 32, out=largest)
            column += 1
        return largest

    def _fingerprints(self, rule: int, used: Ints) -> Ints:
        """Return 32 bits that name the rule and the rows a derivation uses."""
        state = np.full(len(used), rule + 1, np.uint64)
        for column in range(used.shape[1]):
            state = (state ^ used[:, column].astype(np.uint64)) * _MULTIPLIER
            state ^= state >> np.uint64(32)
        return (state & np.uint64(_PRINT)).astype(np.int64)
