import whorl


@whorl.function
def inverse(x: int) -> float:
    return f"1/{x}"
