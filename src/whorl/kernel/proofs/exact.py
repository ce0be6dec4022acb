"""Whether the rows alive tell what the loss of facts does to a row.

They do if losing facts can only take derivations away, and every derivation that may ever matter is there now. Two
things stand against it. Below a negation a loss may let rows appear; and rows that are not there now, since others are
better or the sum is another one, may come in their place.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from whorl.analysis.program import Relation, variable_names
from whorl.kernel.partition import Partition
from whorl.kernel.proofs.derivations import hidden_relations, strata_by_relation
from whorl.kernel.proofs.instances import program_name
from whorl.logical.plan import Contribution, Extend, Join, RulePlan
from whorl.physical.plan import PhysicalStratum
from whorl.syntax import ast

_AGGREGATED = ("cells", "best", "reference")


def why_inexact(partition: Partition, relation: str) -> str | None:
    """Return why the loss of facts may do more to rows of a relation than take derivations away; None if it cannot."""
    strata = strata_by_relation(partition)
    hidden = hidden_relations(partition)
    signs: dict[str, set[int]] = {}  # numbers of negations above a relation, 2 for more than one
    root = strata.get(_shown(relation, strata))
    stack = [(relation, 0)]
    while stack:
        name, negations = stack.pop()
        if name in hidden or negations in signs.setdefault(name, set()):
            continue
        signs[name].add(negations)
        stratum = strata.get(name)
        if stratum is None:
            continue
        if stratum.kind in _AGGREGATED:
            own = _own_reason(stratum, partition.plan.relations) if stratum is root else _other_reason(name)
            if own is not None:
                return own
        stack.extend((read, negations if positive else min(2, negations + 1)) for read, positive in _reads(stratum))
    mixed = [name for name, found in signs.items() if name not in strata and (len(found) > 1 or 2 in found)]
    if mixed:
        return f'losing a fact of "{mixed[0]}" may also let rows appear: it stands below a negation'
    return None


def _shown(relation: str, strata: Mapping[str, PhysicalStratum]) -> str:
    """Return the relation whose rows an output shows, if it shows all of their columns; else itself."""
    stratum = strata.get(relation)
    if not relation.startswith("out^") or stratum is None:
        return relation
    (step,) = stratum.rules[0].rule.steps[:1]
    whole = isinstance(step, Join) and not any(isinstance(arg, ast.Anonymous) for arg in step.args)
    return step.relation if isinstance(step, Join) and whole else relation


def _other_reason(name: str) -> str:
    return f'"{program_name(name)}" is aggregated, and would show other values'


def _own_reason(stratum: PhysicalStratum, relations: Mapping[str, Relation]) -> str | None:
    """Return why an aggregate that is asked for itself is not told by the rows alive."""
    if stratum.kind == "cells":
        odd = [cell.function for cell in stratum.cells if cell.function not in ("min", "max", "count")]
        return f"{odd[0]} may come to the same from other values" if odd else None
    if stratum.kind == "best":
        columns = {name: min(relations[name].aggregates, default=None) for name in stratum.relations}
        rules = [rule.rule for rule in stratum.rules] or list(stratum.source.rules if stratum.source else ())
        if all(_is_strict(rule, columns) for rule in rules):
            return None
        return "its value may also follow from values that are not the best"
    return "it is computed in rounds"


def _reads(stratum: PhysicalStratum) -> Iterator[tuple[str, bool]]:
    rules: Sequence[RulePlan] = [rule.rule for rule in stratum.rules]
    if stratum.kind == "cells":
        yield from ((name, True) for cell in stratum.cells for name in cell.sources)
    elif not rules and stratum.source is not None:
        rules = stratum.source.rules
    for rule in rules:
        yield from rule.relations()


def _is_strict(rule: RulePlan, columns: Mapping[str, int | None]) -> bool:
    """Whether a worse value of the stratum, used by a rule, always gives a worse one; ``columns`` hold the values."""
    inside = [step for step in rule.steps if isinstance(step, Join) and step.relation in columns]
    if not inside:
        return True
    values = [arg.value for arg in rule.args if isinstance(arg, Contribution)]
    if len(values) != 1:
        return False
    defined = {
        step.pattern.name: step.value
        for step in rule.steps
        if isinstance(step, Extend) and isinstance(step.pattern, ast.Variable)
    }
    for step in inside:
        column = columns[step.relation]
        arg = step.args[column] if column is not None else None
        if not isinstance(arg, ast.Variable) or not _rises(_expanded(values[0], defined), arg.name):
            return False
    return True


def _expanded(expr: ast.Expr, defined: Mapping[str, ast.Expr]) -> ast.Expr:
    """Return a sum with the definitions of its variables in their place."""
    if isinstance(expr, ast.Variable) and expr.name in defined:
        rest = {name: value for name, value in defined.items() if name != expr.name}
        return _expanded(defined[expr.name], rest)
    if isinstance(expr, ast.Operation):
        return replace(expr, args=tuple(_expanded(arg, defined) for arg in expr.args))
    return expr


def _rises(expr: ast.Expr, name: str) -> bool:
    """Whether an expression is a sum in which a variable stands once."""
    if isinstance(expr, ast.Variable):
        return expr.name == name
    if not isinstance(expr, ast.Operation) or len(expr.args) != 2:
        return False
    left, right = expr.args
    in_left, in_right = (name in variable_names(side) for side in (left, right))
    if expr.operator == "+" and in_left != in_right:
        return _rises(left if in_left else right, name)
    return expr.operator == "-" and not in_right and _rises(left, name)
