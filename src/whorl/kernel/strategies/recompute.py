"""`recompute`: forget the rows and derive them again, semi-naively. The baseline, and what others fall back to.

Cost: all derivations of the stratum, whenever something it reads changes.
"""

from __future__ import annotations

import numpy as np

from whorl.kernel.arrays.rowset import NEW
from whorl.kernel.state.relation import Ints
from whorl.kernel.strategies.stratum import Stratum, needs_for


class Recompute:
    """Derives everything again when an input changed."""

    def __init__(self, stratum: Stratum) -> None:
        self._stratum = stratum
        self._fresh = True

    def reset(self) -> None:
        """Nothing is kept beside the rows."""
        self._fresh = True

    def step(self) -> None:
        """Let every row die, and derive again what follows."""
        if not self._fresh and not self._stratum.changed():
            return
        self._fresh = False
        self._stratum.clear()
        derive_all(self._stratum)


def derive_all(stratum: Stratum) -> None:
    """Derive everything that follows, semi-naively."""
    delta = _first_round(stratum)
    rounds = 1
    inside = [entry for entry in stratum.entries if entry.inside]
    while any(len(numbers) for numbers in delta.values()):
        rounds += 1
        found: dict[str, list[Ints]] = {name: [] for name in stratum.plan.relations}
        for entry in inside:
            numbers = delta[entry.relation]
            if not len(numbers):
                continue
            head = stratum.head(entry.rule)
            pipeline = stratum.at_atom(entry, trace=False)
            needs = needs_for(stratum, entry.rule, NEW)
            for batch in stratum.batches(entry.relation, numbers, trace=False):
                for chunk in pipeline.run(batch, needs):
                    stratum.state.work.derivations += len(chunk)
                    fresh = stratum.take(entry.rule, chunk)
                    if len(fresh):
                        found[stratum.rules[entry.rule].relation].append(fresh)
            if rounds > stratum.limits.rounds or head.count > stratum.limits.tuples:
                stratum.check_limits(rounds, entry.rule, head.read(numbers[:1]) if head.width else None)
        delta = {name: np.concatenate(parts) if parts else np.empty(0, np.int64) for name, parts in found.items()}
    stratum.state.work.rounds += rounds


def _first_round(stratum: Stratum) -> dict[str, Ints]:
    """Apply the rules that read nothing of the stratum itself."""
    found: dict[str, list[Ints]] = {name: [] for name in stratum.plan.relations}
    for number, rule in enumerate(stratum.rules):
        own = [entry for entry in stratum.entries if entry.rule == number]
        if any(entry.inside for entry in own):
            continue
        needs = needs_for(stratum, number, NEW)
        positive = [entry for entry in own if entry.positive]
        if not positive:
            pipeline = stratum.at_nothing(number, trace=False)
            chunks = pipeline.run(np.zeros((1, 1), np.int64), needs)
        else:
            entry = min(positive, key=lambda each: stratum.relation(each.relation).count)
            pipeline = stratum.at_atom(entry, trace=False)
            numbers = stratum.relation(entry.relation).alive()
            batches = stratum.batches(entry.relation, numbers, trace=False)
            chunks = (chunk for batch in batches for chunk in pipeline.run(batch, needs))
        for chunk in chunks:
            stratum.state.work.derivations += len(chunk)
            fresh = stratum.take(number, chunk)
            if len(fresh):
                found[rule.relation].append(fresh)
    return {name: np.concatenate(parts) if parts else np.empty(0, np.int64) for name, parts in found.items()}
