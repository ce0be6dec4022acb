"""Base facts by row number: who is present, since when, and if someone counts them, in which order they arrived.

Facts are the tuple (present, times, arrived), a place for each stored row.
"""

from __future__ import annotations

import numpy as np
from numba import types

from whorl.kernel.arrays.jit import BOOLS, GOLDEN, INT, INTS, ROWS, inlined, kernel
from whorl.kernel.arrays.rowset import DEAD, MARK, NEW, OLD, RELATION

FACTS = types.Tuple((BOOLS, INTS, INTS))  # type: ignore[no-untyped-call]
KEYS = types.Tuple((INTS, INTS, INTS))  # type: ignore[no-untyped-call]
FOREVER = np.iinfo(np.int64).max
NEVER = np.iinfo(np.int64).min  # the time of a fact that arrived before event time was known


@kernel(types.void(INTS, INTS, INT, INT, FACTS, RELATION, INTS, INTS, ROWS, INTS))
def arrive(numbers, times, arrivals, old, facts, relation, touched, known, before, counts):  # type: ignore[no-untyped-def]
    """Let facts arrive in their order, with times if there are any; a later time replaces an earlier one.

    ``arrivals`` is how many did before, -1 if nobody counts them. Put the rows into ``touched``, those from ``old`` on
    perhaps twice; of the others something was known: put them into ``known``, and what it was into ``before``. Set
    ``counts`` to how many rows were touched, how many of them were not present, and of how many something was known,
    and to the first and the last time.
    """
    present, since, arrived = facts
    flags = relation[1]
    made = 0
    fresh = 0
    noted = 0
    first = FOREVER
    last = NEVER
    for at in range(numbers.size):
        row = numbers[at]
        time = times[at] if times.size else NEVER
        first, last = min(first, time), max(last, time)
        if row >= old or flags[row] & MARK == 0:
            touched[made] = row
            made += 1
            if row < old:
                flags[row] |= MARK
                known[noted] = row
                before[noted, 0] = present[row]
                before[noted, 1] = since[row]
                before[noted, 2] = arrived[row]
                noted += 1
            if not present[row]:
                present[row] = True
                since[row] = NEVER
                fresh += 1
        if arrivals >= 0:
            arrived[row] = arrivals + 1 + at
        since[row] = max(since[row], time)
    for at in range(noted):
        flags[known[at]] &= ~np.uint8(MARK)
    counts[0], counts[1], counts[2], counts[3], counts[4] = made, fresh, noted, first, last


@kernel(types.void(INTS, KEYS, INTS, INT, INT, FACTS, RELATION, INTS, ROWS, INTS))
def replace(numbers, keys, times, arrivals, old, facts, relation, known, before, counts):  # type: ignore[no-untyped-def]
    """Let facts arrive in their order, each in the place of the one that holds its key; otherwise as `arrive`.

    ``keys`` are the key of each fact, the holder of each key, and where to put the rows that go, perhaps twice. Set
    ``counts`` to how many go, how many came that were not present, of how many something was known, and to the first
    and the last time.
    """
    slots, holders, gone = keys
    present, since, arrived = facts
    flags = relation[1]
    lost = 0
    fresh = 0
    noted = 0
    first = FOREVER
    last = NEVER
    for at in range(numbers.size):
        row = numbers[at]
        time = times[at] if times.size else NEVER
        first, last = min(first, time), max(last, time)
        other = holders[slots[at]]
        holders[slots[at]] = row
        for each in (other, row):
            if 0 <= each < old and flags[each] & MARK == 0:
                flags[each] |= MARK
                known[noted] = each
                before[noted, 0] = present[each]
                before[noted, 1] = since[each]
                before[noted, 2] = arrived[each]
                noted += 1
        if other >= 0 and other != row and present[other]:
            present[other] = False
            gone[lost] = other
            lost += 1
        if not present[row]:
            present[row] = True
            since[row] = NEVER
            fresh += 1
        if arrivals >= 0:
            arrived[row] = arrivals + 1 + at
        since[row] = max(since[row], time)
    for at in range(noted):
        flags[known[at]] &= ~np.uint8(MARK)
    counts[0], counts[1], counts[2], counts[3], counts[4] = lost, fresh, noted, first, last


