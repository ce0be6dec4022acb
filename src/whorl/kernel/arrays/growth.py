"""A rule that joins two atoms, in one call: read rows of the one, join them with the other, enter what follows.

If the rule is linear, rows that a round brought are read in the next, round after round. The steps are those of
`rowset` and `index`. The loop around them is here, and what a derivation offers by the two rows that it uses. The loop
ends early when it needs room, and goes on from its state when there is some.
"""

from __future__ import annotations

import numpy as np
from numba import types

from whorl.kernel.arrays.facts import FOREVER
from whorl.kernel.arrays.index import INDEX, fill, match
from whorl.kernel.arrays.jit import INT, INTS, ROWS, inlined, kernel, part, prefetch, within
from whorl.kernel.arrays.labels import fingerprint_of_pair
from whorl.kernel.arrays.rowset import ADD, COUNT, MARK, MOST, NEW, RAISE, RELATION, TELL, enter_rows, read_rows

PLAIN, RANKS, DEATHS = 0, 1, 2  # what labels are
DONE, ROOM, WIDER, LIMIT, PAUSE = 0, 1, 2, 3, 4  # why a call ended
# Places in `state`: the first row of a round; where those still to be read stand in the queue, and where it ends; the
# line of a batch that is being joined, and how far; rounds, probes and matches; bounds on rounds, rows and matches;
# where the rows in the queue begin that are still to be noted as changes, and the last round that may pass the bounds;
# and how many labels of rows alive were raised since the round began.
FIRST, LOW, HIGH, END, LINE, OFFSET, ENTERED, MADE, ROUNDS, PROBES, MATCHES = range(11)
MOST_ROUNDS, MOST_ROWS, PAUSE_AT, NOTED, PASSED, RAISED = range(11, 17)
PLACES = 17
_SELDOM = 16  # one in so many rows of a round may be in the queue twice: to look for it takes longer than to follow it
# Places in `how`: the head's width, what labels are, the rule, whether the labels of the rows read and of the others
# count, whether those read come first in the rule, the flags that others must have, and whether there are rounds.
WIDTH, ALGEBRA, RULE, OWN, OTHER, LEADS, NEED, LINEAR = range(8)
read_within, enter_within = within(read_rows), within(enter_rows)
SOURCE = types.Tuple((RELATION, INTS))  # type: ignore[no-untyped-call]
JOIN = types.Tuple((INTS, INDEX, RELATION, INTS, INTS))  # type: ignore[no-untyped-call]


@part
def offer_deaths(how, own, lines, numbers, made, labels, other, offers):  # type: ignore[no-untyped-def]
    """Put when each derivation dies into ``offers``: with the first of the rows it uses."""
    if how[OTHER] == 0:
        for at in range(made):
            offers[at] = labels[own[lines[at]]] if how[OWN] != 0 else FOREVER
        return
    for at in range(made):
        prefetch(other, numbers[at])
    if how[OWN] == 0:
        for at in range(made):
            offers[at] = other[numbers[at]]
    else:
        for at in range(made):
            offers[at] = min(other[numbers[at]], labels[own[lines[at]]])


@inlined
def rank_of(how, own, number, labels):  # type: ignore[no-untyped-def]
    """Return the label that a derivation offers: a rank above that of the head's row, and a fingerprint."""
    first, second = (own, number) if how[LEADS] != 0 else (number, own)
    return (((labels[own] >> 32) + 1) << 32) | fingerprint_of_pair(first, second, how[RULE])


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


@kernel(INT(INTS, INTS, SOURCE, RELATION, INTS, JOIN, INTS, ROWS, ROWS, INTS))
def follow_rounds(queue, state, source, head, labels, join, how, batch, out, offers):  # type: ignore[no-untyped-def]
    """Derive what the rows in the queue lead to; rows of the head that changed are appended to it.

    If the rule is linear, rows are read from the head, and go on round by round. Return why the call ended. After
    WIDER, the lines of ``out`` from ENTERED to MADE are still to be entered.
    """
    left, own = source
    keys, index, right, wants, other = join
    flags, meta = head[1], head[3]
    width = how[WIDTH]
    number = batch.shape[1] - (how[ALGEBRA] != PLAIN)  # the column of a row's own number, after the others
    lines = np.empty(out.shape[0], np.int64)
    numbers = np.empty(out.shape[0], np.int64)
    mode = ADD if how[ALGEBRA] == PLAIN else (TELL if how[ALGEBRA] == RANKS else RAISE)
    joining = np.empty(4, np.int64)
    entering = np.zeros(2, np.int64)
    while True:
        if state[LOW] == state[HIGH]:  # a round is over
            if how[LINEAR] == 0 and state[HIGH] > 0:
                return DONE
            reached = state[ROUNDS] > state[MOST_ROUNDS] or meta[COUNT] > state[MOST_ROWS]
            if reached and state[HIGH] > 0 and state[PASSED] < state[ROUNDS]:
                return LIMIT
            if how[LINEAR] != 0 and state[RAISED] * _SELDOM > state[END] - state[HIGH]:
                keep_once(queue, state, flags)
            state[RAISED] = 0
            state[HIGH] = state[END]
            if state[LOW] == state[HIGH]:
                return DONE
            state[FIRST] = queue[state[LOW]]
            state[ROUNDS] += 1
        many = min(batch.shape[0], state[HIGH] - state[LOW])
        rows = batch[:many]
        read_within(left, queue[state[LOW] : state[LOW] + many], number, rows)
        if mode == TELL:  # ranks follow from those of the rows read, which are all over the place if they came back
            for at in range(many):
                prefetch(labels, rows[at, number])
        joining[0], joining[1], joining[2], joining[3] = state[LINE], state[OFFSET], how[NEED], 0
        while joining[0] < many:
            needed = meta[COUNT] + out.shape[0]
            state[LINE], state[OFFSET] = joining[0], joining[1]
            if needed > flags.size or needed > meta[MOST] or state[END] + out.shape[0] > queue.size:
                return ROOM
            if state[MATCHES] >= state[PAUSE_AT]:
                return PAUSE
            made = match(rows, keys, index, right, lines, numbers, joining)
            fill(rows, lines, numbers, made, right, wants, out)
            state[MATCHES] += made
            if mode == RAISE:
                offer_deaths(how, rows[:, number], lines, numbers, made, own, other, offers)
            entering[0] = entering[1] = 0
            fresh = enter_within(out[:made], width, head, mode, offers, labels, queue[state[END] :], entering)
            if mode == TELL:  # most derivations change nothing, and need no label
                for at in range(fresh):  # rows that come back are all over the place
                    prefetch(labels, queue[state[END] + at])
                for at in range(fresh):
                    row, line = queue[state[END] + at], offers[at]
                    labels[row] = rank_of(how, rows[lines[line], number], numbers[line], labels)
            state[END] += fresh
            state[RAISED] += entering[1]
            if entering[0] < made:
                if mode == TELL:
                    for line in range(entering[0], made):
                        offers[line] = rank_of(how, rows[lines[line], number], numbers[line], labels)
                state[LINE], state[OFFSET] = joining[0], joining[1]
                state[ENTERED], state[MADE] = entering[0], made
                return WIDER
        state[LINE] = state[OFFSET] = 0
        state[PROBES] += many
        state[LOW] += many
