"""The proof of a row: a shortest one if that can be found in time, else some proof."""

from __future__ import annotations

from whorl.diagnostics.errors import InternalError
from whorl.kernel.partition import Partition
from whorl.kernel.proofs.derivations import Key, Rows
from whorl.kernel.proofs.ranks import search_ranks
from whorl.kernel.proofs.search import BUDGET, Derivations, Found, TooMany, search_layers


def find_proof(partition: Partition, root: Key, budget: int = BUDGET) -> tuple[Found, Rows]:
    """Return a proof of a row that is alive, and the values of the rows in it."""
    derivations = Derivations(partition)
    found = _search(derivations, root, budget)
    if found is None:  # a value was improved through itself: go through what was there on the way
        for stratum in derivations.recursive():
            derivations.replay_rounds(stratum)
        found = _search(derivations, root, budget)
    if found is None:
        message = f"no proof of row {root[1]} of {root[0]}"
        raise InternalError(message)
    return found, derivations.rows


def _search(derivations: Derivations, root: Key, budget: int) -> Found | None:
    try:
        return search_layers(derivations, root, budget)
    except TooMany:
        return search_ranks(derivations, root)
