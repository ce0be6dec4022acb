"""An epoch that all partitions have prepared: their replies, put together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from whorl.hosts.routing import merge_results
from whorl.hosts.spark.layout import epoch_of
from whorl.hosts.spark.protocol import Brought, Reply
from whorl.kernel.partition import StepResult
from whorl.model.report import EpochReport, Shipment


@dataclass(frozen=True, slots=True)
class Stepped:
    """An epoch that all partitions have prepared, and that does not count yet."""

    token: str
    time: int | None
    result: StepResult
    replies: Sequence[Reply]
    saved: bool
    shipped: Sequence[Shipment] = ()

    @property
    def brought(self) -> Brought:
        """What came with the job, as all partitions together tell it."""
        told = [reply.brought for reply in self.replies if reply.brought is not None]
        if not told:
            return Brought(time=self.time)
        shares = {owner: share for each in told for owner, share in each.shares.items()}
        files = {file.name: file for each in told for file in each.files}
        return replace(told[0], shares=shares, files=tuple(files.values()))

    @property
    def changed(self) -> dict[str, tuple[int, int]]:
        """How many rows of each view appeared and vanished."""
        found: dict[str, tuple[int, int]] = {}
        for reply in self.replies:
            for view, (inserted, deleted) in reply.changed.items():
                before = found.get(view, (0, 0))
                found[view] = (before[0] + inserted, before[1] + deleted)
        return found

    def report(self, time: int | None, seconds: float) -> EpochReport:
        """Return what the epoch did and what it cost; ``time`` is the event time that it was given, if any."""
        result = self.result
        return EpochReport(
            epoch_of(self.token),
            time,
            result.deltas,
            result.input,
            seconds,
            result.work,
            result.seconds,
            sum(reply.state_bytes for reply in self.replies),
            result.strata,
            tuple(self.shipped),
        )


def put_together(
    token: str, time: int | None, replies: Sequence[Reply], shipped: Sequence[Shipment], *, saved: bool
) -> Stepped:
    """Return the epoch that all replies are about."""
    results = [reply.result for reply in replies if reply.result is not None]
    return Stepped(token, time, merge_results(results, max), replies, saved, shipped)
