"""Heaps of rows against plain lists, with the JIT on; `tests/test_kernel_arrays.py` runs them with it off."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log2

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whorl.kernel.arrays import heaps as heap_arrays
from whorl.kernel.state import heaps as heap_state
from whorl.kernel.state import ordering
from whorl.kernel.state.dictionary import Dictionary
from whorl.kernel.state.heaps import Heaps
from whorl.kernel.state.ordering import Order
from whorl.kernel.state.relation import StoredRelation
from whorl.model.types import Type
from whorl.model.values import Value, order_key

ROWS = st.lists(st.tuples(st.integers(0, 2), st.integers(-20, 20)), min_size=1, max_size=40)


@settings(max_examples=150)
@given(steps=st.lists(st.tuples(st.booleans(), ROWS), max_size=10), lowest=st.booleans())
def test_the_first_row_alive_is_the_best(steps: list[tuple[bool, list[tuple[int, int]]]], *, lowest: bool) -> None:
    relation = StoredRelation("r", [Type.INTEGER, Type.INTEGER])
    heaps = Heaps(relation, Order(Type.INTEGER, Dictionary(10), lowest=lowest))
    model: set[tuple[int, int]] = set()
    for comes, rows in steps:
        batch = np.array(rows, np.int64)
        if comes:
            fresh = relation.add(batch)
            found = relation.read(fresh)
            heaps.enter(fresh, found[:, 0].copy(), found[:, 1].copy())
            model |= set(rows)
        else:
            relation.retire(relation.find(batch))
            model -= set(rows)
        first = heaps.first(np.array([0, 1, 2, 1]))
        values = [int(relation.read(np.array([number]))[0, 1]) if number >= 0 else None for number in first]
        best = min if lowest else max
        assert values == [best((v for g, v in model if g == group), default=None) for group in (0, 1, 2, 1)]
        for row in range(relation.count):  # links stay within bounds, which kernels do not check
            assert heap_arrays.OUT <= heaps._child[row] < relation.count


def test_a_row_that_comes_back_before_it_was_missed_is_in_its_place() -> None:
    relation = StoredRelation("r", [Type.INTEGER])
    heaps = Heaps(relation, Order(Type.INTEGER, Dictionary(10), lowest=True))
    heap = np.zeros(1, np.int64)
    for value in (1, 2, 3):
        heaps.enter(relation.add(np.array([[value]])), heap, np.array([value]))
    two = relation.find(np.array([[2]]))
    relation.retire(two)
    heaps.enter(relation.revive(two), heap, np.array([2]))
    relation.retire(relation.find(np.array([[1]])))
    assert relation.read(heaps.first(heap)).tolist() == [[2]]


WORDS = st.lists(
    st.one_of(st.text("ab", max_size=4), st.integers(-3, 3), st.booleans(), st.floats(-2, 2)), min_size=1, max_size=12
)


class _Placed:
    """Values of any kind that an order places; tells how many of those placed before got another place."""

    def __init__(self, *, lowest: bool = True) -> None:
        self.dictionary = Dictionary(10)
        self.order = Order(Type.UNKNOWN, self.dictionary, lowest=lowest)
        self.lowest = lowest

    def take(self, batch: Sequence[Value]) -> int:
        numbers = np.array([self.dictionary.number(value) for value in batch], np.int64)
        before = self.order.places[: self.order.many].copy()
        assert self.order.keys(numbers).tolist() == numbers.tolist()
        return int(np.count_nonzero(self.order.places[: len(before)] != before))

    def check(self) -> None:
        many = len(self.dictionary)
        wanted = sorted(
            range(many), key=lambda number: order_key(self.dictionary.value(number)), reverse=not self.lowest
        )
        places = self.order.places[:many]
        assert np.argsort(places, kind="stable").tolist() == wanted
        assert len(np.unique(places)) == many


@settings(max_examples=150)
@given(batches=st.lists(WORDS, max_size=8), lowest=st.booleans(), gap=st.sampled_from([2, 4, 1 << 32]))
def test_places_are_in_the_order_of_values(batches: list[list[Value]], gap: int, *, lowest: bool) -> None:
    placed = _Placed(lowest=lowest)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordering, "_GAP", gap)
        for batch in batches:
            placed.take(batch)
            placed.check()


def _up(low: int, many: int) -> list[int]:
    """Each value comes between the last one and the first, which is the largest."""
    return [low + many, *range(low, low + many)]


def _down(low: int, many: int) -> list[int]:
    return [low - 1, *range(low + many - 1, low - 1, -1)]


def _inward(low: int, many: int) -> list[int]:
    """Each value comes between the two before."""
    return [low + (turn if turn % 2 else 2 * many - turn) for turn in range(many)]


def _scattered(low: int, many: int) -> list[int]:
    return [low + turn * 7919 % many for turn in range(many)]


PATTERNS = (_up, _down, _inward, _scattered)


@settings(max_examples=60)
@given(
    runs=st.lists(
        st.tuples(st.sampled_from(PATTERNS), st.integers(0, 400), st.integers(1, 150), st.sampled_from((1, 3, 150))),
        max_size=6,
    ),
    lowest=st.booleans(),
    bits=st.sampled_from((14, 62)),
)
def test_values_that_need_ever_more_room_are_in_their_order(
    runs: list[tuple[Callable[[int, int], list[int]], int, int, int]], bits: int, *, lowest: bool
) -> None:
    placed = _Placed(lowest=lowest)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordering, "_BITS", bits)
        patch.setattr(ordering, "_BLOCK", 4)
        for pattern, low, many, together in runs:
            values = pattern(low, many)
            for start in range(0, len(values), together):
                placed.take(values[start : start + together])
                placed.check()


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("gap", [2, 1 << 32])
def test_few_values_are_moved(
    pattern: Callable[[int, int], list[int]], gap: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On average, a value that comes lets at most the logarithm of their number get another place."""
    monkeypatch.setattr(ordering, "_GAP", gap)
    for many in (1000, 2000, 4000):
        placed = _Placed()
        placed.take(list(range(-1000, 0)))
        moved = sum(placed.take([value]) for value in pattern(0, many))
        placed.check()
        assert moved < many * log2(many)


