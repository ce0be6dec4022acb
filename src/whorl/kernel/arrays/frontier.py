"""Pareto frontiers: of each group the rows that no other beats in both value and time of death.

The rows of a group form a list, best value first; along it values get worse and deaths later. `first` holds the
first row of each group, `following` the next row of each row, -1 at the end. Values are given as keys, smaller is
better.
"""

from __future__ import annotations

import numpy as np
from numba import types

from whorl.kernel.arrays.jit import BOOLS, INT, INTS, kernel
from whorl.kernel.arrays.rowset import DEAD, NEW, RELATION

END = -1


@kernel(types.void(INTS, INTS, INTS, INTS, INTS, INTS, INTS, BOOLS))
def undominated(groups, keys, deaths, first, following, row_keys, labels, out):  # type: ignore[no-untyped-def]
    """Tell which candidates no row of their group dominates."""
    for at in range(groups.size):
        row = first[groups[at]]
        out[at] = True
        while row != END and row_keys[row] <= keys[at]:
            if labels[row] >= deaths[at]:
                out[at] = False
                break
            row = following[row]


@kernel(INT(INTS, INTS, INTS, INTS, INTS, INTS, INTS, RELATION, INTS, INTS, INTS))
def enter_frontier(  # type: ignore[no-untyped-def]
    numbers, groups, keys, deaths, first, following, row_keys, relation, labels, entered, dropped
):
    """Enter candidate rows that nothing dominates, and drop the rows that they dominate.

    Return the number entered, shifted by 32 bits, with the number dropped below it. A row that is there with an earlier
    death is entered again.
    """
    _rows, flags, _table, meta = relation
    new = 0
    gone = 0
    for at in range(numbers.size):
        row = numbers[at]
        group = groups[at]
        before = np.int64(END)
        current = first[group]
        dominated = False
        while current != END and row_keys[current] <= keys[at]:
            if labels[current] >= deaths[at]:
                dominated = True
                break
            if current == row:
                current = following[current]
                if before == END:
                    first[group] = current
                else:
                    following[before] = current
            else:
                before = current
                current = following[current]
        if dominated:
            continue
        while current != END and labels[current] <= deaths[at]:
            flags[current] &= ~np.uint8(NEW)
            dropped[gone] = current
            gone += 1
            current = following[current]
        following[row] = current
        if before == END:
            first[group] = row
        else:
            following[before] = row
        row_keys[row] = keys[at]
        labels[row] = deaths[at]
        flags[row] |= NEW
        entered[new] = row
        new += 1
    if gone:
        meta[DEAD] = 1
    return (new << 32) | gone


@kernel(types.void(INTS, INTS, INTS, INTS))
def unlink(numbers, groups, first, following):  # type: ignore[no-untyped-def]
    """Take rows out of the lists of their groups."""
    for at in range(numbers.size):
        row = numbers[at]
        before = np.int64(END)
        current = first[groups[at]]
        while current not in (END, row):
            before = current
            current = following[current]
        if current == END:
            continue
        if before == END:
            first[groups[at]] = following[row]
        else:
            following[before] = following[row]


@kernel(INT(INTS, INTS, INTS, INTS, INT))
def list_rows(groups, first, following, out, skip):  # type: ignore[no-untyped-def]
    """Put the rows of groups into ``out``, leaving out the first ``skip``; return how many there are in all."""
    made = 0
    for at in range(groups.size):
        row = first[groups[at]]
        while row != END:
            if skip <= made < skip + out.size:
                out[made - skip] = row
            made += 1
            row = following[row]
    return made
