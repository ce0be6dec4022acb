"""Array kernels against plain references, with the JIT on; `test_without_the_jit` runs them with it off."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whorl.kernel.arrays import facts as fact_arrays
from whorl.kernel.arrays import index as index_arrays
from whorl.kernel.arrays import labels as label_arrays
from whorl.kernel.arrays import rowset
from whorl.kernel.arrays.rowset import MARK, NEW, OLD
from whorl.kernel.state import relation as relation_module
from whorl.kernel.state.queue import DeathQueue
from whorl.kernel.state.relation import StoredRelation
from whorl.model.types import Type

HERE = Path(__file__).parent
SMALL = st.integers(0, 5)
WIDE = st.sampled_from([0, 1, 2, 2**31, 2**32 - 1, 2**32, -1, -(2**63), 2**63 - 1])


def _batch(rows: Sequence[tuple[int, ...]], width: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    return np.array(rows, np.int64).reshape(len(rows), width)


def _stored(width: int) -> StoredRelation:
    return StoredRelation("r", [Type.INTEGER] * width)


@st.composite
def _scripts(draw: st.DrawFn) -> tuple[int, list[tuple[str, list[tuple[int, ...]]]]]:
    """Draw a width, and batches of rows to add and to delete."""
    width = draw(st.integers(1, 4))
    value = draw(st.sampled_from([SMALL, WIDE]))
    rows = st.lists(st.tuples(*[value] * width), max_size=30)
    return width, draw(st.lists(st.tuples(st.sampled_from(["add", "delete"]), rows), max_size=6))


@settings(max_examples=100)
@given(_scripts())
def test_a_stored_relation_is_a_set(script: tuple[int, list[tuple[str, list[tuple[int, ...]]]]]) -> None:
    width, batches = script
    relation, model = _stored(width), set[tuple[int, ...]]()
    for action, rows in batches:
        before = set(model)
        batch = _batch(rows, width)
        if action == "add":
            fresh = relation.add(batch)
            assert {tuple(row) for row in relation.read(fresh).tolist()} == set(rows) - model
            model |= set(rows)
        else:
            relation.retire(relation.find(batch))
            model -= set(rows)
        appeared, vanished = relation.settle()
        assert {tuple(row) for row in relation.read(appeared).tolist()} == model - before
        assert {tuple(row) for row in relation.read(vanished).tolist()} == before - model
        assert {tuple(row) for row in relation.read(relation.alive()).tolist()} == model
        found = relation.find(batch)
        assert [number >= 0 and bool(relation.is_alive(np.array([number]))[0]) for number in found] == [
            row in model for row in rows
        ]


@pytest.mark.parametrize("first", [2, 64, 4096])
def test_rows_are_found_after_the_table_grew(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries are spread where they are, from the last one on; the first ones, or all, wait until the end."""
    monkeypatch.setattr(relation_module, "_FIRST", first)
    chance = np.random.default_rng(first)
    stored, model = _stored(2), dict[tuple[int, ...], int]()
    for many in (30, 40, 200, 900, 1500):
        rows = chance.integers(0, 60, (many, 2))
        stored.add(rows)
        for row, number in zip(map(tuple, rows.tolist()), stored.find(rows).tolist(), strict=True):
            assert model.setdefault(row, number) == number
        known = np.array(list(model))
        assert stored.find(known).tolist() == list(model.values())
        assert set(stored.find(known + 60).tolist()) == {-1}
    assert stored.count == len(model)


@settings(max_examples=100)
@given(_scripts(), st.data())
def test_probing_an_index_is_a_join(
    script: tuple[int, list[tuple[str, list[tuple[int, ...]]]]], data: st.DataObject
) -> None:
    width, batches = script
    columns = tuple(data.draw(st.lists(st.integers(0, width - 1), unique=True, max_size=width)))
    relation, model = _stored(width), set[tuple[int, ...]]()
    for action, rows in batches:
        if action == "add":
            relation.add(_batch(rows, width))
            model |= set(rows)
        else:
            relation.retire(relation.find(_batch(rows, width)))
            model -= set(rows)
        relation.settle()
        left = [row[::-1] for row in rows]
        keys = np.array(columns, np.int64)
        wants = np.array([0, *(-2 - column for column in range(width))], np.int64)
        found = _probe(relation, _batch(left, width), keys, columns, wants)
        expected = sorted((line[0], *row) for line in left for row in model if all(line[c] == row[c] for c in columns))
        assert list(map(tuple, found)) == expected
        out = np.zeros(len(left), np.uint8)
        index_arrays.test_keys(_batch(left, width), keys, relation.index(columns).arrays(), relation.arrays, NEW, out)
        assert out.tolist() == [any(all(line[c] == row[c] for c in columns) for row in model) for line in left]