def test_values_that_only_grow_find_room() -> None:
    placed = _Placed()
    placed.take([f"{day:06}" for day in range(500)])
    assert not sum(placed.take([f"{day:06}"]) for day in range(500, 3000))
    placed.check()


def test_heaps_take_over_places_that_moved(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ordering, "_GAP", 4)
    dictionary = Dictionary(10)
    relation = StoredRelation("r", [Type.STRING])
    heaps = Heaps(relation, Order(Type.STRING, dictionary, lowest=True))
    heap = np.zeros(1, np.int64)
    words = [f"{at:03}" for at in range(60)]
    for word in [*words[::2], *words[1::2]]:
        number = dictionary.number(word)
        heaps.enter(relation.add(np.array([[number]])), heap, np.array([number]))
    out = []
    for _word in words:
        first = heaps.first(heap)
        out.append(dictionary.value(int(relation.read(first)[0, 0])))
        relation.retire(first)
    assert out == words
    assert heaps.first(heap).tolist() == [-1]


def test_values_that_are_gone_are_forgotten_when_heaps_are_cleared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(heap_state, "SPARE", 0)
    dictionary = Dictionary(10)
    relation = StoredRelation("r", [Type.STRING])
    order = Order(Type.STRING, dictionary, lowest=True)
    heaps = Heaps(relation, order)
    values = np.array([dictionary.number(f"{at:03}") for at in range(9)])
    rows = relation.add(values.reshape(-1, 1))
    heaps.enter(rows, np.zeros(9, np.int64), values)
    known = []
    for gone in (0, 4, 5):
        relation.retire(rows[:gone])
        relation.settle()
        heaps.clear()
        known.append(order.many)
    assert known == [9, 9, 0]
