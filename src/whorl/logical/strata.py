"""Group rule plans into strata anew, after a rewrite has made new relations."""

from __future__ import annotations

from whorl.analysis.graph import components
from whorl.logical.plan import Fixpoint, LogicalPlan, RulePlan


def stratify_rules(rules: list[RulePlan], plan: LogicalPlan) -> tuple[Fixpoint, ...] | None:
    """Return the strata of ``rules``, or None if negation or aggregation would enter a recursion it was not in.

    Strata of the plan that are left as they were keep their stages and selections.
    """
    defining: dict[str, list[RulePlan]] = {}
    for rule in rules:
        defining.setdefault(rule.relation, []).append(rule)
    graph = {
        name: list(dict.fromkeys(read for rule in own for read, _ in rule.relations() if read in defining))
        for name, own in defining.items()
    }
    known = {frozenset(stratum.relations): stratum for stratum in plan.strata}
    strata: list[Fixpoint] = []
    for members in components(graph):
        kept = known.get(frozenset(members))
        own = tuple(rule for name in members for rule in defining[name])
        if kept is not None:
            strata.append(Fixpoint(kept.relations, own, kept.recursive, kept.stages, kept.selections))
            continue
        recursive = len(members) > 1 or members[0] in graph[members[0]]
        if recursive and _breaks(own, set(members), plan):
            return None
        strata.append(Fixpoint(members, own, recursive))
    return tuple(strata)


def _breaks(rules: tuple[RulePlan, ...], members: set[str], plan: LogicalPlan) -> bool:
    for rule in rules:
        if any(name in members and not positive for name, positive in rule.relations()):
            return True
        if rule.aggregating or rule.assignment:
            origin = rule.relation.split("^")[0]
            was = next((s for s in plan.strata if origin in s.relations), None)
            if was is None or not was.recursive:
                return True
    return False
