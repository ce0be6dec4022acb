"""The best row of each frontier, as others see it: `min` and `max` in recursion under windows.

Cost: the groups whose frontier changed.
"""

from __future__ import annotations

import numpy as np

from whorl.kernel.state.relation import Ints, Moves
from whorl.kernel.strategies.stratum import Stratum

_NONE = -1


class Front:
    """Shows the first row of every list of a frontier."""

    def __init__(self, stratum: Stratum) -> None:
        self._stratum = stratum
        (self._name,) = stratum.plan.relations
        (cell,) = stratum.plan.cells
        (self._source,) = cell.sources
        self._column = cell.column
        self._numbering = 0
        self.reset()

    def reset(self) -> None:
        """Show everything anew at the next step."""
        self._fresh = True

    def renumbered(self, _name: str, _moved: Moves) -> None:
        """Show everything anew: groups have other numbers."""
        self.reset()

    def step(self) -> None:
        """Show the best row of the groups whose lists changed."""
        frontier = self._stratum.state.frontiers[self._source]
        if frontier.numbering != self._numbering:  # rows that it reads were swept, and lists built anew
            self._numbering = frontier.numbering
            self.reset()
        if not self._fresh and not self._stratum.changed():
            return
        relation = self._stratum.relation(self._name)
        groups = frontier.touched()
        if self._fresh:
            self._fresh = False
            self._shown = np.empty(0, np.int64)
            relation.retire(relation.alive())
            groups = np.arange(len(frontier.first))
        self._reserve(len(frontier.first))
        best = frontier.first[groups]
        held = best >= 0
        rows = frontier.relation.read(best[held])
        rows = np.insert(rows[:, :-1], self._column, rows[:, -1], axis=1)
        numbers = np.full(len(groups), _NONE, np.int64)
        numbers[held] = relation.number(np.ascontiguousarray(rows))
        before: Ints = self._shown[groups]
        other = numbers != before
        relation.retire(before[other])
        relation.revive(numbers[other & held])
        self._shown[groups] = numbers

    def _reserve(self, groups: int) -> None:
        if groups > len(self._shown):
            larger = np.full(groups, _NONE, np.int64)
            larger[: len(self._shown)] = self._shown
            self._shown = larger
