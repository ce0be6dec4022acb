"""Answers made comparable: how many rows, and a number that does not depend on their order.

The number of a row is folded from its columns, squared, and taken modulo a prime; the answer's is the sum. Each peer
can calculate that for itself. Float columns stay out of it: their sum is compared with a tolerance, for sums differ in
the last bits with the order of addition.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from whorl.bench.graphs import Ints

PRIME = 2_147_483_647
FOLD = 1_000_003


@dataclass(frozen=True, slots=True)
class Answer:
    """The rows of a view, in short."""

    rows: int
    check: int
    total: float = 0.0

    def agrees(self, other: Answer) -> bool:
        """Tell whether two answers are the same."""
        same = (self.rows, self.check) == (other.rows, other.check)
        return same and math.isclose(self.total, other.total, rel_tol=1e-9, abs_tol=1e-9)

    def plus(self, other: Answer) -> Answer:
        """Return both answers as one, to compare a row of answers at once."""
        return Answer(self.rows + other.rows, self.check * FOLD % PRIME + other.check, self.total + other.total)


def answer_of(rows: Ints, floats: npt.NDArray[np.float64] | None = None) -> Answer:
    """Return the answer that holds the rows, given column by column; ``floats`` are their columns of floats."""
    number = np.zeros(len(rows), np.int64)
    for column in range(rows.shape[1]):
        number = (number * FOLD + rows[:, column]) % PRIME
    check = int((number * number % PRIME).sum())
    return Answer(len(rows), check, 0.0 if floats is None else float(floats.sum()))


def sql_number(columns: tuple[str, ...]) -> str:
    """Return the number of a row as an expression in SQL, or in any language with the same signs."""
    folded = "0"
    for column in columns:
        folded = f"(({folded} * {FOLD} + {column}) % {PRIME})"
    return f"({folded} * {folded} % {PRIME})"


def differing(answers: Mapping[str, Mapping[str, Answer]]) -> list[str]:
    """Compare what each contestant answered at each moment with the first who did; return who differs."""
    first: dict[str, tuple[str, Answer]] = {}
    found: list[str] = []
    for contestant, given in answers.items():
        for moment, answer in given.items():
            name, expected = first.setdefault(moment, (contestant, answer))
            if not answer.agrees(expected):
                found.append(f"{moment}: {name} has {expected}, {contestant} has {answer}")
    return found
