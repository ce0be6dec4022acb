import whorl


@whorl.function
def inverse(x: int) -> float:
    return 1 / x
