"""The changes of what a stratum reads, so that each derivation that came or went is met exactly once.

For each atom in turn, its changed rows are joined with the atoms before it as they are after the epoch and those
behind it as they were before. A row that appears under a negation takes derivations away, one that vanishes gives
them back, where that changes whether the key is there at all.

So a row that came may meet one that went, and what they make is taken away again where that one is joined. They never
stood together: an expression that fails for them is no fault of the epoch.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from whorl.kernel.arrays.rowset import NEW, OLD
from whorl.kernel.operators.joins import has_row
from whorl.kernel.state.relation import Ints
from whorl.kernel.strategies.stratum import Entry, Stratum
from whorl.logical.plan import AntiJoin
from whorl.syntax import ast


def changed_derivations(stratum: Stratum, entry: Entry) -> Iterator[tuple[Ints, int]]:
    """Yield chunks of head rows whose derivations came (1) or went (-1) by the changes of one atom."""
    needs = [NEW if at <= entry.atom else OLD for at in range(len(stratum.rules[entry.rule].atoms))]
    if not entry.positive:
        needs[entry.atom] = 0  # the change itself says that the key came or went
    pipeline = stratum.at_atom(entry, trace=False)
    for batch, weight in _changes(stratum, entry):
        failed = False
        chunks = pipeline.run(batch, needs)
        while True:
            with stratum.state.faults.ignored() as passed:
                chunk = next(chunks, None)
            failed |= passed.any
            if chunk is None:
                break
            stratum.state.work.derivations += len(chunk)
            yield chunk, weight
        if failed and weight > 0:  # also for rows that stand together after the epoch? Then it is refused
            for _chunk in pipeline.run(batch, [need and NEW for need in needs]):
                pass


def _changes(stratum: Stratum, entry: Entry) -> Iterator[tuple[Ints, int]]:
    """Yield the changed rows of an entry with the weight they have for the head."""
    appeared, vanished = stratum.relation(entry.relation).pending()
    if entry.positive:
        for numbers, weight in ((appeared, 1), (vanished, -1)):
            for batch in stratum.batches(entry.relation, numbers, trace=False):
                yield batch, weight
        return
    step = stratum.rules[entry.rule].atoms[entry.atom][0]
    assert isinstance(step, AntiJoin)
    for numbers, weight in ((appeared, -1), (vanished, 1)):
        batch = _flips(stratum, entry, step, numbers, weight)
        if len(batch):
            yield batch, weight


def _flips(stratum: Stratum, entry: Entry, step: AntiJoin, numbers: Ints, weight: int) -> Ints:
    """Return one changed row for each key of a negation that came or went with it."""
    relation = stratum.relation(entry.relation)
    columns = tuple(i for i, arg in enumerate(step.args) if not isinstance(arg, ast.Anonymous))
    rows = relation.read(numbers)
    if not len(rows):
        return rows
    if not columns and step.args:
        was, now = len(relation.alive(OLD)) > 0, len(relation.alive(NEW)) > 0
        flipped = (now and not was) if weight < 0 else (was and not now)
        return rows[:1] if flipped else rows[:0]
    keys = np.array(columns or (0,), np.int64)
    _unique, first = np.unique(rows[:, keys], axis=0, return_index=True)
    rows = np.ascontiguousarray(rows[first])
    wide = columns or (0,)
    before = has_row(relation, wide, rows, keys, OLD)
    after = has_row(relation, wide, rows, keys, NEW)
    return np.ascontiguousarray(rows[(after & ~before) if weight < 0 else (before & ~after)])
