"""Short names for a program and for a layout of its state, to tell whether saved state fits.

The program's covers what it means: declarations, rules, facts, queries. The layout's also covers how state is kept:
strategies, helper relations, the order of atoms, the placement. Comments, line breaks and file names are in neither.
"""

from __future__ import annotations

from hashlib import sha256

from whorl.analysis.program import Program
from whorl.physical.plan import PhysicalPlan, PhysicalStratum


def fingerprint_program(program: Program) -> str:
    """Return the fingerprint of what a program means."""
    used = sorted(function.signature for function in program.functions.values() if function.user)
    relations = sorted(program.relations.items())
    return _digest(relations, program.rules, [(f.relation, f.row) for f in program.facts], program.queries, used)


def fingerprint_layout(plan: PhysicalPlan) -> str:
    """Return the fingerprint of how a plan keeps its state."""
    placed = sorted((name, placed.column) for name, placed in plan.placement.items())
    strata = [_stratum(stratum) for stratum in plan.strata]
    return _digest(fingerprint_program(plan.logical.program), strata, placed, plan.outputs)


def _stratum(stratum: PhysicalStratum) -> tuple[object, ...]:
    rules = tuple((rule.rule, rule.owned) for rule in stratum.rules)
    return (stratum.relations, stratum.kind, stratum.strategy, rules, stratum.cells, stratum.best)


def _digest(*parts: object) -> str:
    return sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]
