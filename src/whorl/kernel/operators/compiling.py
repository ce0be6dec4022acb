"""From the steps of a rule to a pipeline: entered at an atom, at nothing, or at rows of the head.

With `trace`, the numbers of the rows that a derivation uses come along, one column for each positive atom, after the
columns of the head.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from whorl.analysis.program import variable_names
from whorl.kernel.arrays import index as index_arrays
from whorl.kernel.operators.expressions import Condition, Scope, compile_condition, compile_expr
from whorl.kernel.operators.joins import AbsentRow, ProbeIndex, ProbeRow
from whorl.kernel.operators.lines import AddColumn, Arrange, KeepLines, MatchPattern
from whorl.kernel.operators.pipeline import Operator, Pipeline, State
from whorl.kernel.state.owner import Owner
from whorl.kernel.state.relation import Ints, StoredRelation
from whorl.logical.plan import AntiJoin, Contribution, Extend, Filter, Join, Lacks, Step, Unnest
from whorl.logical.steps import step_uses
from whorl.model.types import Type
from whorl.physical.plan import PhysicalRule
from whorl.physical.rules import enters_as, head_name
from whorl.syntax import ast

HEAD = "#head"


class _Builder:
    """Compiles the steps of one entry, keeping track of where each variable stands."""

    def __init__(
        self, state: State, types: Mapping[str, Type], steps: tuple[Step, ...], outputs: Sequence[str], used: set[str]
    ) -> None:
        self._state = state
        self._types = types
        self._steps = steps
        self._outputs = outputs
        self._used_at_end = used | set(outputs)
        self.names: list[str] = []
        self.operators: list[Operator] = []
        self.owned: str | None = None  # a variable whose value the partition must own, until that is checked

    def scope(self) -> Scope:
        places = {name: place for place, name in enumerate(self.names)}
        return Scope(places, self._types, self._state.functions, self._state.dictionary, self._state.faults)

    def _needed(self, at: int) -> set[str]:
        later = set(self._used_at_end)
        for step in self._steps[at + 1 :]:
            later |= step_uses(step)
        return later

    def check_owner(self) -> None:
        """Drop the lines of other partitions, as soon as the variable that tells is there."""
        owner = self._state.owner
        if owner is not None and self.owned in self.names:
            self.operators.append(KeepLines(_owns(owner, self.names.index(self.owned), self._types[self.owned])))
            self.owned = None

    def add(self, at: int, step: Step, atom: int | None) -> None:
        if isinstance(step, Join):
            assert atom is not None
            self._join(at, step, atom)
        elif isinstance(step, AntiJoin):
            assert atom is not None
            self._absent(step, atom)
        elif isinstance(step, Filter):
            self.operators.append(KeepLines(compile_condition(step.operator, step.left, step.right, self.scope())))
        elif isinstance(step, Extend) and isinstance(step.pattern, ast.Variable):
            self._extend(at, step.pattern, step.value)
        else:
            assert isinstance(step, Extend | Unnest | Lacks)
            self._match(at, step)

    def _constant(self, value: ast.Constant, kind: Type) -> int:
        """Return the column that holds a constant as a value of a type."""
        name = f"={value.value!r}: {kind}"
        if name not in self.names:
            number = self._state.dictionary.encode(value.value, kind)
            keep = np.arange(len(self.names), dtype=np.int64)
            self.operators.append(AddColumn(lambda batch: (np.full(len(batch), number, np.int64), None), keep))
            self.names.append(name)
        return self.names.index(name)

    def _keys(self, relation: StoredRelation, args: tuple[ast.Expr, ...]) -> tuple[tuple[int, ...], Ints]:
        columns: list[int] = []
        keys: list[int] = []
        for column, arg in enumerate(args):
            if isinstance(arg, ast.Constant):
                columns.append(column)
                keys.append(self._constant(arg, relation.types[column]))
            elif isinstance(arg, ast.Variable) and arg.name in self.names:
                columns.append(column)
                keys.append(self.names.index(arg.name))
        return tuple(columns), np.array(keys, np.int64)

    def _join(self, at: int, step: Join, atom: int) -> None:
        relation = self._state.relations[step.relation]
        columns, keys = self._keys(relation, step.args)
        sources = {name: place for place, name in enumerate(self.names)}
        for column, arg in enumerate(step.args):
            if isinstance(arg, ast.Variable) and column not in columns:
                sources[arg.name] = -2 - column
        sources[row_name(atom)] = index_arrays.ROW_NUMBER
        if at == len(self._steps) - 1 and self._outputs and all(name in sources for name in self._outputs):
            names = list(self._outputs)  # the last join writes the result as it is wanted
        else:
            needed = self._needed(at)
            names = [name for name in sources if name in needed]
        wants = [sources[name] for name in names]
        wanted = np.array(wants, np.int64)
        work = self._state.work
        if len(columns) == relation.width:
            self.operators.append(ProbeRow(relation, keys, wanted, atom, work))
        else:
            self.operators.append(ProbeIndex(relation, columns, keys, wanted, atom, work))
        self.names = names

    def _absent(self, step: AntiJoin, atom: int) -> None:
        relation = self._state.relations[step.relation]
        columns, keys = self._keys(relation, step.args)
        if not step.args:
            columns, keys = (0,), np.array([self._constant(ast.Constant(0), Type.INTEGER)], np.int64)
        self.operators.append(AbsentRow(relation, columns, keys, atom, self._state.work))

    def _extend(self, at: int, variable: ast.Variable, value: ast.Expr) -> None:
        scope = self.scope()
        if variable.name in self.names:
            self.operators.append(KeepLines(compile_condition("=", variable, value, scope)))
            return
        column = compile_expr(value, scope, self._types[variable.name])
        names = [name for name in self.names if name in self._needed(at)]
        keep = np.array([self.names.index(name) for name in names], np.int64)
        self.operators.append(AddColumn(column, keep))
        self.names = [*names, variable.name]

    def _match(self, at: int, step: Extend | Unnest | Lacks) -> None:
        scope = self.scope()
        pattern = step.pattern if isinstance(step, Extend) else step.item
        new = () if isinstance(step, Lacks) else tuple(sorted(variable_names(pattern) - set(self.names)))
        names = [name for name in self.names if name in self._needed(at)]
        keep = np.array([self.names.index(name) for name in names], np.int64)
        self.operators.append(MatchPattern(step, scope, new, keep))
        self.names = [*names, *new]

    def enter(self, args: Sequence[ast.Expr], kinds: Sequence[Type], names: Sequence[str]) -> None:
        """Take a batch whose first columns are those of an atom's arguments, followed by others with names."""
        own: list[str] = []
        for at, arg in enumerate(args):
            repeated = isinstance(arg, ast.Variable) and arg.name in own
            if isinstance(arg, ast.Variable) and repeated:
                self.operators.append(KeepLines(_same(at, own.index(arg.name))))
            own.append(arg.name if isinstance(arg, ast.Variable) and not repeated else f"@{at}")
        self.names = [*(own or ["@0"]), *names]
        for at, arg in enumerate(args):
            if isinstance(arg, ast.Constant):
                self.operators.append(KeepLines(_equals(at, self._state.dictionary.encode(arg.value, kinds[at]))))

    def finish(self, args: Sequence[ast.Expr], kinds: Sequence[Type], names: Sequence[str]) -> Pipeline:
        """Arrange the columns of the result: expressions with their types, then columns by name."""
        if self.names == [*self._outputs] and len(self._outputs) == len(args) + len(names):
            return Pipeline(self.operators, len(self.names))
        places: list[int] = []
        for arg, kind in zip(args, kinds, strict=True):
            if isinstance(arg, ast.Variable) and self._types.get(arg.name) is kind:
                places.append(self.names.index(arg.name))
                continue
            column = compile_expr(arg, self.scope(), kind)
            keep = np.arange(len(self.names), dtype=np.int64)
            self.operators.append(AddColumn(column, keep))
            self.names.append(f"={len(self.names)}")
            places.append(len(self.names) - 1)
        places.extend(self.names.index(name) for name in names)
        self.operators.append(Arrange(np.array(places, np.int64)))
        return Pipeline(self.operators, len(places))


