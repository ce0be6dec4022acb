"""Strata that only the reference evaluator runs: it is given what they read, and its answer replaces the rows.

Cost: the whole stratum, in Python, whenever something it reads changes.
"""

from __future__ import annotations

from whorl.kernel.strategies.stratum import Stratum
from whorl.logical.plan import LogicalPlan
from whorl.model.values import Row
from whorl.oracle.model import evaluate_stratum


class Reference:
    """Recomputes a stratum by the definition of its meaning."""

    def __init__(self, stratum: Stratum, plan: LogicalPlan) -> None:
        self._stratum = stratum
        self._plan = plan
        self._fresh = True

    def reset(self) -> None:
        """Nothing is kept beside the rows."""
        self._fresh = True

    def resume(self) -> None:
        """Go on from the rows and labels that were saved."""
        self._stratum.resume()
        self._fresh = False

    def step(self) -> None:
        """Evaluate again if an input changed."""
        stratum = self._stratum
        if not self._fresh and not stratum.changed():
            return
        self._fresh = False
        source = stratum.plan.source
        assert source is not None
        database: dict[str, set[Row]] = {name: self._rows(name) for name in stratum.plan.inputs()}
        database |= {name: set() for name in stratum.plan.relations}
        evaluate_stratum(self._plan, source, database, stratum.limits)
        for name in stratum.plan.relations:
            relation = stratum.relation(name)
            relation.retire(relation.alive())
            rows = list(database[name])
            stratum.state.work.derivations += len(rows)
            relation.add(stratum.state.dictionary.encode_rows(rows, stratum.types(name)))

    def _rows(self, name: str) -> set[Row]:
        relation = self._stratum.relation(name)
        batch = relation.read(relation.alive())
        return set(self._stratum.state.dictionary.decode_rows(batch, self._stratum.types(name)))
