"""A function that fails for what is no gate."""

import whorl


@whorl.function
def toll(number: int) -> int:
    if number < 100:
        raise ValueError(number)
    return 1
