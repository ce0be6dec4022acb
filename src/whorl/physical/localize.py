"""Let every rule find what it needs where it runs, and let rows travel: a plan for partitions that exchange.

Every relation has a home: the owner of one of its columns, or every partition. A rule runs where one of its variables
lives. An atom whose relation lives by another column is read from a copy that lives by that one; an atom without the
variable, from a copy of all. What the rule derives for another home is kept as its export (`name^out`), whose rows
arrive at home as imports (`name^in`), signed by the sender; a plain rule takes them over. So all rules are local, and
only copies of relations cross: see `Channel`.

    reachable(X, Y) :- link(X, Z), reachable(Z, Y).

with homes by the first column becomes, at the owner of Z,

    reachable^out(X, Y) :- link^2(X, Z), reachable(Z, Y).
    reachable(X, Y) :- reachable^in(X, Y, _).

where `link^2` is a copy of `link` that lives by its second column. Exports of a recursion belong to its fixpoint; those
of other rules are sent once. Strata that only run as a whole read copies of everything, in every partition.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from whorl.analysis.program import Relation
from whorl.logical.plan import AntiJoin, Contribution, Fixpoint, Join, RulePlan, SemiJoin, Step
from whorl.model.schema import Column
from whorl.model.types import Type
from whorl.physical.alignment import same_kind
from whorl.physical.plan import Channel, PhysicalPlan, PhysicalRule, PhysicalStratum, Placed
from whorl.physical.rounds import enter_groups
from whorl.physical.rules import build_rule
from whorl.syntax import ast

_MIRROR, _EVERYWHERE, _SHIP = 2, 6, 3  # what a copy, a copy of all, and shipping what is derived are taken to cost
Homes = Mapping[str, int | None]


def localize(plan: PhysicalPlan, placement: Mapping[str, Placed]) -> PhysicalPlan:
    """Return the plan with local rules, and channels for what crosses."""
    work = _Localizing(plan, {name: placed.column for name, placed in placement.items()})
    for stratum in plan.strata:
        work.stratum(stratum)
    places = {**placement, **work.places}
    return replace(plan, relations=work.relations, strata=tuple(work.strata), placement=places)


def travels(stratum: PhysicalStratum) -> bool:
    """Whether the rows of a stratum may be derived in one partition for another."""
    return stratum.kind in ("rows", "best", "selected") and stratum.strategy != "expiry"


@dataclass(frozen=True, slots=True)
class _Site:
    """Where a rule runs: a variable that lives there (None: everywhere), and what that costs."""

    variable: str | None
    cost: int


@dataclass(slots=True)
class _Localizing:
    """Rewrites strata in their order."""

    plan: PhysicalPlan
    homes: Homes
    relations: dict[str, Relation] = field(default_factory=dict)
    strata: list[PhysicalStratum] = field(default_factory=list)
    places: dict[str, Placed] = field(default_factory=dict)
    _fed: set[str] = field(default_factory=set)
    # Relations of which copies inside the recursion also hold rows that were beaten: labels tell what more is known.
    _candidates: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.relations = dict(self.plan.relations)

    def stratum(self, stratum: PhysicalStratum) -> None:
        """Add what a stratum becomes."""
        if not travels(stratum):
            self._whole(stratum)
            return
        rules: list[tuple[RulePlan, int | None]] = []
        channels: dict[str, Channel] = {}
        for rule in stratum.rules:
            rules.append(self._rule(rule, stratum, channels))
        for head in dict.fromkeys(channel.target for channel in channels.values() if channel.signed):
            rules.append((self._taking(head), None))
        exports = tuple(dict.fromkeys(each.source for each in channels.values() if each.signed))
        own = (*stratum.relations, *exports)
        if stratum.recursive:
            inner = [each for each in channels.values() if each.source in own]
            self._add(stratum, own, rules, [each for each in channels.values() if each not in inner], inner)
            if stratum.best and stratum.strategy == "absorption":
                self._candidates |= set(stratum.relations)
            return
        sending = [(rule, owned) for rule, owned in rules if rule.relation in exports]
        late = [each for each in channels.values() if each.source in exports]
        early = [each for each in channels.values() if each not in late]
        if exports:
            self._add(stratum, exports, sending, early, [])
        self._add(stratum, stratum.relations, [each for each in rules if each not in sending], [*early, *late], [])

    def _add(
        self,
        stratum: PhysicalStratum,
        own: tuple[str, ...],
        rules: list[tuple[RulePlan, int | None]],
        feeds: list[Channel],
        channels: list[Channel],
    ) -> None:
        functions = self.plan.logical.program.functions
        source = _with_choices(stratum.source, own)
        built = [
            replace(build_rule(rule, self.relations, functions, frozenset(own)), owned=owned) for rule, owned in rules
        ]
        if source is not None and not channels:  # else the stratum starts anew with every change
            groups = [enter_groups(rule, source, self.relations, functions) for rule in built]
            built = [replace(rule, at_groups=each) for rule, each in zip(built, groups, strict=True)]
        best = tuple(
            replace(each, relation=name)
            for each in stratum.best
            for name in (each.relation, f"{each.relation}^out")
            if name in own
        )
        self._append(
            replace(
                stratum,
                relations=own,
                rules=tuple(built),
                best=best,
                source=source,
                arms=(),
                feeds=self._first(feeds),
                channels=tuple(channels),
            )
        )

    def _append(self, stratum: PhysicalStratum) -> None:
        self.strata.append(replace(stratum, number=len(self.strata) + 1))

    def _first(self, feeds: list[Channel]) -> tuple[Channel, ...]:
        """Return those channels that no stratum before has fed."""
        fresh = tuple(each for each in feeds if each.target not in self._fed)
        self._fed |= {each.target for each in fresh}
        return fresh

    def _whole(self, stratum: PhysicalStratum) -> None:
        """Add a stratum that runs as it is; what it reads it finds where it is, or everywhere."""
        if stratum.kind in ("cells", "front"):  # their sources have the same home
            self._append(stratum)
            return
        copies: dict[str, Channel] = {}
        placed = [name for name in stratum.inputs() if self.homes.get(name) is not None]
        renamed = {name: self._copy(name, None, copies) for name in placed}
        self._append(replace(_renamed(stratum, renamed), feeds=self._first(list(copies.values()))))

    # Rules

    def _rule(
        self, rule: PhysicalRule, stratum: PhysicalStratum, channels: dict[str, Channel]
    ) -> tuple[RulePlan, int | None]:
        """Return a rule that runs at its best site, and the column by which it keeps only what its partition owns."""
        site = min(self._sites(rule, stratum), key=lambda each: each.cost)
        steps: list[Step] = []
        for step in rule.rule.steps:
            if isinstance(step, Join | AntiJoin) and self.homes.get(step.relation) is not None:
                steps.append(replace(step, relation=self._read(step, site.variable, channels)))
            else:
                steps.append(step)
        local = replace(rule.rule, steps=tuple(steps))
        home = self.homes.get(rule.relation)
        if site.variable is None:
            return local, home
        if home is not None and self._lives(rule, site.variable):
            return local, None
        return replace(local, relation=self._export(rule.relation, channels)), None

    def _sites(self, rule: PhysicalRule, stratum: PhysicalStratum) -> Iterator[_Site]:
        """Yield where a rule could run: everywhere, or at a variable of something that is read and not everywhere."""
        atoms = [step for step, _positive in rule.atoms if isinstance(step, Join | AntiJoin)]
        atoms = [step for step in atoms if self.homes.get(step.relation) is not None]
        yield _Site(None, _EVERYWHERE * len(atoms))
        args = [arg for step in atoms if isinstance(step, Join) for arg in step.args]
        for name in dict.fromkeys(arg.name for arg in args if isinstance(arg, ast.Variable)):
            cost = 0 if self._lives(rule, name) else _SHIP
            for step in atoms:
                weight = 2 if step.relation in stratum.relations else 1
                cost += weight * self._distance(step, name)
            yield _Site(name, cost)

    def _distance(self, step: Join | AntiJoin, variable: str) -> int:
        places = _places(step, variable)
        if self.homes[step.relation] in places:
            return 0
        return _MIRROR if places else _EVERYWHERE

    def _lives(self, rule: PhysicalRule, variable: str) -> bool:
        """Whether the home of what a rule derives is the owner of a variable."""
        home = self.homes.get(rule.relation)
        if home is None:
            return False
        arg = rule.args[home]
        kinds = (rule.types.get(variable, Type.UNKNOWN), self.relations[rule.relation].columns[home].type)
        return isinstance(arg, ast.Variable) and arg.name == variable and same_kind(*kinds)

    def _read(self, step: Join | AntiJoin, variable: str | None, channels: dict[str, Channel]) -> str:
        """Return the relation that an atom reads at a site: its own, or a copy."""
        places = [] if variable is None else _places(step, variable)
        if self.homes[step.relation] in places:
            return step.relation
        return self._copy(step.relation, places[0] if places else None, channels)

    def _copy(self, name: str, column: int | None, channels: dict[str, Channel]) -> str:
        copy = f"{name}^{'all' if column is None else column + 1}{'^kept' if name in self._candidates else ''}"
        columns = tuple(replace(each, key=False) for each in self.relations[name].columns)
        self.relations[copy] = Relation(copy, "derived", columns)
        channels[copy] = Channel(name, copy, column)
        self.places[copy] = Placed(column, f"a copy of {name}")
        return copy

    def _export(self, name: str, channels: dict[str, Channel]) -> str:
        """Return the relation for rows that are derived here for another home."""
        out, arriving = f"{name}^out", f"{name}^in"
        relation = self.relations[name]
        columns = tuple(replace(each, key=False) for each in relation.columns)
        self.relations[out] = Relation(out, "derived", columns, aggregates=dict(relation.aggregates))
        self.relations[arriving] = Relation(arriving, "derived", (*columns, Column("sender", Type.INTEGER)))
        channels[arriving] = Channel(out, arriving, self.homes[name], signed=True)
        return out

    def _taking(self, arriving: str) -> RulePlan:
        """Return the rule that takes over what arrives for a relation."""
        name = arriving.removesuffix("^in")
        relation = self.relations[name]
        columns = [ast.Variable(f"{at + 1}$in") for at in range(len(relation.columns))]
        args = tuple(
            Contribution(relation.aggregates[at], column) if at in relation.aggregates else column
            for at, column in enumerate(columns)
        )
        return RulePlan(name, args, (Join(arriving, (*columns, ast.Anonymous())),), -1)


def _with_choices(source: Fixpoint | None, own: tuple[str, ...]) -> Fixpoint | None:
    """Return what a stratum comes from, with the choices among its rows also made among those that leave."""
    if source is None:
        return None
    selections = [replace(each, relation=f"{each.relation}^out") for each in source.selections]
    return replace(source, selections=(*source.selections, *(each for each in selections if each.relation in own)))


def _places(step: Join | AntiJoin, variable: str) -> list[int]:
    """Return the columns of an atom that hold a variable."""
    return [at for at, arg in enumerate(step.args) if isinstance(arg, ast.Variable) and arg.name == variable]


def _renamed(stratum: PhysicalStratum, names: Mapping[str, str]) -> PhysicalStratum:
    """Return a stratum that reads other relations."""
    if not names:
        return stratum
    rules = tuple(_renamed_rule(rule, names) for rule in stratum.rules)
    source = stratum.source
    if source is not None:
        plans = tuple(replace(rule, steps=tuple(_renamed_step(s, names) for s in rule.steps)) for rule in source.rules)
        source = replace(source, rules=plans)
    return replace(stratum, rules=rules, source=source)


def _renamed_rule(rule: PhysicalRule, names: Mapping[str, str]) -> PhysicalRule:
    """Return a rule that reads other relations; a step stays one object, wherever it stands."""
    made: dict[int, Step] = {}

    def renamed(steps: tuple[Step, ...]) -> tuple[Step, ...]:
        return tuple(made.setdefault(id(step), _renamed_step(step, names)) for step in steps)

    return replace(
        rule,
        rule=replace(rule.rule, steps=renamed(rule.rule.steps)),
        atoms=tuple((renamed((step,))[0], positive) for step, positive in rule.atoms),
        at_atom=tuple(renamed(steps) for steps in rule.at_atom),
        at_head=renamed(rule.at_head),
        at_nothing=renamed(rule.at_nothing),
        at_groups=tuple(replace(entry, steps=renamed(entry.steps)) for entry in rule.at_groups),
    )


def _renamed_step(step: Step, names: Mapping[str, str]) -> Step:
    if isinstance(step, Join | SemiJoin | AntiJoin) and step.relation in names:
        return replace(step, relation=names[step.relation])
    return step


def explain_channels(plan: PhysicalPlan) -> Iterator[str]:
    """Yield what partitions send each other."""
    if not plan.exchanges:
        return
    yield "Exchange"
    for stratum in plan.strata:
        for channel in (*stratum.feeds, *stratum.channels):
            when = "until the fixpoint" if channel in stratum.channels else "once an epoch"
            if channel.column is None:
                where = "to all"
            else:
                column = plan.relations[channel.source].columns[channel.column]
                where = f"to the owner of column {channel.column + 1} ({column.name})"
            yield f"  {channel.source} -> {channel.target}: {where}, {when}"
