"""Functions over every type of column."""

import whorl


@whorl.function
def kilobytes(size: int) -> float:
    return size / 1024


@whorl.function
def extension(name: str) -> str:
    """No value for a name without an extension: the assignment does not exist."""
    _stem, dot, end = name.rpartition(".")
    return end if dot else None


@whorl.function(name="isBig")
def is_big(size: int) -> bool:
    return size > 1000


@whorl.function
def split(name: str) -> list:
    return name.split(".")


@whorl.function
def describe(name: str, size: int) -> whorl.Term:
    return whorl.Term("file", (name, whorl.Term("size", (size,))))
