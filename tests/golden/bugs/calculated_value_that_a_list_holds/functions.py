"""Functions with results of one type each."""

import whorl


@whorl.function
def whole(number: int) -> int:
    return number


@whorl.function
def real(number: int) -> float:
    return float(number)
