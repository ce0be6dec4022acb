"""The maintenance strategies, one a file; `build_strategy` gives each stratum its own."""

from __future__ import annotations

from collections.abc import Callable

from whorl.kernel.strategies.absorption import Absorption
from whorl.kernel.strategies.cells import Cells
from whorl.kernel.strategies.counting import Counting
from whorl.kernel.strategies.derivations import Derivations
from whorl.kernel.strategies.dred import Dred
from whorl.kernel.strategies.elastic import Elastic
from whorl.kernel.strategies.expiry import Expiry
from whorl.kernel.strategies.front import Front
from whorl.kernel.strategies.pf import ProveFirst
from whorl.kernel.strategies.recompute import Recompute
from whorl.kernel.strategies.rederive import Rederive
from whorl.kernel.strategies.reference import Reference
from whorl.kernel.strategies.selected import Selected
from whorl.kernel.strategies.staged_derivations import StagedDerivations
from whorl.kernel.strategies.stages import Stages
from whorl.kernel.strategies.stratum import Strategy, Stratum
from whorl.kernel.strategies.support import Support
from whorl.kernel.strategies.totals import Filled
from whorl.logical.plan import LogicalPlan

_ARMS: dict[str, Callable[[Stratum], Rederive]] = {
    "dred": Dred,
    "support": Support,
    "expiry": Expiry,
    "pf": ProveFirst,
    "derivations": Derivations,
}
_STRATEGIES: dict[str, Callable[[Stratum], Strategy]] = {
    "recompute": Recompute,
    "counting": Counting,
    "absorption": Absorption,
    **_ARMS,
}


def build_strategy(stratum: Stratum, plan: LogicalPlan) -> Strategy:
    """Return the maintenance of a stratum as its plan says."""
    if stratum.plan.kind == "cells":
        return Cells(stratum)
    if stratum.plan.kind == "front":
        return Front(stratum)
    if stratum.plan.kind == "reference":
        return Reference(stratum, plan)
    if stratum.plan.kind == "totals":
        return Filled(stratum)
    if stratum.plan.kind == "selected":
        return Selected(stratum)
    if stratum.plan.kind == "staged":
        return StagedDerivations(stratum) if stratum.plan.strategy == "derivations" else Stages(stratum)
    if stratum.plan.arms:
        return Elastic(stratum, {name: _ARMS[name](stratum) for name in stratum.plan.arms})
    return _STRATEGIES[stratum.plan.strategy](stratum)