def _probe(
    relation: StoredRelation,
    left: np.ndarray[tuple[int, int], np.dtype[np.int64]],
    keys: np.ndarray[tuple[int], np.dtype[np.int64]],
    columns: tuple[int, ...],
    wants: np.ndarray[tuple[int], np.dtype[np.int64]],
) -> list[list[int]]:
    """Return what is found, sorted: with room for everything, and for so few lines at a time that the call resumes."""
    results = []
    for room in (index_arrays.CHAIN, 40, 4096):
        state = np.array([0, 0, NEW, 0], np.int64)
        lines: list[list[int]] = []
        while state[0] < len(left):
            out = np.empty((room, len(wants)), np.int64)
            arrays = relation.index(columns).arrays()
            made = index_arrays.probe(left, keys, arrays, relation.arrays, wants, out, state)
            lines.extend(out[:made].tolist())
        assert state[3] == len(lines)
        results.append(sorted(lines))
    assert results[0] == results[1] == results[2]
    return results[0]


def test_flags_tell_before_from_after() -> None:
    relation = _stored(1)
    relation.add(_batch([(1,), (2,)], 1))
    relation.settle()
    relation.retire(relation.find(_batch([(1,)], 1)))
    relation.add(_batch([(3,)], 1))
    assert relation.read(relation.alive(OLD)).tolist() == [[1], [2]]
    assert relation.read(relation.alive(NEW)).tolist() == [[2], [3]]
    relation.roll_back()
    assert relation.read(relation.alive(NEW)).tolist() == [[1], [2]]


@st.composite
def _derivations(draw: st.DrawFn) -> tuple[list[int], list[int], list[bool], list[tuple[int, int, int]]]:
    """Draw labels (rank, print) and flags of rows 0 to 7, and derivations: a row, two rows used."""
    ranks = draw(st.lists(st.integers(0, 3), min_size=8, max_size=8))
    prints = draw(st.lists(st.integers(0, 2), min_size=8, max_size=8))
    alive = draw(st.lists(st.booleans(), min_size=8, max_size=8))
    row = st.integers(0, 7)
    return ranks, prints, alive, draw(st.lists(st.tuples(row, row, row), max_size=12))


def _labelled(ranks: list[int], prints: list[int], alive: list[bool]) -> StoredRelation:
    relation = _stored(1)
    relation.keep_labels()
    relation.add(np.arange(8).reshape(8, 1))
    relation.settle()
    relation.retire(np.flatnonzero(~np.array(alive)))
    relation.labels[:8] = (np.array(ranks) << 32) | np.array(prints)
    return relation


@given(
    st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), min_size=8, max_size=8),
    st.lists(st.integers(0, 7), max_size=20),
)
def test_changes_are_sorted_by_what_rows_were_and_are(drawn: list[tuple[bool, bool, bool]], named: list[int]) -> None:
    before, after, marked = ([each[at] for each in drawn] for at in range(3))
    relation = _labelled([0] * 8, [0] * 8, before)
    relation.settle()
    relation.retire(np.flatnonzero(~np.array(after)))
    relation.revive(np.flatnonzero(np.array(after)))
    held = relation.mark(np.flatnonzero(np.array(marked)))
    out, counts = np.empty((4, len(named)), np.int64), np.zeros(4, np.int64)
    rowset.sort_changes(np.array(named, np.int64), relation.arrays, out, counts)
    free = [row for row in dict.fromkeys(named) if not marked[row]]
    for bits in range(4):
        wanted = [row for row in free if (after[row] * NEW) | (before[row] * OLD) == bits]
        assert out[bits, : counts[bits]].tolist() == wanted
    assert relation.mark(np.arange(8)).tolist() == [row for row in range(8) if row not in held]


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=8, max_size=8))
def test_marked_rows_fall_unless_they_are_saved(drawn: list[tuple[bool, bool]]) -> None:
    alive, kept = [each[0] for each in drawn], [each[1] for each in drawn]
    relation = _labelled([0] * 8, [0] * 8, alive)
    relation.settle()
    marked = relation.mark(np.arange(8))
    gone = relation.let_fall(marked, np.array(kept))
    assert gone.tolist() == [row for row in range(8) if alive[row] and not kept[row]]
    assert relation.alive().tolist() == [row for row in range(8) if alive[row] and kept[row]]
    assert relation.mark(np.arange(8)).tolist() == marked.tolist()  # no mark was left
    assert relation.changed().tolist() == gone.tolist()


