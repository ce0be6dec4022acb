"""Why a row is not in a view: how far each rule gets towards it, as data and as text."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from whorl.analysis.program import Relation
from whorl.kernel.partition import Partition
from whorl.kernel.proofs.misses import Miss, Misses
from whorl.logical.plan import AntiJoin, Contribution, Join
from whorl.model.values import Value, format_row, format_value
from whorl.syntax import ast
from whorl.syntax.printer import print_expr
from whorl.views.asking import Asked, Target, encode_asked, locate
from whorl.views.literals import part_text, substitute
from whorl.views.proof import RuleText
from whorl.views.proving import RuleTexts


@dataclass(frozen=True, slots=True)
class RuleMiss:
    """How far one rule gets: the conditions that hold, the one that fails, and why it does.

    `failed` is empty if the head does not fit, or if everything holds and gives another row.
    """

    rule: RuleText
    reason: str
    held: tuple[str, ...] = ()
    failed: str = ""
    bound: tuple[tuple[str, Value], ...] = ()
    tried: int = 1
    complete: bool = True


@dataclass(frozen=True, slots=True)
class WhyNot:
    """Why a row is not there: what there is to say about its relation, and for each rule what is missing."""

    row: str
    notes: tuple[str, ...]
    rules: tuple[RuleMiss, ...]

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        yield f"{self.row} is not there."
        yield from self.notes
        for miss in self.rules:
            yield ""
            yield f"{miss.rule.name}: {miss.rule.text}"
            yield from (f"  holds  {text}" for text in miss.held)
            yield f"  fails  {miss.failed}: {miss.reason}" if miss.failed else f"  {miss.reason}"
            if miss.tried > 1:
                more = "" if miss.complete else " and perhaps more"
                yield f"  Shown for the first of {miss.tried} ways that come so far{more}."

    def to_json(self) -> dict[str, object]:
        """Return it as plain data."""
        return {"row": self.row, "notes": list(self.notes), "rules": [_miss_json(miss) for miss in self.rules]}


def _miss_json(miss: RuleMiss) -> dict[str, object]:
    return {
        "rule": miss.rule.number,
        "line": miss.rule.line,
        "text": miss.rule.text,
        "held": list(miss.held),
        "failed": miss.failed or None,
        "reason": miss.reason,
        "bound": {name: format_value(value) for name, value in miss.bound},
        "tried": miss.tried,
        "complete": miss.complete,
    }


def explain_absence(partition: Partition, target: Target) -> WhyNot:
    """Return why no row fits; the partition must hold every relation in full."""
    asked = _of_relation(target)
    relation = partition.plan.logical.program.relations[asked.relation]
    texts = RuleTexts(partition.plan.logical.program)
    misses = [_rule_miss(miss, texts, relation, asked) for miss in Misses(partition).of(asked.relation, asked.values)]
    return WhyNot(str(target.asked), tuple(_notes(partition, relation, asked)), tuple(misses))


def _of_relation(target: Target) -> Asked:
    """Return what is asked of the relation behind a view."""
    if target.view is None:
        return target.asked
    values = iter(target.asked.values)
    columns = [None if isinstance(arg, ast.Anonymous) else next(values) for arg in target.view.args]
    return Asked(target.view.relation, tuple(columns))


def _notes(partition: Partition, relation: Relation, asked: Asked) -> Iterator[str]:
    if relation.base:
        yield _fact_note(partition, relation, asked)
    group = tuple(None if column in relation.aggregates else value for column, value in enumerate(asked.values))
    if relation.aggregates and group != asked.values:
        key = locate(partition, Target(Asked(asked.relation, group), (asked.relation,), None))
        if key is not None:
            batch = partition.state.relations[key[0]].read(np.array([key[1]]))
            row = partition.state.dictionary.decode_rows(batch, [column.type for column in relation.columns])[0]
            yield f"Its group has another value: {format_row(relation.name, row)}."
    for stratum in partition.plan.logical.strata:
        kept = {selection.relation for selection in stratum.selections}
        if relation.name in stratum.relations and kept:
            yield f"Of {', '.join(sorted(kept))} only rows are kept that may be best in their groups."


def _fact_note(partition: Partition, relation: Relation, asked: Asked) -> str:
    if asked.row is None:
        return f"{relation.name} takes facts from outside; no fact there fits."
    encoded = [[value for value in encode_asked(partition, relation.name, asked) if value is not None] or [0]]
    number = int(partition.state.relations[relation.name].find(np.array(encoded, np.int64))[0])
    if number < 0:
        return f"{relation.name} takes facts from outside; this one has not arrived."
    if partition.base[relation.name].is_present(number):
        return f"{relation.name} takes facts from outside; this one has arrived, and views see it with the next slide."
    return f"{relation.name} takes facts from outside; this one was there, and was deleted, replaced, or has expired."


def _rule_miss(miss: Miss, texts: RuleTexts, relation: Relation, asked: Asked) -> RuleMiss:
    rule = texts.of(miss.rule)
    bound = tuple(sorted(miss.way.binding.items()))
    held = tuple(part_text(step, miss.way.binding) for step, _row in zip(miss.plan.steps, miss.way.rows, strict=False))
    if miss.column is not None:
        return RuleMiss(rule, _head_reason(miss, asked), bound=bound)
    if miss.failed is not None:
        failed = part_text(miss.failed, miss.way.binding)
        return RuleMiss(rule, _reason(miss), held, failed, bound, miss.tried, miss.complete)
    if miss.found is None:
        reason = "Everything holds, but the head has no value."
    elif relation.aggregates:
        reason = f"Everything holds, and contributes {_contributed(miss)} to the group."
    elif asked.row is not None and miss.found == asked.row:
        reason = "Everything holds, but other rows of its group are better."
    else:
        reason = f"Everything holds, but gives {format_row(relation.name, miss.found)}."
    return RuleMiss(rule, reason, held, "", bound, miss.tried, miss.complete)


def _contributed(miss: Miss) -> str:
    assert miss.found is not None
    pairs = zip(miss.plan.args, miss.found, strict=True)
    return ", ".join(format_value(value) for arg, value in pairs if isinstance(arg, Contribution))


def _head_reason(miss: Miss, asked: Asked) -> str:
    assert miss.column is not None
    arg, value = miss.plan.args[miss.column], asked.values[miss.column]
    assert not isinstance(arg, Contribution), "aggregated columns fit anything"
    assert value is not None, "a gap fits anything"
    own = print_expr(substitute(arg, miss.way.binding))
    return f"Its head does not fit: column {miss.column + 1} is {own}, not {format_value(value)}."


def _reason(miss: Miss) -> str:
    step = miss.failed
    if isinstance(step, Join):
        return "no row fits"
    if isinstance(step, AntiJoin):
        assert miss.found is not None
        return f"{format_row(step.relation, miss.found)} is there"
    return "it does not hold"
