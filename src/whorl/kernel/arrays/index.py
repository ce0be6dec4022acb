"""An index: the key columns of a relation to the numbers of the rows that hold them.

An index is the tuple (table, slots, arena, meta, columns). `slots` has a line for each key: the first row that holds
it, and the start and length of its vector of row numbers in `arena`. A vector of up to three stands in the slot itself,
and takes no room in the arena; a longer one has room there for a power of 2, and when that is full moves to the end of
the arena with twice the room. An entry of `table` is -1 or the number of a slot. While a key is one column of small
numbers, `meta` says direct, and the key itself is the place in the table; else places follow from the key's hash. Rows
that died stay in the vectors; probing looks at their flags.
"""

from __future__ import annotations

import numpy as np
from numba import types

from whorl.kernel.arrays.jit import BYTES, GOLDEN, INT, INT32S, INTS, ROWS, inlined, kernel, part, prefetch
from whorl.kernel.arrays.rowset import NARROW, RELATION, cell, find_rows, mix, read_column

REP, START, LENGTH = 0, 1, 3  # places in a slot
SLOTS, USED, BITS, DIRECT = 0, 1, 2, 3  # places in `meta`: slots taken, arena taken, bits of the table, direct or not
SLOT_LINES = types.Array(types.int32, 2, "C")
INDEX = types.Tuple((INT32S, SLOT_LINES, INT32S, INTS, INTS))  # type: ignore[no-untyped-call]
ROW_NUMBER = -1  # in `wants`: the number of the row itself
BLOCK = 256
EMPTY = -1
INLINE = 3  # rows that stand in the slot itself
FAR = 32768  # more keys than this do not stay in the near caches

_SEED = np.uint64(0x13198A2E03707344)


@inlined
def hash_stored(rows, line, columns, narrow):  # type: ignore[no-untyped-def]
    """Hash the key columns of a stored row."""
    state = _SEED
    for at in range(columns.size):
        state = mix(state, cell(rows, line, columns[at], narrow))
    return state * GOLDEN


@inlined
def hash_line(batch, line, keys):  # type: ignore[no-untyped-def]
    """Hash the key columns of a batch's line."""
    state = _SEED
    for at in range(keys.size):
        state = mix(state, batch[line, keys[at]])
    return state * GOLDEN


@inlined
def same_stored(rows, line, other, columns, narrow):  # type: ignore[no-untyped-def]
    """Whether two stored rows agree in the key columns."""
    for at in range(columns.size):
        column = columns[at]
        if cell(rows, line, column, narrow) != cell(rows, other, column, narrow):
            return False
    return True


@inlined
def same_line(batch, line, keys, rows, row, columns, narrow):  # type: ignore[no-untyped-def]
    """Whether a batch's line agrees with a stored row in the key columns."""
    for at in range(columns.size):
        if batch[line, keys[at]] != cell(rows, row, columns[at], narrow):
            return False
    return True


@part
def find_places(rows, low, high, narrow, index, places):  # type: ignore[no-untyped-def]
    """Put where the search for the key of some rows starts in the table into ``places``, and ask for what is there."""
    table, slots, _arena, meta, columns = index
    if meta[DIRECT] != 0:
        column = columns[0]
        word = column >> 1 if narrow else column
        right = 0 if column & 1 or not narrow else 32
        half = np.int64(0xFFFFFFFF) if narrow else np.int64(-1)
        beyond = False
        for line in range(low, high):
            place = (rows[line, word] >> right) & half
            beyond |= place < 0 or place >= table.size
            places[line - low] = place
        if beyond:
            return
    else:
        shift = np.uint64(64 - meta[BITS])
        for line in range(low, high):
            places[line - low] = np.int64(hash_stored(rows, line, columns, narrow) >> shift)
    for at in range(high - low):
        prefetch(table, places[at])
    for at in range(high - low):
        prefetch(slots, np.int64(max(table[places[at]], 0)) * 4)


