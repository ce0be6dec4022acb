"""Give the base facts of partitions to other partitions: for another plan of the program, or another number of them.

Facts move as plain values, since each partition numbers its strings for itself. The views are derived again, silently.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from whorl.hosts.exchanging import Direct, run_with_room
from whorl.hosts.routing import owners_of
from whorl.kernel.partition import Partition
from whorl.kernel.state.base import FactRows, join_facts
from whorl.model.batch import values_of
from whorl.model.limits import Limits
from whorl.physical.lower import lower_plan
from whorl.physical.plan import PhysicalPlan

Facts = Mapping[str, FactRows]


def move_facts(partitions: Sequence[Partition], plan: PhysicalPlan, limits: Limits) -> list[Partition]:
    """Return as many partitions for another plan of the same program, with the same facts."""
    places = {name: partitions[0].plan.split_column(name) for name in partitions[0].base}
    if len(partitions) == 1 or all(plan.split_column(name) == place for name, place in places.items()):
        made = [
            Partition(plan, limits, partition, number=partition.number, partitions=partition.partitions)
            for partition in partitions
        ]
        if plan.exchanges and any(partition.stepped for partition in made):
            derive_together(made)
        return made
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
    alone = stepped and not plan.exchanges
    made = [place_share(facts, plan, limits, number, partitions, stepped=alone) for number in range(partitions)]
    if stepped and not alone:
        derive_together(made)
    return made


def place_share(
    facts: Facts, plan: PhysicalPlan, limits: Limits, number: int, partitions: int, *, stepped: bool
) -> Partition:
    """Return one of the partitions that `place_facts` makes."""
    made = Partition(plan, limits, number=number, partitions=partitions)
    for name, own in facts.items():
        column = plan.split_column(name)
        if column is not None and partitions > 1:
            own = own.take(owners_of(values_of([row[column] for row in own.rows]), partitions) == number)  # noqa: PLW2901
        made.take_facts(name, own)
    if stepped:
        made.derive()
    return made


def derive_together(partitions: Sequence[Partition]) -> None:
    """Derive the views of partitions that exchange rows, silently."""
    if len(partitions) == 1:
        partitions[0].derive()
    else:
        run_with_room(partitions, [partition.derive for partition in partitions], Direct())


def apart(plan: PhysicalPlan) -> PhysicalPlan:
    """Return a plan of the same program whose rules are as they were written, for one partition."""
    return lower_plan(plan.logical) if plan.exchanges else plan


def gather(partitions: Sequence[Partition]) -> Sequence[Partition]:
    """Return partitions whose rows can be explained: where rows travel, one that derives all of them itself."""
    plan = partitions[0].plan
    if not plan.exchanges:
        return partitions
    split = [name for name in partitions[0].base if plan.split_column(name) is not None]
    facts = gather_facts(partitions, split)
    return place_facts(facts, apart(plan), partitions[0].limits, 1, stepped=partitions[0].stepped)
