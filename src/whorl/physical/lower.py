"""Logical plan in, physical plan out: helper relations, the kind and the strategy of each stratum, entries of rules.

Two kinds of helper relations appear, named with a `^`: the contributions that an aggregate is computed from, one row
for each key, and the rows of an output that is not simply a relation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from whorl.analysis.expressions import calculates
from whorl.analysis.program import Relation
from whorl.diagnostics.errors import UserError
from whorl.logical.plan import Contribution, Filter, Fixpoint, Join, LogicalPlan, Output, RulePlan
from whorl.model.batching import Batching
from whorl.model.schema import Column
from whorl.model.types import Type
from whorl.physical.circles import with_circles
from whorl.physical.frontier import last, rename_rule
from whorl.physical.placement import copied_recursion, place_apart, place_with_exchange
from whorl.physical.plan import Best, Cell, PhysicalPlan, PhysicalRule, PhysicalStratum
from whorl.physical.rounds import assignment, build_rounds
from whorl.physical.rules import NotVectorized, build_rule, expr_type, infer_variables
from whorl.physical.strategies import SHIPS, check_placement, check_strategy, choose_strategy, with_arms
from whorl.syntax import ast


def lower_plan(
    plan: LogicalPlan,
    strategy: str = "auto",
    placement: str = "apart",
    ship: str = "lazy",
    batching: Batching = Batching(),  # noqa: B008  # frozen
) -> PhysicalPlan:
    """Choose how every stratum is maintained and where its rows live, and prepare its rules.

    Partitions that live `apart` never exchange rows; by `join` or `first` they do, with homes chosen so. `auto` lets
    them exchange where a recursion would else be copied. ``ship`` is `lazy` or `eager`, and ``batching``
    says how long the latter gathers: see `PhysicalStratum`.
    """
    check_strategy(strategy)
    check_placement(placement)
    if ship not in SHIPS:
        raise UserError("E404", None, name=ship, known=", ".join(SHIPS))
    placed = _place(plan, strategy, placement)
    strata = tuple(replace(stratum, ship=ship, batching=batching) for stratum in placed.strata)
    return with_circles(replace(placed, strata=strata))


def _place(plan: LogicalPlan, strategy: str, placement: str) -> PhysicalPlan:
    if placement in ("apart", "auto"):
        physical = place_apart(_lower(plan, strategy))
        if placement == "apart" or strategy == "expiry" or not copied_recursion(physical):
            return physical
    return place_with_exchange(_lower(plan, strategy, travelling=True), "first" if placement == "first" else "join")


def _lower(plan: LogicalPlan, strategy: str, *, travelling: bool = False) -> PhysicalPlan:
    lowering = _Lowering(plan, strategy, travelling=travelling)
    for stratum in plan.strata:
        lowering.stratum(stratum)
    outputs = tuple(lowering.output(output) for output in plan.outputs)
    strata = with_arms(lowering.strata) if strategy == "auto" else tuple(lowering.strata)
    return PhysicalPlan(plan, lowering.relations, strata, outputs)


class _Lowering:
    """Collects the strata and the relations of the physical plan."""

    def __init__(self, plan: LogicalPlan, strategy: str, *, travelling: bool) -> None:
        self._plan = plan
        self._strategy = strategy
        self._travelling = travelling
        self._functions = plan.program.functions
        self.relations: dict[str, Relation] = dict(plan.relations)
        self.strata: list[PhysicalStratum] = []

    def stratum(self, stratum: Fixpoint) -> None:
        aggregated = [name for name in stratum.relations if self.relations[name].aggregates]
        if stratum.stages is not None or stratum.selections:
            self._rounds(stratum)
        elif aggregated and stratum.recursive:
            self._best(stratum, aggregated)
        elif aggregated and stratum.rules:
            self._cells(stratum)
        else:  # rows; an aggregate has none if no rule can ever fire
            self._rows(stratum.relations, stratum.rules, stratum)

    def _rows(self, relations: tuple[str, ...], rules: tuple[RulePlan, ...], stratum: Fixpoint) -> bool:
        try:
            own = frozenset(relations)
            built = tuple(build_rule(rule, self.relations, self._functions, own) for rule in rules)
        except NotVectorized as refused:
            self._reference(stratum, str(refused))
            return False
        self._add(relations, built, "rows", recursive=stratum.recursive)
        return True

    def _best(self, stratum: Fixpoint, aggregated: list[str]) -> None:
        """Keep the best row of each group, where every aggregate is a `min` or `max` of one numeric column."""
        best: list[Best] = []
        for name in aggregated:
            relation = self.relations[name]
            chosen = list(relation.aggregates.items())
            numeric = relation.columns[chosen[0][0]].type.numeric
            if len(chosen) > 1 or chosen[0][1] not in ("min", "max") or not numeric:
                self._rounds(stratum)
                return
            best.append(Best(name, *chosen[0]))
        own = frozenset(stratum.relations)
        try:
            rules = tuple(build_rule(rule, self.relations, self._functions, own) for rule in stratum.rules)
        except NotVectorized as refused:
            self._reference(stratum, str(refused))
            return
        strategy, reason = choose_strategy(
            self._strategy, "best", stratum.relations, recursive=True, expires=self._expires(rules)
        )
        if strategy == "expiry":
            self._frontier(stratum, best, reason)
            return
        number = len(self.strata) + 1
        self.strata.append(
            PhysicalStratum(
                number,
                stratum.relations,
                rules,
                recursive=True,
                kind="best",
                strategy=strategy,
                reason=reason,
                best=tuple(best),
                source=stratum,
            )
        )

    def _frontier(self, stratum: Fixpoint, best: list[Best], reason: str) -> None:
        """Keep, under another name and with the value last, all rows of a group that may yet become the best."""
        renamed = {each.relation: (f"{each.relation}^frontier", each.column) for each in best}
        for each in best:
            relation = self.relations[each.relation]
            columns = last(relation.columns, each.column)
            name = renamed[each.relation][0]
            at = len(columns) - 1
            self.relations[name] = replace(relation, name=name, columns=columns, aggregates={at: each.function})
        own = frozenset(renamed[name][0] if name in renamed else name for name in stratum.relations)
        rules = tuple(
            build_rule(rename_rule(rule, renamed), self.relations, self._functions, own) for rule in stratum.rules
        )
        number = len(self.strata) + 1
        names = tuple(renamed[name][0] if name in renamed else name for name in stratum.relations)
        kept = tuple(
            Best(renamed[each.relation][0], len(self.relations[each.relation].columns) - 1, each.function)
            for each in best
        )
        self.strata.append(
            PhysicalStratum(
                number, names, rules, recursive=True, kind="frontier", strategy="expiry", reason=reason, best=kept
            )
        )
        for each in best:
            number = len(self.strata) + 1
            cell = Cell(each.column, each.function, (renamed[each.relation][0],))
            self.strata.append(
                PhysicalStratum(
                    number,
                    (each.relation,),
                    (),
                    recursive=False,
                    kind="front",
                    strategy="expiry",
                    reason="the best row of each frontier",
                    cells=(cell,),
                )
            )

    def _expires(self, rules: tuple[PhysicalRule, ...]) -> bool:
        """Whether rules only add, and what they read carries times of death, or lives for ever.

        Rows that travel between partitions leave their times of death behind.
        """
        if self._travelling:
            return False
        maintained = {name: stratum for stratum in self.strata for name in stratum.relations}
        heads = {rule.relation for rule in rules}
        timed = False
        for rule in rules:
            for step, positive in rule.atoms:
                name = step.relation  # type: ignore[union-attr]
                if not positive:
                    return False
                if name in heads:
                    continue
                if name in maintained:
                    if maintained[name].strategy != "expiry" or maintained[name].kind == "front":
                        return False
                    timed = True
                else:
                    timed |= self.relations[name].dies
        return timed

    def _add(self, relations: tuple[str, ...], rules: tuple[PhysicalRule, ...], kind: str, *, recursive: bool) -> None:
        strategy, reason = choose_strategy(
            self._strategy, kind, relations, recursive=recursive, expires=self._expires(rules)
        )
        number = len(self.strata) + 1
        self.strata.append(PhysicalStratum(number, relations, rules, recursive, kind, strategy, reason))

    def _rounds(self, stratum: Fixpoint) -> None:
        """Run all rules at once, round by round."""
        try:
            rounds = build_rounds(stratum, self.relations, self._functions)
        except NotVectorized as refused:
            self._reference(stratum, str(refused))
            return
        recursive = stratum.recursive
        grouped = rounds.kind == "staged" and any(self.relations[name].aggregates for name in stratum.relations)
        served = "staged groups" if grouped else rounds.kind
        strategy, reason = choose_strategy(
            self._strategy, served, stratum.relations, recursive=recursive, expires=False
        )
        self.strata.append(
            PhysicalStratum(
                len(self.strata) + 1,
                stratum.relations,
                rounds.rules,
                recursive,
                rounds.kind,
                strategy,
                reason,
                source=stratum,
                spaces=rounds.spaces,
            )
        )

    def _reference(self, stratum: Fixpoint, why: str) -> None:
        number = len(self.strata) + 1
        choose_strategy(
            self._strategy, "reference", stratum.relations, recursive=stratum.recursive, expires=False, why=why
        )
        reason = f"the reference evaluator runs it: {why}"
        self.strata.append(
            PhysicalStratum(
                number, stratum.relations, (), stratum.recursive, "reference", "recompute", reason, source=stratum
            )
        )

    def _cells(self, stratum: Fixpoint) -> None:
        """Split an aggregate: the contributions as rows, and the cells that they make."""
        (name,) = stratum.relations
        relation = self.relations[name]
        totals = [column for column, function in relation.aggregates.items() if function not in ("min", "max")]
        if any(relation.columns[column].type is Type.UNKNOWN for column in totals):
            self._reference(stratum, "it adds values that may be of any kind")
            return
        rules: list[RulePlan] = []
        cells: list[Cell] = []
        added: list[str] = []
        for column, function in relation.aggregates.items():
            sources: dict[str, None] = {}
            for rule in stratum.rules:
                helper, contributing = self._contribution(rule, column, stratum)
                if helper.name not in self.relations:
                    added.append(helper.name)
                    self.relations[helper.name] = helper
                elif self.relations[helper.name].columns != helper.columns:
                    for each in added:
                        self.relations.pop(each, None)
                    self._rounds(stratum)
                    return
                sources[helper.name] = None
                rules.append(contributing)
            cells.append(Cell(column, function, tuple(sources)))
        if not self._rows(tuple(dict.fromkeys(rule.relation for rule in rules)), tuple(rules), stratum):
            return
        number = len(self.strata) + 1
        reason = "each group follows the changes of its contributions"
        self.strata.append(
            PhysicalStratum(
                number,
                (name,),
                (),
                recursive=False,
                kind="cells",
                strategy="counting",
                reason=reason,
                cells=tuple(cells),
                source=stratum,
            )
        )

    def _contribution(self, rule: RulePlan, column: int, stratum: Fixpoint) -> tuple[Relation, RulePlan]:
        """Return the relation that holds what a rule contributes to a column, and the rule that derives it."""
        own = rule.args[column]
        assert isinstance(own, Contribution)
        group = [arg for arg in rule.args if not isinstance(arg, Contribution)]
        keys: list[ast.Expr]
        if own.function in ("min", "max"):
            suffix, keys = "best", []
        elif own.key is not None:
            suffix, keys = "key", list(own.key)
        else:
            suffix, keys = f"{rule.origin}", list(assignment(rule, stratum))
        relation = self.relations[rule.relation]
        types = infer_variables(rule, rule.steps, self.relations, self._functions)
        columns = [c for i, c in enumerate(relation.columns) if i not in relation.aggregates]
        for at, key in enumerate(keys):
            columns.append(Column(f"key{at + 1}", expr_type(key, types, self._functions)))
        columns.append(Column("value", relation.columns[column].type))
        name = f"{rule.relation}^{column + 1}^{suffix}"
        helper = Relation(name, "derived", tuple(replace(c, key=False) for c in columns))
        args = (*group, *keys, own.value)
        steps = (*rule.steps, *self._with_values(rule, own))
        return helper, RulePlan(name, args, steps, rule.origin, (), rule.span)

    def _with_values(self, rule: RulePlan, own: Contribution) -> Iterator[Filter]:
        """Yield a condition for what else the head calculates: without a value there, nothing contributes here."""
        for arg in rule.args:
            if isinstance(arg, Contribution) and arg is not own:
                for expr in (arg.value, *(arg.key or ())):
                    if calculates(expr, self._functions):
                        yield Filter("=", expr, expr)

    def output(self, output: Output) -> Output:
        """Return an output that reads a relation as it is, with a helper relation if need be."""
        names = [arg.name for arg in output.args if isinstance(arg, ast.Variable)]
        if len(set(names)) == len(output.args):
            return output
        relation = self.relations[output.relation]
        shown = [i for i, arg in enumerate(output.args) if not isinstance(arg, ast.Anonymous)]
        name = f"out^{output.name}"
        columns = tuple(replace(relation.columns[i], key=False) for i in shown)
        self.relations[name] = Relation(name, "derived", columns)
        rule = RulePlan(name, tuple(output.args[i] for i in shown), (Join(output.relation, output.args),), -1)
        self._rows((name,), (rule,), Fixpoint((name,), (rule,), recursive=False))
        fresh = tuple(ast.Variable(f"{at}") for at in range(len(shown)))
        return replace(output, relation=name, args=fresh)
