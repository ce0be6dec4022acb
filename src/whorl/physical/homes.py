"""Where the rows of each relation are at home when partitions exchange them.

A home is the owner of one column, or every partition. Rows that are chosen or added up in groups live by a column of
the group, replaced rows by a column of their key; relations of strata that only run as a whole live everywhere. Among
the columns left, `join` takes the one that most atoms join on, `first` the first, as when the first attribute names
the node that a row lives on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from whorl.analysis.program import variable_names
from whorl.physical.localize import travels
from whorl.physical.plan import PhysicalPlan, PhysicalRule, Placed
from whorl.syntax import ast


def choose_homes(plan: PhysicalPlan, by: str, allowed: Callable[[str], list[int]]) -> dict[str, Placed]:
    """Return a home for every relation; ``allowed`` tells the columns that a relation may live by."""
    joined = _joined(plan) if by == "join" else {}
    homes: dict[str, Placed] = {}
    for stratum in plan.strata:
        if stratum.kind not in ("cells", "front") and not travels(stratum):
            homes |= {name: Placed(None, "its stratum runs as a whole") for name in stratum.relations}
    for stratum in reversed(plan.strata):
        if stratum.kind in ("cells", "front"):
            _tie(plan, stratum.relations[0], [s for cell in stratum.cells for s in cell.sources], homes)
    for name in plan.relations:
        if name not in homes:
            columns = sorted(allowed(name), key=lambda at: (-joined.get((name, at), 0), at))
            reason = "most atoms join on it" if joined.get((name, columns[0] if columns else 0)) else "its first column"
            homes[name] = Placed(columns[0], reason) if columns else Placed(None, "no column tells its owner")
    return homes


def _tie(plan: PhysicalPlan, name: str, sources: list[str], homes: dict[str, Placed]) -> None:
    """Let an aggregate and what contributes to it live by the first column of the group."""
    aggregates = plan.relations[name].aggregates
    plain = [at for at in range(len(plan.relations[name].columns)) if at not in aggregates]
    if any(homes[each].column is None for each in sources if each in homes):
        plain = []
    if not plain:
        homes |= {each: Placed(None, "it has one group only") for each in (name, *sources)}
        return
    homes[name] = Placed(plain[0], "a column of its group")
    homes |= {each: Placed(0, f"with {name}, which it contributes to") for each in sources}


def _joined(plan: PhysicalPlan) -> dict[tuple[str, int], int]:
    """Count for each column the atoms that join on it; those of a recursion with itself count more."""
    counts: dict[tuple[str, int], int] = {}
    for stratum in plan.strata:
        for rule in stratum.rules:
            for name, column in _join_columns(rule):
                weight = 3 if name in stratum.relations else 1
                counts[name, column] = counts.get((name, column), 0) + weight
    return counts


def _join_columns(rule: PhysicalRule) -> Iterator[tuple[str, int]]:
    """Yield the columns of atoms that hold a variable of another atom."""
    for at, (step, _positive) in enumerate(rule.atoms):
        others = [other for place, (other, _) in enumerate(rule.atoms) if place != at]
        shared = frozenset[str]().union(*(variable_names(arg) for other in others for arg in other.args))  # type: ignore[union-attr]
        for column, arg in enumerate(step.args):  # type: ignore[union-attr]
            if isinstance(arg, ast.Variable) and arg.name in shared:
                yield step.relation, column  # type: ignore[union-attr]
