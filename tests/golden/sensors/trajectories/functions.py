"""A report is a list of two coordinates and a time."""

import whorl


@whorl.function
def close(first: list, second: list) -> bool:
    """One time step apart, and less than three in each direction."""
    return second[2] - first[2] == 1 and all(abs(first[i] - second[i]) < 3 for i in (0, 1))


@whorl.function(name="isParallel")
def is_parallel(left: list, right: list) -> bool:
    """Two different trajectories at the same times whose offset stays the same."""
    if left == right or len(left) != len(right):
        return False
    offsets = {tuple(a - b for a, b in zip(p, q, strict=True)) for p, q in zip(left, right, strict=True)}
    return len(offsets) == 1 and offsets.pop()[2] == 0