@settings(max_examples=100)
@given(_derivations())
def test_offers_are_above_the_rows_they_use(
    drawn: tuple[list[int], list[int], list[bool], list[tuple[int, int, int]]],
) -> None:
    ranks, prints, alive, derivations = drawn
    relation, batch = _labelled(ranks, prints, alive), _batch(derivations, 3)
    stamps, one, both = (np.zeros(len(batch), np.int64) for _ in range(3))
    label_arrays.rank_above(batch, 1, relation.arrays, relation.labels, one)
    label_arrays.rank_above(batch, 1, relation.arrays, relation.labels, both)
    label_arrays.fold_ranks(batch, 2, relation.arrays, relation.labels, both)
    for offers in (stamps, one, both):
        label_arrays.stamp(batch, 1, 5, offers)
    assert [int(stamp) >> 32 for stamp in stamps] == [0] * len(batch)
    assert all(stamp & 0xFFFFFFFF for stamp in stamps.tolist())
    for at, (_row, first, second) in enumerate(derivations):
        name = int(stamps[at])
        assert one[at] == (((ranks[first] + 1) << 32) | name if alive[first] else label_arrays.WORTHLESS)
        rank = max(ranks[first], ranks[second]) + 1
        assert both[at] == ((rank << 32) | name if alive[first] and alive[second] else label_arrays.WORTHLESS)


@given(st.lists(st.tuples(st.booleans(), st.lists(st.tuples(SMALL, SMALL), max_size=30)), max_size=6))
def test_telling_lines_is_adding_rows(batches: list[tuple[bool, list[tuple[int, int]]]]) -> None:
    one, two = _stored(2), _stored(2)
    for added, rows in batches:
        batch = _batch(rows, 2)
        if not added:
            for relation in (one, two):
                relation.retire(relation.find(batch))
            continue
        expected = one.add(batch)
        two.reserve(len(batch))
        lines, out, start = np.empty(len(batch), np.int64), np.empty(len(batch), np.int64), np.zeros(2, np.int64)
        made = rowset.enter_rows(batch, 2, two.arrays, rowset.TELL, lines, two.labels, out, start)
        assert out[:made].tolist() == expected.tolist()
        assert batch[lines[:made]].tolist() == two.read(out[:made]).tolist()


@settings(max_examples=200)
@given(_derivations(), st.booleans())
def test_a_row_takes_another_derivation_from_rows_before_it(
    drawn: tuple[list[int], list[int], list[bool], list[tuple[int, int, int]]],
    own: bool,
) -> None:
    ranks, prints, alive, derivations = drawn
    relation, batch = _labelled(ranks, prints, alive), _batch(derivations, 3)
    numbers = np.arange(8)[::-1].copy()
    offers = np.empty(len(batch), np.int64)
    label_arrays.rank_above(batch, 1, relation.arrays, relation.labels, offers)
    label_arrays.fold_ranks(batch, 2, relation.arrays, relation.labels, offers)
    names = np.zeros(len(batch), np.int64)
    label_arrays.stamp(batch, 1, 3, names)
    found = np.zeros(8, np.bool_)
    columns = np.array([1, 2] if own else [], np.int64)
    expected: dict[int, int] = {}
    for at, (line, *used) in enumerate(derivations):
        row = 7 - line
        before = all(alive[u] and (ranks[u] < ranks[row] or (own and ranks[u] == ranks[row] and u < row)) for u in used)
        if before:
            expected.setdefault(row, (ranks[row] << 32) | int(names[at]))
    assert label_arrays.take_other(batch, offers, 3, numbers, relation.labels, columns, found) == len(expected)
    assert {7 - line for line in np.flatnonzero(found).tolist()} == set(expected)
    assert all(int(relation.labels[row]) == label for row, label in expected.items())
    left = np.empty_like(batch)
    left = left[: label_arrays.left_over(batch, numbers, found, left)]
    assert left.tolist() == [[7 - line, *used] for line, *used in derivations if not found[line]]


