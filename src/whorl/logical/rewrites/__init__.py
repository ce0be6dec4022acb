"""The rewrites of the logical plan, in the order they run. Each keeps the answer, and can be left out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter

from whorl.logical.plan import LogicalPlan
from whorl.logical.rewrites.drop_unused import drop_unused
from whorl.logical.rewrites.fold_constants import fold_constants
from whorl.logical.rewrites.join_as_semijoin import join_as_semijoin
from whorl.logical.rewrites.magic_sets import magic_sets
from whorl.logical.rewrites.order_joins import order_joins
from whorl.logical.rewrites.prune_columns import prune_columns
from whorl.logical.rewrites.push_filters import push_filters
from whorl.logical.rewrites.select_in_recursion import select_in_recursion

Rewrite = Callable[[LogicalPlan], LogicalPlan]

REWRITES: tuple[Rewrite, ...] = (
    drop_unused,
    fold_constants,
    select_in_recursion,
    magic_sets,
    order_joins,
    push_filters,
    join_as_semijoin,
    prune_columns,
)
NAMES = tuple(rewrite.__name__ for rewrite in REWRITES)


@dataclass(frozen=True, slots=True)
class RewriteTime:
    """How long a rewrite took, and whether it changed the plan."""

    name: str
    seconds: float
    changed: bool


def rewrite_plan(plan: LogicalPlan, without: Sequence[str] = (), times: list[RewriteTime] | None = None) -> LogicalPlan:
    """Apply every rewrite but those named in ``without``."""
    for rewrite in REWRITES:
        if rewrite.__name__ in without:
            continue
        started = perf_counter()
        new = rewrite(plan)
        if times is not None:
            times.append(RewriteTime(rewrite.__name__, perf_counter() - started, new != plan))
        plan = new
    return plan
