"""Conjunctions of variables, and lists of them by row: what lazy labels are made of.

Variables are places, small numbers. Conjunctions of a batch stand one after the other in ``places``, each ascending;
``bounds`` says where each begins, and where the last ends. A relation keeps the alternatives of its rows as lists:
``first`` holds the first alternative of each row, -1 if there is none, and ``entries`` for each alternative a line
(START, SIZE, NEXT, ROW). ``uses`` has a line (PLACE, BEFORE, ENTRY) for each variable of each alternative, where BEFORE
is the use of the same variable before it; ``heads`` holds the last use of each variable. A dead alternative has a
negative row.
"""

from __future__ import annotations

import numpy as np
from numba import types

from whorl.kernel.arrays.jit import INT, INT32S, INTS, ROWS, inlined, kernel

START, SIZE, NEXT, ROW = 0, 1, 2, 3
PLACE, BEFORE, ENTRY = 0, 1, 2
ENTRIES, USES, LIVE = 0, 1, 2  # in ``counts``: lines taken of both arrays, and uses by alternatives alive
TABLE = types.Array(types.int32, 2, "C")
_COMPARED = 16  # alternatives of a row with which an offer is compared at most: more of them only take room
END = -1


@kernel(INT(INTS, INTS, ROWS, INTS))
def measure(numbers, first, entries, bounds):  # type: ignore[no-untyped-def]
    """Set ``bounds`` for the first alternatives of rows that have one; return how many variables these have."""
    total = np.int64(0)
    bounds[0] = 0
    for line in range(numbers.size):
        total += entries[first[numbers[line]], SIZE]
        bounds[line + 1] = total
    return total


@kernel(types.void(INTS, INTS, ROWS, TABLE, INT32S))
def gather(numbers, first, entries, uses, places):  # type: ignore[no-untyped-def]
    """Copy the first alternatives of rows."""
    at = 0
    for line in range(numbers.size):
        entry = first[numbers[line]]
        start = entries[entry, START]
        for use in range(start, start + entries[entry, SIZE]):
            places[at] = uses[use, PLACE]
            at += 1


@kernel(INT(INTS, INT32S, INTS, INT32S, INTS, INT32S))
def unite(left_bounds, left, right_bounds, right, bounds, places):  # type: ignore[no-untyped-def]
    """Unite the conjunctions of two batches line by line; return how many variables the result has."""
    made = np.int64(0)
    bounds[0] = 0
    for line in range(bounds.size - 1):
        at, end = left_bounds[line], left_bounds[line + 1]
        other, stop = right_bounds[line], right_bounds[line + 1]
        while at < end or other < stop:
            if other == stop or (at < end and left[at] <= right[other]):
                if other < stop and left[at] == right[other]:
                    other += 1
                places[made] = left[at]
                at += 1
            else:
                places[made] = right[other]
                other += 1
            made += 1
        bounds[line + 1] = made
    return made


@kernel(types.void(INTS, INT32S))
def arrange(bounds, places):  # type: ignore[no-untyped-def]
    """Sort each conjunction, in place."""
    for line in range(bounds.size - 1):
        for at in range(bounds[line] + 1, bounds[line + 1]):
            place = places[at]
            to = at
            while to > bounds[line] and places[to - 1] > place:
                places[to] = places[to - 1]
                to -= 1
            places[to] = place


@kernel(INT(INTS, INT32S, ROWS, ROWS, INTS))
def avoid(bounds, places, heads, values, lines):  # type: ignore[no-untyped-def]
    """List the lines whose conjunction has no variable with the values of their head; return how many those are.

    ``values`` holds for each variable whether it has any, and those.
    """
    kept = 0
    for line in range(heads.shape[0]):
        met = False
        for at in range(bounds[line], bounds[line + 1]):
            place = places[at]
            same = values[place, 0] != 0
            for column in range(heads.shape[1]):
                same &= values[place, 1 + column] == heads[line, column]
            met |= same
        if not met:
            lines[kept] = line
            kept += 1
    return kept


@inlined
def _contains(places, start, end, entry, entries, uses):  # type: ignore[no-untyped-def]
    """Whether a conjunction has all variables of an alternative, and so adds nothing to it."""
    use = entries[entry, START]
    stop = use + entries[entry, SIZE]
    at = start
    while use < stop and at < end and stop - use <= end - at:
        if places[at] == uses[use, PLACE]:
            use += 1
        elif places[at] > uses[use, PLACE]:
            return False
        at += 1
    return use == stop


