"""An index: the key columns of a relation to the numbers of the rows that hold them.

An index is the tuple (table, before, arena, meta, columns). An entry of `table` says how many rows hold a key, none if
it is free. A few are a chain: the entry has the last of them, and `before` leads from a row to the one before it, so a
row enters with a look at one place. More are a vector in `arena`, with room for a power of 2, and the entry has its
start; one that is full moves to the end of the arena with twice the room.

While a key is one column of small numbers, `meta` says direct, and the key itself is the place in the table; else its
hash tells where to look first. Rows that died stay; probing looks at their flags.
"""

from __future__ import annotations

import numpy as np
from numba import types

from whorl.kernel.arrays.jit import BYTES, GOLDEN, INT, INT32S, INTS, ROWS, inlined, kernel, part, prefetch, within
from whorl.kernel.arrays.rowset import NARROW, RELATION, cell, find_rows, mix, read_column

START, LENGTH = 0, 1  # places in an entry: the last row of a chain or where a vector starts, and how many rows it has
KEYS, USED, BITS, DIRECT = 0, 1, 2, 3  # places in `meta`: keys, arena taken, bits of the table, direct or not
ENTRIES = types.Array(types.int32, 2, "C")
INDEX = types.Tuple((ENTRIES, INT32S, INT32S, INTS, INTS))  # type: ignore[no-untyped-call]
ROW_NUMBER = -1  # in `wants`: the number of the row itself
BLOCK = 256
NOWHERE = -1
CHAIN = 16  # rows that are a chain, at the most; a power of 2
FOLLOWED = 1024  # rows of chains that are followed together, at the most
OWNER, ROW, LEFT, NEXT = range(4)  # of a chain: its line, the row reached, how many are left, where the next is put
AHEAD, NEAR = 48, 16  # how many rows ahead entries are asked for, and what they lead to
FAR = 32768  # more entries than this do not stay in the near caches

_SEED = np.uint64(0x13198A2E03707344)
find_within = within(find_rows)


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


@inlined
def one_of(table, place, arena):  # type: ignore[no-untyped-def]
    """Return a row that holds the key of an entry."""
    start = np.int64(table[place, START])
    return start if table[place, LENGTH] <= CHAIN else np.int64(arena[start])


@part
def find_places(rows, low, high, narrow, index, places):  # type: ignore[no-untyped-def]
    """Put where the search for the key of some rows starts in the table into ``places``, and ask for what is there.

    Return whether all of them are in the table, which places that are keys themselves may not be.
    """
    table, _before, _arena, meta, columns = index
    if meta[DIRECT] != 0:
        column = columns[0]
        word = column >> 1 if narrow else column
        right = 0 if column & 1 or not narrow else 32
        half = np.int64(0xFFFFFFFF) if narrow else np.int64(-1)
        least = most = np.int64(0)
        for line in range(low, high):
            place = (rows[line, word] >> right) & half
            least = min(least, place)
            most = max(most, place)
            places[line - low] = place
        inside = least >= 0 and most < table.shape[0]
        if inside:  # of places that are keys only the first few: the others are in turn while rows enter
            for at in range(min(AHEAD, high - low)):
                prefetch(table, places[at] * 2)
        return inside
    shift = np.uint64(64 - meta[BITS])
    for line in range(low, high):
        places[line - low] = np.int64(hash_stored(rows, line, columns, narrow) >> shift)
        prefetch(table, places[line - low] * 2)
    for at in range(high - low):
        if 0 < table[places[at], LENGTH] <= CHAIN:
            prefetch(rows, np.int64(table[places[at], START]) * rows.shape[1])
    return True


@part
def chain_rows(table, entries, before, line, end, places, begin):  # type: ignore[no-untyped-def]
    """Enter rows from ``line`` on into chains, by places that are keys, up to the first whose chain is full.

    Return how many keys are new, shifted by 32 bits, with the row reached below it.
    """
    new = np.int64(0)
    while line < end:
        prefetch(table, places[min(line + AHEAD, end - 1) - begin] * 2)
        entry = entries[places[line - begin], 0]
        length = entry >> 32
        if length >= CHAIN:
            break
        before[line] = np.int32(entry)
        entries[places[line - begin], 0] = ((length + 1) << 32) | line
        new += length == 0
        line += 1
    return (new << 32) | line


