"""Strata with stages, maintained by their derivations: rows and deltas are the reference's."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.sweeping import sweep_always
from whorl.diagnostics.errors import UserError
from whorl.diagnostics.source import Source
from whorl.hosts.inprocess import InProcess
from whorl.kernel.strategies.staged_derivations import StagedDerivations
from whorl.logical.compile import compile_program
from whorl.model.delta import Change, Epoch
from whorl.model.limits import Limits
from whorl.oracle.session import Oracle

BASE = "RELATION link(X: Integer, Y: Integer).\nRELATION start(X: Integer).\nRELATION shut(X: Integer, Y: Integer).\n"
PROGRAMS = {
    # a positive atom at any lower stage
    "tree": """
tree(0, 0, 0).
late(Y, D + 1) :- tree(_, Y, E), D + 1 > E, tree(_, X, D), link(X, Y).
tree(X, Y, D + 1) :- link(X, Y), tree(_, X, D), not late(Y, D + 1).
""",
    # recursion inside a stage, below a negation in the same one
    "rings": """
ring(X, 0) :- start(X).
ring(Y, N) :- ring(X, N), link(X, Y), not seen(Y, N), not shut(X, Y).
ring(Y, N + 1) :- ring(X, N), link(Y, X), N < 4, not seen(Y, N).
seen(X, N + 1) :- ring(X, N), N < 4.
seen(X, N + 1) :- seen(X, N), N < 4.
""",
    # two relations through each other in one stage, not linear; something negated with a constant and an underscore
    "mutual": """
left(X, 0) :- start(X).
left(Y, N) :- right(X, N), link(X, Y), not done(Y, N).
right(Y, N) :- left(X, N), left(Z, N), link(X, Y), link(Z, Y).
left(X, N + 1) :- right(X, N), N < 3, not shut(_, X), not shut(2, 2).
done(X, N + 1) :- left(X, N), N < 3, not right(X, N).
done(X, N + 1) :- done(X, N), left(_, N), N < 3.
""",
    # stages that are given from outside, with gaps, and one that is asked for
    "given": """
at(X, 3 * Y) :- start(X), link(X, Y).
at(Y, N + 1) :- at(X, N), link(X, Y), not met(X, Y, N).
met(X, Y, N + 1) :- at(X, N), at(Y, N), shut(X, Y).
query at(X, 4).
query met(X, Y, 4).
""",
}
every_program = pytest.mark.parametrize("text", PROGRAMS.values(), ids=PROGRAMS)


def _host(text: str, strategy: str = "derivations", limits: Limits | None = None) -> InProcess:
    source = Source("staged", BASE + text)
    return InProcess(lambda types: compile_program(source, data_types=types), limits, strategy)


def _oracle(text: str, limits: Limits | None = None) -> Oracle:
    source = Source("staged", BASE + text)
    return Oracle(lambda types: compile_program(source, data_types=types), limits)


def _churn(seed: int, nodes: int = 6, epochs: int = 12) -> list[Epoch]:
    chance = random.Random(seed)
    held: set[tuple[str, tuple[int, ...]]] = set()
    out: list[Epoch] = []
    for number in range(1, epochs + 1):
        new: set[tuple[str, tuple[int, ...]]] = set()
        for _ in range(chance.choice((1, 2, 8))):
            name = chance.choice(("link", "link", "link", "start", "shut"))
            new.add((name, tuple(chance.randrange(nodes) for _ in range(1 if name == "start" else 2))))
        gone = set(chance.sample(sorted(held), min(len(held), chance.choice((0, 1, 4)))))
        held = (held - gone) | new
        changes = [Change(name, row, -1) for name, row in sorted(gone - new)]
        out.append(Epoch(number, (*changes, *(Change(name, row, 1) for name, row in sorted(new)))))
    return out


def _follow(text: str, epochs: list[Epoch]) -> InProcess:
    kernel, oracle = _host(text), _oracle(text)
    for epoch in epochs:
        assert dict(kernel.commit(epoch).deltas) == dict(oracle.commit(epoch).deltas), epoch
    for output in oracle.plan.outputs:
        assert kernel.rows(output.name) == oracle.rows(output.name)
    return kernel


@every_program
@pytest.mark.parametrize("seed", range(12))
def test_changes_equal_the_reference(text: str, seed: int) -> None:
    kernel = _follow(text, _churn(seed))
    assert any(isinstance(strategy, StagedDerivations) for strategy in kernel.partition.strategies)


@every_program
@pytest.mark.parametrize("seed", range(4))
def test_sweeping_changes_nothing(text: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep_always(monkeypatch)
    _follow(text, _churn(100 + seed))


@every_program
def test_a_refused_epoch_leaves_no_trace(text: str) -> None:
    """Stages and rows are counted as the reference does; rounds inside a stage are not, if only some of it changes."""
    reads_its_own_stage = text in (PROGRAMS["rings"], PROGRAMS["mutual"])
    codes: set[str] = set()
    for seed in range(10):
        chance = random.Random(seed)
        rounds = 30 if reads_its_own_stage else chance.choice((3, 4, 5))
        limits = Limits(rounds=rounds, tuples=chance.choice((6, 12)))
        kernel, oracle = _host(text, limits=limits), _oracle(text, limits)
        for epoch in _churn(200 + seed, epochs=10):
            try:
                expected = dict(oracle.commit(epoch).deltas)
            except UserError as error:
                codes.add(error.code)
                with pytest.raises(UserError) as also:
                    kernel.commit(epoch)
                assert also.value.code == error.code
                continue
            assert dict(kernel.commit(epoch).deltas) == expected
    assert "E507" in codes
    assert reads_its_own_stage or "E506" in codes


def test_a_change_costs_what_it_concerns() -> None:
    """The end of a branch of a deep tree goes and comes: no work for the others, whatever their number."""
    work = {}
    for width in (20, 200):
        kernel = _host(PROGRAMS["tree"])
        branches = [(0, 1000 * branch + 1) for branch in range(1, width)]
        branches += [(1000 * branch + at, 1000 * branch + at + 1) for branch in range(1, width) for at in range(1, 20)]
        kernel.commit(Epoch(1, tuple(Change("link", row, 1) for row in branches)))
        twig = Change("link", (5018, 5019), -1)
        gone = kernel.commit(Epoch(2, (twig,)))
        came = kernel.commit(Epoch(3, (Change("link", twig.row, 1),)))
        assert gone.deltas["tree"].deleted == ((5018, 5019, 19), (5019, 5020, 20))
        assert came.deltas["tree"].inserted == gone.deltas["tree"].deleted
        assert gone.work is not None
        assert came.work is not None
        work[width] = (gone.work.derivations, gone.work.probes, came.work.derivations)
    assert work[20] == work[200]


def test_the_command_line_takes_it(tmp_path: Path) -> None:
    from tests.command_line import whorl

    (tmp_path / "tree.dl").write_text(BASE + PROGRAMS["tree"] + "query tree(X, Y, D).\n", encoding="utf-8")
    changes = "@1\n+link(0, 1)\n+link(1, 2)\n+link(0, 2)\n@2\n-link(0, 2)\n"
    (tmp_path / "tree.deltas").write_text(changes, encoding="utf-8")
    command = ("replay", str(tmp_path / "tree.dl"), str(tmp_path / "tree.deltas"), "--verify", "--strategy")
    run = whorl(*command, "derivations")
    assert run.code == 0
    assert run.out == whorl(*command, "recompute").out
    assert "-tree(0, 2, 1)\n" in run.out
