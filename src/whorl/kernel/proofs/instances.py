"""From a derivation to the rule as its author wrote it: which rule, with which values, on which rows.

The kernel runs rewritten rules: other names for relations, another order of conditions, helper columns. A derivation
says which rows were used and which rule of the text it comes from. Here that rule is matched against just these rows;
what fits is the use of the rule that a proof shows.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from whorl.analysis.expressions import Binding, Functions, compare, equal, evaluate, match
from whorl.analysis.program import Program, Rule, rule_variables
from whorl.kernel.proofs.derivations import Derivation, Key
from whorl.logical.lower import lower_rule
from whorl.logical.plan import AntiJoin, Contribution, Extend, Filter, Join, Lacks, RulePlan, Step, Unnest
from whorl.model.values import LIST, Row, Term, Value
from whorl.syntax import ast


@dataclass(frozen=True, slots=True)
class Instance:
    """A rule of the program with values for its variables, and the row that each atom takes, in the rule's order."""

    rule: Rule
    plan: RulePlan
    binding: Binding
    used: tuple[Key | None, ...]


class Instances:
    """Finds the uses of a program's rules."""

    def __init__(self, program: Program) -> None:
        self._functions: Functions = program.functions
        self.plans: Mapping[str, Sequence[tuple[Rule, RulePlan]]] = _by_relation(program)
        self._names = {id(rule): {variable.name for variable in rule_variables(rule)} for rule in program.rules}

    def find(self, derivation: Derivation, row: Row, premises: Sequence[tuple[Key, Row]]) -> Instance | None:
        """Return the rule's use that a derivation of ``row`` stands for."""
        assert derivation.rule is not None, "gathering uses no rule"
        relation = program_name(derivation.rule.relation)
        found: Instance | None = None
        for rule, plan in self.plans.get(relation, ()):
            if rule.origin != derivation.rule.origin:
                continue
            known = self._known(derivation, row, rule)
            for binding, used in self._uses(plan.steps, known, premises, ()):
                if not self._derives(binding, derivation, row):
                    continue
                instance = Instance(rule, plan, binding, used)
                if {key for key in used if key is not None} == {key for key, _row in premises}:
                    return instance
                found = found or instance
        return found

    def _known(self, derivation: Derivation, row: Row, rule: Rule) -> Binding:
        """Return the values of variables that the derived row tells."""
        names = self._names[id(rule)]
        if derivation.binding is not None:
            return {name: value for name, value in derivation.binding.items() if name in names}
        assert derivation.rule is not None
        pairs = zip(derivation.rule.args, row, strict=True)
        return {arg.name: value for arg, value in pairs if isinstance(arg, ast.Variable) and arg.name in names}

    def _uses(
        self, steps: Sequence[Step], binding: Binding, premises: Sequence[tuple[Key, Row]], used: tuple[Key | None, ...]
    ) -> Iterator[tuple[Binding, tuple[Key | None, ...]]]:
        if not steps:
            yield binding, used
            return
        step = steps[0]
        if isinstance(step, Join):
            for key, row in premises:
                if program_name(key[0]) == step.relation:
                    extended = match_row(step.args, row, binding, self._functions)
                    if extended is not None:
                        yield from self._uses(steps[1:], extended, premises, (*used, key))
            return
        for extended in run_step(step, binding, self._functions):
            yield from self._uses(steps[1:], extended, premises, (*used, None))

    def _derives(self, binding: Binding, derivation: Derivation, row: Row) -> bool:
        """Whether the head, as the kernel runs it, gives the row."""
        if derivation.rule is None or derivation.binding is not None:
            return True  # what the rewritten rule binds has fixed the head
        for arg, value in zip(derivation.rule.args, row, strict=True):
            own = evaluate(arg.value if isinstance(arg, Contribution) else arg, binding, self._functions)
            if own is None or not equal(own, value):
                return False
        return True


def _by_relation(program: Program) -> dict[str, list[tuple[Rule, RulePlan]]]:
    plans: dict[str, list[tuple[Rule, RulePlan]]] = {}
    for position, rule in enumerate(program.rules):
        plans.setdefault(rule.head.relation, []).append((rule, lower_rule(rule, program, position)))
    return plans


def program_name(relation: str) -> str:
    """Return the name that a relation has in the program: restricted copies and contributions carry more.

    >>> program_name("route^bff^3^best")
    'route'
    """
    return relation.partition("^")[0]


def match_row(args: Sequence[ast.Expr], row: Row, binding: Binding, functions: Functions) -> Binding | None:
    """Return a binding with what an atom takes from a row, None if the row does not fit."""
    current: Binding | None = binding
    for arg, value in zip(args, row, strict=True):
        current = None if current is None else match(arg, value, current, functions)
    return current


def run_step(step: Step, binding: Binding, functions: Functions) -> Iterator[Binding]:
    """Yield what a condition makes of a binding; that a row is absent is taken as known."""
    if isinstance(step, AntiJoin):
        yield binding
    elif isinstance(step, Filter):
        left, right = evaluate(step.left, binding, functions), evaluate(step.right, binding, functions)
        if left is not None and right is not None and compare(step.operator, left, right):
            yield binding
    elif isinstance(step, Extend):
        value = evaluate(step.value, binding, functions)
        extended = None if value is None else match(step.pattern, value, binding, functions)
        if extended is not None:
            yield extended
    else:
        assert isinstance(step, Unnest | Lacks), "rules as written have no other steps"
        items = _items(step.items, binding, functions)
        fitting = [out for item in items if (out := match(step.item, item, binding, functions)) is not None]
        if isinstance(step, Unnest):
            yield from fitting
        elif not fitting:
            yield binding


def _items(items: ast.Expr, binding: Binding, functions: Functions) -> tuple[Value, ...]:
    value = evaluate(items, binding, functions)
    return value.args if isinstance(value, Term) and value.name == LIST else ()
