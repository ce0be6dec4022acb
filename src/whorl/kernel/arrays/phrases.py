"""Ascending lists of numbers as bytes, where most lists are an earlier one and a number more.

Both sides keep a book of the lists that have passed: ``starts`` says where each begins in ``numbers``, and where the
last ends. A list is written as how far back in the book the earlier one is, and the number that it adds, plus one (0 if
it adds none); or as 0, its length, its first number and the gaps. Whoever writes finds earlier lists by a hash that
does not depend on order: ``slots`` holds the number of a list plus one, 0 if there is none.
"""

from __future__ import annotations

import numpy as np
from numba import types

from whorl.kernel.arrays.jit import BYTES, GOLDEN, INT, INT32S, INTS, inlined, kernel

LONGEST = 5  # bytes of one number, which is below 2^31
_NONE = -1


@inlined
def _put(number, out, at):  # type: ignore[no-untyped-def]
    """Write a number, seven bits in a byte, the lowest first, the highest bit while more follow; return the end."""
    while number >= 128:
        out[at] = (number & 127) | 128
        number >>= 7
        at += 1
    out[at] = number
    return at + 1


@inlined
def _get(content, at):  # type: ignore[no-untyped-def]
    """Return the number that begins at a byte, and where the next begins."""
    number = np.int64(0)
    shift = np.int64(0)
    while content[at] >= 128:
        number |= (np.int64(content[at]) & 127) << shift
        shift += 7
        at += 1
    return number | (np.int64(content[at]) << shift), at + 1


@inlined
def _mixed(number):  # type: ignore[no-untyped-def]
    state = (np.uint64(number) + np.uint64(1)) * GOLDEN
    state ^= state >> np.uint64(29)
    state *= GOLDEN
    return state ^ (state >> np.uint64(32))


@inlined
def _equal(lists, start, end, skipped, known, starts, numbers):  # type: ignore[no-untyped-def]
    """Whether a list of the book is another one, from which a place may be skipped."""
    at = starts[known]
    if starts[known + 1] - at != end - start - (1 if skipped >= 0 else 0):
        return False
    for place in range(start, end):
        if place != skipped:
            if lists[place] != numbers[at]:
                return False
            at += 1
    return True


@inlined
def _slot(key, lists, start, end, skipped, starts, numbers, slots):  # type: ignore[no-untyped-def]
    """Return the slot of a list, which is empty if the book does not have it."""
    mask = np.int64(slots.size - 1)
    at = np.int64(key >> np.uint64(1)) & mask
    while slots[at] != 0 and not _equal(lists, start, end, skipped, slots[at] - 1, starts, numbers):
        at = (at + 1) & mask
    return at


@kernel(INT(INTS, INT32S, INT, INTS, INT32S, INTS, BYTES))
def write_phrases(bounds, lists, known, starts, numbers, slots, out):  # type: ignore[no-untyped-def]
    """Write lists, and enter them into a book that has so many; return the end. There must be room."""
    at = np.int64(0)
    for line in range(bounds.size - 1):
        start, end = bounds[line], bounds[line + 1]
        key = np.uint64(0)
        for place in range(start, end):
            key += _mixed(lists[place])
        own = _slot(key, lists, start, end, np.int64(_NONE), starts, numbers, slots)
        best = slots[own] - 1
        added = np.int64(_NONE)
        if best < 0:
            for place in range(start, end):
                shorter = key - _mixed(lists[place])
                found = slots[_slot(shorter, lists, start, end, np.int64(place), starts, numbers, slots)] - 1
                if found > best:
                    best = found
                    added = np.int64(lists[place])
        if best >= 0:
            at = _put(known - best, out, at)
            at = _put(added + 1, out, at)
        else:
            at = _put(np.int64(0), out, at)
            at = _put(end - start, out, at)
            before = np.int64(_NONE)
            for place in range(start, end):
                at = _put(np.int64(lists[place]) - before - 1, out, at)
                before = np.int64(lists[place])
        to = starts[known]
        for place in range(start, end):
            numbers[to] = lists[place]
            to += 1
        starts[known + 1] = to
        known += 1
        slots[own] = known
    return at


@kernel(types.void(INT, INTS, INT32S, INTS))
def fill_slots(known, starts, numbers, slots):  # type: ignore[no-untyped-def]
    """Enter the lists of a book into empty slots."""
    for each in range(known):
        start, end = starts[each], starts[each + 1]
        key = np.uint64(0)
        for place in range(start, end):
            key += _mixed(numbers[place])
        slots[_slot(key, numbers, start, end, np.int64(_NONE), starts, numbers, slots)] = each + 1


@kernel(INT(BYTES, INT, INT, INT, INTS))
def measure_phrases(content, at, count, known, starts):  # type: ignore[no-untyped-def]
    """Set where the next lists of a book that has so many will begin; return the byte after them."""
    for each in range(known, known + count):
        back, at = _get(content, at)
        if back > 0:
            added, at = _get(content, at)
            size = starts[each - back + 1] - starts[each - back] + (1 if added > 0 else 0)
        else:
            size, at = _get(content, at)
            for _number in range(size):
                _gap, at = _get(content, at)
        starts[each + 1] = starts[each] + size
    return at


@kernel(types.void(BYTES, INT, INT, INT, INTS, INT32S))
def read_phrases(content, at, count, known, starts, numbers):  # type: ignore[no-untyped-def]
    """Fill in the lists that were measured."""
    for each in range(known, known + count):
        to = starts[each]
        back, at = _get(content, at)
        if back > 0:
            more, at = _get(content, at)
            added = more - 1
            for place in range(starts[each - back], starts[each - back + 1]):
                if added >= 0 and added < numbers[place]:
                    numbers[to] = added
                    added = np.int64(_NONE)
                    to += 1
                numbers[to] = numbers[place]
                to += 1
            if added >= 0:
                numbers[to] = added
        else:
            size, at = _get(content, at)
            before = np.int64(_NONE)
            for _number in range(size):
                gap, at = _get(content, at)
                before += gap + 1
                numbers[to] = before
                to += 1
