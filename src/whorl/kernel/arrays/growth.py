"""Round after round of a linear rule in one call: read the rows that the last round brought, join, enter what follows.

The steps are the kernels of `rowset`, `index` and `labels`; only the loop around them is here. It ends early when it
needs room, and goes on from its state when there is some.
"""

from __future__ import annotations

import numpy as np
from numba import types

from whorl.kernel.arrays.facts import FOREVER
from whorl.kernel.arrays.index import INDEX, probe
from whorl.kernel.arrays.jit import INT, INTS, ROWS, kernel, part
from whorl.kernel.arrays.labels import fold_deaths, label_ranks, rank_above, stamp, take_deaths
from whorl.kernel.arrays.rowset import ADD, COUNT, MARK, NEW, RAISE, RELATION, TELL, enter_rows, read_rows

PLAIN, RANKS, DEATHS = 0, 1, 2  # what labels are
DONE, ROOM, WIDER, LIMIT, PAUSE = 0, 1, 2, 3, 4  # why a call ended
# Places in `state`: the first row of a round; where those still to be read stand in the queue, and where it ends; the
# line of a batch that is being joined, and how far; rounds, probes and matches; bounds on rounds, rows and matches; and
# from where on rows in the queue are still to be noted as changes, and the last round that may pass the bounds.
FIRST, LOW, HIGH, END, LINE, OFFSET, ENTERED, MADE, ROUNDS, PROBES, MATCHES = range(11)
MOST_ROUNDS, MOST_ROWS, PAUSE_AT, NOTED, PASSED = range(11, 16)
WIDTH, ALGEBRA, RULE, OWN, OTHER, NEED = range(6)  # places in `how`; OWN and OTHER are columns, -1 if there is none
JOIN = types.Tuple((INTS, INDEX, RELATION, INTS, INTS))  # type: ignore[no-untyped-call]


@part
def make_offers(how, found, made, head, labels, other, offers):  # type: ignore[no-untyped-def]
    """Put what each derivation offers as a label into ``offers``."""
    if how[ALGEBRA] == RANKS:
        rank_above(found, how[OWN], head, labels, offers)
        stamp(found, how[WIDTH], how[RULE], offers)
    elif how[ALGEBRA] == DEATHS:
        if how[OWN] >= 0:
            take_deaths(found, how[OWN], labels, offers)
            if how[OTHER] >= 0:
                fold_deaths(found, how[OTHER], other, offers)
        elif how[OTHER] >= 0:
            take_deaths(found, how[OTHER], other, offers)
        else:
            offers[:made] = FOREVER


@part
def keep_once(queue, state, flags):  # type: ignore[no-untyped-def]
    """Leave the rows that a round brought in the queue once each: they may have got several labels."""
    kept = noted = state[HIGH]
    for at in range(state[HIGH], state[END]):
        row = queue[at]
        if flags[row] & (NEW | MARK) == NEW:
            flags[row] |= MARK
            queue[kept] = row
            kept += 1
        if at < state[NOTED]:
            noted = kept
    for at in range(state[HIGH], kept):
        flags[queue[at]] &= ~np.uint8(MARK)
    if state[NOTED] > state[HIGH]:
        state[NOTED] = noted
    state[END] = kept


@kernel(INT(INTS, INTS, RELATION, INTS, JOIN, INTS, ROWS, ROWS, INTS))
def follow_rounds(queue, state, head, labels, join, how, batch, out, offers):  # type: ignore[no-untyped-def]
    """Derive what the rows in the queue lead to, round by round; rows that changed are appended to it.

    Return why the call ended. After WIDER, the lines of ``out`` from ENTERED to MADE are still to be entered.
    """
    keys, index, right, wants, other = join
    flags, table, meta = head[1], head[2], head[3]
    width = how[WIDTH]
    mode = ADD if how[ALGEBRA] == PLAIN else (TELL if how[ALGEBRA] == RANKS else RAISE)
    joining = np.empty(4, np.int64)
    entering = np.empty(1, np.int64)
    while True:
        if state[LOW] == state[HIGH]:  # a round is over
            reached = state[ROUNDS] > state[MOST_ROUNDS] or meta[COUNT] > state[MOST_ROWS]
            if reached and state[HIGH] > 0 and state[PASSED] < state[ROUNDS]:
                return LIMIT
            if how[ALGEBRA] == DEATHS:
                keep_once(queue, state, flags)
            state[HIGH] = state[END]
            if state[LOW] == state[HIGH]:
                return DONE
            state[FIRST] = queue[state[LOW]]
            state[ROUNDS] += 1
        many = min(batch.shape[0], state[HIGH] - state[LOW])
        rows = batch[:many]
        read_rows(head, queue[state[LOW] : state[LOW] + many], width, rows)
        joining[0], joining[1], joining[2], joining[3] = state[LINE], state[OFFSET], how[NEED], 0
        while joining[0] < many:
            needed = meta[COUNT] + out.shape[0]
            state[LINE], state[OFFSET] = joining[0], joining[1]
            if needed > flags.size or 10 * needed > 7 * table.size or state[END] + out.shape[0] > queue.size:
                return ROOM
            if state[MATCHES] >= state[PAUSE_AT]:
                return PAUSE
            made = probe(rows, keys, index, right, wants, out, joining)
            state[MATCHES] += made
            found = out[:made]
            if mode == RAISE:
                make_offers(how, found, made, head, labels, other, offers)
            entering[0] = 0
            fresh = enter_rows(found, width, head, mode, offers, labels, queue[state[END] :], entering)
            if mode == TELL:  # most derivations change nothing, and need no label
                label_ranks(found, offers[:fresh], queue[state[END] :][:fresh], how[OWN], width, how[RULE], labels)
            state[END] += fresh
            if entering[0] < made:
                if mode == TELL:
                    make_offers(how, found, made, head, labels, other, offers)
                state[LINE], state[OFFSET] = joining[0], joining[1]
                state[ENTERED], state[MADE] = entering[0], made
                return WIDER
        state[LINE] = state[OFFSET] = 0
        state[PROBES] += many
        state[LOW] += many
