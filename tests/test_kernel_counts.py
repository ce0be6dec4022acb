"""The counts of worked examples, read from the epoch report: what each strategy touches, derives and never looks at."""

from __future__ import annotations

from pathlib import Path

import pytest

from whorl.diagnostics.source import Source
from whorl.hosts.inprocess import InProcess
from whorl.logical.compile import compile_program
from whorl.model.delta import Delta
from whorl.model.report import EpochReport
from whorl.syntax.deltas import parse_deltas

GOLDEN = Path(__file__).parent / "golden"

REACH = "reach(X, Y) :- edge(X, Y).\nreach(X, Y) :- reach(X, Z), edge(Z, Y).\nquery reach(X, Y).\n"
EDGES = ("ab", "ac", "be", "cf", "ed", "dg", "ef", "fg", "fh")


def _replay(program: str, deltas: str, strategy: str) -> dict[int, EpochReport]:
    source = Source("program", program)
    host = InProcess(lambda types: compile_program(source, data_types=types), None, strategy)
    return {epoch.number: host.commit(epoch) for epoch in parse_deltas(Source("deltas", deltas))}


def _figure(strategy: str) -> dict[int, EpochReport]:
    folder = GOLDEN / "streamlog" / "cheap_path_figure"
    return _replay((folder / "program.dl").read_text(), (folder / "input.deltas").read_text(), strategy)


def test_a_window_step_derives_what_is_new_only() -> None:
    labels, scratch = _figure("expiry"), _figure("recompute")
    assert [_work(labels[2]), _work(scratch[2])] == [8, 12]
    assert [_work(labels[3]), _work(scratch[3])] == [0, 9]


def test_expiry_alone_looks_nothing_up() -> None:
    for number in (3, 4, 5):
        work = _figure("expiry")[number].work
        assert work is not None
        assert (work.probes, work.matches, work.derivations) == (0, 0, 0)


def test_auto_takes_expiry_for_windows() -> None:
    strata = [cost.strategy for cost in _figure("auto")[2].strata]
    assert strata == ["expiry", "expiry"]  # the frontier, and the best of it


def _work(report: EpochReport) -> int:
    assert report.work is not None
    return report.work.derivations


@pytest.mark.parametrize(
    ("strategy", "counts"),
    [
        ("dred", (9, 5)),  # falls: everything that used the edge; five of these nine follow otherwise
        ("pf", (4, 0)),  # falls: only what has no proof
        ("support", (4, 0)),
        ("derivations", (4, 0)),
    ],
)
def test_what_a_deletion_touches(strategy: str, counts: tuple[int, int]) -> None:
    lines = "".join(f'+edge("{pair[0]}", "{pair[1]}")\n' for pair in EDGES)
    reports = _replay(REACH, f'@1\n{lines}@2\n-edge("e", "f")\n', strategy)
    gone = (("b", "f"), ("b", "h"), ("e", "f"), ("e", "h"))
    assert reports[2].deltas == {"reach": Delta((), gone)}
    work = reports[2].work
    assert work is not None
    assert (work.fallen, work.returned) == counts


def test_proving_first_never_looks_at_rows_behind_a_proof() -> None:
    lines = "".join(f'+edge("{pair[0]}", "{pair[1]}")\n' for pair in EDGES)
    work = _replay(REACH, f'@1\n{lines}@2\n-edge("e", "f")\n', "pf")[2].work
    assert work is not None
    # (e,f), (a,f), (b,f); then what the fallen two lead to: (e,g), (e,h), (b,g), (b,h). Not what is behind (a,f).
    assert work.doubted == 7