@inlined
def death_of(time, size, slide, near):  # type: ignore[no-untyped-def]
    """Return when a fact dies: when its window of some size has passed, at the first slide after that.

    ``near`` is the death of another fact. Facts that come together mostly die together, and one need not divide then.
    """
    if time == NEVER:
        return FOREVER
    death = time + size
    if slide == 1:
        return death
    if near - slide < death <= near:
        return near
    rest = death % slide
    return death if rest == 0 else death - rest + slide


@kernel(types.void(INTS, INTS, INT, INT, INTS))
def find_deaths(numbers, since, size, slide, out):  # type: ignore[no-untyped-def]
    """Put when facts die into ``out``."""
    death = np.int64(0)
    for at in range(numbers.size):
        death = out[at] = death_of(since[numbers[at]], size, slide, death)


@kernel(INT(INTS, FACTS, INT, INT, RELATION, INTS, ROWS, INTS, INTS))
def show(numbers, facts, size, slide, relation, labels, out, before, counts):  # type: ignore[no-untyped-def]
    """Let rows, perhaps named twice, be alive if their facts are present; with a ``size``, until their window passed.

    Put rows that changed into a line of ``out`` by what they were and are, as `sort_changes` does: line NEW | OLD takes
    those whose label is another one, or that are back. Line 0 takes the rows whose label was written and had a
    meaning, in the order in which ``before`` keeps what it was. Return 1 if the label of a row that was alive got
    smaller, else 0.
    """
    present, since, _arrived = facts
    _rows, flags, _table, meta = relation
    lowered = 0
    death = np.int64(0)
    for at in range(numbers.size):
        row = numbers[at]
        bits = flags[row]
        if not present[row]:
            if bits & NEW != 0:
                flags[row] = bits & ~np.uint8(NEW)
                out[OLD, counts[OLD]] = row
                counts[OLD] += 1
            continue
        fresh = bits & NEW == 0
        flags[row] = bits | NEW
        if size != 0:
            death = death_of(since[row], size, slide, death)
            if bits == 0:
                labels[row] = death
            elif fresh or labels[row] != death:
                out[0, counts[0]] = row
                before[counts[0]] = labels[row]
                counts[0] += 1
                if bits & OLD != 0 and death < labels[row]:
                    lowered = 1
                if not fresh and bits & OLD != 0:
                    out[NEW | OLD, counts[NEW | OLD]] = row
                    counts[NEW | OLD] += 1
                labels[row] = death
        if fresh:
            line = NEW | (bits & OLD)
            out[line, counts[line]] = row
            counts[line] += 1
    if counts[OLD]:
        meta[DEAD] = 1
    return lowered


@kernel(INT(INTS, INT, INT, INT, FACTS, INTS))
def expire(numbers, now, size, slide, facts, gone):  # type: ignore[no-untyped-def]
    """Let facts go that are present and due, perhaps named twice; put them into ``gone``; return how many."""
    present, since, _arrived = facts
    last = now - now % slide - size  # of the times that do not reach into the window
    made = 0
    for at in range(numbers.size):
        row = numbers[at]
        if present[row] and NEVER != since[row] <= last:
            present[row] = False
            gone[made] = row
            made += 1
    return made


@kernel(INT(INTS, INTS, INTS, INTS, INTS))
def group_by_time(numbers, times, grouped, found, ends):  # type: ignore[no-untyped-def]
    """Put rows of one time next to each other into ``grouped``, the times into ``found``, their ends into ``ends``.

    Return how many times there are, -1 if there are more than ``found`` holds, which is a power of 2 long.
    """
    same = 1  # those at the start that die together are not told apart one by one
    while same < times.size and times[same] == times[0]:
        same += 1
    places = np.full(4 * found.size, -1, np.int64)
    mask = places.size - 1
    counts = np.zeros(found.size, np.int64)
    member = np.empty(times.size, np.int64)
    groups = 0
    for at in range(same - 1, times.size):
        time = times[at]
        place = np.int64((np.uint64(time) * GOLDEN) >> np.uint64(32)) & mask
        while places[place] >= 0 and found[places[place]] != time:
            place = (place + 1) & mask
        if places[place] < 0:
            if groups == found.size:
                return -1
            places[place] = groups
            found[groups] = time
            groups += 1
        member[at] = places[place]
        counts[member[at]] += 1
    counts[0] += same - 1
    start = 0
    for group in range(groups):
        ends[group] = start
        start += counts[group]
    grouped[: same - 1] = numbers[: same - 1]
    ends[0] = same - 1
    for at in range(same - 1, times.size):
        grouped[ends[member[at]]] = numbers[at]
        ends[member[at]] += 1
    return groups
