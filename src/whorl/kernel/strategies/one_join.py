"""A rule that is one join from where it is entered: what rows lead to there is derived in one call.

If it is the one rule of a recursion that reads it, and does so once, all rounds run in that call: so do closures, paths
and regions, where a round may bring a handful of rows and the way between kernels would cost more than they do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from whorl.kernel.arrays import growth
from whorl.kernel.arrays.rowset import NEW
from whorl.kernel.operators.joins import ProbeIndex
from whorl.kernel.state.relation import Ints
from whorl.kernel.strategies.stratum import Entry, Stratum

_LINES = 1024  # rows that are read at once
_ROOM, _SMALL = 2048, 32  # derivations that are entered at once: at the most, and with few rows; CHAIN or more
_PAUSE = 1 << 20  # derivations after which somebody may look at the clock


class OneJoin:
    """One rule, entered at one atom, with labels of some algebra."""

    def __init__(self, stratum: Stratum, entry: Entry, probe: ProbeIndex, algebra: int) -> None:
        self._stratum = stratum
        self._entry = entry
        self._probe = probe
        self._algebra = algebra
        self._source = stratum.relation(entry.relation)
        self._head = stratum.head(entry.rule)

    def follow(self, numbers: Ints, look: Callable[[], None]) -> list[Ints]:
        """Derive what rows lead to, and not what that leads to; return the rows that changed.

        Now and then ``look`` is called, which may give up.
        """
        return self._run([numbers], 0, look, linear=False)[0]

    def grow(self, parts: Sequence[Ints], rounds: int, look: Callable[[], None]) -> tuple[list[Ints], int]:
        """Derive all that rows lead to, after some rounds before; return the rows that changed, and the rounds then."""
        return self._run(parts, rounds, look, linear=True)

    def _run(
        self, parts: Sequence[Ints], rounds: int, look: Callable[[], None], *, linear: bool
    ) -> tuple[list[Ints], int]:
        head, many = self._head, sum(map(len, parts))
        queue, state = _queue(parts, many), self._begin(many, rounds)
        changed: list[Ints] = []
        ended, how = growth.PAUSE, self._how(linear=linear)
        room = min(_ROOM, 2 * many + _SMALL)
        buffers = self._buffers(room)
        try:
            while ended != growth.DONE:
                join, source = self._join(), (self._source.arrays, self._source.labels)  # the head may be any of them
                ended = growth.follow_rounds(queue, state, source, head.arrays, head.labels, join, how, *buffers)
                if ended == growth.WIDER:
                    self._enter_rest(queue, state, buffers[1], buffers[2])
                elif ended == growth.PAUSE:
                    state[growth.PAUSE_AT] += _PAUSE
                    look()
                elif ended == growth.ROOM:
                    if state[growth.END] + room > len(queue):
                        changed.append(_unnoted(queue, state))
                        queue = _move_on(queue, state, linear=linear)
                    if room < min(_ROOM, head.count):
                        room = min(_ROOM, 4 * room)
                        buffers = self._buffers(room)
                    head.reserve(room)
                elif ended == growth.LIMIT:
                    self._check_limits(state)
        finally:
            changed.append(_unnoted(queue, state))
            self._note(changed, state)
        return changed, int(state[growth.ROUNDS])

    def _check_limits(self, state: Ints) -> None:
        """Raise if the stratum has used more than it may; else let the round pass, for many rows may be dead."""
        sample = self._head.read(state[growth.FIRST : growth.FIRST + 1])
        self._stratum.check_limits(int(state[growth.ROUNDS]), self._entry.rule, sample)
        state[growth.PASSED] = state[growth.ROUNDS]

    def _note(self, changed: list[Ints], state: Ints) -> None:
        """Remember what changed, and what it took."""
        for numbers in changed:
            self._head.note_changes(numbers)
        self._head.note_raised(int(state[growth.RAISED]))
        work = self._stratum.state.work
        work.probes += int(state[growth.PROBES])
        work.matches += int(state[growth.MATCHES])
        work.derivations += int(state[growth.MATCHES])

    def _begin(self, many: int, rounds: int) -> Ints:
        state = np.zeros(growth.PLACES, np.int64)
        limits = self._stratum.limits
        state[growth.END], state[growth.NOTED], state[growth.ROUNDS] = many, many, rounds
        state[growth.RAISED] = self._head.raised
        state[growth.MOST_ROUNDS], state[growth.MOST_ROWS] = limits.rounds, limits.tuples
        state[growth.PAUSE_AT] = _PAUSE
        return state

    def _buffers(self, room: int) -> tuple[Ints, Ints, Ints]:
        """Return room for rows read, for derivations, and for what they offer."""
        wide = self._source.width + (self._algebra != growth.PLAIN)
        derived = np.empty((room, self._head.width), np.int64)
        return np.empty((min(_LINES, room), wide), np.int64), derived, np.empty(room, np.int64)

    def _join(self) -> tuple[object, ...]:
        probe = self._probe
        wants = probe.wants[: self._head.width]  # the others are the rows used, which the kernel knows
        return probe.keys, probe.index.arrays(), probe.relation.arrays, wants, probe.relation.labels

    def _how(self, *, linear: bool) -> Ints:
        """Return the numbers that tell the kernel what to do."""
        leads = self._stratum.premises(self._entry.rule)[0] == self._entry.relation
        counts = (self._source.dying, self._probe.relation.dying, leads)
        return np.array([self._head.width, self._algebra, self._entry.rule, *counts, NEW, linear], np.int64)

    def _enter_rest(self, queue: Ints, state: Ints, derived: Ints, offers: Ints) -> None:
        """Enter the derivations that needed wider rows."""
        rest = slice(int(state[growth.ENTERED]), int(state[growth.MADE]))
        lines, labels = np.ascontiguousarray(derived[rest]), offers[rest]
        if self._algebra == growth.PLAIN:
            fresh = self._head.add(lines)
        else:
            fresh = self._head.adopt_rows(lines, labels, better=self._algebra == growth.DEATHS)
        end = int(state[growth.END])
        queue[end : end + len(fresh)] = fresh
        state[growth.END] = end + len(fresh)


def _unnoted(queue: Ints, state: Ints) -> Ints:
    """Return the rows in a queue that are still to be noted."""
    return queue[state[growth.NOTED] : state[growth.END]]


def _move_on(queue: Ints, state: Ints, *, linear: bool) -> Ints:
    """Return a new queue with the rows that are still to be read; all are noted."""
    low = int(state[growth.LOW])
    left = queue[low : state[growth.END if linear else growth.HIGH]]
    state[growth.LOW], state[growth.HIGH] = 0, state[growth.HIGH] - low
    state[growth.NOTED] = state[growth.END] = len(left)
    return _queue([left], len(left))


def _queue(parts: Sequence[Ints], many: int) -> Ints:
    """Return a queue with rows, ``many`` together, and room for more."""
    queue = np.empty(4 * many + 2 * _ROOM, np.int64)
    np.concatenate(parts, out=queue[:many])
    return queue
