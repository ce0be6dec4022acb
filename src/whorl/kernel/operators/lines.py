"""Operators that look at one line at a time: conditions, calculated columns, patterns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from whorl.analysis.expressions import Binding, match
from whorl.analysis.program import variable_names
from whorl.kernel.operators.expressions import Column, Condition, Scope, evaluate_lines, fit
from whorl.kernel.state.relation import Ints
from whorl.logical.plan import Extend, Lacks, Unnest
from whorl.model.types import Type
from whorl.model.values import LIST, Term, Value
from whorl.syntax import ast


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


class Arrange:
    """Take some columns, in some order."""

    def __init__(self, columns: Ints) -> None:
        self._columns = columns

    def chunks(self, batch: Ints, _needs: Sequence[int]) -> Iterator[Ints]:
        yield np.ascontiguousarray(batch[:, self._columns])
