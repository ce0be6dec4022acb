"""Order relations into strata: what depends on what, and what must be complete before it is negated or aggregated.

Relations that depend on each other form one stratum. Inside it, negation needs stages (see `stages`), and an aggregate
needs to be monotone (see `monotone`) or staged; otherwise the program has no meaning we can give it, and is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from whorl.analysis.draft import Draft, Errors
from whorl.analysis.graph import components, shortest_path
from whorl.analysis.monotone import Refusal, check_monotone
from whorl.analysis.program import MONOTONE_SPELLINGS, Absent, Rule, Stages, Stratum
from whorl.analysis.signs import Signs, infer_signs
from whorl.analysis.stages import find_stages


def resolve_aggregates(draft: Draft, errors: Errors) -> Draft:
    """Tell which columns are aggregated, and check that the rules of a relation agree on it."""
    chosen: dict[str, tuple[dict[int, str], Rule]] = {}
    for rule in draft.rules:
        own = {i: MONOTONE_SPELLINGS.get(a.function, a.function) for i, a in rule.aggregates.items()}
        if not own:
            continue
        known, first = chosen.setdefault(rule.head.relation, (own, rule))
        if known != own:
            line = first.span.line if first.span else 0
            errors.add("E331", rule.head.span, name=rule.head.relation, line=line)
    relations = dict(draft.relations)
    for name, (aggregates, _rule) in chosen.items():
        relations[name] = replace(relations[name], aggregates=aggregates)
    return replace(draft, relations=relations)


def stratify(draft: Draft, errors: Errors) -> Draft:
    """Group the derived relations into strata in the order of their computation."""
    defining: dict[str, list[Rule]] = {name: [] for name, relation in draft.relations.items() if not relation.base}
    position = {id(rule): index for index, rule in enumerate(draft.rules)}
    for rule in draft.rules:
        defining[rule.head.relation].append(rule)
    graph = {
        name: list(dict.fromkeys(a.relation for r in rules for a, _ in r.atoms() if a.relation in defining))
        for name, rules in defining.items()
    }
    signs = infer_signs(draft) if any(relation.aggregates for relation in draft.relations.values()) else {}
    strata: list[Stratum] = []
    trending: dict[int, Mapping[str, int]] = {}
    for members in components(graph):
        recursive = len(members) > 1 or members[0] in graph[members[0]]
        rules = tuple(rule for name in members for rule in defining[name])
        stages = None
        if recursive:
            stages, found = _check_recursion(members, rules, graph, draft, signs, errors)
            trending |= {position[id(rule)]: trends for rule, trends in found}
        strata.append(Stratum(members, rules, recursive, stages))
    return replace(draft, strata=tuple(strata), trending=trending)


def _check_recursion(
    members: tuple[str, ...],
    rules: tuple[Rule, ...],
    graph: dict[str, list[str]],
    draft: Draft,
    signs: Signs,
    errors: Errors,
) -> tuple[Stages | None, list[tuple[Rule, dict[str, int]]]]:
    inside = set(members)
    negated = [
        (rule, literal)
        for rule in rules
        for literal in rule.body
        if isinstance(literal, Absent) and literal.atom.relation in inside
    ]
    aggregated = any(draft.relations[name].aggregates for name in members)
    if not negated and not aggregated:
        return None, []
    refusal: Refusal | None = None
    if not negated:
        verdict = check_monotone(members, rules, draft, signs)
        if not isinstance(verdict, Refusal):
            return None, verdict
        refusal = verdict
    stages = find_stages(members, rules, draft)
    if stages is not None:
        return stages, []
    if refusal is not None and not _has_errors(rules, errors):
        code = "E333" if refusal.declared else "E332"
        errors.add(code, refusal.span, name=refusal.relation, function=refusal.function, reason=refusal.reason)
    local = {name: [other for other in graph[name] if other in inside] for name in members}
    _report_cycles(negated, local, errors)
    return None, []


def _has_errors(rules: tuple[Rule, ...], errors: Errors) -> bool:
    """Whether rules have errors of their own, which must go before their aggregates can be judged."""
    places = [error.span.start for error in errors.found if error.span]
    return any(rule.span.start <= place < rule.span.stop for rule in rules if rule.span for place in places)


def _report_cycles(negated: list[tuple[Rule, Absent]], graph: dict[str, list[str]], errors: Errors) -> None:
    """Report every cycle through a negation, once."""
    seen: set[frozenset[str]] = set()
    for rule, literal in negated:
        head, body = rule.head.relation, literal.atom.relation
        cycle = [head, *shortest_path(graph, body, head)]
        if frozenset(cycle) in seen:
            continue
        seen.add(frozenset(cycle))
        other = body if body != head else "what is negated"
        errors.add("E301", literal.span, name=head, cycle=" -> ".join(cycle), other=other)
