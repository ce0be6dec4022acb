"""`whorl check` answers at once: start-up included, and for programs of a thousand rules too."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from random import Random
from time import perf_counter

RULES, RELATIONS, BASE, AGGREGATED = 1_000, 300, 40, 60
SMALL = """
RELATION edge(A: Integer, B: Integer).
reach(X, Y) :- edge(X, Y).
reach(X, Z) :- reach(X, Y), edge(Y, Z).
query reach(1, Y).
"""


def _large() -> Iterator[str]:
    """Yield a program of many small strata, with recursion, negation, and aggregates inside recursion."""
    random = Random(3)
    for number in range(BASE):
        yield f"RELATION b{number}(A: Integer, B: Integer)."
    for number in range(AGGREGATED):
        yield f"m{number}(X, min<C>) :- b{number % BASE}(X, C)."
        yield f"m{number}(Y, min<C>) :- m{number}(X, D), b{number % BASE}(X, Y), r{BASE + number}(X, Y), C = D + 1."
    plain = RELATIONS - BASE - AGGREGATED
    for number in range(RULES - 2 * AGGREGATED):
        head = BASE + number % plain
        below = [f"{'b' if low < BASE else 'r'}{low}" for low in (random.randrange(head) for _ in range(3))]
        lines = (
            f"r{head}(X, Z) :- {below[0]}(X, Y), {below[1]}(Y, Z), X != Z.",
            f"r{head}(X, Z) :- r{head}(X, Y), {below[0]}(Y, Z), N = X + Y * 2, N < 100.",
            f"r{head}(X, Y) :- {below[0]}(X, Y), not {below[1]}(Y, _), ({below[2]}(X, X) ; X > 3).",
            f"r{head}(X, Y) :- {below[0]}(X, Z), {below[1]}(Z, Y), {below[2]}(Y, 7), Y = max(X, Z).",
        )
        yield lines[(number + number // plain) % len(lines)]


# As for users, compiled modules and tables are kept between runs, whatever the test run asks for itself.
ENVIRONMENT = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
COMMAND = [sys.executable, "-m", "whorl", "check"]


def _check_s(path: Path) -> float:
    """Return the seconds of the shortest of three runs; where others use the machine too, those of the processor."""
    spent = []
    for _ in range(3):
        started, before = perf_counter(), os.times()
        subprocess.run([*COMMAND, str(path)], check=True, capture_output=True, env=ENVIRONMENT)
        after = os.times()
        processor = after.children_user + after.children_system - before.children_user - before.children_system
        spent.append(min(perf_counter() - started, processor))
    return min(spent)


def test_a_small_program_is_checked_at_once(tmp_path: Path) -> None:
    path = tmp_path / "small.dl"
    path.write_text(SMALL, encoding="utf-8")
    assert _check_s(path) < 0.5


def test_a_large_program_is_checked_soon(tmp_path: Path) -> None:
    path = tmp_path / "large.dl"
    path.write_text("\n".join(_large()), encoding="utf-8")
    assert _check_s(path) < 2.0


def test_damaged_tables_are_built_again(tmp_path: Path) -> None:
    path = tmp_path / "small.dl"
    path.write_text(SMALL, encoding="utf-8")
    environment = ENVIRONMENT | {"PYTHONPYCACHEPREFIX": str(tmp_path)}

    def check() -> bytes:
        return subprocess.run([*COMMAND, str(path)], check=True, capture_output=True, env=environment).stdout

    first = check()
    (tables,) = tmp_path.glob("**/*.tables")
    whole = tables.read_bytes()
    for damaged in (b"", whole[:-100], whole[:200] + bytes(100) + whole[300:]):
        tables.write_bytes(damaged)
        assert check() == first
        assert len(tables.read_bytes()) > 200, "they were kept again"
