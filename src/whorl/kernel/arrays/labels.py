"""Arithmetic on labels: what a derivation offers, whom its loss concerns, which offer a row takes.

Derivations are lines of a batch that hold the numbers of the rows they use, one column an atom. Two algebras are
here: ranks (a label is a rank and, in its lower half, the fingerprint of one derivation) and deaths (a label is the
time at which a row dies).
"""

from __future__ import annotations

import numpy as np
from numba import types

from whorl.kernel.arrays.facts import FOREVER, NEVER
from whorl.kernel.arrays.jit import BOOLS, GOLDEN, INT, INTS, ROWS, inlined, kernel, prefetch
from whorl.kernel.arrays.rowset import BLOCK, DEAD, MARK, NEW, RELATION, find_block

ANY, REACHED, ABOVE = 0, 1, 2  # whom `concern` collects
WORTHLESS = np.iinfo(np.int64).max  # an offer of ranks that nobody takes
_PRINT = np.int64(0xFFFFFFFF)


@inlined
def mix_row(state, number):  # type: ignore[no-untyped-def]
    """Mix one more row into what is to become a fingerprint."""
    state = (state ^ np.uint64(number)) * GOLDEN
    return state ^ (state >> np.uint64(32))


@inlined
def cut_print(state):  # type: ignore[no-untyped-def]
    """Return the 32 bits of a fingerprint, not all of them 0."""
    name = np.int64(state & np.uint64(0xFFFFFFFF))
    return name if name != 0 else np.int64(1)


@inlined
def fingerprint(batch, line, first, rule):  # type: ignore[no-untyped-def]
    """Return what names a rule and the rows that a line uses from column ``first``."""
    state = np.uint64(rule + 1)
    for column in range(first, batch.shape[1]):
        state = mix_row(state, batch[line, column])
    return cut_print(state)


@inlined
def fingerprint_of_pair(first, second, rule):  # type: ignore[no-untyped-def]
    """Return the fingerprint of a derivation that uses two rows."""
    return cut_print(mix_row(mix_row(np.uint64(rule + 1), first), second))


@kernel(types.void(ROWS, INT, INT, INTS))
def stamp(batch, first, rule, offers):  # type: ignore[no-untyped-def]
    """Add the fingerprint of each derivation to its offer, which has none."""
    for line in range(batch.shape[0]):
        offers[line] |= fingerprint(batch, line, first, rule)


@kernel(types.void(ROWS, INT, RELATION, INTS, INTS))
def rank_above(batch, column, relation, labels, offers):  # type: ignore[no-untyped-def]
    """Offer a rank above that of the row in a column, and no fingerprint; nothing if the row is dead."""
    flags = relation[1]
    for line in range(batch.shape[0]):
        prefetch(labels, batch[line, column])
    for line in range(batch.shape[0]):
        row = batch[line, column]
        offers[line] = WORTHLESS if flags[row] & NEW == 0 else ((labels[row] >> 32) + 1) << 32


@kernel(types.void(ROWS, INT, RELATION, INTS, INTS))
def fold_ranks(batch, column, relation, labels, offers):  # type: ignore[no-untyped-def]
    """Raise the ranks of offers above those of the rows in a column; offers that use dead rows are worth nothing."""
    flags = relation[1]
    for line in range(batch.shape[0]):
        row = batch[line, column]
        rank = (labels[row] >> 32) + 1
        if flags[row] & NEW == 0:
            offers[line] = WORTHLESS
        elif rank > offers[line] >> 32:
            offers[line] = rank << 32


@kernel(INT(INTS, INTS))
def lowest_rank(numbers, labels):  # type: ignore[no-untyped-def]
    """Return the smallest rank of some rows."""
    lowest = WORTHLESS
    for at in range(numbers.size):
        lowest = min(lowest, labels[numbers[at]])
    return lowest >> 32


@kernel(types.void(ROWS, INT, INTS, INTS))
def take_deaths(batch, column, labels, deaths):  # type: ignore[no-untyped-def]
    """Set ``deaths`` to the labels of the rows in a column."""
    for line in range(batch.shape[0]):
        deaths[line] = labels[batch[line, column]]


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


@kernel(INT(ROWS, INT, INT, RELATION, INTS, INTS))
def find_keepers(batch, width, rule, relation, labels, out):  # type: ignore[no-untyped-def]
    """Mark and collect the rows alive that keep the derivation of a line, or forgot which (0); return how many.

    The first ``width`` columns are the row derived.
    """
    _rows, flags, _table, _meta = relation
    size = min(BLOCK, batch.shape[0])
    hashes = np.empty(size, np.uint64)
    places = np.empty(size, np.int64)
    found = np.empty(size, np.int64)
    made = 0
    for low in range(0, batch.shape[0], BLOCK):
        many = min(batch.shape[0] - low, BLOCK)
        find_block(batch, low, low + many, width, relation, hashes, places, found)
        for at in range(many):
            prefetch(flags, max(found[at], 0))
            prefetch(labels, max(found[at], 0))
        for at in range(many):
            row = found[at]
            if row < 0 or flags[row] & NEW == 0 or flags[row] & MARK != 0:
                continue
            kept = labels[row] & _PRINT
            if kept in (0, fingerprint(batch, low + at, width, rule)):
                flags[row] |= MARK
                out[made] = row
                made += 1
    return made


