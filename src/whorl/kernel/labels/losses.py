"""What becomes of labels when variables are set to false."""

from __future__ import annotations

from dataclasses import dataclass

from whorl.kernel.state.relation import Ints


@dataclass(frozen=True, slots=True, eq=False)
class Losses:
    """What setting variables to false did to the rows of a relation."""

    changed: int
    gone: Ints  # their labels are false, and forgotten
    released: Ints  # what others were told became false, but not the label: they have to be told again
