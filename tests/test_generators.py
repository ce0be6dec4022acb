"""The generators give what the properties need: valid programs, most features often, changes that show."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given, settings

from tests.generators import PLAIN, WINDOWED, GeneratedProgram, Shape, cases
from whorl.diagnostics.source import Source
from whorl.logical.compile import compile_program
from whorl.model.delta import Epoch
from whorl.oracle.session import Oracle

EXAMPLES = 200
# The least share of examples, in percent.
EVERYWHERE = {
    "recursion": 60,
    "negation": 40,
    "aggregate": 20,
    "mutual": 15,
    "nonlinear": 15,
    "monotone": 15,
    "arithmetic": 20,
    "alternatives": 20,
    "facts": 15,
    "bound query": 10,
    "choice": 8,
    "stages": 8,
    "terms": 8,
    "rows in a view": 70,
    "a delete changes a view": 30,
    "no change in an epoch": 20,
}
OVER_WINDOWS = {
    "stream": 50,
    "window": 40,
    "carried time": 20,
    "ttl": 15,
    "keyed": 10,
    "counted": 10,
    "stamped": 5,
    "expiry changes a view": 15,
    "time alone changes a view": 5,
}


def _seen(program: GeneratedProgram, epochs: tuple[Epoch, ...]) -> set[str]:
    source = Source("generated", program.text)
    oracle = Oracle(lambda types: compile_program(source, data_types=types))
    seen = set(program.features)
    for epoch in epochs:
        result = oracle.commit(epoch)
        deltas = result.deltas
        deleting = any(change.weight < 0 for change in epoch.changes)
        if any(oracle.rows(output.name) for output in oracle.plan.outputs):
            seen.add("rows in a view")
        if deleting and any(delta.deleted for delta in deltas.values()):
            seen.add("a delete changes a view")
        if result.counts.expired and any(delta.deleted for delta in deltas.values()):
            seen.add("expiry changes a view")
        if epoch.number > 1 and not epoch.changes and deltas:
            seen.add("time alone changes a view")
        if not deltas:
            seen.add("no change in an epoch")
    return seen


@pytest.mark.parametrize(
    ("shape", "shares"), [(PLAIN, EVERYWHERE), (WINDOWED, EVERYWHERE | OVER_WINDOWS)], ids=["plain", "windowed"]
)
def test_the_cases_are_worth_testing_with(shape: Shape, shares: dict[str, int]) -> None:
    counts: Counter[str] = Counter()

    @settings(max_examples=EXAMPLES)
    @given(cases(shape))
    def collect(case: tuple[GeneratedProgram, tuple[Epoch, ...]]) -> None:
        counts.update(_seen(*case))

    collect()
    rare = {name: counts[name] for name, share in shares.items() if counts[name] * 100 < share * EXAMPLES}
    assert not rare, f"too rare among {EXAMPLES}: {rare}, all: {counts}"