@kernel(INT(RELATION, INT, INT, INDEX))
def append_rows(relation, low, high, index):  # type: ignore[no-untyped-def]
    """Enter rows ``low`` to ``high``; return the first that found no room, ``high`` if all did."""
    rows, _flags, _table, relation_meta = relation
    table, before, arena, meta, columns = index
    entries = table.view(np.int64)  # both numbers of an entry, the length above
    narrow = relation_meta[NARROW] != 0
    size = table.shape[0]
    direct = meta[DIRECT] != 0
    keys = meta[KEYS]
    used = meta[USED]
    most = size if direct else 7 * size // 10
    places = np.empty(min(BLOCK, high - low), np.int64)
    line = end = begin = low
    inside = True
    while line < high:
        if line == end:
            begin = line
            end = min(high, line + BLOCK)
            inside = find_places(rows, line, end, narrow, index, places)
        place = places[line - begin]
        if direct and inside and table[place, LENGTH] < CHAIN:
            reached = chain_rows(table, entries, before, line, end, places, begin)
            keys += reached >> 32
            line = reached & 0xFFFFFFFF
            continue
        if direct:
            if place < 0 or place >= size:
                break
            if inside:  # there are vectors: ask for where later rows go in theirs
                prefetch(table, places[min(line + AHEAD, end - 1) - begin] * 2)
                ahead = places[min(line + NEAR, end - 1) - begin]
                if table[ahead, LENGTH] > CHAIN:
                    prefetch(arena, np.int64(table[ahead, START]) + np.int64(table[ahead, LENGTH]))
        else:
            while table[place, LENGTH] != 0 and not same_stored(
                rows, line, one_of(table, place, arena), columns, narrow
            ):
                place = (place + 1) & (size - 1)
        length = np.int64(table[place, LENGTH])
        if keys == most and length == 0:
            break
        if length < CHAIN:
            keys += length == 0
            before[line] = table[place, START]
            table[place, START] = line
        else:
            start = np.int64(table[place, START])
            if length & (length - 1) == 0:
                if used + 2 * length > arena.size:
                    break
                if length == CHAIN:
                    for at in range(CHAIN - 1, -1, -1):
                        arena[used + at] = start
                        start = np.int64(before[start])
                else:
                    for at in range(length):
                        arena[used + at] = arena[start + at]
                start = used
                table[place, START] = used
                used += 2 * length
            arena[start + length] = line
        table[place, LENGTH] = length + 1
        line += 1
    meta[KEYS] = keys
    meta[USED] = used
    return line


@kernel(types.void(RELATION, ENTRIES, INDEX))
def place_keys(relation, entries, index):  # type: ignore[no-untyped-def]
    """Enter the entries of another table into that of an index, which must be free and large enough."""
    rows, _flags, _table, relation_meta = relation
    table, _before, arena, meta, columns = index
    narrow = relation_meta[NARROW] != 0
    mask = table.shape[0] - 1
    shift = np.uint64(64 - meta[BITS])
    for at in range(entries.shape[0]):
        if entries[at, LENGTH] != 0:
            row = one_of(entries, at, arena)
            if meta[DIRECT] != 0:
                place = cell(rows, row, columns[0], narrow)
            else:
                place = np.int64(hash_stored(rows, row, columns, narrow) >> shift)
                while table[place, LENGTH] != 0:
                    place = (place + 1) & mask
            table[place, START] = entries[at, START]
            table[place, LENGTH] = entries[at, LENGTH]


