"""Lift timestamps out of the tuples where rules only carry them along.

In a stream program the head's timestamp is the largest of the body's. Where that is all that happens to timestamps,
they are the tuple's time and no attribute: the view is a set over the other attributes. A timestamp that is compared,
calculated with, joined on, aggregated or shown by a query stays an attribute.

The relations to lift are the largest set in which every rule behaves: start from all streams and all derived relations
that might carry a time first, and drop those that some rule or query contradicts, until none is left to drop.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from whorl.analysis.draft import Draft, Errors
from whorl.analysis.program import Absent, Compare, Literal, Query, Rule, rule_variables
from whorl.syntax import ast


def lift_timestamps(draft: Draft, _errors: Errors) -> Draft:
    """Remove the timestamp from relations that only carry it along."""
    lifted = _liftable(draft)
    if not lifted:
        return draft
    relations = {
        name: replace(relation, lifted=True, columns=relation.columns[1:]) if name in lifted else relation
        for name, relation in draft.relations.items()
    }
    rules = tuple(_lift_rule(rule, lifted) for rule in draft.rules)
    queries = tuple(_lift_query(query, lifted) for query in draft.queries)
    return replace(draft, relations=relations, rules=rules, queries=queries)


def _liftable(draft: Draft) -> set[str]:
    streams = {name for name, relation in draft.relations.items() if relation.timed}
    if not streams:
        return set()
    heads = {rule.head.relation for rule in draft.rules if rule.head.args}
    lifted = streams | heads
    for query in draft.queries:
        if query.span is not None and query.args and not isinstance(query.args[0], ast.Anonymous):
            lifted.discard(query.relation)
    while True:
        dropped: set[str] = set()
        for rule in draft.rules:
            dropped |= _contradicted(rule, lifted)
        if not dropped & lifted:
            break
        lifted -= dropped
    return lifted


def _contradicted(rule: Rule, lifted: set[str]) -> set[str]:
    """Return the relations of a rule that cannot be lifted, given those that still may be."""
    occurrences = Counter(variable.name for variable in rule_variables(rule))
    carriers: dict[str, str] = {}
    dropped: set[str] = set()
    for atom, positive in rule.atoms():
        if atom.relation not in lifted:
            continue
        time = atom.args[0]
        if isinstance(time, ast.Variable) and positive and time.name not in carriers:
            carriers[time.name] = atom.relation
        elif not isinstance(time, ast.Anonymous):
            dropped.add(atom.relation)
            if isinstance(time, ast.Variable) and time.name in carriers:
                dropped.add(carriers[time.name])
    carried = _carried(rule, lifted, occurrences, set(carriers))
    if carried is None:
        dropped.add(rule.head.relation)
        carried = set()
    for name, relation in carriers.items():
        if name not in carried and occurrences[name] > 1:
            dropped.add(relation)
    return dropped


def _carried(rule: Rule, lifted: set[str], occurrences: Counter[str], carriers: set[str]) -> set[str] | None:
    """Return the timestamps that the head's is the largest of; None if the head has another first attribute."""
    if rule.head.relation not in lifted:
        return set()
    head = rule.head.args[0]
    if not isinstance(head, ast.Variable) or occurrences[head.name] != 2:
        return None
    used = {name for name in carriers if occurrences[name] > 1}
    if head.name in carriers:
        return {head.name} if used == {head.name} else None
    equation = _largest(rule, head.name)
    if equation is None:
        return None
    names = Counter(arg.name for arg in equation if isinstance(arg, ast.Variable))
    if set(names) != used or any(occurrences[name] != 1 + names[name] for name in names):
        return None
    return set(names)


def _largest(rule: Rule, name: str) -> tuple[ast.Expr, ...] | None:
    for literal in rule.body:
        arguments = _largest_equation(literal, name)
        if arguments is not None:
            return arguments
    return None


def _largest_equation(literal: Literal, name: str) -> tuple[ast.Expr, ...] | None:
    if not isinstance(literal, Compare) or literal.operator != "=":
        return None
    for left, right in ((literal.left, literal.right), (literal.right, literal.left)):
        plain = isinstance(left, ast.Variable) and left.name == name
        if plain and isinstance(right, ast.Call) and right.name == "max":
            return right.args if all(isinstance(arg, ast.Variable) for arg in right.args) else None
    return None


def _lift_rule(rule: Rule, lifted: set[str]) -> Rule:
    def lift(atom: ast.Atom) -> ast.Atom:
        return replace(atom, args=atom.args[1:]) if atom.relation in lifted else atom

    head, body = rule.head, rule.body
    if head.relation in lifted:
        time = head.args[0]
        assert isinstance(time, ast.Variable)
        body = tuple(literal for literal in body if _largest_equation(literal, time.name) is None)
        head = replace(head, args=head.args[1:])
    literals: list[Literal] = []
    for literal in body:
        if isinstance(literal, ast.Atom):
            literals.append(lift(literal))
        elif isinstance(literal, Absent):
            literals.append(replace(literal, atom=lift(literal.atom)))
        else:
            literals.append(literal)
    return replace(rule, head=head, body=tuple(literals))


def _lift_query(query: Query, lifted: set[str]) -> Query:
    return replace(query, args=query.args[1:]) if query.relation in lifted else query
