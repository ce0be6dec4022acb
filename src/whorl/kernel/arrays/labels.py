"""Arithmetic on labels: what a derivation offers, whom its loss concerns, which offer a row takes.

Derivations are lines of a batch that hold the numbers of the rows they use, one column an atom. Two algebras are
here: ranks (a label is a rank and, in its lower half, the fingerprint of one derivation) and deaths (a label is the
time at which a row dies).
"""

from __future__ import annotations

import numpy as np
from numba import types

from whorl.kernel.arrays.jit import BOOLS, GOLDEN, INT, INTS, ROWS, inlined, kernel
from whorl.kernel.arrays.rowset import MARK, NEW, RELATION

ANY, REACHED, ABOVE = 0, 1, 2  # whom `concern` collects
_PRINT = np.int64(0xFFFFFFFF)


@inlined
def fingerprint(batch, line, first, rule):  # type: ignore[no-untyped-def]
    """Return 32 bits, not all of them 0, that name a rule and the rows that a line uses from column ``first``."""
    state = np.uint64(rule + 1)
    for column in range(first, batch.shape[1]):
        state = (state ^ np.uint64(batch[line, column])) * GOLDEN
        state ^= state >> np.uint64(32)
    name = np.int64(state & np.uint64(0xFFFFFFFF))
    return name if name != 0 else np.int64(1)


@kernel(types.void(ROWS, INT, INT, INTS))
def stamp(batch, first, rule, offers):  # type: ignore[no-untyped-def]
    """Offer rank 0 and the fingerprint of each derivation."""
    for line in range(batch.shape[0]):
        offers[line] = fingerprint(batch, line, first, rule)


@kernel(types.void(ROWS, INT, INTS, INTS))
def fold_ranks(batch, column, labels, offers):  # type: ignore[no-untyped-def]
    """Raise the ranks of offers above those of the rows in a column."""
    for line in range(batch.shape[0]):
        rank = (labels[batch[line, column]] >> 32) + 1
        if rank > offers[line] >> 32:
            offers[line] = (rank << 32) | (offers[line] & _PRINT)


@kernel(types.void(ROWS, INT, INTS, INTS))
def fold_deaths(batch, column, labels, deaths):  # type: ignore[no-untyped-def]
    """Lower ``deaths`` to the labels of the rows in a column."""
    for line in range(batch.shape[0]):
        deaths[line] = min(deaths[line], labels[batch[line, column]])


@kernel(INT(INTS, INTS, INT, RELATION, INTS, INTS))
def concern(numbers, offers, whom, relation, labels, out):  # type: ignore[no-untyped-def]
    """Mark and collect the rows alive that the loss of a derivation concerns; return how many.

    ANY: all of them. REACHED: those whose label it reaches. ABOVE: those whose label is above what it still offers.
    """
    _rows, flags, _table, _meta = relation
    made = 0
    for at in range(numbers.size):
        row = numbers[at]
        if row < 0 or flags[row] & NEW == 0 or flags[row] & MARK != 0:
            continue
        if whom == REACHED and offers[at] < labels[row]:
            continue
        if whom == ABOVE and offers[at] >= labels[row]:
            continue
        flags[row] |= MARK
        out[made] = row
        made += 1
    return made


@kernel(INT(ROWS, INT, INT, INTS, RELATION, INTS, INTS))
def concern_keepers(batch, first, rule, numbers, relation, labels, out):  # type: ignore[no-untyped-def]
    """Mark and collect the rows alive that keep one of the derivations, or forgot which (0); return how many."""
    _rows, flags, _table, _meta = relation
    made = 0
    for line in range(numbers.size):
        row = numbers[line]
        if row < 0 or flags[row] & NEW == 0 or flags[row] & MARK != 0:
            continue
        kept = labels[row] & _PRINT
        if kept in (0, fingerprint(batch, line, first, rule)):
            flags[row] |= MARK
            out[made] = row
            made += 1
    return made


@kernel(INT(ROWS, INTS, INTS, INTS, BOOLS))
def take_other(batch, offers, numbers, labels, found):  # type: ignore[no-untyped-def]
    """Give rows another derivation that uses smaller ranks only; the first column of a line says which row.

    Rows keep their rank, so that those above them stay above. Return how many found one.
    """
    made = 0
    for at in range(batch.shape[0]):
        line = batch[at, 0]
        row = numbers[line]
        rank = labels[row] >> 32
        if not found[line] and (offers[at] >> 32) <= rank:
            found[line] = True
            labels[row] = (rank << 32) | (offers[at] & _PRINT)
            made += 1
    return made


@kernel(types.void(ROWS, INTS, INTS))
def lowest_offers(batch, offers, best):  # type: ignore[no-untyped-def]
    """Keep for each row the smallest offer; the first column of a line says which row."""
    for at in range(batch.shape[0]):
        line = batch[at, 0]
        best[line] = min(best[line], offers[at])


@kernel(types.void(ROWS, INTS, INTS))
def highest_offers(batch, offers, best):  # type: ignore[no-untyped-def]
    """Keep for each row the largest offer."""
    for at in range(batch.shape[0]):
        line = batch[at, 0]
        best[line] = max(best[line], offers[at])
