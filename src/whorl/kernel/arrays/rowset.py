"""A set of rows: rows one after the other, found through an open-addressing table.

A relation is the tuple (rows, flags, table, meta). `rows` holds a row a line. If all its values fit 32 bits (`meta`
says narrow), two columns share a word. An entry of `table` is a key and the number of a row, -1 if the entry is
free; the key is the row itself where it is one word, else its hash. Rows are never taken out: `flags` says whether a
row is alive (bits NEW and OLD), so that indexes need no deletion, and a row that comes back finds its old place.

Arrays are allocated outside and must have room for all candidates of a call. Each kernel works on blocks: hash and
prefetch, then look.
"""

from __future__ import annotations

import numpy as np
from numba import types

from whorl.kernel.arrays.jit import BYTES, GOLDEN, INT, INTS, ROWS, inlined, kernel, prefetch

NEW, OLD = 1, 2  # alive after this epoch, alive before it
COUNT, BITS, NARROW, DEAD = 0, 1, 2, 3  # places in `meta`: rows, bits of the table, narrow or not, dead rows or none
RELATION = types.Tuple((ROWS, BYTES, ROWS, INTS))  # type: ignore[no-untyped-call]
FIND, NUMBER, ADD = 0, 1, 2  # modes of `enter_rows`
BLOCK = 512

_SEED = np.uint64(0x243F6A8885A308D3)
_HALF = np.int64(0xFFFFFFFF)


@inlined
def mix(state, value):  # type: ignore[no-untyped-def]
    """Mix one more value into a hash."""
    state = (state ^ np.uint64(value)) * GOLDEN
    return state ^ (state >> np.uint64(32))


@inlined
def cell(rows, line, column, narrow):  # type: ignore[no-untyped-def]
    """Read one value of a stored row."""
    if narrow:
        word = rows[line, column >> 1]
        return word & _HALF if column & 1 else (word >> 32) & _HALF
    return rows[line, column]


@inlined
def word_of(batch, line, at, narrow):  # type: ignore[no-untyped-def]
    """Return one word of a batch's line as it is stored."""
    if not narrow:
        return batch[line, at]
    high = batch[line, 2 * at] << 32
    return high | batch[line, 2 * at + 1] if 2 * at + 1 < batch.shape[1] else high


@inlined
def hash_block(batch, low, high, rows, narrow, keys):  # type: ignore[no-untyped-def]
    """Put the table keys of some lines into ``keys``; tell whether all their values can be stored in this width.

    The common shapes have loops of their own: this runs for every candidate.
    """
    words = rows.shape[1]
    excess = np.int64(0)
    if words == 1 and narrow and batch.shape[1] == 2:
        for line in range(low, high):
            first, second = batch[line, 0], batch[line, 1]
            excess |= first | second
            keys[line - low] = (first << 32) | second
    elif words == 1:
        for line in range(low, high):
            excess |= batch[line, 0]
            keys[line - low] = batch[line, 0] << 32 if narrow else batch[line, 0]
    else:
        for line in range(low, high):
            state = _SEED
            for at in range(words):
                state = mix(state, word_of(batch, line, at, narrow))
            keys[line - low] = np.int64(state)
            for column in range(batch.shape[1]):
                excess |= batch[line, column]
    return not narrow or excess >> 32 == 0


@inlined
def stored_key(rows, line):  # type: ignore[no-untyped-def]
    """Return the table key of a stored row."""
    if rows.shape[1] == 1:
        return rows[line, 0]
    state = _SEED
    for at in range(rows.shape[1]):
        state = mix(state, rows[line, at])
    return np.int64(state)


@inlined
def place_of(key, shift):  # type: ignore[no-untyped-def]
    """Return where in the table the search for a key starts."""
    return np.int64((np.uint64(key) * GOLDEN) >> shift)


@inlined
def equal_row(batch, line, rows, row, narrow):  # type: ignore[no-untyped-def]
    """Whether a batch's line equals a stored row whose key it has."""
    words = rows.shape[1]
    if words == 1:
        return True
    for at in range(words):
        if rows[row, at] != word_of(batch, line, at, narrow):
            return False
    return True


@inlined
def fits(batch, line, narrow):  # type: ignore[no-untyped-def]
    """Whether a line can be stored in this width."""
    if narrow:
        for column in range(batch.shape[1]):
            if batch[line, column] >> 32 != 0:
                return False
    return True


@kernel(types.void(RELATION))
def rehash(relation):  # type: ignore[no-untyped-def]
    """Enter all rows into the table, which must be free and large enough."""
    rows, _flags, table, meta = relation
    flat = table.reshape(table.size)
    mask = table.shape[0] - 1
    shift = np.uint64(64 - meta[BITS])
    keys = np.empty(BLOCK, np.int64)
    places = np.empty(BLOCK, np.int64)
    for low in range(0, meta[COUNT], BLOCK):
        high = min(meta[COUNT], low + BLOCK)
        for line in range(low, high):
            key = stored_key(rows, line)
            keys[line - low] = key
            places[line - low] = place_of(key, shift)
            prefetch(flat, 2 * places[line - low])
        for line in range(low, high):
            place = places[line - low]
            while flat[2 * place + 1] >= 0:
                place = (place + 1) & mask
            flat[2 * place] = keys[line - low]
            flat[2 * place + 1] = line


