"""A function of nothing."""

import whorl


@whorl.function
def surcharge() -> int:
    return 2