@kernel(INT(INTS, INTS, INT32S, INTS, ROWS, TABLE, INTS, INTS, INTS))
def offer(numbers, bounds, places, first, entries, uses, heads, counts, told):  # type: ignore[no-untyped-def]
    """Add conjunctions to the alternatives of rows, unless one of these is contained; list rows that had none.

    Return how many those are. There must be room for all.
    """
    new = 0
    for line in range(numbers.size):
        row = numbers[line]
        start, end = bounds[line], bounds[line + 1]
        head = first[row]
        entry = head
        absorbed = False
        compared = 0
        while entry != END and compared < _COMPARED and not absorbed:
            absorbed = _contains(places, start, end, entry, entries, uses)
            entry = entries[entry, NEXT]
            compared += 1
        if absorbed:
            continue
        entry = counts[ENTRIES]
        counts[ENTRIES] += 1
        entries[entry, START] = counts[USES]
        entries[entry, SIZE] = end - start
        entries[entry, ROW] = row
        if head == END:
            entries[entry, NEXT] = END
            first[row] = entry
            told[new] = row
            new += 1
        else:
            entries[entry, NEXT] = entries[head, NEXT]
            entries[head, NEXT] = entry
        use = counts[USES]
        for at in range(start, end):
            place = places[at]
            uses[use, PLACE] = place
            uses[use, BEFORE] = heads[place]
            uses[use, ENTRY] = entry
            heads[place] = use
            use += 1
        counts[USES] = use
        counts[LIVE] += end - start
    return new


@kernel(INT(INTS, TABLE, INTS))
def count_uses(lost, uses, heads):  # type: ignore[no-untyped-def]
    """Return how often variables are used."""
    found = np.int64(0)
    for at in range(lost.size):
        use = heads[lost[at]]
        while use != END:
            found += 1
            use = uses[use, BEFORE]
    return found


@kernel(INT(INTS, ROWS, TABLE, INTS, INTS, INTS))
def strike(lost, entries, uses, heads, counts, struck):  # type: ignore[no-untyped-def]
    """Let alternatives die that use one of some variables; list the rows of each, and return how many there are."""
    found = 0
    for at in range(lost.size):
        use = heads[lost[at]]
        heads[lost[at]] = END
        while use != END:
            entry = uses[use, ENTRY]
            row = entries[entry, ROW]
            if row >= 0:
                entries[entry, ROW] = -1 - row
                counts[LIVE] -= entries[entry, SIZE]
                struck[found] = row
                found += 1
            use = uses[use, BEFORE]
    return found


@inlined
def _shortest_first(row, first, entries):  # type: ignore[no-untyped-def]
    """Put the shortest alternative of a row in front; of several, the one that comes first."""
    before_best = np.int64(END)
    best = first[row]
    before, entry = best, entries[best, NEXT]
    while entry != END:
        if entries[entry, SIZE] < entries[best, SIZE]:
            before_best, best = before, entry
        before, entry = entry, entries[entry, NEXT]
    if before_best != END:
        entries[before_best, NEXT] = entries[best, NEXT]
        entries[best, NEXT] = first[row]
        first[row] = best


@kernel(INT(INTS, INTS, ROWS, INTS, INTS, INTS))
def lose(struck, first, entries, gone, released, found):  # type: ignore[no-untyped-def]
    """Take dead alternatives from the lists of rows; list rows without any, and rows whose first was dead.

    The latter have another one first now. ``found`` is set to how many there are of each; return how many rows changed.
    """
    changed = 0
    lost = 0
    other = 0
    for at in range(struck.size):
        row = struck[at]
        head = first[row]
        before = np.int64(END)
        entry = head
        touched = False
        while entry != END:
            following = entries[entry, NEXT]
            if entries[entry, ROW] < 0:
                touched = True
                if before == END:
                    first[row] = following
                else:
                    entries[before, NEXT] = following
            else:
                before = entry
            entry = following
        if not touched:
            continue
        changed += 1
        if first[row] == END:
            gone[lost] = row
            lost += 1
        elif first[row] != head:
            _shortest_first(row, first, entries)
            released[other] = row
            other += 1
    found[0] = lost
    found[1] = other
    return changed


@kernel(types.void(INTS, ROWS, TABLE, ROWS, TABLE, INTS, INTS))
def compact(first, entries, uses, new_entries, new_uses, heads, counts):  # type: ignore[no-untyped-def]
    """Copy the alternatives alive; ``heads`` and ``counts`` start from nothing."""
    for row in range(first.size):
        entry = first[row]
        before = np.int64(END)
        while entry != END:
            copy = counts[ENTRIES]
            counts[ENTRIES] += 1
            if before == END:
                first[row] = copy
            else:
                new_entries[before, NEXT] = copy
            before = copy
            start, size = entries[entry, START], entries[entry, SIZE]
            new_entries[copy, START] = counts[USES]
            new_entries[copy, SIZE] = size
            new_entries[copy, NEXT] = END
            new_entries[copy, ROW] = row
            for use in range(start, start + size):
                to = counts[USES]
                place = uses[use, PLACE]
                new_uses[to, PLACE] = place
                new_uses[to, BEFORE] = heads[place]
                new_uses[to, ENTRY] = copy
                heads[place] = to
                counts[USES] += 1
            entry = entries[entry, NEXT]
    counts[LIVE] = counts[USES]
