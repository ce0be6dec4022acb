"""Numbers as bytes, small ones in few: seven bits in a byte, the lowest first, the highest bit while more follow.

>>> out = np.empty(20, np.uint8)
>>> out[: write_lists(np.array([0, 2]), np.array([3, 300], np.int32), out, 0)].tolist()
[2, 3, 168, 2]
"""

from __future__ import annotations

import numpy as np

from whorl.kernel.arrays.jit import BYTES, INT, INT32S, INTS, inlined, kernel

LONGEST = 5  # bytes of one number, which is below 2^31


@inlined
def _write(number, out, at):  # type: ignore[no-untyped-def]
    while number >= 128:
        out[at] = (number & 127) | 128
        number >>= 7
        at += 1
    out[at] = number
    return at + 1


@inlined
def _read(content, at):  # type: ignore[no-untyped-def]
    """Return the number that begins at a byte, and where the next begins; reading past the end gives -1."""
    number = np.int64(0)
    shift = 0
    while at < content.size:
        byte = np.int64(content[at])
        number |= (byte & 127) << shift
        shift += 7
        at += 1
        if byte < 128:
            return number, at
    return np.int64(-1), at


@kernel(INT(INTS, INT32S, BYTES, INT))
def write_lists(bounds, numbers, out, at):  # type: ignore[no-untyped-def]
    """Write ascending lists from a byte on: the length of each, its first number, and the gaps; return the end."""
    for line in range(bounds.size - 1):
        start, end = bounds[line], bounds[line + 1]
        at = _write(end - start, out, at)
        before = np.int64(-1)
        for place in range(start, end):
            at = _write(np.int64(numbers[place]) - before - 1, out, at)
            before = np.int64(numbers[place])
    return at


@kernel(INT(BYTES, INT, INTS, INT32S))
def read_lists(content, at, bounds, numbers):  # type: ignore[no-untyped-def]
    """Read as many lists as there are bounds for; return the byte after them, -1 if there are too few."""
    made = np.int64(0)
    bounds[0] = 0
    for line in range(bounds.size - 1):
        size, at = _read(content, at)
        before = np.int64(-1)
        for _each in range(size):
            gap, at = _read(content, at)
            if gap < 0:
                return np.int64(-1)
            before += gap + 1
            numbers[made] = before
            made += 1
        bounds[line + 1] = made
    return at