def _same(column: int, other: int) -> Condition:
    return lambda batch: batch[:, column] == batch[:, other]


def _equals(column: int, number: int) -> Condition:
    return lambda batch: batch[:, column] == number


def _owns(owner: Owner, column: int, kind: Type) -> Condition:
    return lambda batch: owner.owns(batch[:, column], kind)


def compile_at_atom(
    rule: PhysicalRule, atom: int, state: State, kinds: Sequence[Type], *, trace: bool, also: Sequence[str] = ()
) -> Pipeline:
    """Compile the entry of a rule at an atom.

    A batch holds rows of the atom's relation, with ``trace`` followed by their numbers. The result holds the columns of
    the head, with ``trace`` followed by the number of each positive atom's row, and those of some variables ``also``.
    """
    step, positive = rule.atoms[atom]
    assert isinstance(step, Join | AntiJoin)
    entered = [row_name(atom)] if trace and positive else []
    own = state.relations[step.relation].types
    return _compile(rule, rule.at_atom[atom], step.args, own, entered, state, kinds, trace=trace, also=also)


def compile_at_nothing(
    rule: PhysicalRule, state: State, kinds: Sequence[Type], *, trace: bool, also: Sequence[str] = ()
) -> Pipeline:
    """Compile the entry of a rule without atoms: a batch of one line gives its rows."""
    return _compile(rule, rule.at_nothing, (), (), [], state, kinds, trace=trace, also=also)