@settings(max_examples=100)
@given(_derivations())
def test_dead_rows_take_the_lowest_offer(
    drawn: tuple[list[int], list[int], list[bool], list[tuple[int, int, int]]],
) -> None:
    ranks, prints, alive, derivations = drawn
    relation, batch = _labelled(ranks, prints, alive), _batch(derivations, 3)
    offers = np.empty(len(batch), np.int64)
    label_arrays.rank_above(batch, 1, relation.arrays, relation.labels, offers)
    names = np.zeros(len(batch), np.int64)
    label_arrays.stamp(batch, 1, 3, names)
    expected: dict[int, tuple[int, int]] = {}
    for at, (row, *_used) in enumerate(derivations):
        if not alive[row] and offers[at] != label_arrays.WORTHLESS:
            offer = (int(offers[at]) >> 32, at)
            expected[row] = min(expected.get(row, offer), offer)
    dead = np.empty_like(batch)
    dead = dead[: label_arrays.of_dead(batch, relation.arrays, dead)]
    assert dead.tolist() == [list(line) for line in derivations if not alive[line[0]]]
    out = np.empty(len(batch), np.int64)
    out = out[: label_arrays.take_lowest(batch, offers, 3, relation.arrays, relation.labels, out)]
    assert sorted(out.tolist()) == sorted(expected)
    assert all(relation.labels[row] == (rank << 32) | names[at] for row, (rank, at) in expected.items())


@settings(max_examples=100)
@given(_derivations(), st.booleans())
def test_keepers_are_alive_and_keep_the_derivation(
    drawn: tuple[list[int], list[int], list[bool], list[tuple[int, int, int]]],
    forgot: bool,
) -> None:
    ranks, _prints, alive, derivations = drawn
    relation, batch = _labelled(ranks, [0] * 8, alive), _batch(derivations, 3)
    names = np.zeros(len(batch), np.int64)
    label_arrays.stamp(batch, 1, 0, names)
    if not forgot:  # every row keeps its first derivation
        for (row, *_used), name in reversed(list(zip(derivations, names.tolist(), strict=True))):
            relation.labels[row] = (ranks[row] << 32) | name
    lines = [((row, *used), name) for (row, *used), name in zip(derivations, names.tolist(), strict=True)]
    expected = {row for (row, *_u), name in lines if alive[row] and relation.labels[row] & 0xFFFFFFFF in (0, name)}
    out = np.empty(len(batch), np.int64)
    out = out[: label_arrays.find_keepers(batch, 1, 0, relation.arrays, relation.labels, out)]
    assert sorted(out.tolist()) == sorted(expected)
    assert (relation.mark(np.arange(8)) == [row for row in range(8) if row not in expected]).all()


@settings(max_examples=100)
@given(_derivations(), st.booleans())
def test_rows_adopt_labels(
    drawn: tuple[list[int], list[int], list[bool], list[tuple[int, int, int]]], lower: bool
) -> None:
    ranks, prints, alive, offered = drawn
    relation = _labelled(ranks, prints, alive)
    model = {row: (ranks[row], prints[row]) for row in range(8) if alive[row]}
    fresh = list[int]()
    for row, rank, name in offered:
        if row not in model:
            fresh.append(row)
        if row not in model or (lower and rank < model[row][0]):
            model[row] = (rank, name)
    rows = _batch([(row, name) for row, _rank, name in offered], 2)  # what stands behind the row is not looked at
    labels = np.array([(rank << 32) | name for _row, rank, name in offered], np.int64)
    assert relation.adopt_rows(rows, labels, lower=lower).tolist() == fresh
    assert relation.alive().tolist() == sorted(model)
    assert {row: (int(relation.labels[row]) >> 32, int(relation.labels[row]) & 7) for row in model} == model


_TIMES = st.sampled_from([fact_arrays.NEVER, 0, 3, 5, 8])


