"""Labels as arrays, and as bytes, against plain sets; `test_without_the_jit` runs this file with the JIT off."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from whorl.kernel.arrays.conjunctions import _COMPARED, avoid
from whorl.kernel.labels import alternatives as alternatives_module
from whorl.kernel.labels import phrases as phrases_module
from whorl.kernel.labels.alternatives import Alternatives
from whorl.kernel.labels.conjunctions import Conjunctions
from whorl.kernel.labels.eager import EagerLabels
from whorl.kernel.labels.labels import Labels
from whorl.kernel.labels.lazy import LazyLabels
from whorl.kernel.labels.naming import ByName
from whorl.kernel.labels.phrases import Phrases
from whorl.kernel.labels.spelling import Spelling
from whorl.kernel.labels.variables import Variables

Lists = list[frozenset[int]]
LISTS = st.lists(st.frozensets(st.integers(0, 7), max_size=5), max_size=8)


def _conjunctions(lists: Sequence[frozenset[int]]) -> Conjunctions:
    sizes = [len(each) for each in lists]
    places = [place for each in lists for place in sorted(each)]
    return Conjunctions(np.cumsum([0, *sizes]), np.array(places, np.int32))


def _sets(conjunctions: Conjunctions) -> Lists:
    assert all(places == sorted(set(places)) for places in conjunctions.lists())
    return [frozenset(places) for places in conjunctions.lists()]


@given(pairs=st.lists(st.tuples(st.frozensets(st.integers(0, 9)), st.frozensets(st.integers(0, 9)))))
def test_conjunctions_are_united_line_by_line(pairs: list[tuple[frozenset[int], frozenset[int]]]) -> None:
    left, right = _conjunctions([left for left, _right in pairs]), _conjunctions([right for _left, right in pairs])
    assert _sets(left.united(right)) == [left | right for left, right in pairs]
    every_other = np.arange(0, len(pairs), 2)
    assert _sets(left.picked(every_other)) == [left for left, _right in pairs[::2]]
    assert _sets(left.joined([right, left])) == [*_sets(left), *_sets(right), *_sets(left)]


@given(
    lines=st.lists(st.tuples(st.frozensets(st.integers(0, 7)), st.tuples(st.integers(0, 2), st.integers(0, 2)))),
    values=st.lists(st.tuples(st.integers(0, 1), st.integers(0, 2), st.integers(0, 2)), min_size=8, max_size=8),
)
def test_lines_are_left_that_avoid_what_leads_to_their_heads(
    lines: list[tuple[frozenset[int], tuple[int, int]]], values: list[tuple[int, int, int]]
) -> None:
    used = _conjunctions([places for places, _head in lines])
    heads = np.array([head for _places, head in lines], np.int64).reshape(len(lines), 2)
    left = np.empty(len(lines), np.int64)
    left = left[: avoid(used.bounds, used.places, heads, np.array(values, np.int64), left)]
    assert left.tolist() == [
        line for line, (places, head) in enumerate(lines) if (1, *head) not in {values[place] for place in places}
    ]


# Rows and their alternatives

_OFFERS = st.lists(st.tuples(st.integers(0, 3), st.frozensets(st.integers(0, 7), max_size=5)), max_size=12)


@settings(max_examples=200)
@given(
    st.lists(st.tuples(_OFFERS, st.frozensets(st.integers(0, 7), max_size=2)), max_size=6), st.sampled_from([0, 4096])
)
def test_alternatives_are_those_of_plain_sets(
    steps: list[tuple[list[tuple[int, frozenset[int]]], frozenset[int]]], spare: int
) -> None:
    rows, plain = Alternatives(), dict[int, Lists]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(alternatives_module, "_SPARE", spare)
        for offers, lost in steps:
            numbers = np.array([row for row, _names in offers], np.int64)
            told = rows.offer(numbers, _conjunctions([names for _row, names in offers]), 8)
            assert told.tolist() == list(dict.fromkeys(row for row, _names in offers if row not in plain))
            for row, names in offers:
                known = plain.setdefault(row, [])
                if not any(other <= names for other in known[:_COMPARED]):
                    known.insert(1, names)
            _compare(rows, plain)
            _forget(rows, plain, lost)
            _compare(rows, plain)


def _forget(rows: Alternatives, plain: dict[int, Lists], lost: frozenset[int]) -> None:
    losses = rows.forget(np.array(sorted(lost), np.int64))
    gone, released, changed = set[int](), set[int](), 0
    for row, known in list(plain.items()):
        left = [names for names in known if not names & lost]
        changed += left != known
        if not left:
            gone.add(row)
            del plain[row]
            continue
        if left[0] != known[0]:
            released.add(row)
            shortest = min(left, key=len)
            left.remove(shortest)
            left.insert(0, shortest)
        plain[row] = left
    assert (set(losses.gone.tolist()), set(losses.released.tolist()), losses.changed) == (gone, released, changed)


def _compare(rows: Alternatives, plain: dict[int, Lists]) -> None:
    assert {row: [frozenset(names) for names in rows.of(row)] for row in range(4)} == {
        row: plain.get(row, []) for row in range(4)
    }
    assert _sets(rows.told(np.array(sorted(plain), np.int64))) == [plain[row][0] for row in sorted(plain)]
    assert rows.uses == sum(len(names) for known in plain.values() for names in known)


# On the way


@settings(max_examples=200)
@given(letters=st.lists(LISTS, max_size=8), full=st.sampled_from([8, 1 << 14]))
def test_what_is_written_is_read(letters: list[Lists], full: int) -> None:
    """Letters of up to eight lists, with a book that is soon full, or never."""
    writer, reader = Phrases(), Phrases()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(phrases_module, "FULL", full)
        for lists in letters:
            sent = _conjunctions([frozenset(900 * number for number in each) for each in lists])
            content = writer.write(sent.bounds, sent.places)
            bounds, numbers = reader.read(b"##" + content, 2, len(lists))
            assert Conjunctions(bounds, numbers).lists() == sent.lists()


def test_one_more_variable_takes_two_bytes() -> None:
    writer = Phrases()
    chain = _conjunctions([frozenset(range(size)) for size in range(1, 60)])
    assert len(writer.write(chain.bounds, chain.places)) == 3 + 2 * 58


@pytest.mark.parametrize("kind", ["lazy", "eager"])
def test_a_name_is_spelled_once_for_each_receiver(kind: str) -> None:
    here, there = _labels(kind), _labels(kind)
    names = [1 << 61, 5, 1 << 40]
    there[1].places(reversed(names))  # other places
    sizes: list[int] = []
    for wanted in (names[:2], names[:2], names):
        places = here[1].places(wanted)
        label = here[0].together([here[0].inputs(places[at : at + 1]) for at in range(len(places))], 1)
        content = here[0].encode(1, label)
        sizes.append(len(content))
        arrived = there[0].decode(0, content, 1)
        there[0].offer("r", np.array([len(sizes)]), arrived)
        assert set(there[0].diagrams.variables(there[0].label("r", len(sizes)))) == set(wanted)
    assert 18 <= sizes[0] - sizes[1] <= 20
    assert sizes[2] <= sizes[1] + 9 + 3
    assert len(here[0].encode(2, label)) >= 8 * 3


def _labels(kind: str) -> tuple[Labels[Any], Variables]:
    variables = Variables()
    spelling = Spelling(variables, ByName())
    if kind == "lazy":
        return LazyLabels(["r"], variables, spelling, 1000), variables
    return EagerLabels(["r"], (), variables, spelling, 1000), variables


@given(sums=st.lists(LISTS, min_size=1, max_size=5))
def test_diagrams_of_a_letter_share_nodes(sums: list[Lists]) -> None:
    (sender, here), (receiver, _there) = _labels("eager"), _labels("eager")
    assert isinstance(sender, EagerLabels)
    here.places(range(8))
    for row, alternatives in enumerate(sums):
        for names in alternatives:
            factors = [sender.inputs(np.array([name])) for name in sorted(names)]
            sender.offer("r", np.array([row]), sender.together(factors, 1))
    rows = np.array([row for row, alternatives in enumerate(sums) if alternatives], np.int64)
    arrived = receiver.decode(3, sender.encode(1, sender.ship("r", "copy", rows)), len(rows))
    receiver.offer("r", rows, arrived)
    for row in rows.tolist():
        nodes = sender.diagrams.dump([sender.label("r", row)])
        assert receiver.diagrams.load(*nodes) == [receiver.label("r", row)]
    for row in rows[:1].tolist():
        once, thrice = (sender.encode(1, sender.ship("r", "copy", np.array([row] * count))) for count in (1, 3))
        assert len(thrice) == len(once) + 2


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="this is the run without the JIT")
def test_without_the_jit() -> None:
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "ignore", __file__]
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout
