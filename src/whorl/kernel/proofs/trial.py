"""What would go, and what would come, if some facts were not there: tried on the state itself, and taken back.

The facts go, every stratum follows the change in its own way, and the difference is read. Then the facts come back, and
the strata follow again. So the answer is exact whatever rules there are, and costs what the two changes cost.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from whorl.kernel.partition import Partition
from whorl.kernel.proofs.derivations import Key
from whorl.kernel.state.relation import Ints

Changes = Mapping[str, tuple[Ints, Ints]]


def try_without(partition: Partition, facts: Sequence[Key], wanted: Iterable[str]) -> Changes:
    """Return for relations the numbers of the rows that would appear and vanish without some base facts."""
    numbers = {name: np.array([at for other, at in facts if other == name], np.int64) for name, _number in facts}
    relations = partition.state.relations
    try:
        for name, gone in numbers.items():
            relations[name].retire(gone)
        for strategy in partition.strategies:
            strategy.step()
        changes = {name: relations[name].pending() for name in wanted}
    except BaseException:
        partition.roll_back()
        raise
    for relation in relations.values():
        relation.settle()
    _bring_back(partition, numbers)
    return changes


def _bring_back(partition: Partition, numbers: Mapping[str, Ints]) -> None:
    try:
        for name, gone in numbers.items():
            partition.state.relations[name].revive(gone)
        for strategy in partition.strategies:
            strategy.step()
    except BaseException:  # with the facts back, whatever is derived anew is right
        for at, strategy in enumerate(partition.strategies):
            strategy.reset()
            partition.stale.add(at)
        raise
    finally:
        for relation in partition.state.relations.values():
            relation.clear_marks()
            relation.settle()
