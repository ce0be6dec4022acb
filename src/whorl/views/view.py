"""A view as Python sees it: a sorted set of rows that follows the session's commits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, runtime_checkable

import pyarrow as pa

from whorl.connectors.arrow import write_column
from whorl.connectors.rows import read_row
from whorl.diagnostics.errors import UserError
from whorl.logical.plan import LogicalPlan, Output
from whorl.model.batch import Values, values_of
from whorl.model.delta import Delta, Epoch
from whorl.model.report import EpochReport
from whorl.model.types import Type
from whorl.model.values import Row, row_key
from whorl.views.absence import WhyNot
from whorl.views.answering import LIMIT, answer_critical, answer_cuts, answer_lifetime, answer_proofs
from whorl.views.answers import Critical, Cuts, Lifetime, Proofs
from whorl.views.asking import Asked
from whorl.views.explaining import ask, ask_fact, explain_missing, explain_row, partitions_of
from whorl.views.labels import Label, label_row
from whorl.views.proof import Proof

_NOT_THERE = "Ask why_not instead."


class Host(Protocol):
    """Whoever maintains the views."""

    @property
    def plan(self) -> LogicalPlan:
        """The plan as far as types are known."""

    @property
    def time(self) -> int | None:
        """The event time reached."""

    def commit(self, epoch: Epoch) -> EpochReport:
        """Apply one epoch; on an error nothing of it is kept."""

    def rows(self, view: str) -> set[Row]:
        """Return the rows of a view as of the last epoch."""


@runtime_checkable
class ColumnarHost(Protocol):
    """A host that gives views as columns, which is faster."""

    def columns(self, view: str) -> Sequence[Values] | None:
        """Return the rows of a view as columns, sorted, or None if it cannot.

        A view without columns has one nevertheless, with a value for each row.
        """


class View:
    """The rows of one output, as of the last commit."""

    def __init__(self, host: Host, name: str) -> None:
        self._host = host
        self.name = name
        self._delta = Delta()
        self._stale()

    def _stale(self) -> None:
        self._cached: tuple[Values, ...] | None = None
        self._rows: list[Row] | None = None
        self._set: frozenset[Row] | None = None

    def follow(self, delta: Delta) -> None:
        """Take note of a commit that went well."""
        self._delta = delta
        self._stale()

    @property
    def _output(self) -> Output:
        return next(output for output in self._host.plan.outputs if output.name == self.name)

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return self._output.columns

    @property
    def types(self) -> tuple[Type, ...]:
        """The types of the columns; those that no data has told yet are unknown."""
        return self._output.types

    def _values(self) -> tuple[Values, ...]:
        if self._cached is None:
            whole = self._host.columns(self.name) if isinstance(self._host, ColumnarHost) else None
            self._cached = tuple(whole) if whole is not None else self._gather()
        return self._cached

    def _gather(self) -> tuple[Values, ...]:
        rows = sorted(self._host.rows(self.name), key=row_key)
        columns = zip(*rows, strict=True) if rows else [()] * max(len(self.columns), 1)
        return tuple(map(values_of, columns)) or (values_of([0] * len(rows)),)

    def __len__(self) -> int:
        return len(self._values()[0])

    def rows(self) -> list[Row]:
        """Return the rows, sorted."""
        if self._rows is None:
            values = self._values()
            columns = [column.to_list() for column in values]
            self._rows = list(zip(*columns, strict=True)) if self.columns else [()] * len(values[0])
        return list(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self.rows())

    def __contains__(self, row: object) -> bool:
        if self._set is None:
            self._set = frozenset(self.rows())
        plain = read_row(row, self.types)
        return plain is not None and plain in self._set

    def why(self, row: Sequence[object]) -> Proof:
        """Return why a row is in the view; None in the row stands for any value, and the first that fits is taken."""
        return explain_row(partitions_of(self._host), self._asked(row), hint=_NOT_THERE)

    def why_not(self, row: Sequence[object]) -> WhyNot:
        """Return why a row is not in the view; None in the row stands for any value."""
        return explain_missing(partitions_of(self._host), self._asked(row), hint="Ask why instead.")

    def proofs(self, row: Sequence[object], limit: int = LIMIT) -> Proofs:
        """Return the minimal sets of facts from which a row follows, at most ``limit`` of them."""
        return answer_proofs(partitions_of(self._host), self._asked(row), limit, hint=_NOT_THERE)

    def cuts(self, row: Sequence[object], limit: int = LIMIT) -> Cuts:
        """Return the smallest sets of facts whose loss takes a row away, at most ``limit`` of them."""
        return answer_cuts(partitions_of(self._host), self._asked(row), limit, hint=_NOT_THERE)

    def lifetime(self, row: Sequence[object]) -> Lifetime:
        """Return until when a row holds if nothing arrives or is deleted, and the facts that bound it."""
        return answer_lifetime(partitions_of(self._host), self._asked(row), hint=_NOT_THERE)

    def label(self, row: Sequence[object]) -> Label:
        """Return what the strategy of the view keeps of a row; None in the row stands for any value."""
        return label_row(partitions_of(self._host), self._asked(row), hint=_NOT_THERE)

    def critical(self, relation: str, fact: Sequence[object]) -> Critical:
        """Return what would change in the view if one fact of a base relation went."""
        partitions = partitions_of(self._host)
        return answer_critical(partitions, ask_fact(partitions[0].plan, relation, fact), [self.name])

    def _asked(self, row: Sequence[object]) -> Asked:
        return ask(self.name, row, self.types)

    def changes(self) -> Delta:
        """Return what the last commit did to the view."""
        return self._delta

    def to_arrow(self) -> pa.Table:
        """Return the rows as an Arrow table, sorted. Lists and terms are text in delta notation."""
        pairs = zip(self._values(), self.types, strict=False)
        columns = [write_column(values, kind) for values, kind in pairs]
        return pa.table(columns, names=list(self.columns))

    def to_pandas(self) -> Any:
        """Return the rows as a pandas frame, sorted; typed Any, since pandas need not be there."""
        try:
            return self.to_arrow().to_pandas()
        except ImportError:
            raise UserError("E609") from None

    def __repr__(self) -> str:
        return f"<view {self.name}({', '.join(self.columns)}), {len(self)} rows>"
