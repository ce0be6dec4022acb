"""A set of rows: rows one after the other, found through an open-addressing table.

A relation is the tuple (rows, flags, table, meta). `rows` holds a row a line. If all its values fit 32 bits (`meta`
says narrow), two columns share a word. An entry of `table` is 0 if it is free, else the upper half of a row's hash and
the row's number plus one. Rows are never taken out: `flags` says whether a row is alive (bits NEW and OLD), so that
indexes need no deletion, and a row that comes back finds its old place. The bit MARK is for whoever collects rows, to
collect each once.

Arrays are allocated outside and must have room for all candidates of a call. Each kernel works on blocks: hash and
prefetch the entries, look at them and prefetch the rows, then compare.
"""

from __future__ import annotations

import numpy as np
from numba import types

from whorl.kernel.arrays.jit import BOOLS, BYTES, GOLDEN, INT, INT32S, INTS, ROWS, inlined, kernel, part, prefetch

NEW, OLD, MARK = 1, 2, 4  # alive after this epoch, alive before it, collected by someone
# Places in `meta`: rows, bits of the table, narrow or not, dead rows or none, rows that the table may hold.
COUNT, BITS, NARROW, DEAD, MOST = range(5)
RELATION = types.Tuple((ROWS, BYTES, INTS, INTS))  # type: ignore[no-untyped-call]
NUMBER, ADD, ADOPT, RAISE, LOWER, TELL = 1, 2, 3, 4, 5, 6  # modes of `enter_rows`
BLOCK = 512
TURNS = 4  # of all searches of a block, before each goes on alone

_SEED = np.uint64(0x243F6A8885A308D3)
_HALF = np.int64(0xFFFFFFFF)
_TAG = np.uint64(0xFFFFFFFF00000000)


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
def word_of(batch, line, width, at, narrow):  # type: ignore[no-untyped-def]
    """Return one word of a batch's line as it is stored."""
    if not narrow:
        return batch[line, at]
    high = batch[line, 2 * at] << 32
    return high | batch[line, 2 * at + 1] if 2 * at + 1 < width else high


@inlined
def hash_block(batch, low, high, width, words, narrow, hashes):  # type: ignore[no-untyped-def]
    """Put the hashes of some lines into ``hashes``; tell whether all their values can be stored in this width.

    The common shapes have loops of their own: this runs for every candidate.
    """
    excess = np.int64(0)
    if words == 1 and narrow and width == 2:
        for line in range(low, high):
            first, second = batch[line, 0], batch[line, 1]
            excess |= first | second
            hashes[line - low] = np.uint64((first << 32) | second) * GOLDEN
    elif words == 1:
        for line in range(low, high):
            excess |= batch[line, 0]
            hashes[line - low] = np.uint64(batch[line, 0] << 32 if narrow else batch[line, 0]) * GOLDEN
    else:
        for line in range(low, high):
            state = _SEED
            for at in range(words):
                state = mix(state, word_of(batch, line, width, at, narrow))
            hashes[line - low] = state * GOLDEN
            for column in range(width):
                excess |= batch[line, column]
    return not narrow or excess >> 32 == 0


@inlined
def hash_row(rows, line):  # type: ignore[no-untyped-def]
    """Return the hash of a stored row."""
    if rows.shape[1] == 1:
        return np.uint64(rows[line, 0]) * GOLDEN
    state = _SEED
    for at in range(rows.shape[1]):
        state = mix(state, rows[line, at])
    return state * GOLDEN


@inlined
def equal_row(batch, line, width, rows, row, narrow):  # type: ignore[no-untyped-def]
    """Whether a batch's line equals a stored row."""
    for at in range(rows.shape[1]):
        if rows[row, at] != word_of(batch, line, width, at, narrow):
            return False
    return True


@inlined
def fits(batch, line, width, narrow):  # type: ignore[no-untyped-def]
    """Whether a line can be stored in this width."""
    if narrow:
        for column in range(width):
            if batch[line, column] >> 32 != 0:
                return False
    return True


@kernel(types.void(RELATION))
def rehash(relation):  # type: ignore[no-untyped-def]
    """Enter all rows into the table, which must be free and large enough."""
    rows, _flags, table, meta = relation
    mask = table.size - 1
    shift = np.uint64(64 - meta[BITS])
    hashes = np.empty(BLOCK, np.uint64)
    for low in range(0, meta[COUNT], BLOCK):
        high = min(meta[COUNT], low + BLOCK)
        for line in range(low, high):
            hashes[line - low] = hash_row(rows, line)
            prefetch(table, np.int64(hashes[line - low] >> shift))
        for line in range(low, high):
            place = np.int64(hashes[line - low] >> shift)
            while table[place] != 0:
                place = (place + 1) & mask
            table[place] = np.int64(hashes[line - low] & _TAG) | (line + 1)


