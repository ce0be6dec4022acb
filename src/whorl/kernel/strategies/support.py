"""`support`: every row keeps one derivation, and a rank that makes derivations kept well-founded.

Rows that need nothing of the stratum itself have rank 0, others a rank above those of all the rows they are derived
from; so derivations kept cannot go in circles. A row that comes to need nothing of the stratum gets rank 0.

A row is doubtful only if the derivation it keeps went. It then takes another one whose rows come before it, and nothing
spreads; only without one does it fall. Before a row come those of smaller rank, and of its own relation those of the
same rank with a smaller number: they were there earlier.

What a row could be derived from when it fell is remembered: if it returns, it is by one of these derivations.

A label holds the rank and a fingerprint of the derivation: the rule and the rows it used. That two derivations share
one only makes a row look once more than it had to.

Cost of a deletion: the derivations that used what went; those of the rows that lost theirs; the same for rows that
fall, in well-connected data few.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from whorl.kernel.arrays import growth
from whorl.kernel.arrays import labels as arithmetic
from whorl.kernel.state.relation import Ints, Moves
from whorl.kernel.strategies.rederive import Mask, Rederive
from whorl.kernel.strategies.stratum import EITHER, Stratum

_MEMORY = 1 << 22  # words of derivations looked at while rows fall; if there are more, they are not remembered
_NONE = np.empty(0, np.int64)
_SAMPLE = 1000  # rows that tell how deep derivations are


class Support(Rederive):
    """Ranked support."""

    trace = True
    algebra: int | None = growth.RANKS

    def __init__(self, stratum: Stratum) -> None:
        super().__init__(stratum)
        self._own_columns: dict[int, Ints] = {}
        self._inner_rules: dict[str, list[int]] = {}
        self._seen: dict[str, dict[int, list[Ints]]] = {}  # derivations of rows that fell, by rule
        self._room = 0
        for name in (*stratum.plan.relations, *stratum.plan.imports):
            stratum.relation(name).keep_labels()

    def prepare(self) -> None:
        """Let the labels of the stratum be ranks."""
        for name in self.stratum.plan.relations:
            self.stratum.relation(name).dying = False

    def resume(self) -> None:
        """Go on from the rows and labels that were saved."""
        self.stratum.resume()
        self.fresh = False

    def renumbered(self, _name: str, _moved: Moves) -> None:
        """Forget fingerprints, which name rows by number: whoever loses any derivation then looks for one it has."""
        for relation in map(self.stratum.relation, self.stratum.plan.relations):
            relation.labels[: relation.count] &= ~np.int64(0xFFFFFFFF)

    def share_lost(self, share: float) -> float | None:
        """Guess by the ranks: a row of rank r follows from r + 1 facts at least, of which none may go."""
        ranks = [
            relation.labels[numbers[relation.is_alive(numbers)]] >> 32
            for relation in map(self.stratum.relation, self.stratum.plan.relations)
            for numbers in [np.arange(0, relation.count, max(relation.count // _SAMPLE, 1))]
        ]
        facts = np.concatenate(ranks) + 1
        return 1.0 - float(np.mean((1.0 - share) ** facts)) if len(facts) else None

    def offers(self, rule: int, batch: Ints, first: int) -> Ints:
        """Return a rank above those of the rows of the stratum that a derivation uses, and its fingerprint."""
        offers = self._bare_offers(rule, batch, first)
        arithmetic.stamp(batch, first, rule, offers)
        return offers

    def _bare_offers(self, rule: int, batch: Ints, first: int) -> Ints:
        """Return offers without fingerprints, which only who takes one needs."""
        inside = self.stratum.inside_premises(rule)
        if not inside:
            return np.zeros(len(batch), np.int64)
        offers = np.empty(len(batch), np.int64)
        for at, (place, name) in enumerate(inside):
            used = self.stratum.relation(name)
            take = arithmetic.fold_ranks if at else arithmetic.rank_above
            take(batch, first + place, used.arrays, used.labels, offers)
        return offers

    def accept(self, rule: int, chunk: Ints) -> Ints:
        """Make rows alive; those that are, and need nothing of the stratum any more, get rank 0."""
        if self.stratum.inside_premises(rule):
            return super().accept(rule, chunk)
        head = self.stratum.head(rule)
        offers = self.offers(rule, chunk, head.width)
        return head.adopt_rows(chunk, offers, lower=True)

    def follow_changes(self) -> None:
        """Go through the four phases, with nothing seen yet."""
        self._seen = {name: {} for name in self.stratum.plan.relations}
        self._room = _MEMORY
        super().follow_changes()
        self._seen = {}

    def concerned(self, rule: int, chunk: Ints, _whom: int | None) -> Ints:
        """Mark and return the rows that keep one of the derivations."""
        head = self.stratum.head(rule)
        out = np.empty(len(chunk), np.int64)
        return out[: arithmetic.find_keepers(chunk, head.width, rule, head.arrays, head.labels, out)]

    def saved(self, name: str, numbers: Ints) -> Mask:
        """Give rows another derivation from rows before them where there is one; tell which have found it."""
        relation = self.stratum.relation(name)
        found = np.zeros(len(numbers), np.bool_)
        left = len(numbers)
        seen: list[tuple[int, Ints]] = []
        for rule, chunk in self.supports(name, numbers, EITHER, self._rules_for(name, numbers)):
            bare = self._bare_offers(rule, chunk, 1)
            made = arithmetic.take_other(chunk, bare, rule, numbers, relation.labels, self._own(rule), found)
            self.stratum.state.work.labels += made
            left -= made
            self._room -= chunk.size
            if self._room >= 0:
                seen.append((rule, chunk))
        if left:
            self._remember(name, numbers, found, seen)
        return found

    def _rules_for(self, name: str, numbers: Ints) -> Sequence[int]:
        """Return the rules that may derive some rows: with a rank above 0 only those that read the stratum itself."""
        if name not in self._inner_rules:
            rules = self.stratum.rules_of(name)
            self._inner_rules[name] = [rule for rule in rules if self.stratum.inside_premises(rule)]
        lowest = arithmetic.lowest_rank(numbers, self.stratum.relation(name).labels)
        return self._inner_rules[name] if lowest else self.stratum.rules_of(name)

    def _own(self, rule: int) -> Ints:
        """Return the columns of the rows that a derivation uses of its own relation, none if it uses others inside."""
        if rule not in self._own_columns:
            inside = self.stratum.inside_premises(rule)
            alone = all(name == self.stratum.rules[rule].relation for _place, name in inside)
            self._own_columns[rule] = np.array([1 + place for place, _name in inside] if alone else [], np.int64)
        return self._own_columns[rule]

    def _remember(self, name: str, numbers: Ints, found: Mask, seen: list[tuple[int, Ints]]) -> None:
        """Keep the derivations of rows that fall: they may return by one of these, and by no other."""
        for rule, chunk in seen:
            left = np.empty_like(chunk)
            left = left[: arithmetic.left_over(chunk, numbers, found, left)]
            if len(left):
                self._seen[name].setdefault(rule, []).append(left)

    def _recalled(self, name: str, numbers: Ints) -> Iterator[tuple[int, Ints]]:
        """Yield derivations of rows that fell: the row, then the rows used, which may be dead."""
        if self._room < 0:
            for rule, chunk in self.supports(name, numbers):
                chunk[:, 0] = numbers[chunk[:, 0]]
                yield rule, chunk
            return
        for rule, parts in self._seen[name].items():
            if len(parts) > 1:
                chunk = np.concatenate(parts)
            else:  # it may have been looked at before, and some rows are back
                left = np.empty_like(parts[0])
                chunk = left[: arithmetic.of_dead(parts[0], self.stratum.relation(name).arrays, left)]
            self._seen[name][rule] = [chunk]
            yield rule, chunk

    def revive(self, name: str, numbers: Ints) -> Ints:
        """Make rows alive again that have a derivation, with the smallest rank they can have."""
        relation = self.stratum.relation(name)
        back: list[Ints] = []
        for rule, chunk in self._recalled(name, numbers):
            bare = self._bare_offers(rule, chunk, 1)
            out = np.empty(len(chunk), np.int64)
            back.append(out[: arithmetic.take_lowest(chunk, bare, rule, relation.arrays, relation.labels, out)])
        returned = np.concatenate(back) if back else _NONE
        relation.unmark(returned)
        return relation.revive(returned)
