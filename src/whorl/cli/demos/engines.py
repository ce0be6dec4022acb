"""Who keeps the views of a demo in this process: the kernel, and a witness that has the proofs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from time import perf_counter
from typing import Protocol

from whorl.cli.demos.scenario import Deltas, Evidence, Question, Views
from whorl.diagnostics.errors import InternalError
from whorl.model.delta import Delta, Epoch
from whorl.model.values import Row
from whorl.views.proof import Proof
from whorl.views.session import Session, open_session


@dataclass(frozen=True, slots=True)
class Outcome:
    """What an epoch did to the views, and how long that took."""

    deltas: Deltas
    seconds: float


class Engine(Protocol):
    """Whoever keeps the views of a demo."""

    def commit(self, epoch: Epoch) -> Outcome:
        """Apply one epoch."""

    def close(self) -> None:
        """Let go of everything."""


class InThisProcess:
    """The kernel, in this process; needs no Java."""

    def __init__(self, program: Path) -> None:
        self._session = open_session(program)

    def commit(self, epoch: Epoch) -> Outcome:
        """Apply one epoch."""
        started = perf_counter()
        deltas = commit_epoch(self._session, epoch)
        return Outcome(deltas, perf_counter() - started)

    def close(self) -> None:
        """Let go of everything."""
        self._session.close()


def commit_epoch(session: Session, epoch: Epoch) -> dict[str, Delta]:
    """Apply an epoch to a session; return what it did."""
    for (relation, weight), group in groupby(epoch.changes, key=lambda change: (change.relation, change.weight)):
        rows = [change.row for change in group]
        (session.insert if weight > 0 else session.delete)(relation, rows)
    return session.commit(epoch.time, number=epoch.number)


class Witness:
    """A second copy of the views in this process. It answers why, and sees that the engine has the same rows.

    An epoch reaches it after the engine. So it still has the old row of a change when it is asked, and then the new.
    """

    def __init__(self, program: Path) -> None:
        self._session = open_session(program)

    def follow(self, epoch: Epoch, question: Question | None) -> Evidence | None:
        """Take an epoch; return the proofs of the rows that a question names."""
        before = None if question is None else self._prove(question.view, question.before)
        commit_epoch(self._session, epoch)
        if question is None:
            return None
        return Evidence(question, before, self._prove(question.view, question.after))

    def _prove(self, view: str, row: Row | None) -> Proof | None:
        return None if row is None else self._session[view].why(row)

    def compare(self, views: Views, epoch: Epoch) -> None:
        """Raise if the rows of the engine are others."""
        own: Mapping[str, set[Row]] = {name: set(self._session[name].rows()) for name in self._session.views}
        if own != dict(views):
            message = f"the demo's views differ from those of its witness in epoch {epoch.number}"
            raise InternalError(message)

    @property
    def views(self) -> tuple[str, ...]:
        """The names of the views."""
        return self._session.views

    @property
    def session(self) -> Session:
        """The session behind it."""
        return self._session
