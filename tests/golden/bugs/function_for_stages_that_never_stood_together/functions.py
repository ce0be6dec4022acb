"""A function that fails for two numbers that are equal."""

import whorl


@whorl.function
def share(left: int, right: int) -> int:
    return 100 // (left - right)
