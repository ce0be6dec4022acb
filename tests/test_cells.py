"""Aggregates over complete inputs: every function, over contributions that come and go, against the reference."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from types import FrameType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whorl
from tests.reference import follow_reference
from tests.sweeping import sweep_always
from whorl.diagnostics.errors import UserError
from whorl.diagnostics.source import Source
from whorl.hosts.inprocess import InProcess
from whorl.kernel.state import heaps, ordering
from whorl.kernel.strategies import cells
from whorl.logical.compile import compile_program
from whorl.model.delta import Change, Epoch
from whorl.model.values import Row
from whorl.oracle.session import Oracle

PROGRAM = """
RELATION a(G: Integer, K: Integer, N: Integer, F: Float, S: String).
RELATION b(G: Integer, N: Integer).
totals(G, count<K>, sum<N>, sum<F>, avg<F>) :- a(G, K, N, F, _).
ends(G, min<N>, max<F>) :- a(G, _, N, F, _).
words(G, min<S>, max<S>) :- a(G, _, _, _, S).
kinds(G, count<distinct N>) :- a(G, _, N, _, _).
kinds(G, count<distinct N>) :- b(G, N).
keyed(G, msum<(K, N)>, mcount<(S, N)>) :- a(G, K, N, _, S), N >= 0.
either(G, sum<N>) :- a(G, _, N, _, _); b(G, N).
whole(count<K>, max<N>) :- a(_, K, N, _, _).
query totals(G, C, N, F, M).
query ends(G, L, H).
query words(G, L, H).
query kinds(G, C).
query keyed(G, N, C).
query either(G, N).
query whole(C, H).
"""
MIXED = "things(G, min<V>, max<V>) :- c(G, V).\nall(min<V>, max<V>) :- c(_, V).\n"
WORDS = ("", "a", "ab", "b", "ba", "c", "\u00e4")
FLOATS = (0.1, -0.1, 1e300, -1e300, 5e-324, 0.0, 2.5)
A = st.tuples(
    st.integers(0, 2),
    st.integers(0, 2),
    st.sampled_from((0, 1, 2, -1, 1 << 40)),
    st.sampled_from(FLOATS),
    st.sampled_from(WORDS),
)
B = st.tuples(st.integers(0, 2), st.integers(0, 3))
C = st.tuples(st.integers(0, 2), st.sampled_from((1, 1.0, True, False, 0, "x", "y", "", -3, 2.5)))
Drawn = list[list[tuple[tuple[str, Row], int]]]


def _changes(*rows: st.SearchStrategy[tuple[str, Row]]) -> st.SearchStrategy[Drawn]:
    return st.lists(st.lists(st.tuples(st.one_of(*rows), st.sampled_from((1, 1, -1))), max_size=12), max_size=8)


OF_TYPES = _changes(st.tuples(st.just("a"), A), st.tuples(st.just("b"), B))
OF_ANY_KIND = _changes(st.tuples(st.just("c"), C))


def _epochs(drawn: Drawn) -> tuple[Epoch, ...]:
    return tuple(
        Epoch(number, tuple(Change(name, row, weight) for (name, row), weight in changes))
        for number, changes in enumerate(drawn, 1)
    )


def _host(text: str) -> InProcess:
    source = Source("cells.dl", text)
    return InProcess(lambda types: compile_program(source, data_types=types))


def _follow(text: str, drawn: Drawn, gap: int, *, sweeps: bool) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordering, "_GAP", gap)
        if sweeps:
            sweep_always(patch)
            patch.setattr(cells, "SPARE", 0)
            patch.setattr(heaps, "SPARE", 0)
        host = _host(text)
        assert {stratum.kind for stratum in host.partition.plan.strata} == {"rows", "cells"}
        follow_reference(text, _epochs(drawn), host)


@settings(max_examples=60)
@given(drawn=OF_TYPES, sweeps=st.booleans())
def test_every_function_follows_its_contributions(drawn: Drawn, *, sweeps: bool) -> None:
    _follow(PROGRAM, drawn, 1 << 32, sweeps=sweeps)


@settings(max_examples=60)
@given(drawn=OF_ANY_KIND, sweeps=st.booleans(), gap=st.sampled_from((2, 1 << 32)))
def test_the_least_and_the_largest_of_values_of_any_kind(drawn: Drawn, gap: int, *, sweeps: bool) -> None:
    _follow(MIXED, drawn, gap, sweeps=sweeps)


@settings(max_examples=20)
@given(drawn=OF_TYPES, stop=st.integers(0, 5))
def test_aggregates_go_on_where_they_were_saved(drawn: Drawn, stop: int) -> None:
    source = Source("cells.dl", PROGRAM)
    epochs = _epochs(drawn)
    host = _host(PROGRAM)
    oracle = Oracle(lambda types: compile_program(source, data_types=types))
    for epoch in epochs[:stop]:
        assert dict(host.commit(epoch).deltas) == dict(oracle.commit(epoch).deltas)
    with TemporaryDirectory() as folder:
        host.save(folder)
        restored = InProcess.restore(folder, lambda types: compile_program(source, data_types=types))
    for epoch in epochs[stop:]:
        assert dict(restored.commit(epoch).deltas) == dict(oracle.commit(epoch).deltas)


def test_groups_that_are_gone_are_forgotten() -> None:
    host = _host("RELATION e(G: Integer, S: String, N: Integer).\np(G, msum<(S, N)>) :- e(G, S, N).\n")
    for start in range(0, 40_000, 4_000):
        rows = [(number, f"{number}", number) for number in range(start, start + 4_000)]
        host.commit(Epoch(2 * start + 1, tuple(Change("e", row, 1) for row in rows)))
        host.commit(Epoch(2 * start + 2, tuple(Change("e", row, -1) for row in rows[1:])))
    (strategy,) = (each for each in host.partition.strategies if isinstance(each, cells.Cells))
    assert strategy._groups.count < 16_000
    assert host.rows("p") == {(start, start) for start in range(0, 40_000, 4_000)}


def test_a_sum_that_is_too_large_refuses_the_epoch_and_leaves_the_groups() -> None:
    host = _host("RELATION e(G: Integer, K: Integer, N: Integer).\np(G, sum<N>) :- e(G, _, N).\n")
    large = (1 << 63) - 1
    host.commit(Epoch(1, (Change("e", (1, 1, large), 1), Change("e", (2, 1, 5), 1))))
    with pytest.raises(UserError) as refused:
        host.commit(Epoch(2, (Change("e", (1, 2, 1), 1), Change("e", (2, 2, 5), 1))))
    assert refused.value.code == "E509"
    assert host.rows("p") == {(1, large), (2, 5)}
    host.commit(Epoch(2, (Change("e", (1, 2, 1), 1), Change("e", (1, 3, -1), 1), Change("e", (2, 2, 6), 1))))
    assert host.rows("p") == {(1, large), (2, 11)}


@contextmanager
def _interrupted(file: str | None, after: int) -> Iterator[None]:
    """Interrupt, as Ctrl-C does, once so many lines of a file have run."""
    left = after

    def trace(frame: FrameType, event: str, _arg: Any) -> Any:
        nonlocal left
        if frame.f_code.co_filename != file:
            return None
        left -= event == "line"
        if left < 0:
            sys.settrace(None)
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield
    finally:
        sys.settrace(before)


@pytest.mark.parametrize("held", [0, 100], ids=["all at once", "one by one"])
def test_an_epoch_that_is_interrupted_leaves_no_trace_in_the_order(held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordering, "_GAP", 2)
    after, interrupted = 0, True
    while interrupted:
        with whorl.open("RELATION a(G: Integer, S: String). w(G, min<S>, max<S>) :- a(G, S).") as session:
            session.insert("a", [(2, f"b{number:02}") for number in range(held)])
            session.commit()
            session.insert("a", [(1, "c"), (1, "a"), (1, "b")])
            try:
                with _interrupted(ordering.__file__, after):
                    session.commit()
                interrupted = False
            except KeyboardInterrupt:
                session.insert("a", [(1, "c"), (1, "a"), (1, "b")])
                session.commit()
            assert session["w"].rows() == [(1, "a", "c"), (2, "b00", "b99")][: 2 if held else 1]
        after += 7
    assert after > 50


SWEPT = """
RELATION a(G: Integer, K: Integer, S: String, N: Integer).
p(G, count<K>, max<S>, msum<(S, N)>) :- a(G, K, S, N).
"""


@pytest.mark.parametrize("held", [2_000, 32_000])
def test_contributions_that_were_swept_are_read_again_and_no_others(held: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sweep_always(monkeypatch)
    host = _host(SWEPT)
    host.commit(Epoch(1, tuple(Change("a", (1, number, "", 0), 1) for number in range(held))))
    for epoch in range(2, 12):
        come = [Change("a", (1, number, f"{epoch} {number}", number), 1) for number in range(20)]
        go = [Change("a", (1, number, f"{epoch - 1} {number}", number), -1) for number in range(20)]
        host.commit(Epoch(epoch, (*come, *(go if epoch > 2 else ()))))
        assert host.rows("p") == {(1, held + 20, f"{epoch} 9", 190)}
        assert host.partition.state.work.labels < 300
