"""A function that fails for large numbers."""

import whorl


@whorl.function
def f(number: int) -> int:
    if number >= 100:
        raise ValueError(number)
    return number