@kernel(INT(INTS, INT, INT, INTS))
def spread(table, old, bits, first):  # type: ignore[no-untyped-def]
    """Spread the entries of a table that was ``old`` long and has grown at its end; tell whether that went well.

    An entry's place is the upper bits of its hash, so entries move towards the end, from the last one on, never behind
    one that has still to move. The ``first`` ones, which may stand far from where they belong, wait until the end.
    """
    mask = table.size - 1
    shift = np.uint64(64 - bits)
    for at in range(first.size):
        first[at] = table[at]
        table[at] = 0
    for at in range(old - 1, first.size - 1, -1):
        entry = table[at]
        if entry != 0:
            place = np.int64(np.uint64(entry) >> shift)
            if place < at:
                return 0
            table[at] = 0
            while table[place] != 0:
                place = (place + 1) & mask
            table[place] = entry
    for at in range(first.size):
        entry = first[at]
        if entry != 0:
            place = np.int64(np.uint64(entry) >> shift)
            while table[place] != 0:
                place = (place + 1) & mask
            table[place] = entry
    return 1


@inlined
def search(batch, line, width, place, tag, relation, narrow, double):  # type: ignore[no-untyped-def]
    """Look from a place of the table on for the row that equals a line; return its number or -1, and the place."""
    rows, _flags, table, _meta = relation
    mask = table.size - 1
    entry = np.uint64(table[place])
    while entry != 0:
        if entry & _TAG == tag:
            row = np.int64(entry & ~_TAG) - 1
            if double:
                if rows[row, 0] == (batch[line, 0] << 32) | batch[line, 1]:
                    return row, place
            elif equal_row(batch, line, width, rows, row, narrow):
                return row, place
        place = (place + 1) & mask
        entry = np.uint64(table[place])
    return np.int64(-1), place


@part
def find_block(batch, low, high, width, relation, hashes, places, out):  # type: ignore[no-untyped-def]
    """Put the numbers of the rows that equal some lines into ``out``, from its start, -1 where there is none.

    A row is the first ``width`` columns of a line. The searches ended at ``places``. Return whether all values can be
    stored in this width.
    """
    rows, _flags, table, meta = relation
    mask = table.size - 1
    shift = np.uint64(64 - meta[BITS])
    narrow = meta[NARROW] != 0
    words = rows.shape[1]
    double = width == 2 and words == 1 and narrow
    storable = hash_block(batch, low, high, width, words, narrow, hashes)
    for at in range(high - low):
        places[at] = np.int64(hashes[at] >> shift)
        prefetch(table, places[at])
    waiting = np.empty(high - low, np.int64)  # lines whose search goes on, told apart without a branch: it is a guess
    going = 0
    for at in range(high - low):
        entry = np.uint64(table[places[at]])
        waiting[going] = at
        going += (entry != 0) & ((entry ^ hashes[at]) >> np.uint64(32) != 0)
    for _turn in range(TURNS):
        many = going
        going = 0
        for nth in range(many):
            at = waiting[nth]
            places[at] = (places[at] + 1) & mask
            entry = np.uint64(table[places[at]])
            waiting[going] = at
            going += (entry != 0) & ((entry ^ hashes[at]) >> np.uint64(32) != 0)
    for nth in range(going):
        at = waiting[nth]
        place = (places[at] + 1) & mask
        entry = np.uint64(table[place])
        while entry != 0 and (entry ^ hashes[at]) >> np.uint64(32) != 0:
            place = (place + 1) & mask
            entry = np.uint64(table[place])
        places[at] = place
    for at in range(high - low):
        entry = table[places[at]] & _HALF
        prefetch(rows, max(entry - 1, 0) * words)
    for line in range(low, high):
        at = line - low
        row, places[at] = search(batch, line, width, places[at], hashes[at] & _TAG, relation, narrow, double)
        out[at] = row if storable or fits(batch, line, width, narrow) else -1
    return storable


