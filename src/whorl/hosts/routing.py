"""Between a host and its partitions: changes out to whom they concern, results together again.

A change of a split relation goes to the partition that owns its value, a change of a copied one to all. Changes of one
relation keep their order. What every partition of a copied relation derives alike, partition 0 alone reports; so the
results only have to be put together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from operator import itemgetter

import numpy as np

from whorl.kernel.partition import StepResult
from whorl.kernel.state.owner import hash_integers, owner_of
from whorl.kernel.state.relation import Ints
from whorl.model.batch import Batch, Values, values_of
from whorl.model.delta import Change, Delta
from whorl.model.report import InputCounts, StratumCost, Work
from whorl.model.values import Row, Term, row_key
from whorl.physical.plan import PhysicalPlan


@dataclass(slots=True)
class Share:
    """The part of an epoch's changes that one partition gets."""

    changes: list[Change] = field(default_factory=list)
    batches: list[Batch] = field(default_factory=list)


def route_changes(
    plan: PhysicalPlan, changes: Sequence[Change], batches: Sequence[Batch], partitions: int
) -> list[Share]:
    """Return the share of each partition."""
    if partitions == 1:
        return [Share(list(changes), list(batches))]
    shares = [Share() for _ in range(partitions)]
    by_relation: dict[str, list[Change]] = {}
    for change in changes:
        by_relation.setdefault(change.relation, []).append(change)
    for name, own in by_relation.items():
        place = routing_place(plan, name)
        if place is None:
            for share in shares:
                share.changes.extend(own)
        else:
            owners = owners_of(values_of([change.row[place] for change in own]), partitions)
            for change, owner in zip(own, owners.tolist(), strict=True):
                shares[owner].changes.append(change)
    for batch in batches:
        _route_batch(plan, batch, shares)
    return shares


def _route_batch(plan: PhysicalPlan, batch: Batch, shares: Sequence[Share]) -> None:
    place = routing_place(plan, batch.relation)
    if place is None:
        for share in shares:
            share.batches.append(batch)
        return
    owners = owners_of(batch.columns[place], len(shares))
    for number, share in enumerate(shares):
        own = np.flatnonzero(owners == number)
        if len(own):
            share.batches.append(batch.take(own))


def routing_place(plan: PhysicalPlan, relation: str) -> int | None:
    """Return which attribute of an arriving row tells its partition, None if it goes to all."""
    column = plan.split_column(relation)
    if column is None:
        return None
    base = plan.relations[relation]
    return column + 1 if base.lifted and base.timed else column


def owners_of(values: Values, partitions: int) -> Ints:
    """Return the partitions that own the values of a column."""
    if values.distinct is not None:
        owners = np.fromiter((owner_of(value, partitions) for value in values.distinct), np.int64, len(values.distinct))
        return owners[values.data] if len(values) else np.empty(0, np.int64)
    floats = values.data.dtype == np.float64
    data = (values.data + 0.0).view(np.int64) if floats else values.data.astype(np.int64)
    return (hash_integers(data) % np.uint64(partitions)).astype(np.int64)


def merge_results(results: Sequence[StepResult], together: Callable[[Iterable[float]], float] = sum) -> StepResult:
    """Put the results of all partitions together.

    Counts and work add up; of the rounds, the partition with the most counts. Seconds add up where partitions run one
    after the other; a host that runs them side by side gives ``max`` for ``together``.
    """
    if len(results) == 1:
        return results[0]
    counts, work = InputCounts(), Work()
    for result in results:
        counts.add(result.input)
        work.add(result.work)
    work.rounds = max(result.work.rounds for result in results)
    seconds = {name: together(result.seconds[name] for result in results) for name in results[0].seconds}
    views = dict.fromkeys(view for result in results for view in result.deltas)
    deltas = {view: merge_deltas([r.deltas[view] for r in results if view in r.deltas]) for view in views}
    return StepResult(deltas, counts, work, seconds, _merge_costs(results, together))


def _merge_costs(
    results: Sequence[StepResult], together: Callable[[Iterable[float]], float]
) -> tuple[StratumCost, ...]:
    """Put what strata cost together; of how they were brought up to date, the first partition speaks for all."""
    return tuple(
        replace(same[0], actual=together(cost.actual for cost in same))
        for same in zip(*(result.strata for result in results), strict=True)
    )


def merge_deltas(deltas: Sequence[Delta]) -> Delta:
    """Put the parts of one view's delta together, sorted again."""
    if len(deltas) == 1:
        return deltas[0]
    return Delta(_merge_rows([delta.inserted for delta in deltas]), _merge_rows([delta.deleted for delta in deltas]))


def _merge_rows(parts: Sequence[tuple[Row, ...]]) -> tuple[Row, ...]:
    """Return sorted rows as one sorted sequence; where columns are simple, Python's own order is ours, and fast."""
    rows = [row for part in parts for row in part]
    kinds = [set(map(type, map(itemgetter(column), rows))) for column in range(len(rows[0]) if rows else 0)]
    simple = all(len(kind) == 1 and not kind & {Term} for kind in kinds)
    return tuple(sorted(rows) if simple else sorted(rows, key=row_key))