@settings(max_examples=100)
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 7), _TIMES), max_size=10), max_size=4),
    st.booleans(),
    st.booleans(),
    st.integers(0, 8),
)
def test_facts_arrive_in_their_order(
    batches: list[list[tuple[int, int]]], timed: bool, counted: bool, oldest: int
) -> None:
    relation = _labelled([0] * 8, [0] * 8, [True] * 8)
    present, since, arrived = np.zeros(8, np.bool_), np.full(8, fact_arrays.NEVER), np.zeros(8, np.int64)
    model: dict[int, tuple[int, int]] = {}
    arrivals = 0
    for batch in batches:
        numbers = np.array([row for row, _time in batch], np.int64)
        times = np.array([time for _row, time in batch] if timed else [], np.int64)
        touched, noted, counts = np.empty(len(batch), np.int64), np.empty(len(batch), np.int64), np.empty(5, np.int64)
        before = np.empty((len(batch), 3), np.int64)
        known, old = dict(model), (present.copy(), since.copy(), arrived.copy())
        facts = (present, since, arrived)
        number = arrivals if counted else -1
        fact_arrays.arrive(numbers, times, number, oldest, facts, relation.arrays, touched, noted, before, counts)
        for at, (row, time) in enumerate(batch):
            since_before = model[row][0] if row in model else fact_arrays.NEVER
            model[row] = (max(since_before, time) if timed else since_before, arrivals + 1 + at if counted else 0)
        arrivals += len(batch)
        rows = touched[: counts[0]].tolist()
        once = list(dict.fromkeys(numbers.tolist()))
        assert list(dict.fromkeys(rows)) == once
        assert counts[1] == len(model) - len(known)
        assert [row for row in rows if row < oldest] == noted[: counts[2]].tolist() == [r for r in once if r < oldest]
        assert before[: counts[2]].tolist() == [[int(array[row]) for array in old] for row in once if row < oldest]
        if batch and timed:
            assert counts[3:].tolist() == [times.min(), times.max()]
        assert set(np.flatnonzero(present).tolist()) == set(model)
        assert {row: (int(since[row]), int(arrived[row])) for row in model} == model
        present[5] = False  # a fact that goes and comes again has no time yet
        model.pop(5, None)


@settings(max_examples=100)
@given(
    st.lists(st.lists(st.tuples(st.integers(0, 7), _TIMES), max_size=10), max_size=4),
    st.booleans(),
    st.booleans(),
    st.integers(0, 8),
)
def test_facts_take_the_places_of_those_with_their_keys(
    batches: list[list[tuple[int, int]]], timed: bool, counted: bool, oldest: int
) -> None:
    relation = _labelled([0] * 8, [0] * 8, [True] * 8)
    facts = (np.zeros(8, np.bool_), np.full(8, fact_arrays.NEVER), np.zeros(8, np.int64))
    holders = np.full(3, -1)
    model: dict[int, tuple[int, int]] = {}
    by_key: dict[int, int] = {}
    arrivals = 0
    for batch in batches:
        numbers = np.array([row for row, _time in batch], np.int64)
        times = np.array([time for _row, time in batch] if timed else [], np.int64)
        gone, noted, counts = np.empty(len(batch), np.int64), np.empty(2 * len(batch), np.int64), np.empty(5, np.int64)
        before, old = np.empty((2 * len(batch), 3), np.int64), [facts_before.copy() for facts_before in facts]
        keys, number = (numbers % 3, holders, gone), arrivals if counted else -1
        fact_arrays.replace(numbers, keys, times, number, oldest, facts, relation.arrays, noted, before, counts)
        lost, touched, fresh = [], [], 0
        for at, (row, time) in enumerate(batch):
            other = by_key.get(row % 3)
            touched += [row] if other is None else [other, row]
            if other is not None and other != row and other in model:
                del model[other]
                lost.append(other)
            by_key[row % 3] = row
            fresh += row not in model
            since = model[row][0] if row in model else fact_arrays.NEVER
            model[row] = (max(since, time) if timed else since, arrivals + 1 + at if counted else 0)
        arrivals += len(batch)
        once = [row for row in dict.fromkeys(touched) if row < oldest]
        assert gone[: counts[0]].tolist() == lost
        assert counts[1] == fresh
        assert noted[: counts[2]].tolist() == once
        assert before[: counts[2]].tolist() == [[int(array[row]) for array in old] for row in once]
        if batch and timed:
            assert counts[3:].tolist() == [times.min(), times.max()]
        present, since_of, arrived = facts
        assert set(np.flatnonzero(present).tolist()) == set(model)
        assert {row: (int(since_of[row]), int(arrived[row])) for row in model} == model
        assert {key: int(holders[key]) for key in by_key} == by_key
        assert not (relation.arrays[1] & MARK).any()
        present[5] = False  # a fact that goes holds its key in vain
        model.pop(5, None)


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans(), SMALL, SMALL), min_size=8, max_size=8),
    st.lists(st.integers(0, 7), max_size=12),
    st.integers(0, 4),
)
def test_views_see_the_facts_that_are_present(
    drawn: list[tuple[bool, bool, bool, int, int]], numbers: list[int], size: int
) -> None:
    old, new, present, since, labels = ([each[at] for each in drawn] for at in range(5))
    relation = _labelled([0] * 8, labels, list(map(bool, old)))
    relation.settle()
    relation.revive(np.flatnonzero(np.array(new)))
    relation.retire(np.flatnonzero(~np.array(new)))
    facts = (np.array(present), np.array(since, np.int64), np.zeros(8, np.int64))
    out, before, counts = np.empty((4, len(numbers)), np.int64), np.empty(len(numbers), np.int64), np.zeros(4, np.int64)
    named = np.array(numbers, np.int64)
    lowered = fact_arrays.show(named, facts, size, 1, relation.arrays, relation.labels, out, before, counts)
    once = list(dict.fromkeys(numbers))
    other = [row for row in once if present[row] and size and since[row] + size != labels[row]]
    written = [row for row in once if present[row] and size and (row in other or not new[row])]
    lines = [out[line, : counts[line]].tolist() for line in range(4)]
    noted = [row for row in written if old[row] or new[row]]  # the label of a row that was not there means nothing
    assert lines[0] == noted
    assert before[: counts[0]].tolist() == [labels[row] for row in noted]
    assert lines[NEW] == [row for row in once if present[row] and not new[row] and not old[row]]
    assert lines[OLD] == [row for row in once if new[row] and not present[row]]
    assert lines[NEW | OLD] == [row for row in once if present[row] and old[row] and (row in other or not new[row])]
    assert bool(lowered) == any(old[row] and since[row] + size < labels[row] for row in other)
    assert relation.is_alive(np.arange(8)).tolist() == [(present if row in once else new)[row] for row in range(8)]
    expected = [since[row] + size if row in written else labels[row] for row in range(8)]
    assert relation.labels[:8].tolist() == expected


