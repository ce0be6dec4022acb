"""Array kernels against plain references, with the JIT on; `test_without_the_jit` runs this file with it off."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whorl.kernel.arrays import index as index_arrays
from whorl.kernel.arrays.rowset import NEW, OLD
from whorl.kernel.state.relation import StoredRelation
from whorl.model.types import Type

SMALL = st.integers(0, 5)
WIDE = st.sampled_from([0, 1, 2, 2**31, 2**32 - 1, 2**32, -1, -(2**63), 2**63 - 1])


def _batch(rows: list[tuple[int, ...]], width: int) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
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
        assert sorted(map(tuple, found)) == expected
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
    """Probe with room for three lines at a time, so that the call must resume."""
    state = np.array([0, 0, NEW, 0], np.int64)
    lines: list[list[int]] = []
    while state[0] < len(left):
        out = np.empty((3, len(wants)), np.int64)
        arrays = relation.index(columns).arrays()
        made = index_arrays.probe(left, keys, arrays, relation.arrays, wants, out, state)
        lines.extend(out[:made].tolist())
    return lines


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


@pytest.mark.skipif(os.environ.get("NUMBA_DISABLE_JIT") == "1", reason="this is the run without the JIT")
def test_without_the_jit() -> None:
    """The same tests pass on the kernels as plain Python."""
    run = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert run.returncode == 0, run.stdout
