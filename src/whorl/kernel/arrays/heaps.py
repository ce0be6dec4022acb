"""Heaps of rows: of each heap the row alive with the smallest key comes first.

They are pairing heaps. `top` holds the first row of each heap, `child` the first row below each, `following` the next
one below the same row. A row that dies stays where it is until it comes first; if it lives again before, it is in
its place. `child` is OUT for rows in no heap. If there is more than one of `places`, keys are looked up there, so that
they can get others in the same order while heaps stay as they are; else it is a zero.

Cost: one comparison for a row that enters; for one that is taken out, the logarithm of the heap's size on average.
"""

from __future__ import annotations

import numpy as np
from numba import types

from whorl.kernel.arrays.jit import BYTES, INT32S, INTS, inlined, kernel
from whorl.kernel.arrays.rowset import NEW

END, OUT = -1, -2
HEAPS = types.Tuple((INTS, INTS, INT32S, INT32S, INTS))  # type: ignore[no-untyped-call]


@inlined
def _key(row, keys, places):  # type: ignore[no-untyped-def]
    """Return what a row is compared by; without a branch, which would have arrays counted at every call."""
    mask = -np.int64(places.size > 1)
    return places[keys[row] & mask] | (keys[row] & ~mask)


@inlined
def _joined(one, other, keys, child, following, places):  # type: ignore[no-untyped-def]
    """Put the worse of two first rows below the better one; return this."""
    if _key(other, keys, places) < _key(one, keys, places):
        one, other = other, one
    following[other] = child[one]
    child[one] = other
    return one


@kernel(types.void(INTS, INTS, INTS, HEAPS))
def enter_heaps(numbers, which, row_keys, heaps):  # type: ignore[no-untyped-def]
    """Enter rows, each into one of the heaps; those that are in a heap stay there."""
    top, keys, child, following, places = heaps
    for at in range(numbers.size):
        row = numbers[at]
        if child[row] != OUT:
            continue
        keys[row] = row_keys[at]
        child[row] = following[row] = END
        first = top[which[at]]
        top[which[at]] = row if first == END else _joined(first, row, keys, child, following, places)


@inlined
def _rest(row, keys, child, following, places):  # type: ignore[no-untyped-def]
    """Take the first row out of a heap; return the next one: rows below it are joined in pairs, then the pairs."""
    current = np.int64(child[row])
    child[row] = OUT
    paired = np.int64(END)
    while current != END:
        second = np.int64(following[current])
        later = np.int64(END)
        if second != END:
            later = np.int64(following[second])
            current = _joined(current, second, keys, child, following, places)
        following[current] = paired
        paired = current
        current = later
    first = np.int64(END)
    while paired != END:
        later = np.int64(following[paired])
        following[paired] = END
        first = paired if first == END else _joined(first, paired, keys, child, following, places)
        paired = later
    return first


@kernel(types.void(INTS, BYTES, HEAPS, INTS))
def first_alive(which, flags, heaps, out):  # type: ignore[no-untyped-def]
    """Tell the first row alive of some heaps, END where there is none; dead rows before it are taken out."""
    top, keys, child, following, places = heaps
    for at in range(which.size):
        row = top[which[at]]
        while row != END and not flags[row] & NEW:
            row = _rest(row, keys, child, following, places)
        top[which[at]] = row
        out[at] = row
