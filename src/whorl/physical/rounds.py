"""Strata that run in rounds, all rules at once: aggregates that add up in recursion, selections, stages.

A stratum in, its kind and its rules out: each knows the keys of what it contributes, and the stage that it climbs from.
`NotVectorized` says why the kernel cannot run one.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from whorl.analysis.expressions import Functions
from whorl.analysis.program import Relation
from whorl.logical.plan import Contribution, Fixpoint, RulePlan
from whorl.model.types import Type
from whorl.physical.climbing import find_climb
from whorl.physical.plan import GroupEntry, Keyed, KeySpace, PhysicalRule
from whorl.physical.rules import NotVectorized, build_rule, enter_group, expr_type
from whorl.syntax import ast

_WHOLE = frozenset({Type.INTEGER, Type.TIMESTAMP})
Spaces = Mapping[tuple[str, int], tuple[KeySpace, ...]]


@dataclass(frozen=True, slots=True)
class Rounds:
    """What a stratum needs to run in rounds."""

    kind: str
    rules: tuple[PhysicalRule, ...]
    spaces: Spaces


def build_rounds(stratum: Fixpoint, relations: Mapping[str, Relation], functions: Functions) -> Rounds:
    """Prepare the rules of a stratum; raise NotVectorized if the kernel cannot run one of them."""
    own = frozenset(stratum.relations)
    _check_columns(stratum, relations)
    rules = [build_rule(rule, relations, functions, own) for rule in stratum.rules]
    keys = _Keys(stratum, functions)
    rules = [replace(rule, keyed=tuple(keys.add(rule))) for rule in rules]
    if stratum.stages is not None:
        columns = stratum.stages.columns
        pairs = zip(stratum.rules, rules, strict=True)
        rules = [replace(rule, climb=find_climb(source, columns)) for source, rule in pairs]
    rules = [replace(rule, at_groups=enter_groups(rule, stratum, relations, functions)) for rule in rules]
    kind = "staged" if stratum.stages is not None else "selected" if stratum.selections else "totals"
    return Rounds(kind, tuple(rules), keys.spaces())


def enter_groups(
    rule: PhysicalRule, stratum: Fixpoint, relations: Mapping[str, Relation], functions: Functions
) -> tuple[GroupEntry, ...]:
    """Enter a rule at the groups of each choice among the rows that it derives."""
    own = (selection for selection in stratum.selections if selection.relation == rule.relation)
    return tuple(enter_group(rule, selection.group, relations, functions) for selection in own)


def _check_columns(stratum: Fixpoint, relations: Mapping[str, Relation]) -> None:
    """Raise where values of any kind are added, selected, or count stages."""
    for name in stratum.relations:
        relation = relations[name]
        for column, function in relation.aggregates.items():
            if function not in ("min", "max") and not relation.columns[column].type.numeric:
                message = "it adds values that may be of any kind"
                raise NotVectorized(message)
    for selection in stratum.selections:
        if relations[selection.relation].columns[selection.value].type is Type.UNKNOWN:
            message = "it selects by values that may be of any kind"
            raise NotVectorized(message)
    for name, column in () if stratum.stages is None else stratum.stages.columns.items():
        if relations[name].columns[column].type is not Type.INTEGER:
            message = f'the stage of "{name}" may be of any kind'
            raise NotVectorized(message)


@dataclass(slots=True)
class _Keys:
    """Collects the key spaces of a stratum, by relation and column."""

    stratum: Fixpoint
    functions: Functions
    _kinds: dict[tuple[str, int], dict[str, tuple[Type, ...]]] = field(default_factory=dict)

    def add(self, rule: PhysicalRule) -> Iterator[Keyed]:
        """Yield how a rule contributes to each aggregated column."""
        for column, arg in enumerate(rule.args):
            if not isinstance(arg, Contribution):
                continue
            if arg.function in ("min", "max"):
                yield Keyed(column, (), -1)
                continue
            parts = tuple(assignment(rule.rule, self.stratum)) if arg.key is None else arg.key
            name = f"rule {rule.rule.origin}" if arg.key is None else f"key of {len(parts)}"
            known = self._kinds.setdefault((rule.relation, column), {})
            found = tuple(expr_type(part, rule.types, self.functions) for part in parts)
            known[name] = _common(known.get(name, found), found)
            yield Keyed(column, parts, list(known).index(name))

    def spaces(self) -> Spaces:
        return {
            place: tuple(KeySpace(name, kinds) for name, kinds in known.items()) for place, known in self._kinds.items()
        }


def _common(left: tuple[Type, ...], right: tuple[Type, ...]) -> tuple[Type, ...]:
    """Return types that hold the parts of both keys: the same ones, or any."""
    pairs = zip(left, right, strict=True)
    return tuple(one if one is other or {one, other} <= _WHOLE else Type.UNKNOWN for one, other in pairs)


def assignment(rule: RulePlan, stratum: Fixpoint) -> Iterator[ast.Expr]:
    """Yield what tells the assignments of a rule apart: its variables, and which of the alternatives' it has."""
    siblings = [other for other in stratum.rules if other.origin == rule.origin]
    names = sorted({name for other in siblings for name in other.assignment})
    own = set(rule.assignment)
    if len(siblings) > 1:
        yield ast.Constant(sum(1 << at for at, name in enumerate(names) if name in own))
    for name in names:
        if name in own:
            yield ast.Variable(name)
        elif len(siblings) > 1:
            yield ast.Constant(0)
