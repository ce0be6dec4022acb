"""Give every stream the window that its declaration or the queries over it ask for."""

from __future__ import annotations

from dataclasses import replace

from whorl.analysis.draft import Draft, Errors
from whorl.model.schema import Window


def resolve_windows(draft: Draft, errors: Errors) -> Draft:
    """Carry the windows of queries down to the streams they depend on."""
    relations = dict(draft.relations)
    chosen: dict[str, Window] = {n: r.window for n, r in relations.items() if r.window is not None}
    for query in draft.queries:
        if query.window is None:
            continue
        streams = [name for name in _reachable(query.relation, draft) if relations[name].timed]
        if not streams:
            errors.add("E326", query.span, name=query.relation)
        for name in streams:
            if relations[name].ttl is not None:
                errors.add("E325", query.span, name=name)
            other = chosen.setdefault(name, query.window)
            if other != query.window:
                errors.add("E327", query.span, name=name, first=other, second=query.window)
    for name, window in chosen.items():
        relations[name] = replace(relations[name], window=window)
    return replace(draft, relations=relations)


def _reachable(start: str, draft: Draft) -> list[str]:
    seen = {start}
    queue = [start]
    for name in queue:
        for rule in draft.rules:
            if rule.head.relation == name:
                for atom, _positive in rule.atoms():
                    if atom.relation not in seen:
                        seen.add(atom.relation)
                        queue.append(atom.relation)
    return queue
