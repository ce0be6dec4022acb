"""The state that a deployment has written, rebuilt from its files in other partitions than those that wrote it.

Two want this: a checkpoint that goes on with another number of partitions or another strategy, and questions about the
rows of views, which one partition with all of the state answers. The base facts come from the newest saved state that
is whole, wherever they were; what the log has after it is routed anew. No plan but the new one is needed.

>>> written = Written(layout, ("start", "0000000001-3fa9c1d2"), partitions=4, split=("link",))
>>> partition = rebuild(written, plan, limits)
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from whorl.diagnostics.errors import UserError
from whorl.hosts.exchanging import Direct, run_with_room
from whorl.hosts.moving import Facts, apart, gather_facts, place_facts, place_share
from whorl.hosts.routing import route_changes
from whorl.hosts.spark.layout import START, Layout
from whorl.hosts.spark.protocol import Origin
from whorl.hosts.spark.shares import read_share
from whorl.kernel.partition import Partition
from whorl.kernel.resume import load_base
from whorl.kernel.state.base import join_facts
from whorl.model.limits import Limits
from whorl.physical.plan import PhysicalPlan


@dataclass(frozen=True, slots=True)
class Written:
    """State in files: how it came about, in how many partitions, and which base relations were split among them."""

    layout: Layout
    history: Sequence[str]
    snapshots: Sequence[str] = ()
    origin: Origin | None = None
    partitions: int = 1
    split: Sequence[str] = ()


def split_names(plan: PhysicalPlan) -> list[str]:
    """Return the base relations that a plan splits among partitions."""
    names = [relation.name for relation in plan.logical.program.base_relations()]
    return [name for name in names if plan.split_column(name) is not None]


def exchanging(plan: PhysicalPlan, partitions: int) -> bool:
    """Whether partitions of a plan send each other rows, so that none has its state from its own input alone."""
    return partitions > 1 and plan.exchanges


def rebuild(written: Written, plan: PhysicalPlan, limits: Limits, number: int = 0, partitions: int = 1) -> Partition:
    """Return one of so many partitions of a plan, with the state that was written; all of it, if there is only one.

    Partitions that exchange rows are rebuilt all together, of which one is kept; it then starts anew with the others.
    """
    reasons: list[str] = []
    for at, token in reversed(list(enumerate(written.history))):
        try:
            started = _start(written, token, plan, limits, number, partitions)
        except UserError as error:
            reasons.append(error.detail.rstrip("."))
            continue
        if started is not None:
            advance(started, written, written.history[at + 1 :])
            return _one(started, number)
    reason = reasons[0] if reasons else "No state was saved"
    raise UserError("E822", None, partition=number, path=written.layout.folder, reason=reason)


def _one(partitions: Sequence[Partition], number: int) -> Partition:
    """Return one of partitions that were rebuilt, ready to meet others of its kind."""
    (found,) = [each for each in partitions if each.number == number]
    if len(partitions) > 1:
        found.start_anew()
    return found


def advance(partitions: Sequence[Partition], written: Written, tokens: Sequence[str]) -> None:
    """Apply what the log has of some epochs."""
    written.layout.have(*map(written.layout.entry, tokens))
    for token in tokens:
        time, batches = read_share(written.layout, token, *range(written.partitions))
        shares = route_changes(partitions[0].plan, (), batches, partitions[0].partitions)
        works = [partial(each.prepare, (), time, shares[each.number].batches, decode=False) for each in partitions]
        if len(partitions) == 1:
            works[0]()
        else:
            run_with_room(partitions, works, Direct())
        for each in partitions:
            each.keep()


def place_one(
    facts: Facts, plan: PhysicalPlan, limits: Limits, number: int, partitions: int, *, stepped: bool
) -> Partition:
    """Return one of the partitions that hold some facts."""
    return _one(_place(facts, plan, limits, number, partitions, stepped=stepped), number)


def _place(
    facts: Facts, plan: PhysicalPlan, limits: Limits, number: int, partitions: int, *, stepped: bool
) -> list[Partition]:
    if exchanging(plan, partitions):
        return place_facts(facts, plan, limits, partitions, stepped=stepped)
    return [place_share(facts, plan, limits, number, partitions, stepped=stepped)]


def _start(
    written: Written, token: str, plan: PhysicalPlan, limits: Limits, number: int, partitions: int
) -> list[Partition] | None:
    """Return a partition, or all that it exchanges rows with, as of a state that files have; None if they do not."""
    if written.origin is not None and token == written.origin.token:
        stepped, facts = read_facts(written.layout, written.origin)
    elif token == START:
        numbers = range(partitions) if exchanging(plan, partitions) else (number,)
        return [Partition(plan, limits, number=each, partitions=partitions) for each in numbers]
    elif token in written.snapshots:
        folders = written.layout.have(*(written.layout.state(token, each) for each in range(written.partitions)))
        old = [load_base(folder, plan, limits) for folder in folders]
        stepped, facts = old[0].stepped, gather_facts(old, written.split)
    else:
        return None
    return _place(facts, plan, limits, number, partitions, stepped=stepped)


def read_facts(layout: Layout, origin: Origin) -> tuple[bool, Facts]:
    """Return the facts that partitions of another plan wrote down, and whether there was an epoch before."""
    parts: list[Facts] = []
    stepped = False
    for path in layout.have(*(layout.facts(origin.token, number) for number in range(origin.partitions))):
        with path.open("rb") as file:
            stepped, facts = pickle.load(file)
            parts.append(facts)
    spread = {name: parts if name in origin.split else parts[:1] for name in parts[0]}
    return stepped, {name: join_facts([part[name] for part in own]) for name, own in spread.items()}


@dataclass(slots=True)
class Mirror:
    """All of a deployment's state in one partition of this process; it is brought up to date when it is asked for."""

    _found: tuple[PhysicalPlan, str, Partition] | None = field(default=None)

    def at(self, written: Written, plan: PhysicalPlan, limits: Limits) -> Partition:
        """Return the partition as of the end of a history."""
        known, self._found = self._found, None
        tokens = list(written.history)
        if known is not None and known[0] is plan and known[1] in tokens:
            partition = known[2]
            advance([partition], written, tokens[tokens.index(known[1]) + 1 :])
        else:
            partition = rebuild(written, apart(plan), limits)
        self._found = (plan, tokens[-1], partition)
        return partition
