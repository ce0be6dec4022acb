"""A host whose partitions are the nodes of a simulated network. Steps and letters are those of every other host."""

from __future__ import annotations

from whorl.hosts.inprocess import InProcess
from whorl.hosts.simulated.network import Conditions, Network
from whorl.logical.intake import Compile
from whorl.model.batching import Batching
from whorl.model.limits import Limits


class Simulated(InProcess):
    """Maintains the views of a program in partitions that a simulated network connects."""

    def __init__(
        self,
        compile_plan: Compile,
        partitions: int,
        conditions: Conditions | None = None,
        *,
        strategy: str = "auto",
        placement: str = "first",
        ship: str = "lazy",
        batching: Batching = Batching(),  # noqa: B008  # frozen
        limits: Limits | None = None,
    ) -> None:
        super().__init__(compile_plan, limits, strategy, partitions, placement, ship, batching)
        self.network = Network(conditions or Conditions())
        self.carrier = self.network