@given(st.lists(st.integers(-20, 20), max_size=8), st.integers(1, 9), st.integers(1, 9))
def test_facts_die_at_the_first_slide_after_their_window(times: list[int], size: int, slide: int) -> None:
    since = np.array([*times, fact_arrays.NEVER], np.int64)
    out = np.empty(len(since), np.int64)
    fact_arrays.find_deaths(np.arange(len(since)), since, size, slide, out)
    expected = [next(at for at in range(t + size, t + size + slide) if at % slide == 0) for t in times]
    assert out.tolist() == [*expected, fact_arrays.FOREVER]


@given(st.lists(st.tuples(st.integers(-20, 20), st.booleans()), max_size=8), st.integers(-20, 40))
def test_facts_expire_that_are_present_and_due(drawn: list[tuple[int, bool]], now: int) -> None:
    since, present = np.array([each[0] for each in drawn], np.int64), np.array([each[1] for each in drawn], np.bool_)
    named = np.concatenate((np.arange(len(drawn)), np.arange(len(drawn))))
    gone = np.empty(len(named), np.int64)
    made = fact_arrays.expire(named, now, 5, 3, (present, since, since.copy()), gone)
    deaths = [-(-(time + 5) // 3) * 3 for time, _here in drawn]
    assert gone[:made].tolist() == [at for at, (_time, here) in enumerate(drawn) if here and deaths[at] <= now]
    assert present.tolist() == [here and deaths[at] > now for at, (_time, here) in enumerate(drawn)]


@settings(max_examples=100)
@given(_derivations(), st.lists(st.integers(0, 7), max_size=12), st.integers(0, 3))
def test_rows_die_when_their_time_has_come(
    drawn: tuple[list[int], list[int], list[bool], list[tuple[int, int, int]]], numbers: list[int], now: int
) -> None:
    deaths, _prints, alive, derivations = drawn
    relation, batch = _labelled(deaths, [0] * 8, alive), _batch(derivations, 3)
    relation.labels[:8] = [fact_arrays.FOREVER if death == 3 else death for death in deaths]
    offers = np.empty(len(batch), np.int64)
    label_arrays.take_deaths(batch, 1, relation.labels, offers)
    label_arrays.fold_deaths(batch, 2, relation.labels, offers)
    assert offers.tolist() == [min(int(relation.labels[a]), int(relation.labels[b])) for _row, a, b in derivations]
    common = offers[0] if len(set(offers.tolist())) == 1 else fact_arrays.NEVER
    assert label_arrays.common_death(offers) == common
    given_rows = np.array(numbers, np.int64)
    out, times, gone = (np.empty(len(numbers), np.int64) for _ in range(3))
    made = label_arrays.find_mortals(given_rows, relation.arrays, relation.labels, out, times)
    mortal = [row for row in dict.fromkeys(numbers) if alive[row] and deaths[row] < 3]
    assert list(zip(out[:made].tolist(), times[:made].tolist(), strict=True)) == [(row, deaths[row]) for row in mortal]
    made = label_arrays.find_early(given_rows, now, relation.labels, out)
    assert out[:made].tolist() == [row for row in numbers if deaths[row] > now or deaths[row] == 3]
    made = label_arrays.retire_due(given_rows, now, relation.arrays, relation.labels, gone)
    assert gone[:made].tolist() == [row for row in mortal if deaths[row] <= now]
    assert not relation.is_alive(gone[:made]).any()


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(0, 9), st.integers(-3, 3)), min_size=1, max_size=12), st.integers(1, 8))
def test_rows_of_one_time_are_grouped(rows: list[tuple[int, int]], room: int) -> None:
    numbers, times = (np.array(column, np.int64) for column in zip(*rows, strict=True))
    grouped, found, ends = np.empty_like(numbers), np.empty(1 << room, np.int64), np.empty(1 << room, np.int64)
    groups = fact_arrays.group_by_time(numbers, times, grouped, found, ends)
    once = list(dict.fromkeys(times.tolist()))
    if len(once) > 1 << room:
        assert groups == -1
        return
    assert found[:groups].tolist() == once
    parts = np.split(grouped, ends[: groups - 1])
    assert [part.tolist() for part in parts] == [[row for row, at in rows if at == time] for time in once]


