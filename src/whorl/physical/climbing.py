"""Where a rule of a staged stratum takes its stage from: the atoms at the head's own stage, or at the one below.

The analysis has shown that there is one (`whorl.analysis.stages`). Here it is found again in the rule as rewritten, so
that a stage starts from the rows of the last one, and not from all.
"""

from __future__ import annotations

from collections.abc import Mapping

from whorl.logical.plan import AntiJoin, Contribution, Extend, Filter, Join, RulePlan, SemiJoin
from whorl.physical.plan import Climb
from whorl.physical.rules import NotVectorized
from whorl.syntax import ast

_Linear = tuple[str, int]  # a variable plus a number


def find_climb(rule: RulePlan, columns: Mapping[str, int]) -> Climb | None:
    """Return how a rule climbs, given the stage column of each relation; None if it reads no relation with stages."""
    atoms = [step for step in rule.steps if isinstance(step, Join | SemiJoin | AntiJoin)]
    if not any(atom.relation in columns for atom in atoms):
        return None
    equations = _equations(rule)
    arg = rule.args[columns[rule.relation]]
    head = None if isinstance(arg, Contribution) else _linear(arg, equations)
    steps: dict[int, int | None] = {}
    for at, atom in enumerate(atoms):
        if atom.relation in columns and not isinstance(atom, AntiJoin):
            steps[at] = _difference(_linear(atom.args[columns[atom.relation]], equations), head)
    anchors = [at for at, step in steps.items() if step == -1] or [at for at, step in steps.items() if step == 0]
    if not anchors:
        message = "the stage of a rule is not the one of a row it uses, or the next"
        raise NotVectorized(message)
    same = tuple(at for at, step in steps.items() if step in (0, None))
    return Climb(anchors[0], steps[anchors[0]] == -1, same)


def _difference(body: _Linear | None, head: _Linear | None) -> int | None:
    """Return how far an atom's stage is from the head's, None if that is not a number."""
    return body[1] - head[1] if body is not None and head is not None and body[0] == head[0] else None


def _equations(rule: RulePlan) -> dict[str, _Linear]:
    """Return the variables that a rule calculates from another by adding a number."""
    found: dict[str, _Linear] = {}
    for step in rule.steps:
        if isinstance(step, Extend):
            sides = [(step.pattern, step.value)]
        elif isinstance(step, Filter) and step.operator == "=":
            sides = [(step.left, step.right), (step.right, step.left)]
        else:
            continue
        for own, other in sides:
            offset = _offset(other)
            if isinstance(own, ast.Variable) and offset is not None:
                found[own.name] = offset
    return found


def _linear(expr: ast.Expr, equations: Mapping[str, _Linear]) -> _Linear | None:
    if isinstance(expr, ast.Variable):
        return equations.get(expr.name, (expr.name, 0))
    return _offset(expr)


def _offset(expr: ast.Expr) -> _Linear | None:
    if not isinstance(expr, ast.Operation) or len(expr.args) != 2 or expr.operator not in ("+", "-"):
        return None
    left, right = expr.args
    if expr.operator == "+" and isinstance(left, ast.Constant):
        left, right = right, left
    if isinstance(left, ast.Variable) and isinstance(right, ast.Constant) and type(right.value) is int:
        return left.name, right.value if expr.operator == "+" else -right.value
    return None
