"""A rule that feeds a selection, in two parts: first what the choices look at, then, for lines that may win, the rest.

In `path(X, Y, P, C) :- road(X, Z, C0), path(Z, Y, P1, C1), C = C0 + C1, P = concat([X], P1)`, with the least C wanted
for each X and Y, the list P is only made where C is not worse than what is known already. What users' functions
calculate, or what is watched, does not wait, not even in the head: if it fails, that must show whether its line wins or
not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from whorl.analysis.expressions import Functions
from whorl.analysis.program import variable_names
from whorl.kernel.operators.compiling import compile_at_atom
from whorl.kernel.operators.pipeline import Pipeline, State
from whorl.kernel.state.relation import Ints
from whorl.kernel.strategies.selection import SelectedRows
from whorl.logical.plan import Contribution, Extend, Join, Step
from whorl.logical.steps import asks_user, runs_late, step_binds, step_uses
from whorl.model.types import Type
from whorl.physical.plan import PhysicalRule
from whorl.physical.rules import expr_type
from whorl.syntax import ast


class Pruned:
    """One entry of a rule, with the choices in its midst."""

    def __init__(self, first: Pipeline, rest: Pipeline, rows: SelectedRows) -> None:
        self._first = first
        self._rest = rest
        self._rows = rows

    def run(self, batch: Ints, needs: Sequence[int]) -> Iterator[Ints]:
        """Yield the chunks that a batch leads to."""
        for chunk in self._first.run(batch, needs):
            likely = chunk[self._rows.may_win(chunk)]
            if len(likely):
                yield from self._rest.run(likely, [0])


def compile_pruned(
    rule: PhysicalRule, atom: int, state: State, kinds: Sequence[Type], rows: SelectedRows
) -> Pipeline | Pruned:
    """Compile the entry of a rule at an atom; in one part if nothing can wait."""
    entered = rule.atoms[atom][0]
    rule = _with_faults_early(rule, atom, rows, state.functions)
    args = [arg.value if isinstance(arg, Contribution) else arg for arg in rule.args]
    looked_at = [args[column] for column in rows.columns]
    early, late = _split(rule.at_atom[atom], looked_at, state.functions)
    if not late or not isinstance(entered, Join):
        return compile_at_atom(rule, atom, state, kinds, trace=False)
    bound = frozenset().union(*(variable_names(arg) for arg in entered.args), *(step_binds(step) for step in early))
    used = frozenset().union(*(variable_names(arg) for arg in args), *(step_uses(step) for step in late))
    carried = [ast.Variable(name) for name in sorted(bound & used)]
    steps = tuple(early if at == atom else own for at, own in enumerate(rule.at_atom))
    owned = None if rule.owned is None else rows.columns.index(rule.owned)
    first = replace(rule, rule=replace(rule.rule, args=(*looked_at, *carried)), at_atom=steps, owned=owned)
    first_kinds = [*(kinds[column] for column in rows.columns), *(rule.types[each.name] for each in carried)]
    gaps = [ast.Anonymous() for _column in rows.columns]
    middle = Join(rule.relation, (*gaps, *carried))
    rest = replace(rule, atoms=((middle, True),), at_atom=(late,), owned=None)
    return Pruned(
        compile_at_atom(first, atom, state, first_kinds, trace=False),
        compile_at_atom(rest, 0, state, kinds, trace=False),
        rows,
    )


def _with_faults_early(rule: PhysicalRule, atom: int, rows: SelectedRows, functions: Functions) -> PhysicalRule:
    """Calculate in the body what may fail in the head, so that it does not wait either."""
    args, steps, types = list(rule.args), list(rule.at_atom[atom]), dict(rule.types)
    for column, arg in enumerate(args):
        if column in rows.columns or isinstance(arg, Contribution | ast.Variable):
            continue
        calculation = Extend(ast.Variable(f"{column}$column"), arg)
        if asks_user(calculation, functions) or runs_late(calculation):
            args[column] = calculation.pattern
            types[f"{column}$column"] = expr_type(arg, rule.types, functions)
            steps.append(calculation)
    entries = tuple(tuple(steps) if at == atom else own for at, own in enumerate(rule.at_atom))
    return replace(rule, rule=replace(rule.rule, args=tuple(args)), at_atom=entries, types=types)


def _split(
    steps: tuple[Step, ...], looked_at: Sequence[ast.Expr], functions: Functions
) -> tuple[tuple[Step, ...], tuple[Step, ...]]:
    """Return the steps that the choices need, and the calculations that can wait."""
    needed = set().union(*(variable_names(arg) for arg in looked_at))
    early: list[Step] = []
    late: list[Step] = []
    for step in reversed(steps):
        plain = isinstance(step, Extend) and isinstance(step.pattern, ast.Variable)
        fails = asks_user(step, functions) or runs_late(step)
        if plain and not fails and not step_binds(step) & needed:
            late.append(step)
        else:
            early.append(step)
            needed |= step_uses(step)
    return tuple(reversed(early)), tuple(reversed(late))