@kernel(types.void(ROWS, INTS, RELATION, INTS))
def find_rows(batch, keys, relation, out):  # type: ignore[no-untyped-def]
    """Put the numbers of the rows that equal the columns ``keys`` of each line into ``out``, -1 where there is none."""
    hashes = np.empty(BLOCK, np.uint64)
    places = np.empty(BLOCK, np.int64)
    block = np.empty((min(BLOCK, batch.shape[0]), keys.size), np.int64)
    for low in range(0, batch.shape[0], BLOCK):
        high = min(batch.shape[0], low + BLOCK)
        for column in range(keys.size):
            for line in range(low, high):
                block[line - low, column] = batch[line, keys[column]]
        find_block(block, 0, high - low, keys.size, relation, hashes, places, out[low:high])


@kernel(INT(ROWS, INT, RELATION, INT, INTS, INTS, INTS, INTS))
def enter_rows(batch, width, relation, mode, offers, labels, out, state):  # type: ignore[no-untyped-def]
    """Look up the row that the first ``width`` columns of every line are, and do with it what ``mode`` says.

    NUMBER stores it if there is none, without making it alive, and puts its number into ``out``. The others make it
    alive and put the numbers of rows that changed one after the other: ADD those that were not alive, ADOPT likewise
    with the line's offer as their label, RAISE also those whose label is below the offer. LOWER is ADOPT; but rows
    alive take an offer whose upper half is smaller than that of their label, which is no change. TELL is ADD, and puts
    the lines that changed rows one after the other into ``offers``, for labels that are dear. `state[0]` is the line to
    start at, and the line reached: fewer than all if a value needs wider rows; `state[1]` grows by the number of rows
    alive whose label RAISE raised. Return how many rows changed.
    """
    rows, flags, table, meta = relation
    narrow = meta[NARROW] != 0
    dead = meta[DEAD] != 0
    words = rows.shape[1]
    double = width == 2 and words == 1 and narrow
    count = meta[COUNT]
    hashes = np.empty(BLOCK, np.uint64)
    places = np.empty(BLOCK, np.int64)
    found = np.empty(BLOCK, np.int64)
    many = batch.shape[0]
    made = raised = 0
    low = state[0]
    while low < many:
        high = min(many, low + BLOCK)
        if not find_block(batch, low, high, width, relation, hashes, places, found):
            break
        for line in range(low, high):
            row = found[line - low]
            place = places[line - low]
            tag = hashes[line - low] & _TAG
            if row < 0 and table[place] != 0:  # an earlier line of the block came to this place
                row, place = search(batch, line, width, place, tag, relation, narrow, double)
            if row < 0:
                row = count
                table[place] = np.int64(tag) | (row + 1)
                if double:
                    rows[row, 0] = (batch[line, 0] << 32) | batch[line, 1]
                else:
                    for at in range(words):
                        rows[row, at] = word_of(batch, line, width, at, narrow)
                flags[row] = 0
                count += 1
                if mode != NUMBER:
                    flags[row] = NEW
                    out[made] = row
                    if mode == TELL:
                        offers[made] = line
                    elif mode != ADD:
                        labels[row] = offers[line]
                    made += 1
            elif mode != NUMBER and dead and flags[row] & NEW == 0:
                flags[row] |= NEW
                out[made] = row
                if mode == TELL:
                    offers[made] = line
                elif mode != ADD:
                    labels[row] = offers[line]
                made += 1
            elif mode == RAISE and offers[line] > labels[row]:
                labels[row] = offers[line]
                out[made] = row
                made += 1
                raised += 1
            elif mode == LOWER and offers[line] >> 32 < labels[row] >> 32:
                labels[row] = offers[line]
            if mode == NUMBER:
                out[line] = row
        low = high
    meta[COUNT] = count
    state[0] = min(low, many)
    state[1] += raised
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


@kernel(types.void(RELATION, INTS, INT, ROWS))
def read_rows(relation, numbers, width, out):  # type: ignore[no-untyped-def]
    """Copy rows, given by number, into the lines of ``out``; a column more takes their numbers."""
    rows, _flags, _table, meta = relation
    for column in range(width):
        read_column(rows, numbers, numbers.size, column, meta[NARROW] != 0, out, column)
    if out.shape[1] > width:
        for line in range(numbers.size):
            out[line, width] = numbers[line]


@kernel(types.void(ROWS, ROWS, INT))
def widen_rows(rows, wide, count):  # type: ignore[no-untyped-def]
    """Copy narrow rows to wide ones."""
    for line in range(count):
        for column in range(wide.shape[1]):
            wide[line, column] = cell(rows, line, column, True)  # noqa: FBT003 - a kernel has no keywords


