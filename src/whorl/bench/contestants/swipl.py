"""SWI-Prolog with tabling, as a program of its own. CPU time is what it says itself; its memory is not measured."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from pathlib import Path
from time import perf_counter

from whorl.bench.answer import FOLD, PRIME, Answer
from whorl.bench.outcome import Outcome
from whorl.bench.workload import Workload

_CLOSURE = f"""\
:- use_module(library(aggregate)).
:- set_prolog_flag(table_space, 17179869184).
:- table path/2.
path(X, Y) :- edge(X, Y).
path(X, Y) :- path(X, Z), edge(Z, Y).
number(X, Y, N) :- F is ((X mod {PRIME}) * {FOLD} + Y) mod {PRIME}, N is F * F mod {PRIME}.
main :-
    statistics(cputime, Before),
    aggregate_all(count, path(_, _), Rows),
    statistics(cputime, After),
    aggregate_all(sum(N), (path(X, Y), number(X, Y, N)), Check),
    Spent is After - Before,
    format("~w ~w ~w~n", [Rows, Check, Spent]).
"""


def missing() -> str:
    """Say if it is not installed."""
    return "" if shutil.which("swipl") else "swipl is not on the path"


def measure(workload: Workload, warm_up: Workload, variant: str, *, rows_out: bool) -> Outcome:
    """Measure the closure from scratch."""
    assert workload.rules.name == "closure", "other programs are not written for SWI-Prolog here"
    facts = "".join(f"edge({x}, {y}).\n" for x, y in workload.load.inserts["edge"].tolist())
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "closure.pl"
        program.write_text(_CLOSURE + facts, encoding="ascii")
        started = perf_counter()
        run = subprocess.run(
            ["swipl", "-q", "--stack-limit=8g", "-g", "main", "-t", "halt", str(program)],
            capture_output=True,
            text=True,
            check=False,
        )
        wall = perf_counter() - started
    words = run.stdout.split()
    if run.returncode or len(words) != 3:
        return Outcome(failed=run.stderr.strip()[-300:] or f"swipl ended with {run.returncode}")
    spent = float(words[2])
    figures = {"load.cpu": spent, "load.engine": spent, "load.wall": wall}
    return Outcome(figures, {"load": Answer(int(words[0]), int(words[1]))}, _version())


def _version() -> str:
    shown = subprocess.run(["swipl", "--version"], capture_output=True, text=True, check=False).stdout
    return next((word for word in shown.split() if word[0].isdigit()), "")
