"""Magic sets: derive only what a bound query can ask for.

`query reachable("a", Y)` needs no pair that starts elsewhere. For each relation and each pattern of bound columns
that the query leads to, there is a copy of the relation (`reachable^bf`), restricted to the column values that
somebody asks for; a magic relation (`magic^reachable^bf`) holds these values, and is derived from the question
downwards.

Negated relations, staged strata and relations under aggregate selection are computed in full. If the restriction
would put negation or a plain aggregate into a recursion, the program stays as it is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from whorl.analysis.program import Relation, variable_names
from whorl.logical.plan import (
    AntiJoin,
    Contribution,
    Fixpoint,
    Join,
    Lacks,
    LogicalPlan,
    Output,
    RulePlan,
    SemiJoin,
    Step,
)
from whorl.logical.rewrites.order_joins import order_steps
from whorl.logical.steps import step_binds
from whorl.logical.strata import stratify_rules
from whorl.syntax import ast

Adornment = tuple[bool, ...]


def magic_sets(plan: LogicalPlan) -> LogicalPlan:
    """Restrict derived relations to what bound queries ask for."""
    builder = _Builder(plan)
    outputs = tuple(builder.output(output) for output in plan.outputs)
    if not builder.magical:
        return plan
    builder.run()
    strata = stratify_rules(builder.rules, replace(plan, relations=builder.relations))
    if strata is None:
        return plan
    return replace(plan, relations=builder.relations, strata=strata, outputs=outputs)


def _reachable(start: str, rules: Mapping[str, list[RulePlan]]) -> set[str]:
    seen = {start}
    queue = [start]
    for name in queue:
        for rule in rules.get(name, ()):
            for read, _positive in rule.relations():
                if read not in seen:
                    seen.add(read)
                    queue.append(read)
    return seen


@dataclass
class _Builder:
    """Collects the rules of restricted relations, and of those still needed in full."""

    plan: LogicalPlan
    rules: list[RulePlan] = field(default_factory=list)
    relations: dict[str, Relation] = field(default_factory=dict)
    magical: bool = False

    def __post_init__(self) -> None:
        self.relations = {name: r for name, r in self.plan.relations.items() if r.base}
        self._defining: dict[str, list[RulePlan]] = {}
        for rule in self.plan.rules():
            self._defining.setdefault(rule.relation, []).append(rule)
        self._stratum = {name: stratum for stratum in self.plan.strata for name in stratum.relations}
        self._queue: list[tuple[str, Adornment]] = []
        self._done: set[tuple[str, Adornment]] = set()
        self._full: list[str] = []
        unbound = [o for o in self.plan.outputs if not any(self._adorn_output(o))]
        self._shown_in_full = {name for o in unbound for name in _reachable(o.relation, self._defining)}

    def _adorn_output(self, output: Output) -> Adornment:
        ground = tuple(not isinstance(arg, ast.Anonymous) and not variable_names(arg) for arg in output.args)
        return self._bindable(output.relation, ground)

    def output(self, output: Output) -> Output:
        adornment = self._adorn_output(output)
        if not any(adornment) or output.relation in self._shown_in_full:
            self._need_in_full(output.relation)
            return output
        self.magical = True
        self._ask(output.relation, adornment)
        seed = tuple(arg for arg, bound in zip(output.args, adornment, strict=True) if bound)
        self.rules.append(RulePlan(_magic(output.relation, adornment), seed, (), -1))
        return replace(output, relation=_adorned(output.relation, adornment))

    def _bindable(self, relation: str, wanted: Adornment) -> Adornment:
        """Return the wanted columns that every rule of a relation can take from outside."""
        stratum: Fixpoint | None = self._stratum.get(relation)
        nothing = (False,) * len(wanted)
        if stratum is None or stratum.stages is not None or stratum.selections:
            return nothing
        rules = self._defining.get(relation, [])
        return tuple(
            want and all(isinstance(rule.args[column], ast.Variable | ast.Constant) for rule in rules)
            for column, want in enumerate(wanted)
        )

    def _ask(self, relation: str, adornment: Adornment) -> None:
        if (relation, adornment) not in self._done:
            self._done.add((relation, adornment))
            self._queue.append((relation, adornment))
            old = self.plan.relations[relation]
            bound = tuple(c for c, b in zip(old.columns, adornment, strict=True) if b)
            magic, adorned = _magic(relation, adornment), _adorned(relation, adornment)
            self.relations[adorned] = replace(old, name=adorned)
            self.relations[magic] = Relation(magic, "derived", bound)

    def _need_in_full(self, relation: str) -> None:
        if relation in self._full or relation not in self._defining:
            if relation not in self.relations:
                self.relations[relation] = self.plan.relations[relation]
            return
        for name in self._stratum[relation].relations:
            if name not in self._full:
                self._full.append(name)
                self.relations[name] = self.plan.relations[name]

    def run(self) -> None:
        """Restrict rules until nobody asks for more, then add what is needed in full."""
        while self._queue:
            relation, adornment = self._queue.pop()
            for rule in self._defining.get(relation, ()):
                self._restrict(rule, adornment)
        for name in self._full:
            for rule in self._defining.get(name, ()):
                self.rules.append(rule)
                for read, _positive in rule.relations():
                    self._need_in_full(read)

    def _restrict(self, rule: RulePlan, adornment: Adornment) -> None:
        asked = tuple(
            arg for arg, bound in zip(rule.args, adornment, strict=True) if bound and not isinstance(arg, Contribution)
        )
        guard = Join(_magic(rule.relation, adornment), asked)
        functions = self.plan.program.functions
        done: list[Step] = [guard]
        bound = step_binds(guard)
        for step in order_steps(rule.steps, functions, bound):
            new = self._restrict_step(step, bound, done)
            done.append(new)
            bound |= step_binds(new)
        self.rules.append(replace(rule, relation=_adorned(rule.relation, adornment), steps=tuple(done)))

    def _restrict_step(self, step: Step, bound: frozenset[str], done: list[Step]) -> Step:
        if not isinstance(step, Join | SemiJoin | AntiJoin):
            return step
        if isinstance(step, AntiJoin):
            self._need_in_full(step.relation)
            return step
        wanted = tuple(not isinstance(arg, ast.Anonymous) and variable_names(arg) <= bound for arg in step.args)
        adornment = self._bindable(step.relation, wanted)
        if not any(adornment):
            self._need_in_full(step.relation)
            return step
        self._ask(step.relation, adornment)
        args = tuple(arg for arg, want in zip(step.args, adornment, strict=True) if want)
        magic = _magic(step.relation, adornment)
        positive = tuple(before for before in done if not isinstance(before, AntiJoin | Lacks))
        if positive != (Join(magic, args),):
            self.rules.append(RulePlan(magic, args, positive, -1))
        return replace(step, relation=_adorned(step.relation, adornment))


def _adorned(relation: str, adornment: Adornment) -> str:
    return f"{relation}^{''.join('b' if bound else 'f' for bound in adornment)}"


def _magic(relation: str, adornment: Adornment) -> str:
    return f"magic^{_adorned(relation, adornment)}"
