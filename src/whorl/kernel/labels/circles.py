"""To which rows the variables of a stratum lead, where that tells derivations that lead back to their own row.

See `whorl.physical.circles`: a fact used is a step to a row with some of its values. What is used of a premise is what
others were told of it, so that a row which was on the way lives as long as that does.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from whorl.kernel.labels.naming import Fact
from whorl.kernel.labels.variables import Key, Present, Used, Variables
from whorl.kernel.state.relation import Ints, StoredRelation
from whorl.physical.plan import Circles


class Steps:
    """The values of the rows to which variables lead, by place: first whether they are known, then those values.

    A variable is looked at once. If nothing is known then of what it stands for, it leads nowhere.
    """

    def __init__(
        self,
        circles: Circles,
        variables: Variables,
        relations: Mapping[str, StoredRelation],
        told: Mapping[int, Fact],
    ) -> None:
        self.rules = circles.rules
        self._columns = list(circles.columns)
        self._steps = circles.steps
        self._variables = variables
        self._relations = relations
        self._told = told
        self._looked_at = 0
        self._values = np.zeros((32, 1 + len(self._columns)), np.int64)
        self._gathered = 0
        self._names: defaultdict[Key, set[int]] = defaultdict(set)  # by values; only who asks pays

    @property
    def nbytes(self) -> int:
        """The memory that it takes."""
        return self._values.nbytes + _ENTRY * self._gathered

    def heads(self, rows: Ints) -> Ints:
        """Return the values that tell rows apart."""
        return np.ascontiguousarray(rows[:, self._columns])

    def values(self) -> Ints:
        """Return for each place whether its variable leads to rows of which something is known, and their values."""
        count = len(self._variables)
        if count > len(self._values):
            more = np.zeros((count, self._values.shape[1]), np.int64)
            self._values = np.concatenate((self._values, more))
        if count > self._looked_at:
            self._look_at(range(self._looked_at, count))
            self._looked_at = count
        return self._values

    def leading(self, head: Key) -> Used:
        """Return the names of the variables that lead to rows with some values."""
        values = self.values()[self._gathered : self._looked_at].tolist()
        for place, (known, *own) in enumerate(values, self._gathered):
            if known:
                self._names[tuple(own)].add(self._variables.names[place])
        self._gathered = self._looked_at
        return frozenset(self._names.get(head, ()))

    def _look_at(self, places: range) -> None:
        read: defaultdict[str, list[tuple[int, int]]] = defaultdict(list)  # places and the rows that they stand for
        for place in places:
            meaning = self._variables.meanings.get(self._variables.names[place])
            if isinstance(meaning, Present):
                read[meaning.relation].append((place, meaning.number))
            elif (fact := self._told.get(place)) is not None and fact.relation in self._steps:
                self._values[place] = 1, *(fact.row[column] for column in self._steps[fact.relation])
        for name, found in read.items():
            if name in self._steps:
                own, numbers = (np.array(column, np.int64) for column in zip(*found, strict=True))
                self._values[own, 0] = 1
                self._values[own, 1:] = self._relations[name].read(numbers)[:, list(self._steps[name])]


_ENTRY = 200  # bytes of a name that is gathered, about
