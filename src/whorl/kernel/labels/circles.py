"""To which rows the variables of a stratum lead, where that tells derivations that lead back to their own row.

See `whorl.physical.circles`: a fact used is a step to a row with some of its values. What is used of a premise is what
others were told of it, so that a row which was on the way lives as long as that does.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from whorl.kernel.labels.naming import Fact
from whorl.kernel.labels.variables import Key, Present, Used, Variables
from whorl.kernel.state.relation import Ints, StoredRelation
from whorl.physical.plan import Circles


class Steps:
    """The values of the rows to which variables lead, by place: first whether they are known, then those values."""

    def __init__(
        self,
        circles: Circles,
        variables: Variables,
        relations: Mapping[str, StoredRelation],
        copies: Mapping[str, str],
        told: Mapping[int, Fact],
    ) -> None:
        self.rules = circles.rules
        self._columns = list(circles.columns)
        self._steps = circles.steps
        self._variables = variables
        self._relations = relations
        self._copies = copies
        self._told = told
        self._known = 0
        self._names: dict[Key, Used] = {}
        self._values = np.zeros((32, 1 + len(self._columns)), np.int64)

    def heads(self, rows: Ints) -> Ints:
        """Return the values that tell rows apart."""
        return np.ascontiguousarray(rows[:, self._columns])

    def values(self) -> Ints:
        """Return for each place whether its variable leads to rows of which something is known, and their values."""
        self._learn()
        return self._values

    def leading(self, head: Key) -> Used:
        """Return the names of the variables that lead to rows with some values."""
        self._learn()
        return self._names.get(head, frozenset())

    def _learn(self) -> None:
        """Find out about variables that are new."""
        count = len(self._variables)
        if count > len(self._values):
            more = np.zeros((count, self._values.shape[1]), np.int64)
            self._values = np.concatenate((self._values, more))
        for place in range(self._known, count):
            fact = self._fact(place)
            columns = self._steps.get(fact.relation) if fact is not None else None
            if fact is not None and columns is not None:
                values = tuple(fact.row[column] for column in columns)
                self._values[place] = 1, *values
                self._names[values] = self._names.get(values, frozenset()) | {self._variables.names[place]}
        self._known = count

    def _fact(self, place: int) -> Fact | None:
        meaning = self._variables.meanings.get(self._variables.names[place])
        if isinstance(meaning, Present):
            source = self._copies.get(meaning.relation, meaning.relation)
            return Fact(source, tuple(self._relations[meaning.relation].read(np.array([meaning.number]))[0].tolist()))
        return self._told.get(place)
