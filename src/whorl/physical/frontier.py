"""Rules that read a relation under another name, with one of its columns moved to the end."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TypeVar

from whorl.logical.plan import AntiJoin, Join, RulePlan, SemiJoin, Step

Item = TypeVar("Item")


def last(items: Sequence[Item], column: int) -> tuple[Item, ...]:
    """Return items with one of them moved to the end."""
    return (*items[:column], *items[column + 1 :], items[column])


def rename_rule(rule: RulePlan, renamed: Mapping[str, tuple[str, int]]) -> RulePlan:
    """Return a rule whose head and atoms use the new names and the new order of columns."""
    steps = tuple(_rename_step(step, renamed) for step in rule.steps)
    if rule.relation not in renamed:
        return replace(rule, steps=steps)
    name, column = renamed[rule.relation]
    return replace(rule, relation=name, args=last(rule.args, column), steps=steps)


def _rename_step(step: Step, renamed: Mapping[str, tuple[str, int]]) -> Step:
    if not isinstance(step, Join | SemiJoin | AntiJoin) or step.relation not in renamed:
        return step
    name, column = renamed[step.relation]
    return replace(step, relation=name, args=last(step.args, column))
