"""A rule as a pipeline: a batch of bindings enters, chunks of head rows come out.

Each operator takes a batch (a line a binding, a column a variable) and gives chunks. A join looks up an index and takes
along only what later operators need. With `trace`, the numbers of the rows that a derivation uses come along too, one
column for each positive atom, after the columns of the head.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from whorl.analysis.expressions import Binding, match
from whorl.analysis.program import variable_names
from whorl.kernel.arrays import index as index_arrays
from whorl.kernel.operators.expressions import (
    Column,
    Condition,
    Mask,
    Scope,
    compile_condition,
    compile_expr,
    evaluate_lines,
    fit,
)
from whorl.kernel.state.dictionary import Dictionary
from whorl.kernel.state.frontier import Frontier
from whorl.kernel.state.owner import Owner
from whorl.kernel.state.relation import Ints, StoredRelation
from whorl.logical.plan import AntiJoin, Contribution, Extend, Filter, Join, Lacks, Step, Unnest
from whorl.logical.steps import step_uses
from whorl.model.functions import Function
from whorl.model.report import Work
from whorl.model.types import Type
from whorl.model.values import LIST, Term, Value
from whorl.physical.plan import PhysicalRule
from whorl.physical.rules import enters_as, head_name
from whorl.syntax import ast

CHUNK = 8192


@dataclass
class State:
    """What pipelines run on."""

    relations: Mapping[str, StoredRelation]
    dictionary: Dictionary
    functions: Mapping[str, Function]
    work: Work = field(default_factory=Work)
    owner: Owner | None = None  # which partition this is, if there are several
    now: int | None = None  # event time
    frontiers: dict[str, Frontier] = field(default_factory=dict)


class Operator(Protocol):
    """Batches in, chunks out; ``needs`` gives for each atom the flag bit that its rows must have."""

    def chunks(self, batch: Ints, needs: Sequence[int]) -> Iterator[Ints]:
        """Yield what a batch becomes."""


class ProbeIndex:
    """Join with the rows that hold the key."""

    def __init__(
        self, relation: StoredRelation, columns: tuple[int, ...], keys: Ints, wants: Ints, atom: int, work: Work
    ) -> None:
        self._relation = relation
        self._index = relation.index(columns)
        self._keys = keys
        self._wants = wants
        self._atom = atom
        self._work = work

    def chunks(self, batch: Ints, needs: Sequence[int]) -> Iterator[Ints]:
        self._work.probes += len(batch)
        state = np.array([0, 0, needs[self._atom], 0], np.int64)
        room = CHUNK if len(batch) > 64 else 512
        while state[0] < len(batch):
            out = np.empty((room, len(self._wants)), np.int64)
            # Later operators may have grown the arrays since the last call: ask for them each time.
            made = index_arrays.probe(
                batch, self._keys, self._index.arrays(), self._relation.arrays, self._wants, out, state
            )
            if made:
                yield out[:made]
            room = CHUNK
        self._work.matches += int(state[3])


class ProbeRow:
    """Join with the one row whose columns are all known."""

    def __init__(self, relation: StoredRelation, keys: Ints, wants: Ints, atom: int, work: Work) -> None:
        self._relation = relation
        self._keys = keys
        self._wants = wants
        self._atom = atom
        self._work = work

    def chunks(self, batch: Ints, needs: Sequence[int]) -> Iterator[Ints]:
        self._work.probes += len(batch)
        out = np.empty((len(batch), len(self._wants)), np.int64)
        need = needs[self._atom]
        made = index_arrays.probe_rows(batch, self._keys, self._relation.arrays, self._wants, out, need)
        self._work.matches += made
        if made:
            yield out[:made]


class AbsentRow:
    """Keep the lines for which no row holds the key."""

    def __init__(self, relation: StoredRelation, columns: tuple[int, ...], keys: Ints, atom: int, work: Work) -> None:
        self._relation = relation
        self._columns = columns
        self._keys = keys
        self._atom = atom
        self._work = work

    def chunks(self, batch: Ints, needs: Sequence[int]) -> Iterator[Ints]:
        self._work.probes += len(batch)
        kept = batch[~has_row(self._relation, self._columns, batch, self._keys, needs[self._atom])]
        if len(kept):
            yield kept


def has_row(relation: StoredRelation, columns: tuple[int, ...], batch: Ints, keys: Ints, need: int) -> Mask:
    """Tell for which lines some row, alive by ``need``, has the values of columns ``keys`` in ``columns``."""
    if len(columns) == relation.width:
        found = relation.find(batch, keys)
        present = found >= 0
        present[present] = relation.is_alive(found[present], need)
        return present
    if not columns:
        return np.full(len(batch), len(relation.alive(need)) > 0)
    out = np.zeros(len(batch), np.uint8)
    index_arrays.test_keys(batch, keys, relation.index(columns).arrays(), relation.arrays, need, out)
    return out.view(np.bool_)


class KeepLines:
    """Keep the lines for which a condition holds."""

    def __init__(self, condition: Condition) -> None:
        self._condition = condition

    def chunks(self, batch: Ints, _needs: Sequence[int]) -> Iterator[Ints]:
        kept = batch[self._condition(batch)]
        if len(kept):
            yield kept


class AddColumn:
    """Add a calculated column, and drop the lines without a value."""

    def __init__(self, column: Column, keep: Ints) -> None:
        self._column = column
        self._keep = keep

    def chunks(self, batch: Ints, _needs: Sequence[int]) -> Iterator[Ints]:
        values, valid = self._column(batch)
        out = np.empty((len(batch), len(self._keep) + 1), np.int64)
        out[:, :-1] = batch[:, self._keep]
        out[:, -1] = values
        if valid is not None:
            out = out[valid]
        if len(out):
            yield out


class MatchPattern:
    """Take values apart line by line: patterns, elements of lists."""

    def __init__(self, step: Extend | Unnest | Lacks, scope: Scope, new: tuple[str, ...], keep: Ints) -> None:
        self._step = step
        self._scope = scope
        self._new = new
        self._keep = keep
        self._value = compile_values(step.value if isinstance(step, Extend) else step.items, scope)
        pattern = step.pattern if isinstance(step, Extend) else step.item
        self._pattern = pattern
        self._known = sorted(variable_names(pattern) - set(new))

    def chunks(self, batch: Ints, _needs: Sequence[int]) -> Iterator[Ints]:
        lines: list[int] = []
        found: list[list[int]] = []
        for line, value in enumerate(self._value(batch)):
            if value is None:
                continue
            binding = {
                name: self._scope.dictionary.decode_column(
                    batch[line : line + 1, self._scope.places[name]], self._scope.types[name]
                )[0]
                for name in self._known
            }
            for row in self._matches(value, binding):
                lines.append(line)
                found.append(row)
        if lines:
            out = np.empty((len(lines), len(self._keep) + len(self._new)), np.int64)
            out[:, : len(self._keep)] = batch[np.array(lines)][:, self._keep]
            if self._new:
                out[:, len(self._keep) :] = np.array(found, np.int64)
            yield out

    def _matches(self, value: Value, binding: Binding) -> list[list[int]]:
        functions = self._scope.functions
        if isinstance(self._step, Extend):
            items: tuple[Value, ...] = (value,)
        elif isinstance(value, Term) and value.name == LIST:
            items = value.args
        else:
            return []
        rows: dict[tuple[int, ...], None] = {}
        for item in items:
            extended = match(self._pattern, item, binding, functions)
            if extended is None:
                continue
            encoded = [self._encode(extended[name], self._scope.types[name]) for name in self._new]
            if None not in encoded:
                rows[tuple(number for number in encoded if number is not None)] = None
        if isinstance(self._step, Lacks):
            return [] if rows else [[]]
        return [list(row) for row in rows]

    def _encode(self, value: Value, kind: Type) -> int | None:
        fitting = fit(value, kind)
        return None if fitting is None else self._scope.dictionary.encode(fitting, kind)


def compile_values(expr: ast.Expr, scope: Scope) -> Callable[[Ints], list[Value | None]]:
    """Return a function from batches to the plain values of an expression."""
    names = sorted(variable_names(expr))
    return lambda batch: evaluate_lines(expr, names, scope, batch)


class Pipeline:
    """One entry of a rule, compiled."""

    def __init__(self, operators: Sequence[Operator], width: int) -> None:
        self._operators = tuple(operators)
        self.width = width

    def run(self, batch: Ints, needs: Sequence[int]) -> Iterator[Ints]:
        """Yield the chunks that a batch leads to."""
        return self._operators[0].chunks(batch, needs) if len(self._operators) == 1 else self._from(0, batch, needs)

    def _from(self, at: int, batch: Ints, needs: Sequence[int]) -> Iterator[Ints]:
        if at == len(self._operators):
            yield batch
        elif at == len(self._operators) - 1:
            yield from self._operators[at].chunks(batch, needs)
        else:
            for chunk in self._operators[at].chunks(batch, needs):
                yield from self._from(at + 1, chunk, needs)


class Arrange:
    """Take some columns, in some order."""

    def __init__(self, columns: Ints) -> None:
        self._columns = columns

    def chunks(self, batch: Ints, _needs: Sequence[int]) -> Iterator[Ints]:
        yield np.ascontiguousarray(batch[:, self._columns])


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
        return Scope(places, self._types, self._state.functions, self._state.dictionary)

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


HEAD = "#head"


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