@kernel(INT(RELATION, INDEX))
def largest_key(relation, index):  # type: ignore[no-untyped-def]
    """Return the largest key of an index by one column, -1 if one is negative."""
    rows, _flags, _table, relation_meta = relation
    table, _before, arena, _meta, columns = index
    narrow = relation_meta[NARROW] != 0
    largest = np.int64(0)
    for place in range(table.shape[0]):
        if table[place, LENGTH] != 0:
            key = cell(rows, one_of(table, place, arena), columns[0], narrow)
            if key < 0:
                return np.int64(-1)
            largest = max(largest, key)
    return largest


@inlined
def find_entries(left, low, high, keys, index, relation, found):  # type: ignore[no-untyped-def]
    """Put the place of each line's key in the table into ``found``; there is a free entry if no row holds it, or none.

    Keys of one column, the common case, have their own loops without calls. Places that are keys are not asked for:
    who goes through them does that.
    """
    table, _before, arena, meta, columns = index
    rows, _flags, _table, relation_meta = relation
    narrow = relation_meta[NARROW] != 0
    size = table.shape[0]
    shift = np.uint64(64 - meta[BITS])
    if meta[DIRECT] != 0:
        key = keys[0]
        for at in range(low, high):
            value = left[at, key]
            found[at - low] = value if 0 <= value < size else NOWHERE
        return
    if keys.size == 1:
        key = keys[0]
        word = columns[0] >> 1 if narrow else columns[0]
        right = 0 if columns[0] & 1 or not narrow else 32
        half = np.int64(0xFFFFFFFF) if narrow else np.int64(-1)
        for at in range(low, high):
            state = (_SEED ^ np.uint64(left[at, key])) * GOLDEN
            found[at - low] = np.int64(((state ^ (state >> np.uint64(32))) * GOLDEN) >> shift)
            prefetch(table, found[at - low] * 2)
        for at in range(low, high):
            place = found[at - low]
            value = left[at, key]
            while table[place, LENGTH] != 0 and (rows[one_of(table, place, arena), word] >> right) & half != value:
                place = (place + 1) & (size - 1)
            found[at - low] = place
        return
    for at in range(low, high):
        found[at - low] = np.int64(hash_line(left, at, keys) >> shift)
        prefetch(table, found[at - low] * 2)
    for at in range(low, high):
        place = found[at - low]
        while table[place, LENGTH] != 0 and not same_line(
            left, at, keys, rows, one_of(table, place, arena), columns, narrow
        ):
            place = (place + 1) & (size - 1)
        found[at - low] = place


@inlined
def fill(left, lines, numbers, made, relation, wants, out):  # type: ignore[no-untyped-def]
    """Write the output lines of matched pairs, column by column."""
    rows, _flags, _table, meta = relation
    if rows.shape[0] > FAR:
        for line in range(made):
            prefetch(rows, numbers[line] * rows.shape[1])
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
def follow_chains(walks, going, before, whose, rows):  # type: ignore[no-untyped-def]
    """Go back along chains, and put each row and whose it is into ``rows`` and ``whose``, from NEXT on.

    All are followed side by side, a row of each in turn, so that what is looked up for one does not wait for another.
    """
    while going != 0:
        for nth in range(going):
            prefetch(before, walks[ROW, nth])
        for nth in range(going):
            walks[ROW, nth] = before[walks[ROW, nth]]
        many = going
        going = 0
        for nth in range(many):
            owner, row, left, place = walks[OWNER, nth], walks[ROW, nth], walks[LEFT, nth] - 1, walks[NEXT, nth]
            whose[place] = owner
            rows[place] = row
            walks[OWNER, going] = owner
            walks[ROW, going] = row
            walks[LEFT, going] = left
            walks[NEXT, going] = place + 1
            going += left != 0