@kernel(INT(RELATION, INT, INT, INDEX))
def append_rows(relation, low, high, index):  # type: ignore[no-untyped-def]
    """Enter rows ``low`` to ``high``; return the first that found no room, ``high`` if all did."""
    rows, _flags, _table, relation_meta = relation
    table, slots, arena, meta, columns = index
    narrow = relation_meta[NARROW] != 0
    mask = table.size - 1
    direct = meta[DIRECT] != 0
    taken = meta[SLOTS]
    used = meta[USED]
    most = slots.shape[0] if direct else min(slots.shape[0], 7 * table.size // 10)
    places = np.empty(min(BLOCK, high - low), np.int64)
    line = end = start = low
    while line < high:
        if line == end:
            start = line
            end = min(high, line + BLOCK)
            find_places(rows, line, end, narrow, index, places)
        place = places[line - start]
        if direct and (place < 0 or place >= table.size):
            break
        slot = np.int64(table[place])
        if not direct:
            while slot != EMPTY and not same_stored(rows, line, slots[slot, REP], columns, narrow):
                place = (place + 1) & mask
                slot = np.int64(table[place])
        fresh = slot == EMPTY
        if taken == most and fresh:
            break
        slot = taken if fresh else slot
        length = np.int64(slots[slot, LENGTH]) * (not fresh)
        if length < INLINE:  # the same for new keys and others, as no guess is right about which come
            table[place] = slot
            taken += fresh
            slots[slot, length] = line
            slots[slot, LENGTH] = length + 1
        else:
            first = np.int64(slots[slot, START])
            if length == INLINE or length & (length - 1) == 0:
                room = length + 1 if length == INLINE else 2 * length
                if used + room > arena.size:
                    break
                for at in range(length):
                    arena[used + at] = slots[slot, at] if length == INLINE else arena[first + at]
                first = used
                slots[slot, START] = used
                used += room
            arena[first + length] = line
            slots[slot, LENGTH] = length + 1
        line += 1
    meta[SLOTS] = taken
    meta[USED] = used
    return line


@kernel(types.void(RELATION, INDEX))
def place_keys(relation, index):  # type: ignore[no-untyped-def]
    """Enter the keys of all slots into the table, which must be free, each at the place it names."""
    rows, _flags, _table, relation_meta = relation
    table, slots, _arena, meta, columns = index
    narrow = relation_meta[NARROW] != 0
    for slot in range(meta[SLOTS]):
        table[cell(rows, slots[slot, REP], columns[0], narrow)] = slot


@kernel(INT(RELATION, INDEX))
def largest_key(relation, index):  # type: ignore[no-untyped-def]
    """Return the largest key of an index by one column, -1 if one is negative."""
    rows, _flags, _table, relation_meta = relation
    _table, slots, _arena, meta, columns = index
    narrow = relation_meta[NARROW] != 0
    largest = np.int64(0)
    for slot in range(meta[SLOTS]):
        key = cell(rows, slots[slot, REP], columns[0], narrow)
        if key < 0:
            return np.int64(-1)
        largest = max(largest, key)
    return largest


@kernel(types.void(RELATION, INDEX))
def rehash_keys(relation, index):  # type: ignore[no-untyped-def]
    """Enter the keys of all slots into the table, which must be free and large enough."""
    rows, _flags, _table, relation_meta = relation
    table, slots, _arena, meta, columns = index
    narrow = relation_meta[NARROW] != 0
    mask = table.size - 1
    shift = np.uint64(64 - meta[BITS])
    for slot in range(meta[SLOTS]):
        place = np.int64(hash_stored(rows, slots[slot, REP], columns, narrow) >> shift)
        while table[place] != EMPTY:
            place = (place + 1) & mask
        table[place] = slot


@inlined
def find_slots(left, low, high, keys, index, relation, found):  # type: ignore[no-untyped-def]
    """Put the slot of each line's key into ``found``, -1 if no row holds it.

    Keys of one column, the common case, have their own loops without calls.
    """
    table, slots, _arena, meta, columns = index
    rows, _flags, _table, relation_meta = relation
    narrow = relation_meta[NARROW] != 0
    mask = table.size - 1
    shift = np.uint64(64 - meta[BITS])
    if meta[DIRECT] != 0:
        key = keys[0]
        size = table.size
        if size > FAR:
            for at in range(low, high):
                value = left[at, key]
                if 0 <= value < size:
                    prefetch(table, value)
        for at in range(low, high):
            value = left[at, key]
            found[at - low] = np.int64(table[value]) if 0 <= value < size else EMPTY
        return
    if keys.size == 1:
        key = keys[0]
        word = columns[0] >> 1 if narrow else columns[0]
        right = 0 if columns[0] & 1 or not narrow else 32
        half = np.int64(0xFFFFFFFF) if narrow else np.int64(-1)
        for at in range(low, high):
            state = (_SEED ^ np.uint64(left[at, key])) * GOLDEN
            found[at - low] = np.int64(((state ^ (state >> np.uint64(32))) * GOLDEN) >> shift)
            prefetch(table, found[at - low])
        for at in range(low, high):
            place = found[at - low]
            value = left[at, key]
            slot = np.int64(table[place])
            while slot != EMPTY and (rows[slots[slot, REP], word] >> right) & half != value:
                place = (place + 1) & mask
                slot = np.int64(table[place])
            found[at - low] = slot
        return
    for at in range(low, high):
        found[at - low] = np.int64(hash_line(left, at, keys) >> shift)
        prefetch(table, found[at - low])
    for at in range(low, high):
        place = found[at - low]
        slot = np.int64(table[place])
        while slot != EMPTY and not same_line(left, at, keys, rows, slots[slot, REP], columns, narrow):
            place = (place + 1) & mask
            slot = np.int64(table[place])
        found[at - low] = slot


@inlined
def fill(left, lines, numbers, made, relation, wants, out):  # type: ignore[no-untyped-def]
    """Write the output lines of matched pairs, column by column."""
    rows, _flags, _table, meta = relation
    for at in range(wants.size):
        want = wants[at]
        if want >= 0:
            for line in range(made):
                out[line, at] = left[lines[line], want]
        elif want == ROW_NUMBER:
            for line in range(made):
                out[line, at] = numbers[line]
        else:
            read_column(rows, numbers, made, -2 - want, meta[NARROW] != 0, out, at)


@part
def match(left, keys, index, relation, lines, numbers, state):  # type: ignore[no-untyped-def]
    """Put pairs of a line of ``left`` and the number of an indexed row with its key into ``lines`` and ``numbers``.

    `state` is as for `probe`. Return the number of pairs.
    """
    _table, slots, arena, _meta, _columns = index
    flags = relation[1]
    need = state[2]
    line = state[0]
    offset = state[1]
    many = left.shape[0]
    room = lines.size
    found = np.empty(BLOCK, np.int64)
    made = 0
    while line < many and made < room:
        low = line
        high = min(many, low + BLOCK)
        find_slots(left, low, high, keys, index, relation, found)
        if slots.shape[0] > FAR:
            for at in range(high - low):
                if found[at] != EMPTY:
                    prefetch(slots, found[at] * 4)
            for at in range(high - low):
                if found[at] != EMPTY and slots[found[at], LENGTH] > INLINE:
                    prefetch(arena, np.int64(slots[found[at], START]))
        while line < high:
            slot = found[line - low]
            if slot >= 0:
                start = np.int64(slots[slot, START])
                length = np.int64(slots[slot, LENGTH])
                while offset < length and made < room:
                    row = np.int64(slots[slot, offset] if length <= INLINE else arena[start + offset])
                    offset += 1
                    if flags[row] & need:
                        lines[made] = line
                        numbers[made] = row
                        made += 1
                if offset < length:
                    break
            offset = 0
            line += 1
    state[0] = line
    state[1] = offset
    state[3] += made
    return made


@kernel(INT(ROWS, INTS, INDEX, RELATION, INTS, ROWS, INTS))
def probe(left, keys, index, relation, wants, out, state):  # type: ignore[no-untyped-def]
    """Join lines of ``left`` with the indexed rows whose key equals their columns ``keys``.

    An output line takes, for each of ``wants``, column w of the left line (w >= 0), the row's number (-1) or the row's
    column -2 - w. `state` is (line, offset in its vector, mask of flags, matches) and lets the call resume when
    ``out`` is full. Return the number of output lines.
    """
    lines = np.empty(out.shape[0], np.int64)
    numbers = np.empty(out.shape[0], np.int64)
    made = match(left, keys, index, relation, lines, numbers, state)
    fill(left, lines, numbers, made, relation, wants, out)
    return made


@kernel(INT(ROWS, INTS, RELATION, INTS, ROWS, INT))
def probe_rows(left, keys, relation, wants, out, need):  # type: ignore[no-untyped-def]
    """Join each line of ``left`` with the one row that equals its columns ``keys``, if it is alive; as `probe`."""
    flags = relation[1]
    numbers = np.empty(left.shape[0], np.int64)
    find_rows(left, keys, relation, numbers)
    for line in range(left.shape[0]):
        prefetch(flags, max(numbers[line], 0))
    lines = np.empty(left.shape[0], np.int64)
    made = 0
    for line in range(left.shape[0]):
        row = numbers[line]
        if row >= 0 and flags[row] & need:
            lines[made] = line
            numbers[made] = row
            made += 1
    fill(left, lines, numbers, made, relation, wants, out)
    return made


@kernel(types.void(ROWS, INTS, INDEX, RELATION, INT, BYTES))
def test_keys(left, keys, index, relation, need, out):  # type: ignore[no-untyped-def]
    """Set ``out`` to 1 for the lines whose key some row holds that is alive by the mask ``need``."""
    _table, slots, arena, _meta, _columns = index
    flags = relation[1]
    found = np.empty(BLOCK, np.int64)
    for low in range(0, left.shape[0], BLOCK):
        high = min(left.shape[0], low + BLOCK)
        find_slots(left, low, high, keys, index, relation, found)
        for line in range(low, high):
            slot = found[line - low]
            if slot < 0:
                continue
            start = np.int64(slots[slot, START])
            length = np.int64(slots[slot, LENGTH])
            for at in range(length):
                if flags[slots[slot, at] if length <= INLINE else arena[start + at]] & need:
                    out[line] = 1
                    break
