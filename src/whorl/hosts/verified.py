"""A host that does everything twice: another host's answer must equal the reference's, after every epoch."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from whorl.diagnostics.errors import UserError
from whorl.logical.intake import Compile
from whorl.logical.plan import LogicalPlan
from whorl.model.delta import Delta, Epoch, difference
from whorl.model.limits import Limits
from whorl.model.report import EpochReport
from whorl.model.values import Row, format_row
from whorl.oracle.session import Oracle

_SHOWN = 5  # rows of a difference


class Host(Protocol):
    """Whoever is checked."""

    @property
    def plan(self) -> LogicalPlan:
        """The plan as far as types are known."""

    @property
    def time(self) -> int | None:
        """The event time reached."""

    def commit(self, epoch: Epoch) -> EpochReport:
        """Apply one epoch."""

    def rows(self, view: str) -> set[Row]:
        """Return the rows of a view."""


def verified(make: Callable[[Compile, Limits], Host]) -> Callable[[Compile, Limits], Verified]:
    """Return what makes a verified host, given what makes the host."""
    return lambda compile_plan, limits: Verified(make(compile_plan, limits), compile_plan, limits)


class Verified:
    """Runs a host and the reference evaluator side by side."""

    def __init__(self, host: Host, compile_plan: Compile, limits: Limits) -> None:
        self._host = host
        self._oracle = Oracle(compile_plan, limits)

    @property
    def plan(self) -> LogicalPlan:
        """The plan as far as types are known."""
        return self._host.plan

    @property
    def time(self) -> int | None:
        """The event time reached."""
        return self._host.time

    def rows(self, view: str) -> set[Row]:
        """Return the rows of a view."""
        return self._host.rows(view)

    def commit(self, epoch: Epoch) -> EpochReport:
        """Apply one epoch twice; raise if the changes of a view or its rows differ."""
        report = self._host.commit(epoch)
        expected = self._oracle.commit(epoch.by_row())
        for output in self.plan.outputs:
            view = output.name
            wanted, found = (each.deltas.get(view, Delta()) for each in (expected, report))
            for old, new in ((wanted.inserted, found.inserted), (wanted.deleted, found.deleted)):
                _compare(epoch, view, old, new)
            _compare(epoch, view, self._oracle.rows(view), self._host.rows(view))
        return report


def _compare(epoch: Epoch, view: str, expected: Iterable[Row], found: Iterable[Row]) -> None:
    differing = difference(expected, found)
    if not differing:
        return
    parts = [f"too much: {_some(view, differing.inserted)}"] if differing.inserted else []
    parts += [f"missing: {_some(view, differing.deleted)}"] if differing.deleted else []
    text = "; ".join(parts)
    raise UserError("E627", None, name=view, epoch=epoch.number, difference=text[0].upper() + text[1:])


def _some(view: str, rows: tuple[Row, ...]) -> str:
    shown = ", ".join(format_row(view, row) for row in rows[:_SHOWN])
    return shown if len(rows) <= _SHOWN else f"{shown} and {len(rows) - _SHOWN} more"