@settings(max_examples=100)
@given(_derivations(), st.lists(st.integers(0, 7), min_size=1, max_size=12))
def test_rows_are_collected_once(
    drawn: tuple[list[int], list[int], list[bool], list[tuple[int, int, int]]], numbers: list[int]
) -> None:
    ranks, prints, alive, _derived = drawn
    relation = _labelled(ranks, prints, alive)
    assert relation.each_once(np.array(numbers)).tolist() == [row for row in dict.fromkeys(numbers) if alive[row]]
    assert len(relation.mark(np.arange(8))) == 8
    assert label_arrays.lowest_rank(np.array(numbers), relation.labels) == min(ranks[row] for row in numbers)


def test_keys_become_places_of_their_own_again_when_rows_are_many() -> None:
    relation, rng = _stored(2), np.random.default_rng(1)
    rows = [(int(key), at) for at, key in enumerate(rng.integers(0, 300_000, 90_000))]
    low = 0
    for high in (10, 1_000, 90_000):  # keys far apart, hashed; then close enough
        relation.add(_batch(rows[low:high], 2))
        index = relation.index((0,))
        index.arrays()
        assert index.direct == (high == 90_000)
        keys = _batch([(key, 0) for key, _at in rows[:high:97]], 2)
        found = _probe(relation, keys, np.array([0]), (0,), np.array([-2, -3]))
        wanted = {int(key) for key in keys[:, 0]}
        expected = sorted((key, at) for key, at in rows[:high] if key in wanted)
        assert sorted(set(map(tuple, found))) == expected
        low = high


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="this is the run without the JIT")
def test_without_the_jit() -> None:
    """The same tests pass on the kernels as plain Python."""
    others = [str(HERE / name) for name in ("test_one_join.py", "test_frontier_arrays.py", "test_heaps.py")]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__, *others],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert run.returncode == 0, run.stdout


@pytest.mark.parametrize("scale", [1, 1_500, 1 << 40], ids=["direct", "direct in a large table", "hashed"])
def test_keys_of_few_and_of_many_rows_are_found(scale: int) -> None:
    many = 40  # the n-th key has n rows; they come one of each key after the other, so that all lists grow together
    rows = [[key * scale, turn] for turn in range(many) for key in range(turn + 1, many + 1)]
    relation = StoredRelation("r", [Type.INTEGER, Type.INTEGER])
    index = relation.index((0,))
    for low in range(0, len(rows), 7):
        relation.add(np.array(rows[low : low + 7], np.int64))
        index.arrays()
        assert index.direct == (scale < 1 << 40)
    assert (index.places > index_arrays.FAR) == (scale == 1_500)
    relation.retire(np.arange(0, len(rows), 3))
    keys = np.arange(many + 2).reshape(-1, 1) * scale
    expected = [row for (key,) in keys.tolist() for number, row in enumerate(rows) if row[0] == key and number % 3]
    assert _probe(relation, keys, np.array([0]), (0,), np.array([0, -3])) == expected
    out = np.zeros(len(keys), np.uint8)
    index_arrays.test_keys(keys, np.array([0]), index.arrays(), relation.arrays, NEW, out)
    assert out.tolist() == [any(row[0] == key for row in expected) for (key,) in keys.tolist()]


