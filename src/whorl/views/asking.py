"""What is asked: the text of a row, perhaps with gaps, in; the stored row that it means out.

>>> parse_asked('reachable("a", _)')
Asked(relation='reachable', values=('a', None))
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from whorl.analysis.expressions import equal, evaluate
from whorl.diagnostics.errors import UserError
from whorl.diagnostics.names import suggest
from whorl.diagnostics.source import Source
from whorl.kernel.operators.expressions import fit
from whorl.kernel.partition import Partition
from whorl.kernel.proofs.cells import rows_with
from whorl.kernel.proofs.derivations import Key, hidden_relations
from whorl.kernel.proofs.instances import program_name
from whorl.kernel.state.relation import Ints
from whorl.logical.plan import LogicalPlan, Output
from whorl.model.types import type_of
from whorl.model.values import Row, Value, format_value, order_key
from whorl.syntax import ast
from whorl.syntax.parser import parse_program


@dataclass(frozen=True, slots=True)
class Asked:
    """A row of a relation or view; None stands for any value."""

    relation: str
    values: tuple[Value | None, ...]

    def __str__(self) -> str:
        shown = ("_" if value is None else format_value(value) for value in self.values)
        return f"{self.relation}({', '.join(shown)})"

    @property
    def row(self) -> Row | None:
        """The row, if it has no gaps."""
        values = tuple(value for value in self.values if value is not None)
        return values if len(values) == len(self.values) else None


def parse_asked(text: str) -> Asked:
    """Read a row as the command line gives it; `_` or a variable stands for any value."""
    source = Source("the row", text.strip().removesuffix(".").rstrip() + ".")
    statements = parse_program(source).statements
    statement = statements[0] if len(statements) == 1 else None
    if not isinstance(statement, ast.Rule) or statement.body is not None or len(statement.heads) != 1:
        raise UserError("E641", None, text=text.strip())
    head = statement.heads[0]
    return Asked(head.relation, tuple(_value(arg) for arg in head.args))


def _value(arg: ast.Expr | ast.Aggregate) -> Value | None:
    if isinstance(arg, ast.Anonymous | ast.Variable):
        return None
    try:
        value = None if isinstance(arg, ast.Aggregate) else evaluate(arg, {}, {})
    except AssertionError:  # an underscore inside a term has no value
        value = None
    if value is None:
        raise UserError("E642", getattr(arg, "span", None))
    return value


@dataclass(frozen=True, slots=True)
class Target:
    """Where the rows asked for are stored: as a view, or as a relation, perhaps in several restricted copies."""

    asked: Asked
    stored: tuple[str, ...]
    view: Output | None


def resolve(partition: Partition, asked: Asked) -> Target:
    """Return where to look for a row; raise if the program has no such relation, or none that wide."""
    plan = partition.plan
    for output, logical in zip(plan.outputs, plan.logical.outputs, strict=True):
        if output.name == asked.relation and len(output.types) == len(asked.values) and covers(logical, asked):
            return Target(asked, (output.relation,), logical)
    relation = plan.logical.program.relations.get(asked.relation)
    views = [output.name for output in plan.outputs]
    if relation is None and asked.relation not in views:
        known = [*dict.fromkeys([*views, *plan.logical.program.relations])]
        hint = suggest(asked.relation, known) or "Relations: " + ", ".join(known) + "."
        raise UserError("E643", None, name=asked.relation, hint=hint)
    widths = [len(output.types) for output in plan.outputs if output.name == asked.relation]
    values = asked.values
    if relation is not None:
        widths.append(len(relation.columns))
        if relation.lifted and relation.timed and len(values) == relation.arity:
            values = values[1:]  # the time is no column
    if relation is None or len(values) != len(relation.columns):
        expected = " or ".join(str(width) for width in dict.fromkeys(widths))
        raise UserError("E644", None, name=asked.relation, expected=expected, found=len(asked.values), row=asked)
    hidden = hidden_relations(partition)
    copies = [n for n in plan.logical.relations if program_name(n) == relation.name and n not in hidden]
    assert copies, "whoever asks makes sure that the relation is computed"
    return Target(Asked(asked.relation, values), tuple(copies), None)


def covers(output: Output, asked: Asked) -> bool:
    """Whether a view shows the rows asked for, by the constants of its query."""
    shown = [arg for arg in output.args if not isinstance(arg, ast.Anonymous)]
    for arg, value in zip(shown, asked.values, strict=True):
        constant = None if isinstance(arg, ast.Variable) else evaluate(arg, {}, {})
        if constant is not None and value is not None and not equal(constant, value):
            return False
    return True


def is_computed(plan: LogicalPlan, asked: Asked) -> bool:
    """Whether a plan computes the rows asked for: a view shows them, or no rewrite has restricted their relation."""
    views = [output for output in plan.outputs if output.name == asked.relation]
    if any(len(view.types) == len(asked.values) and covers(view, asked) for view in views):
        return True
    relation = plan.program.relations.get(asked.relation)
    if relation is None or relation.base:
        return True
    return any(asked.relation in stratum.relations for stratum in plan.strata)


def locate(partition: Partition, target: Target) -> Key | None:
    """Return the first row that is alive and fits, None if there is none."""
    for name in target.stored:
        number = _first(partition, name, target.asked)
        if number is not None:
            return name, number
    return None


def encode_asked(partition: Partition, name: str, asked: Asked) -> list[int | None]:
    """Return the values asked for as the columns of a relation hold them; raise if one cannot hold its value."""
    out: list[int | None] = []
    for position, (value, column) in enumerate(zip(asked.values, partition.plan.relations[name].columns, strict=True)):
        fitting = None if value is None else fit(value, column.type)
        if value is not None and fitting is None:
            facts = {"name": asked.relation, "position": position + 1, "found": type_of(value)}
            raise UserError("E645", None, expected=column.type, row=asked, **facts)
        out.append(None if fitting is None else partition.state.dictionary.encode(fitting, column.type))
    return out


def _first(partition: Partition, name: str, asked: Asked) -> int | None:
    """Return the first row of a relation, in the order of rows, that fits."""
    stored = partition.state.relations[name]
    wanted = encode_asked(partition, name, asked)
    columns = tuple(column for column, value in enumerate(wanted) if value is not None)
    values = np.array([value for value in wanted if value is not None], np.int64)
    numbers = rows_with(stored, columns, values, partition.state)
    for column in _open(wanted, stored.width):
        if len(numbers) <= 1:
            break
        numbers = _smallest(partition, name, numbers, column)
    return int(numbers[0]) if len(numbers) else None


def _open(wanted: Sequence[int | None], width: int) -> Iterator[int]:
    return (column for column in range(width) if column < len(wanted) and wanted[column] is None)


def _smallest(partition: Partition, name: str, numbers: Ints, column: int) -> Ints:
    """Return the rows with the smallest value in a column."""
    stored = partition.state.relations[name]
    held = stored.read(numbers)[:, column]
    distinct = np.unique(held)
    values = partition.state.dictionary.decode_column(distinct, stored.types[column])
    best = min(range(len(values)), key=lambda at: order_key(values[at]))
    kept: Ints = numbers[held == distinct[best]]
    return kept