@kernel(INT(ROWS, INTS, INT, INTS, INTS, INTS, BOOLS))
def take_other(batch, offers, rule, numbers, labels, own, found):  # type: ignore[no-untyped-def]
    """Give rows another derivation that uses only rows before them; the first column of a line says which row.

    Of the offers only ranks matter.

    Before a row are those of smaller rank, and in the columns ``own``, which hold rows of its relation, those of the
    same rank with a smaller number; if there are no such columns, other ones may hold rows of its rank. Rows keep their
    rank, so that those behind them stay behind. Return how many found one.
    """
    made = 0
    for at in range(batch.shape[0]):
        line = batch[at, 0]
        if found[line]:
            continue
        row = numbers[line]
        rank = labels[row] >> 32
        above = (offers[at] >> 32) - rank
        if above > 1 or (above == 1 and own.size == 0):
            continue
        before = True
        if above == 1:
            for place in range(own.size):
                used = batch[at, own[place]]
                before &= used < row or labels[used] >> 32 < rank
        if before:
            found[line] = True
            labels[row] = (rank << 32) | fingerprint(batch, at, 1, rule)
            made += 1
    return made


@kernel(INT(ROWS, INTS, BOOLS, ROWS))
def left_over(batch, numbers, found, out):  # type: ignore[no-untyped-def]
    """Copy the lines of rows that found nothing, with the row's number in the first column; return how many."""
    made = 0
    for at in range(batch.shape[0]):
        line = batch[at, 0]
        if not found[line]:
            out[made, 0] = numbers[line]
            for column in range(1, batch.shape[1]):
                out[made, column] = batch[at, column]
            made += 1
    return made


@kernel(INT(ROWS, RELATION, ROWS))
def of_dead(batch, relation, out):  # type: ignore[no-untyped-def]
    """Copy the lines of rows that are dead, with the row's number in the first column; return how many."""
    flags = relation[1]
    made = 0
    for at in range(batch.shape[0]):
        if flags[batch[at, 0]] & NEW == 0:
            for column in range(batch.shape[1]):
                out[made, column] = batch[at, column]
            made += 1
    return made


@kernel(INT(ROWS, INTS, INT, RELATION, INTS, INTS))
def take_lowest(batch, offers, rule, relation, labels, out):  # type: ignore[no-untyped-def]
    """Give dead rows, whose numbers are in the first column, the smallest rank that is offered, if any is.

    Mark and collect the rows that got one; return how many.
    """
    flags = relation[1]
    made = 0
    for at in range(batch.shape[0]):
        row = batch[at, 0]
        if offers[at] == WORTHLESS or flags[row] & NEW != 0:
            continue
        if flags[row] & MARK == 0:
            flags[row] |= MARK
            out[made] = row
            made += 1
        elif offers[at] >> 32 >= labels[row] >> 32:
            continue
        labels[row] = (offers[at] & ~_PRINT) | fingerprint(batch, at, 1, rule)
    return made


@kernel(types.void(ROWS, INTS, INTS))
def highest_offers(batch, offers, best):  # type: ignore[no-untyped-def]
    """Keep for each row the largest offer."""
    for at in range(batch.shape[0]):
        line = batch[at, 0]
        best[line] = max(best[line], offers[at])


@kernel(INT(INTS))
def common_death(deaths):  # type: ignore[no-untyped-def]
    """Return the death that all have in common, NEVER if they differ or there are none."""
    first = deaths[0] if deaths.size else NEVER
    differ = np.int64(0)
    for at in range(deaths.size):
        differ |= deaths[at] ^ first
    return first if differ == 0 else NEVER


@kernel(INT(INTS, RELATION, INTS, INTS, INTS))
def find_mortals(numbers, relation, labels, out, deaths):  # type: ignore[no-untyped-def]
    """Put the rows alive that die some time into ``out``, each once, with their deaths; return how many."""
    flags = relation[1]
    made = 0
    for at in range(numbers.size):
        row = numbers[at]
        if flags[row] & (NEW | MARK) == NEW and labels[row] != FOREVER:
            flags[row] |= MARK
            out[made] = row
            deaths[made] = labels[row]
            made += 1
    for at in range(made):
        flags[out[at]] &= ~np.uint8(MARK)
    return made


@kernel(INT(INTS, INT, INTS, INTS))
def find_early(numbers, now, labels, out):  # type: ignore[no-untyped-def]
    """Put the rows whose time had not come into ``out``; return how many."""
    made = 0
    for at in range(numbers.size):
        out[made] = numbers[at]
        made += labels[numbers[at]] > now
    return made


@kernel(INT(INTS, INT, RELATION, INTS, INTS))
def retire_due(numbers, now, relation, labels, gone):  # type: ignore[no-untyped-def]
    """Let the rows die whose time has come; put those that were alive into ``gone``; return how many."""
    _rows, flags, _table, meta = relation
    made = 0
    for at in range(numbers.size):
        ahead = numbers[min(at + 32, numbers.size - 1)]
        prefetch(labels, ahead)
        prefetch(flags, ahead)
        row = numbers[at]
        if labels[row] <= now and flags[row] & NEW != 0:
            flags[row] &= ~np.uint8(NEW)
            gone[made] = row
            made += 1
    if made:
        meta[DEAD] = 1
    return made
