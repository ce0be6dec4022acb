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
from whorl.model.batching import Batching
from whorl.model.delta import Change, Epoch
from whorl.model.report import EpochReport

Case = tuple[GeneratedProgram, tuple[Epoch, ...]]
STRATEGIES = ["recompute", "dred", "pf", "support", "derivations", "absorption"]
SHIPS = ["lazy", "eager", "plain"]
USUAL = Batching()
REACHABLE = """
RELATION link(X: Integer, Y: Integer).
reachable(X, Y) :- link(X, Y).
reachable(X, Y) :- link(X, Z), reachable(Z, Y).
"""


def _simulated(
    text: str,
    partitions: int,
    conditions: Conditions,
    strategy: str = "support",
    ship: str = "lazy",
    batching: Batching = USUAL,
) -> Simulated:
    source = Source("test.dl", text)
    return Simulated(
        lambda types: compile_program(source, data_types=types),
        partitions,
        conditions,
        strategy=strategy,
        ship=ship,
        batching=batching,
    )


_rough = st.builds(
    Conditions,
    jitter=st.sampled_from([0.0, 0.01, 1.0]),
    duplicated=st.sampled_from([0.0, 0.3]),
    lost=st.sampled_from([0.0, 0.3]),
    pause=st.sampled_from([0.0, 0.0001, 0.05]),
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


@settings(max_examples=200)
@given(st.one_of(cases(PLAIN), cases(WINDOWED)), st.sampled_from([1, 3, 7]), _rough)
def test_no_schedule_changes_a_view_with_labels(case: Case, partitions: int, conditions: Conditions) -> None:
    _check(case, "absorption", partitions, conditions, "lazy")


_bounds = st.builds(Batching, st.sampled_from([None, 1, 2, 5]), st.sampled_from([None, 0.0, 0.005, 2.0]))


@settings(max_examples=200)
@given(st.one_of(cases(PLAIN), cases(WINDOWED)), st.sampled_from([1, 3, 7]), _rough, _bounds)
def test_no_schedule_changes_a_view_however_long_alternatives_wait(
    case: Case, partitions: int, conditions: Conditions, bounds: Batching
) -> None:
    _check(case, "absorption", partitions, conditions, "eager", bounds)


def _check(
    case: Case, strategy: str, partitions: int, conditions: Conditions, ship: str, batching: Batching = USUAL
) -> None:
    program, epochs = case
    try:
        host = _simulated(program.text, partitions, conditions, strategy, ship, batching)
        follow_reference(program.text, epochs, host)
    except UserError as refused:
        assert refused.code == "E402"


def _alternatives(bounds: Batching) -> tuple[Simulated, int, float]:
    """Return a network with many ways, how many letters its labels took, and how many rows each of them had."""
    host = _simulated(REACHABLE, 4, Conditions(jitter=0.02, seed=2), "absorption", "eager", bounds)
    ring = [(at, (at + step) % 7) for at in range(7) for step in (1, 2)]
    both = tuple(Change("link", row, 1) for low, high in ring for row in ((low, high), (high, low)))
    report = host.commit(Epoch(1, both))
    rows = sum(each.rows for each in report.shipped)
    return host, host.network.letters, rows / host.network.letters


def test_what_waits_longer_goes_in_fewer_and_larger_letters() -> None:
    by_count = [_alternatives(Batching(rows, None)) for rows in (1, 30, None)]
    by_time = [_alternatives(Batching(None, seconds)) for seconds in (0.0, 0.02)]
    for found in (by_count, by_time):
        letters = [each for _host, each, _size in found]
        assert letters == sorted(letters, reverse=True)
        assert letters[0] > letters[-1]
        assert len({frozenset(host.rows("reachable")) for host, _letters, _size in found}) == 1
    assert by_time[0][2] < by_time[1][2]
    assert by_time[0][0].network.clock < by_time[1][0].network.clock


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
