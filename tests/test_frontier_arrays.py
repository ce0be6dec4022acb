"""Frontiers against plain dictionaries, with the JIT on; `tests/test_kernel_arrays.py` runs them with it off."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from whorl.kernel.state.frontier import Frontier
from whorl.kernel.state.relation import StoredRelation
from whorl.model.types import Type

Offer = tuple[int, int, int]  # a group, a value, a death
OFFERS = st.lists(st.tuples(st.integers(0, 2), st.integers(-3, 3), st.integers(1, 6)), min_size=1, max_size=8)
FALLS = st.lists(st.tuples(st.integers(0, 2), st.integers(-3, 3)), min_size=1, max_size=4)


class PlainFrontier:
    """Of each group the values that no other beats, with their deaths."""

    def __init__(self, *, lowest: bool) -> None:
        self._sign = 1 if lowest else -1
        self.held: dict[int, dict[int, int]] = {}

    def offer(self, group: int, value: int, death: int) -> bool:
        """Take a value unless another is as good and lives as long; drop those that it beats so."""
        held = self.held.setdefault(group, {})
        key = self._sign * value
        if any(self._sign * other <= key and until >= death for other, until in held.items()):
            return False
        for other in [other for other, until in held.items() if self._sign * other >= key and until <= death]:
            del held[other]
        held[value] = death
        return True

    def lists(self) -> dict[int, list[tuple[int, int]]]:
        """Return the values of each group with their deaths, best first."""
        return {
            group: sorted(held.items(), key=lambda item: self._sign * item[0])
            for group, held in self.held.items()
            if held
        }


def _lists(frontier: Frontier) -> dict[int, list[tuple[int, int]]]:
    relation = frontier.relation
    found: dict[int, list[tuple[int, int]]] = {}
    for group in range(3):
        numbers = frontier.rows_of(frontier.groups(np.array([[group, 0]])))
        rows = relation.read(numbers)
        assert rows[:, 0].tolist() == [group] * len(rows)
        if len(rows):
            found[group] = list(zip(rows[:, 1].tolist(), relation.labels[numbers].tolist(), strict=True))
    alive = relation.read(relation.alive())
    assert sorted(map(tuple, alive.tolist())) == sorted((g, v) for g, values in found.items() for v, _death in values)
    return found


@settings(max_examples=150)
@given(steps=st.lists(st.one_of(OFFERS, FALLS), max_size=8), lowest=st.booleans(), again=st.booleans())
def test_frontiers_keep_what_nothing_beats(
    steps: list[list[Offer] | list[tuple[int, int]]], lowest: bool, again: bool
) -> None:
    relation = StoredRelation("best", [Type.INTEGER, Type.INTEGER])
    relation.keep_labels()
    frontier, plain = Frontier(relation, lowest=lowest), PlainFrontier(lowest=lowest)
    frontier.groups(np.array([[group, 0] for group in range(3)]))
    for step in steps:
        before = plain.lists()
        frontier.touched()
        if len(step[0]) == 3:
            rows, deaths = np.array([line[:2] for line in step]), np.array([line[2] for line in step])
            taken = [line[:2] for line in step if plain.offer(*line)]
            assert list(map(tuple, relation.read(frontier.offer(rows, deaths)).tolist())) == taken
        else:
            there = {(group, value) for group, value in step if value in plain.held.get(group, {})}
            numbers = relation.find(np.array(list(dict.fromkeys(step))))
            gone = frontier.fall(numbers[numbers >= 0])
            assert set(map(tuple, relation.read(gone).tolist())) == there
            for group, value in there:
                del plain.held[group][value]
        relation.settle()
        if again:  # as after a restart: lists are built from the rows alive
            frontier.resume()
        else:
            changed = {group for group in range(3) if before.get(group) != plain.lists().get(group)}
            assert changed <= set(frontier.touched().tolist())
        assert _lists(frontier) == plain.lists()
        firsts = {group: values[0] for group, values in plain.lists().items()}
        groups = frontier.groups(np.array([[group, 0] for group in firsts])) if firsts else np.empty(0, np.int64)
        best = relation.read(frontier.first[groups])
        assert [(int(g), int(v)) for g, v in best] == [(group, value) for group, (value, _death) in firsts.items()]
