"""`recompute`: forget the rows and derive them again, semi-naively. The baseline, and what others fall back to.

Cost: all derivations of the stratum, whenever something it reads changes.
"""

from __future__ import annotations

from whorl.kernel.state.relation import Moves
from whorl.kernel.strategies.fixpoint import Fixpoint
from whorl.kernel.strategies.stratum import Stratum


class Recompute(Fixpoint):
    """Derives everything again when an input changed."""

    def __init__(self, stratum: Stratum) -> None:
        super().__init__(stratum)
        self.fresh = True

    def reset(self) -> None:
        """Nothing is kept beside the rows."""
        self.fresh = True

    def resume(self) -> None:
        """Go on from the rows and labels that were saved."""
        self.stratum.resume()
        self.fresh = False

    def renumbered(self, _name: str, _moved: Moves) -> None:
        """Take over that rows have other numbers."""
        self.stratum.resume()

    def step(self) -> None:
        """Let every row die, and derive again what follows."""
        if self.stratum.fresh(own=self.fresh) or self.stratum.changed():
            self.fresh = False
            self.stratum.clear()
            self.derive_all()
