"""A physical plan as text: what maintains each stratum and why, how rules join for every entry, by which indexes."""

from __future__ import annotations

from collections.abc import Iterator

from whorl.logical.plan import AntiJoin, Contribution, Join, Step
from whorl.physical.indexes import find_indexes
from whorl.physical.localize import explain_channels
from whorl.physical.plan import PhysicalPlan, PhysicalRule, PhysicalStratum
from whorl.syntax.printer import print_expr

_TOLD = {
    "lazy": "one derivation of each row, another when that is lost",
    "eager": "new rows at once, other derivations {}",
    "plain": "every derivation of each row",
}


def explain_physical(plan: PhysicalPlan) -> str:
    """Return the plan as an indented tree."""
    lines: list[str] = []
    for stratum in plan.strata:
        lines.extend(_stratum(stratum))
    lines.extend(_indexes(plan))
    for output in plan.outputs:
        lines.append(f"Output {output.name} = {output.relation}")
    lines.extend(explain_placement(plan))
    lines.extend(explain_channels(plan))
    return "\n".join(lines)


def _indexes(plan: PhysicalPlan) -> Iterator[str]:
    """Yield the indexes, each with all that look rows up in it."""
    needs = find_indexes(plan)
    if needs:
        yield "Indexes"
    for need in needs:
        names = [plan.relations[need.relation].columns[at].name for at in need.columns]
        places = ", ".join(f"{at + 1} ({name})" for at, name in zip(need.columns, names, strict=True))
        key = f" by column{'s' if len(names) > 1 else ''} {places}" if names else ", all rows"
        yield f"  {need.relation}{key}: {'; '.join(need.users)}"


def explain_placement(plan: PhysicalPlan) -> Iterator[str]:
    """Yield where the tuples of each relation live when there are several partitions."""
    yield "Placement"
    for name, placed in sorted(plan.placement.items()):
        place = "copied"
        if placed.column is not None:
            place = f"split by column {placed.column + 1} ({plan.relations[name].columns[placed.column].name})"
        yield f"  {name}: {place}: {placed.reason}"


def _stratum(stratum: PhysicalStratum) -> Iterator[str]:
    recursive = ", recursive" if stratum.recursive else ""
    yield f"Stratum {stratum.number}: {', '.join(stratum.relations)} ({stratum.kind}{recursive})"
    yield f"  strategy {stratum.strategy}: {stratum.reason}"
    if stratum.arms:
        others = f"or {stratum.arms[1]}, " if len(stratum.arms) > 1 else ""
        yield f"  each epoch: changes are followed, {others}or everything is derived again, whichever costs less"
    if stratum.strategy == "absorption" and stratum.channels:
        yield f"  to other partitions: {_TOLD[stratum.ship].format(stratum.batching)}"
    if stratum.circles is not None:
        steps = stratum.circles.steps
        facts = (f"{_columns(steps[name])} of a {name} used" for name in steps if name.rpartition("^")[0] not in steps)
        own = _columns(stratum.circles.columns)
        yield f"  labels leave out derivations back to their own row: {own} is {', or '.join(facts)}"
    for cell in stratum.cells:
        yield f"  column {cell.column + 1} = {cell.function} of {', '.join(cell.sources)}"
    for best in stratum.best:
        yield f"  {best.relation} keeps the {best.function} of column {best.column + 1} for each group"
    for rule in stratum.rules:
        yield from _rule(rule)


def _columns(places: tuple[int, ...]) -> str:
    return f"column {', '.join(str(at + 1) for at in places)}"


def _rule(rule: PhysicalRule) -> Iterator[str]:
    args = ", ".join(str(arg) if isinstance(arg, Contribution) else print_expr(arg) for arg in rule.args)
    line = f"  # line {rule.rule.span.line}" if rule.rule.span else ""
    yield f"  {rule.relation}({args}){line}"
    for (step, positive), rest in zip(rule.atoms, rule.at_atom, strict=True):
        yield f"    {'on' if positive else 'on not'} {_name(step)}: {_steps(rest)}"
    yield f"    to derive a row: {_steps(rule.at_head)}"
    for entry in rule.at_groups:
        group = f"a group by {_columns(entry.columns)}" if entry.columns else "the only group"
        yield f"    to derive {group}: {_steps(entry.steps)}"


def _name(step: Step) -> str:
    assert isinstance(step, Join | AntiJoin)
    return str(step).split(" ", 1)[1]


def _steps(steps: tuple[Step, ...]) -> str:
    return "; ".join(str(step) for step in steps) or "nothing more"
