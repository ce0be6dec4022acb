"""Dead rows swept after every epoch, and new numbers asked only for rows that there are.

Kernels do not check bounds, so that a number out of range would pass unseen.
"""

from __future__ import annotations

import pytest

from whorl.kernel.arrays import rowset
from whorl.kernel.state.relation import Ints, Moves, StoredRelation


def sweep_always(patch: pytest.MonkeyPatch) -> None:
    """Let dead rows be swept after every epoch, and check new numbers."""
    check_new_numbers(patch)
    patch.setattr(StoredRelation, "wasteful", lambda relation, needed: relation.count > needed)


def check_new_numbers(patch: pytest.MonkeyPatch) -> None:
    """Fail if somebody asks for the new number of a row that there is not."""
    renumber = rowset.renumber

    def checked(numbers: Ints, moved: Moves) -> int:
        assert not len(numbers) or int(numbers.max()) < len(moved)
        return int(renumber(numbers, moved))

    patch.setattr(rowset, "renumber", checked)