@kernel(types.void(BOOLS, RELATION, INTS, INT32S))
def drop_rows(keep, relation, labels, moved):  # type: ignore[no-untyped-def]
    """Move the rows to keep down over the others; put the new number of each row into ``moved``, -1 if it is gone."""
    rows, flags, _table, meta = relation
    labelled = labels.size != 0
    kept = 0
    for row in range(keep.size):  # all are moved, and the next one overwrites those that are not to be kept
        for at in range(rows.shape[1]):
            rows[kept, at] = rows[row, at]
        flags[kept] = flags[row]
        if labelled:
            labels[kept] = labels[row]
        moved[row] = kept if keep[row] else -1
        kept += keep[row]
    if labelled:
        labels[kept : keep.size] = 0  # as whoever counts with them expects of a new row
    meta[COUNT] = kept


@kernel(INT(INTS, INT32S))
def renumber(numbers, moved):  # type: ignore[no-untyped-def]
    """Replace rows by their new numbers, without those that are gone; return how many are left."""
    left = 0
    for at in range(numbers.size):
        numbers[left] = moved[numbers[at]]
        left += numbers[left] >= 0
    return left


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


@kernel(INT(INTS, INTS, RELATION, INTS, INTS, INT))
def adopt(numbers, offers, relation, labels, changed, mode):  # type: ignore[no-untyped-def]
    """ADOPT or RAISE rows that are known by number; put those that changed into ``changed``; return how many."""
    _rows, flags, _table, _meta = relation
    made = 0
    for at in range(numbers.size):
        row = numbers[at]
        fresh = flags[row] & NEW == 0
        if fresh or (mode == RAISE and offers[at] > labels[row]):
            flags[row] |= NEW
            labels[row] = offers[at]
            changed[made] = row
            made += 1
    return made


@kernel(INT(INTS, RELATION, INTS))
def mark(numbers, relation, marked):  # type: ignore[no-untyped-def]
    """Set the MARK bit of rows; put each that did not have it into ``marked``, once; return how many."""
    _rows, flags, _table, _meta = relation
    made = 0
    for at in range(numbers.size):
        row = numbers[at]
        if row >= 0 and flags[row] & MARK == 0:
            flags[row] |= MARK
            marked[made] = row
            made += 1
    return made


@kernel(INT(INTS, RELATION, INTS))
def each_once(numbers, relation, out):  # type: ignore[no-untyped-def]
    """Put the rows alive into ``out``, each once; return how many."""
    flags = relation[1]
    made = 0
    for at in range(numbers.size):
        row = numbers[at]
        if flags[row] & (NEW | MARK) == NEW:
            flags[row] |= MARK
            out[made] = row
            made += 1
    for at in range(made):
        flags[out[at]] &= ~np.uint8(MARK)
    return made


@kernel(types.void(INTS, RELATION))
def unmark(numbers, relation):  # type: ignore[no-untyped-def]
    """Clear the MARK bit of rows."""
    _rows, flags, _table, _meta = relation
    for at in range(numbers.size):
        flags[numbers[at]] &= ~np.uint8(MARK)


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


@kernel(INT(INTS, BOOLS, RELATION, INTS))
def let_fall(numbers, saved, relation, gone):  # type: ignore[no-untyped-def]
    """Clear the MARK bit of rows, and the NEW bit of those not saved; put these into ``gone``; return how many."""
    _rows, flags, _table, meta = relation
    made = 0
    for at in range(numbers.size):
        row = numbers[at]
        bits = flags[row] & ~np.uint8(MARK)
        if not saved[at] and bits & NEW != 0:
            bits &= ~np.uint8(NEW)
            gone[made] = row
            made += 1
        flags[row] = bits
    if made:
        meta[DEAD] = 1
    return made


@kernel(types.void(INTS, RELATION, ROWS, INTS))
def sort_changes(changed, relation, out, counts):  # type: ignore[no-untyped-def]
    """Put the rows that changed into a line of ``out`` by their bits NEW and OLD, each once; count them in ``counts``.

    Line NEW takes those that appeared, OLD those that vanished, NEW | OLD those that were and are alive.
    """
    flags = relation[1]
    for at in range(changed.size):
        row = changed[at]
        bits = flags[row]
        if bits & MARK == 0:
            flags[row] |= MARK
            out[bits, counts[bits]] = row
            counts[bits] += 1
    for bits in range(counts.size):
        for at in range(counts[bits]):
            flags[out[bits, at]] = bits


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
