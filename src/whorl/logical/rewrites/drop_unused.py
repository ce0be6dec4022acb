"""Drop relations that no output depends on."""

from __future__ import annotations

from dataclasses import replace

from whorl.logical.plan import LogicalPlan


def drop_unused(plan: LogicalPlan) -> LogicalPlan:
    """Keep the strata that outputs need, directly or through others."""
    needed = {output.relation for output in plan.outputs}
    kept = []
    for stratum in reversed(plan.strata):
        if needed & set(stratum.relations):
            kept.append(stratum)
            needed |= {name for rule in stratum.rules for name, _positive in rule.relations()}
    return replace(plan, strata=tuple(reversed(kept)))
