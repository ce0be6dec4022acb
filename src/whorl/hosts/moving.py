"""Give the base facts of partitions to other partitions: for another plan of the program, or another number of them.

Facts move as plain values, since each partition numbers its strings for itself. The views are derived again, silently.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from whorl.hosts.routing import owners_of
from whorl.kernel.partition import Partition
from whorl.kernel.state.base import FactRows, join_facts
from whorl.model.batch import values_of
from whorl.model.limits import Limits
from whorl.physical.plan import PhysicalPlan

Facts = Mapping[str, FactRows]


def move_facts(partitions: Sequence[Partition], plan: PhysicalPlan, limits: Limits) -> list[Partition]:
    """Return as many partitions for another plan of the same program, with the same facts."""
    places = {name: partitions[0].plan.split_column(name) for name in partitions[0].base}
    if len(partitions) == 1 or all(plan.split_column(name) == place for name, place in places.items()):
        return [
            Partition(plan, limits, partition, number=partition.number, partitions=partition.partitions)
            for partition in partitions
        ]
    facts = gather_facts(partitions, [name for name, place in places.items() if place is not None])
    return place_facts(facts, plan, limits, len(partitions), stepped=any(each.stepped for each in partitions))


def gather_facts(partitions: Sequence[Partition], split: Collection[str]) -> Facts:
    """Return all base facts of a program: those of ``split`` relations from all partitions, others from the first."""
    return {
        name: join_facts([partition.fact_rows(name) for partition in (partitions if name in split else partitions[:1])])
        for name in partitions[0].base
    }


def place_facts(facts: Facts, plan: PhysicalPlan, limits: Limits, partitions: int, *, stepped: bool) -> list[Partition]:
    """Return new partitions that hold the facts where the plan places them, with their views."""
    made = [Partition(plan, limits, number=number, partitions=partitions) for number in range(partitions)]
    for name, own in facts.items():
        column = plan.split_column(name)
        owners = None if column is None else owners_of(values_of([row[column] for row in own.rows]), partitions)
        for partition in made:
            partition.take_facts(name, own if owners is None else own.take(owners == partition.number))
    for partition in made:
        if stepped:
            partition.derive()
    return made
