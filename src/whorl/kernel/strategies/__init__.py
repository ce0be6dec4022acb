"""The maintenance strategies, one a file; `build_strategy` gives each stratum its own."""

from __future__ import annotations

from whorl.kernel.strategies.cells import Cells
from whorl.kernel.strategies.counting import Counting
from whorl.kernel.strategies.recompute import Recompute
from whorl.kernel.strategies.rederive import Rederive
from whorl.kernel.strategies.reference import Reference
from whorl.kernel.strategies.stratum import Strategy, Stratum
from whorl.logical.plan import LogicalPlan


def build_strategy(stratum: Stratum, plan: LogicalPlan) -> Strategy:
    """Return the maintenance of a stratum as its plan says."""
    if stratum.plan.kind == "cells":
        return Cells(stratum)
    if stratum.plan.kind == "reference":
        return Reference(stratum, plan)
    if stratum.plan.strategy == "recompute":
        return Recompute(stratum)
    if stratum.plan.strategy == "counting":
        return Counting(stratum)
    return Rederive(stratum, ranked=stratum.plan.strategy == "support")
