"""`support`: every row keeps one derivation, and a rank that makes derivations kept well-founded.

Rows that need nothing of the stratum itself have rank 0, others a rank above those of all the rows they are derived
from; so derivations kept cannot go in circles. A row is doubtful only if the derivation it keeps went. It then takes
another one whose rows have smaller rank, and nothing spreads; only without one does it fall.

A label holds the rank and a fingerprint of the derivation: the rule and the rows it used. That two derivations share
one only makes a row look once more than it had to.

Cost of a deletion: the derivations that used what went; those of the rows that lost theirs; the same for rows that
fall, in well-connected data few.
"""

from __future__ import annotations

import numpy as np

from whorl.kernel.arrays import labels as arithmetic
from whorl.kernel.state.relation import Ints
from whorl.kernel.strategies.rederive import Mask, Rederive
from whorl.kernel.strategies.stratum import Stratum

_WORST = np.iinfo(np.int64).max


class Support(Rederive):
    """Ranked support."""

    trace = True

    def __init__(self, stratum: Stratum) -> None:
        super().__init__(stratum)
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

    def renumbered(self) -> None:
        """Forget fingerprints, which name rows by number: whoever loses any derivation then looks for one it has."""
        for name in self.stratum.plan.relations:
            self.stratum.relation(name).labels &= ~np.int64(0xFFFFFFFF)

    def offers(self, rule: int, batch: Ints, first: int) -> Ints:
        """Return a rank above those of the rows of the stratum that a derivation uses, and its fingerprint."""
        offers = np.empty(len(batch), np.int64)
        arithmetic.stamp(batch, first, rule, offers)
        for place, name in self.stratum.inside_premises(rule):
            arithmetic.fold_ranks(batch, first + place, self.stratum.relation(name).labels, offers)
        return offers

    def concerned(self, rule: int, chunk: Ints, numbers: Ints, _whom: int | None) -> Ints:
        """Mark and return the rows that keep one of the derivations."""
        head = self.stratum.head(rule)
        out = np.empty(len(numbers), np.int64)
        return out[: arithmetic.concern_keepers(chunk, head.width, rule, numbers, head.arrays, head.labels, out)]

    def saved(self, name: str, numbers: Ints) -> Mask:
        """Give rows another derivation of smaller rank where there is one; tell which have found it."""
        relation = self.stratum.relation(name)
        found = np.zeros(len(numbers), np.bool_)
        for rule, chunk in self.supports(name, numbers):
            made = arithmetic.take_other(chunk, self.offers(rule, chunk, 1), numbers, relation.labels, found)
            self.stratum.state.work.labels += made
        return found

    def revive(self, name: str, numbers: Ints) -> Ints:
        """Make rows alive again that have a derivation, with the smallest rank they can have."""
        best = np.full(len(numbers), _WORST)
        for rule, chunk in self.supports(name, numbers):
            arithmetic.lowest_offers(chunk, self.offers(rule, chunk, 1), best)
        derived = best < _WORST
        return self.stratum.relation(name).adopt(numbers[derived], best[derived])
