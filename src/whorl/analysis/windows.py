"""Give every stream the window that its declaration or the queries over it ask for."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace

from whorl.analysis.draft import Draft, Errors
from whorl.model.schema import Window


def resolve_windows(draft: Draft, errors: Errors) -> Draft:
    """Carry the windows of queries down to the streams they depend on."""
    relations = dict(draft.relations)
    chosen: dict[str, Window] = {n: r.window for n, r in relations.items() if r.window is not None}
    reads: dict[str, set[str]] = defaultdict(set)
    for rule in draft.rules:
        reads[rule.head.relation].update(atom.relation for atom, _positive in rule.atoms())
    for query in draft.queries:
        if query.window is None:
            continue
        streams = sorted(name for name in _reachable(query.relation, reads) if relations[name].timed)
        if not streams:
            errors.add("E326", query.window_span, name=query.relation)
        for name in streams:
            if relations[name].ttl is not None:
                errors.add("E325", query.window_span, name=name)
                continue
            other = chosen.setdefault(name, query.window)
            if other != query.window:
                errors.add("E327", query.window_span, name=name, first=other, second=query.window)
    for name, window in chosen.items():
        relations[name] = replace(relations[name], window=window)
    return replace(draft, relations=relations)


def _reachable(start: str, reads: Mapping[str, set[str]]) -> set[str]:
    seen = {start}
    waiting = [start]
    while waiting:
        new = reads.get(waiting.pop(), set()) - seen
        seen |= new
        waiting.extend(new)
    return seen