@part
def match(left, keys, index, relation, lines, numbers, state):  # type: ignore[no-untyped-def]
    """Put pairs of a line of ``left`` and the number of an indexed row with its key into ``lines`` and ``numbers``.

    `state` is as for `probe`. Return the number of pairs. The call never ends inside a chain: rows may enter before it
    is resumed, and the last of a chain comes first; vectors grow at their end.

    A loop that looks up far away does nothing else, so that it has many on their way at once; and what goes on is told
    apart without a branch, for it is a guess.
    """
    table, before, arena, _meta, _columns = index
    entries = table.view(np.int64)  # both numbers of an entry at one look, the length above
    flags = relation[1]
    line, offset, need = state[0], state[1], state[2]
    many = left.shape[0]
    room = lines.size
    block = min(BLOCK, many)
    found = np.empty(block, np.int64)
    starts = np.empty(block, np.int64)
    lengths = np.empty(block, np.int64)
    far = table.shape[0] > FAR
    walks = np.empty((4, block if far else 0), np.int64)
    space = min(room, FOLLOWED) if far else 0
    whose = np.empty(space + 1, np.int64)
    rows = np.empty(space + 1, np.int64)
    made = 0
    full = False
    while line < many and not full:
        low = line
        high = min(many, low + BLOCK)
        find_entries(left, low, high, keys, index, relation, found)
        if far:
            for at in range(high - low):
                prefetch(table, max(found[at], 0) * 2)
        for at in range(high - low):
            starts[at] = entries[max(found[at], 0), 0]
        for at in range(high - low):
            lengths[at] = (starts[at] >> 32) * (found[at] >= 0)
            starts[at] &= 0xFFFFFFFF
        while line < high and not full:
            length = going = total = np.int64(0)
            most = min(room - made, space) if far else -1
            while line < high:
                length = lengths[line - low]
                if length > CHAIN or total + length > most:
                    break
                whose[total] = walks[OWNER, going] = line
                rows[total] = walks[ROW, going] = starts[line - low]
                walks[LEFT, going] = length - 1
                walks[NEXT, going] = total + 1
                going += length > 1
                total += length
                line += 1
            follow_chains(walks, going, before, whose, rows)
            for nth in range(total):
                prefetch(flags, rows[nth])
            for nth in range(total):
                lines[made] = whose[nth]
                numbers[made] = rows[nth]
                made += flags[rows[nth]] & need != 0
            while line < high and not full and (not far or length > CHAIN or made + length > room):
                start, length = starts[line - low], lengths[line - low]
                if length > CHAIN:
                    while offset < length and made < room:
                        lines[made] = line
                        numbers[made] = arena[start + offset]
                        made += flags[numbers[made]] & need != 0
                        offset += 1
                    full = offset < length
                    offset *= full
                else:
                    full = made + length > room
                    row = start
                    for _nth in range(0 if full else length):
                        lines[made] = line
                        numbers[made] = row
                        made += flags[row] & need != 0
                        row = np.int64(before[row])
                line += not full
                length = np.int64(0)
    state[0] = line
    state[1] = offset
    state[3] += made
    return made


@kernel(INT(ROWS, INTS, INDEX, RELATION, INTS, ROWS, INTS))
def probe(left, keys, index, relation, wants, out, state):  # type: ignore[no-untyped-def]
    """Join lines of ``left`` with the indexed rows whose key equals their columns ``keys``.

    An output line takes, for each of ``wants``, column w of the left line (w >= 0), the row's number (-1) or the row's
    column -2 - w. `state` is (line, offset in its vector, mask of flags, matches) and lets the call resume when
    ``out`` is full; it must have room for CHAIN lines. Return the number of output lines.
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
    find_within(left, keys, relation, numbers)
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
    table, before, arena, _meta, _columns = index
    flags = relation[1]
    found = np.empty(BLOCK, np.int64)
    for low in range(0, left.shape[0], BLOCK):
        high = min(left.shape[0], low + BLOCK)
        find_entries(left, low, high, keys, index, relation, found)
        for at in range(high - low if table.shape[0] > FAR else 0):
            prefetch(table, max(found[at], 0) * 2)
        for line in range(low, high):
            place = max(found[line - low], 0)
            start = row = np.int64(table[place, START])
            length = np.int64(table[place, LENGTH]) * (found[line - low] >= 0)
            for at in range(length):
                if length > CHAIN:
                    row = np.int64(arena[start + at])
                elif at != 0:
                    row = np.int64(before[row])
                if flags[row] & need:
                    out[line] = 1
                    break
