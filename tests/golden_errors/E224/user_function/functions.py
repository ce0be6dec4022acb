import whorl


@whorl.function
def half(x: int) -> float:
    return x / 2
