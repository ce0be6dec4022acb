"""Programs over Spark's data frames, as Python sees them: `whorl.evaluate` and `whorl.stream`.

Sessions, frames and queries of Spark are typed Any here: pyspark belongs to `whorl.hosts.spark`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING, Any

from whorl.connectors.programs import open_program
from whorl.diagnostics.errors import UserError
from whorl.hosts.spark.epochs import CommittedEpoch, Epochs, print_epoch
from whorl.hosts.spark.evaluate import evaluate_frames
from whorl.hosts.spark.lanes import Frame
from whorl.hosts.spark.program import GivenProgram
from whorl.hosts.spark.reading import steadily
from whorl.hosts.spark.rebuilding import Mirror, Written
from whorl.hosts.spark.stream import StreamOptions, StreamQuery, start_stream
from whorl.hosts.spark.view_frames import find_output
from whorl.kernel.partition import Partition
from whorl.model.limits import Limits
from whorl.views.absence import WhyNot
from whorl.views.answering import LIMIT, answer_critical, answer_cuts, answer_lifetime, answer_proofs
from whorl.views.answers import Critical, Cuts, Lifetime, Proofs
from whorl.views.asking import Asked
from whorl.views.explaining import ask, ask_fact, explain_missing, explain_row
from whorl.views.proof import Proof
from whorl.views.session import declared_names, read_functions

if TYPE_CHECKING:
    from whorl.views.session import Functions

CONSOLE = "console"
_NOT_THERE = "Ask why_not instead."


def evaluate(
    spark: Any,
    program: str | PathLike[str],
    inputs: Mapping[str, Any],
    *,
    event_time: Mapping[str, str] | None = None,
    functions: Functions = (),
    strategy: str = "auto",
    limits: Limits | None = None,
    partitions: int | None = None,
    folder: str | PathLike[str] | None = None,
) -> dict[str, Any]:
    """Return the views of a program over data frames, each as a data frame.

    ``inputs`` has a frame for each base relation. ``event_time`` names the column that is a stream's timestamp, where
    names and order do not tell. ``folder`` is for the files in between: on several machines, one that they share.
    """
    return evaluate_frames(
        spark,
        _given(program, functions),
        inputs,
        event_time or {},
        partitions=partitions,
        strategy=strategy,
        limits=limits or Limits(),
        folder=folder,
    )


def stream(
    spark: Any,
    program: str | PathLike[str],
    inputs: Mapping[str, Any],
    *,
    checkpoint: str | PathLike[str],
    event_time: Mapping[str, str] | None = None,
    functions: Functions = (),
    strategy: str = "auto",
    limits: Limits | None = None,
    partitions: int | None = None,
    on_epoch: Callable[[CommittedEpoch], None] | str | None = None,
    trigger: Mapping[str, Any] | None = None,
    snapshot_every: int = 50,
    name: str | None = None,
) -> MaintainedQuery:
    """Start a query that maintains the views of a program over streaming data frames.

    ``inputs`` has a frame for each base relation, at least one of them streaming; a column `op` tells insertions (`+`)
    from deletions (`-`). ``checkpoint`` is the folder of the state: the same folder goes on where it was. ``on_epoch``
    is called for each epoch that counts, at least once; `console` prints them. ``trigger`` is Spark's, as a dict.
    """
    if isinstance(on_epoch, str) and on_epoch != CONSOLE:
        raise UserError("E816", None, found=on_epoch)
    if snapshot_every < 1:
        raise UserError("E817", None, found=snapshot_every)
    listener = print_epoch if on_epoch == CONSOLE else on_epoch
    options = StreamOptions(
        checkpoint,
        strategy,
        limits or Limits(),
        partitions,
        trigger,
        snapshot_every,
        name,
        () if listener is None or isinstance(listener, str) else (listener,),
    )
    return start_stream(spark, _given(program, functions), inputs, event_time or {}, options, MaintainedQuery)


class MaintainedQuery(StreamQuery):
    """A running query that says why its rows are there: from the files of its checkpoint, beside the running epochs."""

    def __init__(self, spark: Any, epochs: Epochs, frame: Frame, options: StreamOptions) -> None:
        super().__init__(spark, epochs, frame, options)
        self._mirror = Mirror()

    def why(self, view: str, row: Sequence[object]) -> Proof:
        """Return why a row is in a view as of the last epoch that counts; None in the row stands for any value."""
        return explain_row(self._state(), self._asked(view, row), hint=_NOT_THERE)

    def why_not(self, view: str, row: Sequence[object]) -> WhyNot:
        """Return why a row is not in a view; None in the row stands for any value."""
        return explain_missing(self._state(), self._asked(view, row), hint="Ask why instead.")

    def proofs(self, view: str, row: Sequence[object], limit: int = LIMIT) -> Proofs:
        """Return the minimal sets of facts from which a row follows, at most ``limit`` of them."""
        return answer_proofs(self._state(), self._asked(view, row), limit, hint=_NOT_THERE)

    def cuts(self, view: str, row: Sequence[object], limit: int = LIMIT) -> Cuts:
        """Return the smallest sets of facts whose loss takes a row away, at most ``limit`` of them."""
        return answer_cuts(self._state(), self._asked(view, row), limit, hint=_NOT_THERE)

    def lifetime(self, view: str, row: Sequence[object]) -> Lifetime:
        """Return until when a row holds if nothing arrives or is deleted, and the facts that bound it."""
        return answer_lifetime(self._state(), self._asked(view, row), hint=_NOT_THERE)

    def critical(self, relation: str, fact: Sequence[object]) -> Critical:
        """Return what would change in the views if one fact of a base relation went."""
        asked = ask_fact(self._epochs.deployment.plan, relation, fact)
        return answer_critical(self._state(), asked, list(self.views))

    def _asked(self, view: str, row: Sequence[object]) -> Asked:
        return ask(view, row, find_output(self.plan, view).types)

    def _state(self) -> list[Partition]:
        deployment = self._epochs.deployment
        plan, limits = deployment.plan, deployment.limits

        def read(written: Written) -> Partition:
            return deployment.reading(written, lambda here: self._mirror.at(here, plan, limits))

        return [steadily(lambda: deployment.written, read)]


def _given(program: str | PathLike[str], functions: Functions) -> GivenProgram:
    source = open_program(program)
    return GivenProgram(source, read_functions(functions), declared_names(source))
