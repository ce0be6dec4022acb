"""A fact takes the place of the one that holds its key: in every kind of window, however often in one epoch."""

from __future__ import annotations

from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.sweeping import sweep_always
from whorl.diagnostics.errors import UserError
from whorl.diagnostics.source import Source
from whorl.hosts.inprocess import InProcess
from whorl.logical.compile import compile_program
from whorl.logical.plan import LogicalPlan
from whorl.model.batch import batch_of
from whorl.model.delta import Change, Epoch
from whorl.model.limits import Limits
from whorl.oracle.session import Oracle

# Value 4 is refused, after its facts have arrived: what follows from it has no end.
DECLARATIONS = """
RELATION plain(K: Integer KEY, V: Integer).
RELATION pairs(K: Integer KEY, V: Integer, L: String KEY).
RELATION fading(K: Integer KEY, V: Integer) TTL 10.
RELATION newest(K: Integer KEY, V: Integer) WINDOW(COUNT 3).
RELATION slow(K: Integer KEY, V: Integer) WINDOW(COUNT 4, 2).
STREAM recent(Ts: Timestamp, K: Integer KEY, V: Integer) WINDOW(10).
STREAM sliding(Ts: Timestamp, K: Integer KEY, V: Integer) WINDOW(12, 4).
"""
PROGRAM = f"""{DECLARATIONS}
held(V) :- plain(_, V); pairs(_, V, _); fading(_, V); newest(_, V); slow(_, V).
endless(V) :- held(V), V = 4.
endless(W) :- endless(V), W = V + 1.
seen(T, K, V) <- recent(T, K, V).
seen(T, K, V) <- sliding(T, K, V).
query plain(K, V).
query pairs(K, V, L).
query fading(K, V).
query newest(K, V).
query slow(K, V).
query held(V).
query endless(V).
query seen(_, K, V).
"""
LIMITS = Limits(rounds=20)
NAMES = ("plain", "fading", "newest", "slow")
KEY = st.integers(0, 2)
VALUE = st.sampled_from((0, 1, 2, 3) * 6 + (4,))
FACTS = st.one_of(
    st.tuples(st.sampled_from(NAMES), st.tuples(KEY, VALUE)),
    st.tuples(st.just("pairs"), st.tuples(KEY, VALUE, st.sampled_from("ab"))),
    st.tuples(st.sampled_from(("recent", "sliding")), st.tuples(st.integers(0, 30), KEY, st.integers(0, 3))),
)
CHANGES = st.lists(st.tuples(FACTS, st.sampled_from((1, 1, 1, -1))), max_size=20)
Drawn = list[tuple[int, list[tuple[tuple[str, tuple[int | str, ...]], int]]]]
DRAWN = st.lists(st.tuples(st.integers(0, 6), CHANGES), max_size=8)


def _epochs(drawn: Drawn, *, together: bool) -> tuple[Epoch, ...]:
    """Return epochs whose changes come row by row, or by relation and weight."""
    epochs, time = [], 0
    for number, (passed, changes) in enumerate(drawn, 1):
        time += passed
        if together:
            columns: dict[tuple[str, int], list[tuple[int | str, ...]]] = {}
            for (name, row), weight in changes:
                columns.setdefault((name, weight), []).append(row)
            batches = tuple(batch_of(name, rows, weight) for (name, weight), rows in columns.items())
            epochs.append(Epoch(number, (), time, batches=batches))
        else:
            rows = tuple(Change(name, row, weight) for (name, row), weight in changes)
            epochs.append(Epoch(number, rows, time))
    return tuple(epochs)


def _compile(types: object = None) -> LogicalPlan:
    return compile_program(Source("keys.dl", PROGRAM), data_types=types)  # type: ignore[arg-type]


def _follow(drawn: Drawn, *, together: bool, stop: int) -> None:
    """Compare views, changes and counts after every epoch; go on after what is refused, and once from a snapshot."""
    host, oracle = InProcess(_compile, LIMITS), Oracle(_compile, LIMITS)
    for number, epoch in enumerate(_epochs(drawn, together=together)):
        if number == stop:
            with TemporaryDirectory() as folder:
                host.save(folder)
                host = InProcess.restore(folder, _compile, LIMITS)
        try:
            wanted = oracle.commit(epoch)
        except UserError as refused:
            with pytest.raises(UserError) as also:
                host.commit(epoch)
            assert also.value.code == refused.code
            continue
        found = host.commit(epoch)
        assert dict(found.deltas) == dict(wanted.deltas)
        assert found.counts == wanted.counts
        for output in oracle.plan.outputs:
            assert host.rows(output.name) == oracle.rows(output.name)


@settings(max_examples=150)
@given(drawn=DRAWN, together=st.booleans(), stop=st.integers(0, 9), sweeps=st.booleans())
def test_a_fact_takes_the_place_of_the_one_with_its_key(
    drawn: Drawn, stop: int, *, together: bool, sweeps: bool
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        if sweeps:
            sweep_always(patch)
        _follow(drawn, together=together, stop=stop)


def test_the_same_key_many_times_in_one_epoch() -> None:
    """A, B, A: the first is there again; two went; a refused epoch leaves the holder as it was."""
    host = InProcess(_compile, LIMITS)
    first = host.commit(Epoch(1, (), batches=(batch_of("plain", [(1, 0), (1, 1), (1, 0), (2, 0)], 1),)))
    assert first.deltas["plain"].inserted == ((1, 0), (2, 0))
    assert (first.counts.inserted, first.counts.deleted, first.counts.refreshed) == (4, 2, 0)
    with pytest.raises(UserError):
        host.commit(Epoch(2, (), batches=(batch_of("plain", [(1, 3), (1, 4)], 1),)))
    assert host.rows("plain") == {(1, 0), (2, 0)}
    second = host.commit(Epoch(2, (), batches=(batch_of("plain", [(1, 2)], 1),)))
    assert (second.deltas["plain"].inserted, second.deltas["plain"].deleted) == (((1, 2),), ((1, 0),))
