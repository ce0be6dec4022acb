"""Tell which strata surely end: those that never make a value out of what they derive.

A recursion that calculates or builds terms from its own tuples may go on for ever. It runs under limits, and the reason
is kept, so that `check` can say it before and the limit's error after.
"""

from __future__ import annotations

from dataclasses import replace

from whorl.analysis.draft import Draft, Errors
from whorl.analysis.program import Compare, Rule, Stratum, variable_names
from whorl.syntax import ast


def classify_termination(draft: Draft, _errors: Errors) -> Draft:
    """Give every stratum its termination class and the reason."""
    return replace(draft, strata=tuple(_classify(stratum, draft) for stratum in draft.strata))


def _classify(stratum: Stratum, draft: Draft) -> Stratum:
    if not stratum.recursive:
        return replace(stratum, reason="not recursive")
    if stratum.stages is not None and stratum.stages.bound is not None:
        return replace(stratum, reason=f"no query asks beyond stage {stratum.stages.bound}")
    growing = [rule for rule in stratum.rules if _grows(rule, stratum, draft)]
    if not growing:
        return replace(stratum, reason="only values of the input are derived")
    line = growing[0].span.line if growing[0].span else 0
    reason = f"line {line} makes new values from derived ones"
    aggregated = {f for name in stratum.relations for f in draft.relations[name].aggregates.values()}
    if aggregated <= {"min", "max"} and all(_settles(rule, draft) for rule in growing):
        return replace(stratum, termination="ends unless values improve for ever", reason=reason)
    return replace(stratum, termination="may not end", reason=reason)


def _settles(rule: Rule, draft: Draft) -> bool:
    """Whether new values only reach aggregated columns, so that there are finitely many groups."""
    made = _made(rule)
    aggregated = draft.relations[rule.head.relation].aggregates
    return all(
        not _makes(arg, made)
        for position, arg in enumerate(rule.head.args)
        if position not in aggregated and not isinstance(arg, ast.Aggregate)
    )


def _grows(rule: Rule, stratum: Stratum, draft: Draft) -> bool:
    inside = [atom for atom, positive in rule.atoms() if positive and atom.relation in stratum.relations]
    if not inside:
        return False
    made = _made(rule)
    for arg in rule.head.args:
        values = arg.args if isinstance(arg, ast.Aggregate) else (arg,)
        totals = isinstance(arg, ast.Aggregate) and arg.function not in ("min", "mmin", "max", "mmax")
        if totals and any(draft.relations[atom.relation].aggregates for atom in inside):
            return True
        if any(_makes(value, made) for value in values):
            return True
    return False


def _made(rule: Rule) -> set[str]:
    """Return the variables that get calculated or constructed values."""
    made: set[str] = set()
    for literal in rule.body:
        if isinstance(literal, Compare) and literal.operator == "=":
            for own, other in ((literal.left, literal.right), (literal.right, literal.left)):
                if isinstance(own, ast.Variable) and _makes(other, made):
                    made.add(own.name)
    return made


def _makes(expr: ast.Expr, made: set[str]) -> bool:
    if isinstance(expr, ast.Variable):
        return expr.name in made
    if isinstance(expr, ast.Constant | ast.Anonymous):
        return False
    return bool(variable_names(expr))
