"""clingo: grounding a stratified program computes its one model. Reading the facts as text is part of the time."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np

from whorl.bench.answer import answer_of
from whorl.bench.graphs import Ints
from whorl.bench.measure import Memory, Meter
from whorl.bench.outcome import Outcome
from whorl.bench.workload import Workload

_CLOSURE = "path(X, Y) :- edge(X, Y). path(X, Y) :- path(X, Z), edge(Z, Y)."


def missing() -> str:
    """Say if it is not installed."""
    return "" if find_spec("clingo") else "clingo is not installed"


def measure(workload: Workload, warm_up: Workload, variant: str, *, rows_out: bool) -> Outcome:
    """Measure the closure from scratch."""
    assert workload.rules.name == "closure", "other programs are not written for clingo here"
    _ground(warm_up)
    return _ground(workload)


def _ground(workload: Workload) -> Outcome:
    import clingo

    facts = " ".join(f"edge({x},{y})." for x, y in workload.load.inserts["edge"].tolist())
    control = clingo.Control(["--warn=none"])
    memory = Memory.watch()
    with Meter() as spent:
        control.add("base", [], f"{_CLOSURE} {facts}")
        control.ground([("base", [])])
    figures = {"load.cpu": spent.cpu, "load.engine": spent.cpu, "load.wall": spent.wall}
    if memory is not None:
        figures["rss"] = memory.growth
    return Outcome(figures, {"load": answer_of(_rows(control.symbolic_atoms))}, clingo.__version__)


def _rows(atoms: object) -> Ints:
    found = atoms.by_signature("path", 2)  # type: ignore[attr-defined]  # clingo.SymbolicAtoms
    numbers = (argument.number for atom in found for argument in atom.symbol.arguments)
    return np.fromiter(numbers, np.int64).reshape(-1, 2)
