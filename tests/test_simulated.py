"""Partitions on a simulated network: delay, order, duplication and loss change the time it takes, never the views."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.generators import PLAIN, WINDOWED, GeneratedProgram, cases
from tests.reference import follow_reference
from whorl.diagnostics.errors import UserError
from whorl.diagnostics.source import Source
from whorl.hosts.simulated.host import Simulated
from whorl.hosts.simulated.network import Conditions
from whorl.logical.compile import compile_program
from whorl.model.delta import Change, Epoch
from whorl.model.report import EpochReport

Case = tuple[GeneratedProgram, tuple[Epoch, ...]]
STRATEGIES = ["recompute", "dred", "pf", "support", "derivations", "absorption"]
SHIPS = ["lazy", "eager", "plain"]
REACHABLE = """
RELATION link(X: Integer, Y: Integer).
reachable(X, Y) :- link(X, Y).
reachable(X, Y) :- link(X, Z), reachable(Z, Y).
"""


def _simulated(
    text: str, partitions: int, conditions: Conditions, strategy: str = "support", ship: str = "lazy"
) -> Simulated:
    source = Source("test.dl", text)
    return Simulated(
        lambda types: compile_program(source, data_types=types), partitions, conditions, strategy=strategy, ship=ship
    )


_rough = st.builds(
    Conditions,
    jitter=st.sampled_from([0.0, 0.01, 1.0]),
    duplicated=st.sampled_from([0.0, 0.3]),
    lost=st.sampled_from([0.0, 0.3]),
    seed=st.integers(0, 10_000),
)


@settings(max_examples=120)
@given(
    st.one_of(cases(PLAIN), cases(WINDOWED)),
    st.sampled_from(STRATEGIES),
    st.sampled_from([3, 7]),
    _rough,
    st.sampled_from(SHIPS),
)
def test_no_schedule_changes_a_view(
    case: Case, strategy: str, partitions: int, conditions: Conditions, ship: str
) -> None:
    _check(case, strategy, partitions, conditions, ship)


@settings(max_examples=300)
@given(st.one_of(cases(PLAIN), cases(WINDOWED)), st.sampled_from([1, 3, 7]), _rough, st.sampled_from(["lazy", "eager"]))
def test_no_schedule_changes_a_view_with_labels(case: Case, partitions: int, conditions: Conditions, ship: str) -> None:
    _check(case, "absorption", partitions, conditions, ship)


def _check(case: Case, strategy: str, partitions: int, conditions: Conditions, ship: str) -> None:
    program, epochs = case
    try:
        follow_reference(program.text, epochs, _simulated(program.text, partitions, conditions, strategy, ship))
    except UserError as refused:
        assert refused.code == "E402"


def _ring(conditions: Conditions) -> tuple[Simulated, EpochReport]:
    host = _simulated(REACHABLE, 4, conditions)
    links = tuple(Change("link", (at, (at + 1) % 12), 1) for at in range(12))
    return host, host.commit(Epoch(1, links))


def test_a_run_can_be_repeated() -> None:
    rough = Conditions(jitter=0.1, duplicated=0.2, lost=0.2, seed=7)
    first, second = _ring(rough), _ring(rough)
    assert first[0].network.clock == second[0].network.clock
    assert first[1].shipped == second[1].shipped


def test_latency_is_the_time_it_takes() -> None:
    near, far = _ring(Conditions(latency=lambda *_: 0.001)), _ring(Conditions(latency=lambda *_: 0.05))
    assert 40 < far[0].network.clock / near[0].network.clock < 60
    assert near[1].shipped == far[1].shipped


def test_what_is_lost_is_sent_again_and_counted() -> None:
    calm, lossy = _ring(Conditions()), _ring(Conditions(lost=0.5, seed=3))
    assert lossy[0].network.clock > calm[0].network.clock
    assert lossy[0].rows("reachable") == calm[0].rows("reachable")
    assert sum(each.rows for each in lossy[1].shipped) > sum(each.rows for each in calm[1].shipped)