def test_many_keys_far_apart_are_found() -> None:
    keys = np.arange(24_000) << 33
    relation = StoredRelation("r", [Type.INTEGER, Type.INTEGER])
    for turn, some in enumerate((keys, *[keys[::500]] * 19)):  # some have more rows than a chain holds
        relation.add(np.column_stack((some, np.full(len(some), turn))))
    index = relation.index((0,))
    index.arrays()
    assert index.places > index_arrays.FAR
    assert not index.direct
    left = np.ascontiguousarray(keys[::250].reshape(-1, 1))
    expected = [[key, turn] for key in keys[::250].tolist() for turn in range(20 if key % (500 << 33) == 0 else 1)]
    assert _probe(relation, left, np.array([0]), (0,), np.array([0, -3])) == expected


@pytest.mark.parametrize("scale", [1, 1_500], ids=["near", "far"])
@pytest.mark.parametrize("first", [5, 15, 16, 17])
def test_what_is_there_is_found_while_rows_enter(scale: int, first: int) -> None:
    relation = StoredRelation("r", [Type.INTEGER, Type.INTEGER])
    relation.add(_batch([(key * scale, at) for key in range(30) for at in range(first)], 2))
    keys = np.arange(30).reshape(-1, 1) * scale
    state, found, turn = np.array([0, 0, NEW, 0], np.int64), set(), 0
    while state[0] < len(keys):
        out, arrays = np.empty((20, 2), np.int64), relation.index((0,)).arrays()
        made = index_arrays.probe(keys, np.array([0]), arrays, relation.arrays, np.array([0, -3]), out, state)
        found |= set(map(tuple, out[:made].tolist()))
        turn += 1
        if turn < 100:
            relation.add(_batch([(key * scale, 1000 * turn + at) for key in range(30) for at in range(3)], 2))
    assert found >= {(key * scale, at) for key in range(30) for at in range(first)}


def test_there_is_room_for_one_more_row_of_a_long_list() -> None:
    relation = StoredRelation("r", [Type.INTEGER, Type.INTEGER])
    index = relation.index((0,))
    others = [(key, 0) for key in range(64, 128)]  # between them, so that table and arena grow in turns
    for rows in ([(0, at) for at in range(56)], others, [(0, at) for at in range(56, 2000)]):
        for row in rows:
            relation.add(_batch([row], 2))
            index.arrays()
    found = _probe(relation, np.array([[0], [100]]), np.array([0]), (0,), np.array([0, -3]))
    assert found == [[0, at] for at in range(2000)] + [[100, 0]]


@pytest.mark.parametrize(("kept", "labelled"), [(700, True), (40, False), (0, True)])
def test_rows_that_are_dropped_leave_the_others_as_they_were(kept: int, labelled: bool) -> None:
    relation, rng = _stored(3), np.random.default_rng(kept)
    if labelled:
        relation.keep_labels()
    rows = [(at % 7, at, at % 11) for at in range(2_000)]
    relation.add(_batch(rows, 3))
    relation.settle()
    stay = np.sort(rng.choice(len(rows), kept, replace=False))
    gone = np.setdiff1d(np.arange(len(rows)), stay)
    if labelled:
        relation.labels[: len(rows)] = np.arange(len(rows)) * 3
    relation.index((0,)).arrays()
    relation.retire(gone)
    relation.settle()
    moved = relation.drop(~relation.is_alive(slice(relation.count)))
    assert moved[stay].tolist() == list(range(kept))
    assert (moved[gone] == -1).all()
    assert relation.count == relation.living == kept
    assert relation.read(np.arange(kept)).tolist() == [list(rows[at]) for at in stay]
    assert relation.find(_batch(rows, 3)).tolist() == moved.tolist()
    assert not labelled or relation.labels[:kept].tolist() == (stay * 3).tolist()
    keys = np.arange(7).reshape(-1, 1)
    expected = [list(rows[at]) for key in range(7) for at in stay if rows[at][0] == key]
    assert _probe(relation, keys, np.array([0]), (0,), np.array([0, -3, -4])) == sorted(expected)
    queue = DeathQueue()
    queue.wait(np.arange(len(rows)), np.arange(len(rows)) // 500)
    queue.renumbered(moved)
    for time in range(4):
        assert queue.due(time).tolist() == [number for number, at in enumerate(stay) if at // 500 == time]
    again = relation.add(_batch(rows[:50], 3))  # there is room, and what was dropped comes as new
    assert len(again) == int(np.count_nonzero(gone < 50))