def _compile(
    rule: PhysicalRule,
    steps: tuple[Step, ...],
    entered: Sequence[ast.Expr],
    entered_kinds: Sequence[Type],
    entered_names: Sequence[str],
    state: State,
    kinds: Sequence[Type],
    *,
    trace: bool,
    also: Sequence[str],
) -> Pipeline:
    args = [arg.value if isinstance(arg, Contribution) else arg for arg in rule.args]
    if not args:  # a relation without columns holds the row (0)
        args, kinds = [ast.Constant(0)], [Type.INTEGER]
    numbers = [*_row_names(rule), *also] if trace else []
    plain = all(isinstance(a, ast.Variable) and rule.types.get(a.name) is k for a, k in zip(args, kinds, strict=True))
    outputs = [*(arg.name for arg in args if isinstance(arg, ast.Variable)), *numbers] if plain else []
    used = set(numbers).union(*(variable_names(arg) for arg in args))
    builder = _Builder(state, rule.types, steps, outputs, used)
    owned = args[rule.owned] if rule.owned is not None else None
    early = isinstance(owned, ast.Variable) and rule.types.get(owned.name) is kinds[rule.owned or 0]
    builder.owned = owned.name if early and isinstance(owned, ast.Variable) else None
    builder.enter(entered, entered_kinds, entered_names)
    _add_steps(builder, rule, steps)
    pipeline = builder.finish(args, kinds, numbers)
    if state.owner is None or rule.owned is None or early:
        return pipeline
    check = KeepLines(_owns(state.owner, rule.owned, kinds[rule.owned]))
    return Pipeline([*builder.operators, check], pipeline.width)


def compile_at_head(rule: PhysicalRule, state: State) -> Pipeline:
    """Compile the search for derivations of given rows.

    A batch holds rows of the head, without aggregated columns, followed by a number of one's own. The result holds that
    number, and the number of each positive atom's row; where a column is aggregated, its value comes before them.
    """
    args: list[ast.Expr] = []
    kinds: list[Type] = []
    values: list[ast.Expr] = []
    value_kinds: list[Type] = []
    seen: set[str] = set()
    types = state.relations[rule.relation].types
    for position, arg in enumerate(rule.args):
        if isinstance(arg, Contribution):
            values.append(arg.value)
            value_kinds.append(types[position])
            continue
        plain = enters_as(arg, rule.types, types[position]) and arg.name not in seen
        seen |= {arg.name} if plain and isinstance(arg, ast.Variable) else set()
        args.append(arg if plain else ast.Variable(head_name(position)))
        kinds.append(types[position])
    if values:
        return _compile_values_at_head(rule, state, args, kinds, values, value_kinds)
    outputs = [HEAD, *_row_names(rule)]
    builder = _Builder(state, rule.types, rule.at_head, outputs, set())
    builder.enter(args, kinds, [HEAD])
    _add_steps(builder, rule, rule.at_head)
    return builder.finish([], [], outputs)


def compile_absence(rule: PhysicalRule, state: State, names: Sequence[str]) -> Pipeline:
    """Compile the test that nothing negated is there.

    A batch holds the values of variables, those that negated atoms have, and a number of one's own. The result holds
    the numbers of the lines that pass.
    """
    steps = tuple(step for step, positive in rule.atoms if not positive)
    builder = _Builder(state, rule.types, steps, [], {HEAD})
    builder.names = [*names, HEAD]
    _add_steps(builder, rule, steps)
    return builder.finish([], [], [HEAD])


def _compile_values_at_head(
    rule: PhysicalRule,
    state: State,
    args: Sequence[ast.Expr],
    kinds: Sequence[Type],
    values: Sequence[ast.Expr],
    value_kinds: Sequence[Type],
) -> Pipeline:
    numbers = _row_names(rule)
    used = {HEAD, *numbers}.union(*(variable_names(value) for value in values))
    builder = _Builder(state, rule.types, rule.at_head, [], used)
    builder.enter(args, kinds, [HEAD])
    _add_steps(builder, rule, rule.at_head)
    return builder.finish(values, value_kinds, [HEAD, *numbers])


def _row_names(rule: PhysicalRule) -> list[str]:
    return [row_name(atom) for atom, (_step, positive) in enumerate(rule.atoms) if positive]


def _add_steps(builder: _Builder, rule: PhysicalRule, steps: tuple[Step, ...]) -> None:
    atoms = [step for step, _positive in rule.atoms]
    builder.check_owner()
    for at, step in enumerate(steps):
        atom = next((number for number, other in enumerate(atoms) if other is step), None)
        builder.add(at, step, atom)
        builder.check_owner()


def row_name(atom: int) -> str:
    """Return the name of the column that holds the number of an atom's row."""
    return f"#{atom}"
