"""Heaps of rows against plain lists, with the JIT on; `tests/test_kernel_arrays.py` runs them with it off."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whorl.kernel.arrays import heaps as heap_arrays
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


@settings(max_examples=150)
@given(batches=st.lists(WORDS, max_size=8), lowest=st.booleans(), gap=st.sampled_from([2, 4, 1 << 32]))
def test_places_are_in_the_order_of_values(batches: list[list[Value]], gap: int, *, lowest: bool) -> None:
    dictionary = Dictionary(10)
    order = Order(Type.UNKNOWN, dictionary, lowest=lowest)
    seen: dict[int, int] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ordering, "_GAP", gap)
        for batch in batches:
            numbers = np.array([dictionary.number(value) for value in batch], np.int64)
            keys = order.keys(numbers)
            if order.take_moved():
                every = np.array(list(seen), np.int64)
                seen = dict(zip(every.tolist(), order.keys(every).tolist(), strict=True)) if len(every) else {}
            seen.update(zip(numbers.tolist(), keys.tolist(), strict=True))
            wanted = sorted(seen, key=lambda number: order_key(dictionary.value(number)), reverse=not lowest)
            assert sorted(seen, key=seen.__getitem__) == wanted
            assert len(set(seen.values())) == len(seen)


def test_values_that_only_grow_find_room() -> None:
    dictionary = Dictionary(10)
    order = Order(Type.STRING, dictionary, lowest=True)
    keys = [int(order.keys(np.array([dictionary.number(f"{day:06}")]))[0]) for day in range(500)]
    order.take_moved()
    keys = order.keys(np.array([dictionary.number(f"{day:06}") for day in range(500)])).tolist()
    assert keys == sorted(keys)
    for day in range(500, 3000):
        order.keys(np.array([dictionary.number(f"{day:06}")]))
        assert not order.take_moved()


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