@kernel(INT(ROWS, RELATION, INT, INTS, INTS))
def enter_rows(batch, relation, mode, out, state):  # type: ignore[no-untyped-def]
    """Look up the row of every line, and do with it what ``mode`` says.

    FIND puts its number into ``out``, -1 if there is none. NUMBER stores it if there is none, without making it alive,
    and puts its number there. ADD makes it alive and puts the numbers of those that were not one after the other.
    `state[0]` is the line to start at, and the line reached: fewer than all if a value needs wider rows. Return how
    many numbers ADD gave. The search is written out, since a call with arrays in it costs more than the search.
    """
    rows, flags, table, meta = relation
    flat = table.reshape(table.size)
    mask = table.shape[0] - 1
    shift = np.uint64(64 - meta[BITS])
    narrow = meta[NARROW] != 0
    dead = meta[DEAD] != 0
    words = rows.shape[1]
    count = meta[COUNT]
    keys = np.empty(BLOCK, np.int64)
    places = np.empty(BLOCK, np.int64)
    many = batch.shape[0]
    made = 0
    low = state[0]
    while low < many:
        high = min(many, low + BLOCK)
        storable = hash_block(batch, low, high, rows, narrow, keys)
        if mode != FIND and not storable:
            break
        for at in range(high - low):
            places[at] = place_of(keys[at], shift)
            prefetch(flat, 2 * places[at])
        for line in range(low, high):
            key = keys[line - low]
            place = places[line - low]
            if words == 1:
                while flat[2 * place + 1] >= 0 and flat[2 * place] != key:
                    place = (place + 1) & mask
            else:
                while flat[2 * place + 1] >= 0:
                    if flat[2 * place] == key and equal_row(batch, line, rows, flat[2 * place + 1], narrow):
                        break
                    place = (place + 1) & mask
            row = flat[2 * place + 1]
            if mode == FIND:
                out[line] = row if storable or fits(batch, line, narrow) else -1
                continue
            if row < 0:
                row = count
                flat[2 * place] = key
                flat[2 * place + 1] = row
                if words == 1:
                    rows[row, 0] = key
                else:
                    for at in range(words):
                        rows[row, at] = word_of(batch, line, at, narrow)
                flags[row] = 0
                count += 1
                if mode == ADD:
                    flags[row] = NEW
                    out[made] = row
                    made += 1
            elif mode == ADD and dead and flags[row] & NEW == 0:
                flags[row] |= NEW
                out[made] = row
                made += 1
            if mode == NUMBER:
                out[line] = row
        low = high
    meta[COUNT] = count
    state[0] = min(low, many)
    return made


@inlined
def read_column(rows, numbers, many, column, narrow, out, at):  # type: ignore[no-untyped-def]
    """Copy one column of rows, given by number, into column ``at`` of ``out``."""
    if narrow:
        shift = 0 if column & 1 else 32
        word = column >> 1
        for line in range(many):
            out[line, at] = (rows[numbers[line], word] >> shift) & _HALF
    else:
        for line in range(many):
            out[line, at] = rows[numbers[line], column]


@kernel(types.void(RELATION, INTS, ROWS))
def read_rows(relation, numbers, out):  # type: ignore[no-untyped-def]
    """Copy rows, given by number, into the lines of ``out``."""
    rows, _flags, _table, meta = relation
    for column in range(out.shape[1]):
        read_column(rows, numbers, numbers.size, column, meta[NARROW] != 0, out, column)


@kernel(types.void(ROWS, ROWS, INT))
def widen_rows(rows, wide, count):  # type: ignore[no-untyped-def]
    """Copy narrow rows to wide ones."""
    for line in range(count):
        for column in range(wide.shape[1]):
            wide[line, column] = cell(rows, line, column, True)  # noqa: FBT003 - a kernel has no keywords


@kernel(INT(INTS, RELATION, INTS))
def revive(numbers, relation, fresh):  # type: ignore[no-untyped-def]
    """Set the NEW bit of rows; put those that did not have it into ``fresh``; return how many."""
    _rows, flags, _table, _meta = relation
    made = 0
    for at in range(numbers.size):
        row = numbers[at]
        if flags[row] & NEW == 0:
            flags[row] |= NEW
            fresh[made] = row
            made += 1
    return made


@kernel(INT(INTS, INTS, RELATION, INTS, INTS))
def adopt(numbers, offers, relation, labels, fresh):  # type: ignore[no-untyped-def]
    """Make rows alive with the label that is offered; put those that were not into ``fresh``; return how many."""
    _rows, flags, _table, _meta = relation
    made = 0
    for at in range(numbers.size):
        row = numbers[at]
        if flags[row] & NEW == 0:
            flags[row] |= NEW
            labels[row] = offers[at]
            fresh[made] = row
            made += 1
    return made


@kernel(INT(INTS, RELATION, INTS))
def retire(numbers, relation, gone):  # type: ignore[no-untyped-def]
    """Clear the NEW bit of rows; put those that had it into ``gone``; return how many. Numbers below 0 are skipped."""
    _rows, flags, _table, meta = relation
    made = 0
    for at in range(numbers.size):
        row = numbers[at]
        if row >= 0 and flags[row] & NEW != 0:
            flags[row] &= ~np.uint8(NEW)
            gone[made] = row
            made += 1
    if made:
        meta[DEAD] = 1
    return made


@kernel(INT(INTS, RELATION, INTS, INTS))
def settle(changed, relation, appeared, vanished):  # type: ignore[no-untyped-def]
    """Close an epoch: of the rows that changed, tell which appeared and which vanished, and let OLD equal NEW.

    Return the number appeared, shifted by 32 bits, with the number vanished below it.
    """
    _rows, flags, _table, meta = relation
    new = 0
    gone = 0
    for at in range(changed.size):
        row = changed[at]
        if flags[row] == NEW:
            appeared[new] = row
            new += 1
            flags[row] = NEW | OLD
        elif flags[row] == OLD:
            vanished[gone] = row
            gone += 1
            flags[row] = 0
    if gone:
        meta[DEAD] = 1
    return (new << 32) | gone
