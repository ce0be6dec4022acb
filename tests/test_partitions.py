"""One program as several partitions: the same views and deltas, with the work divided where a column is preserved."""

from __future__ import annotations

import pickle
import random
from collections.abc import Sequence
from dataclasses import astuple, fields

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.generators import PLAIN, WINDOWED, GeneratedProgram, cases
from tests.golden_cases import Case as GoldenCase
from tests.golden_cases import cases as golden_cases
from tests.reference import follow_reference
from whorl.diagnostics.errors import UserError
from whorl.diagnostics.source import Source
from whorl.hosts.inprocess import InProcess
from whorl.hosts.routing import merge_results, owners_of, route_changes
from whorl.kernel.partition import Partition, StepResult
from whorl.kernel.state.dictionary import Dictionary
from whorl.kernel.state.owner import Owner, owner_of
from whorl.logical.compile import compile_program
from whorl.model.batch import batch_of, values_of
from whorl.model.delta import Change, Delta, Epoch
from whorl.model.limits import Limits
from whorl.model.report import InputCounts, Work
from whorl.model.types import Type
from whorl.model.values import Term, Value
from whorl.oracle.session import Oracle
from whorl.physical.lower import lower_plan

Case = tuple[GeneratedProgram, tuple[Epoch, ...]]
COUNTS = [1, 2, 7]
STRATEGIES = ["auto", "expiry", "dred", "support", "derivations"]
PIVOT = """
RELATION link(X: Integer, Y: Integer).
reachable(X, Y) :- link(X, Y).
reachable(X, Y) :- link(X, Z), reachable(Z, Y).
"""


def _host(text: str, partitions: int, limits: Limits | None = None, strategy: str = "auto") -> InProcess:
    source = Source("test.dl", text)
    return InProcess(lambda types: compile_program(source, data_types=types), limits, strategy, partitions)


# The same views, whatever the number of partitions


@pytest.mark.parametrize("partitions", COUNTS)
@pytest.mark.parametrize("case", golden_cases(), ids=lambda case: case.name)
def test_golden_cases_in_partitions(case: GoldenCase, partitions: int) -> None:
    case.check(lambda compile_plan, limits: InProcess(compile_plan, limits, "auto", partitions))


def _check(case: Case, strategy: str, partitions: int) -> None:
    try:
        _check_epochs(case, strategy, partitions)
    except UserError as refused:  # the strategy does not serve such programs, as planned or once types are known
        assert refused.code == "E402"
        assert strategy != "auto"


def _check_epochs(case: Case, strategy: str, partitions: int) -> None:
    program, epochs = case
    follow_reference(program.text, epochs, _host(program.text, partitions, None, strategy))


@pytest.mark.parametrize("partitions", COUNTS[1:])
@settings(max_examples=60)
@given(case=cases(PLAIN), strategy=st.sampled_from(STRATEGIES))
def test_partitions_equal_the_reference(case: Case, strategy: str, partitions: int) -> None:
    _check(case, strategy, partitions)


@pytest.mark.parametrize("partitions", COUNTS[1:])
@settings(max_examples=60)
@given(case=cases(WINDOWED), strategy=st.sampled_from(STRATEGIES))
def test_partitions_equal_the_reference_in_windows(case: Case, strategy: str, partitions: int) -> None:
    _check(case, strategy, partitions)


@pytest.mark.slow
@pytest.mark.parametrize("partitions", COUNTS[1:])
@pytest.mark.parametrize("shape", [PLAIN, WINDOWED], ids=["plain", "windowed"])
def test_partitions_equal_the_reference_at_length(shape: object, partitions: int) -> None:
    @settings(max_examples=1_000)
    @given(case=cases(shape), strategy=st.sampled_from(STRATEGIES))  # type: ignore[arg-type]
    def check(case: Case, strategy: str) -> None:
        _check(case, strategy, partitions)

    check()


@settings(max_examples=30)
@given(case=cases(WINDOWED), tuples=st.integers(1, 8))
def test_an_epoch_that_one_partition_refuses_is_refused_by_all(case: Case, tuples: int) -> None:
    program, epochs = case
    tight, free = _host(program.text, 3, Limits(tuples=tuples)), _host(program.text, 3)
    for epoch in epochs:
        try:
            found = tight.commit(epoch)
        except UserError:
            views = [output.name for output in free.plan.outputs]
            assert {view: tight.rows(view) for view in views} == {view: free.rows(view) for view in views}
            continue
        assert dict(found.deltas) == dict(free.commit(epoch).deltas), program.text


def test_types_that_data_tells_may_move_facts() -> None:
    """Once `g` brings floats, `p` holds floats, whose owners are others than those of the integers in `e`."""
    text = "p(X) :- e(X).\np(X) :- g(X).\n"
    oracle = Oracle(lambda types: compile_program(Source("test.dl", text), data_types=types))
    host = _host(text, 4)
    epochs = [[Change("e", (x,), 1) for x in range(9)], [Change("g", (0.5,), 1)], [Change("e", (3,), -1)]]
    placed = []
    for number, changes in enumerate(epochs, 1):
        epoch = Epoch(number, tuple(changes))
        report, wanted = host.commit(epoch), oracle.commit(epoch)
        assert dict(report.deltas) == dict(wanted.deltas)
        assert report.counts == wanted.counts
        placed.append(host.partition.plan.placement["e"].column)
    assert placed == [0, None, None]
    assert [len(partition.state.relations["p"].alive()) for partition in host.partitions] != [9, 9, 9, 9]


def test_batches_go_to_their_owners() -> None:
    host, rows = _host(PIVOT, 3), [(number, number + 1) for number in range(30)]
    by_row = _host(PIVOT, 1).commit(Epoch(1, tuple(Change("link", row, 1) for row in rows)))
    by_batch = host.commit(Epoch(1, (), batches=(batch_of("link", rows),)))
    assert dict(by_batch.deltas) == dict(by_row.deltas)


def test_partitions_below_one_are_refused() -> None:
    with pytest.raises(UserError) as error:
        _host(PIVOT, 0)
    assert str(error.value) == (
        "E681 a program runs in one partition or more, not in 0\n  Hint: Give a number of partitions from 1 on."
    )


# Work and state divide


def _random_links(seed: int, nodes: int, links: int) -> tuple[Change, ...]:
    chance = random.Random(seed)
    rows = {(chance.randrange(nodes), chance.randrange(nodes)) for _ in range(links)}
    return tuple(Change("link", row, 1) for row in sorted(rows))


@pytest.mark.parametrize("strategy", ["auto", "dred", "recompute"])
def test_with_a_pivot_the_work_divides(strategy: str) -> None:
    """Each derivation is made in one partition only; so is each tuple."""
    changes = _random_links(7, 120, 300)
    one, four = _host(PIVOT, 1, None, strategy), _host(PIVOT, 4, None, strategy)
    single = one.commit(Epoch(1, changes))
    shares = [
        partition.step(share.changes, None).work.derivations
        for partition, share in zip(four.partitions, route_changes(four.partition.plan, changes, (), 4), strict=True)
    ]
    assert single.work is not None
    assert sum(shares) == single.work.derivations
    assert max(shares) < 0.4 * sum(shares)
    rows = [len(partition.rows("reachable")) for partition in four.partitions]
    assert sum(rows) == len(one.rows("reachable"))
    assert max(rows) < 0.4 * sum(rows)


def test_reports_add_up() -> None:
    changes = _random_links(7, 40, 80)
    one, three = _host(PIVOT, 1).commit(Epoch(1, changes)), _host(PIVOT, 3).commit(Epoch(1, changes))
    assert three.counts == one.counts == InputCounts(inserted=len(changes))
    assert one.work is not None and three.work is not None
    assert three.work.derivations == one.work.derivations
    assert three.work.rounds <= one.work.rounds


@pytest.mark.parametrize("kind", [Work, InputCounts])
def test_every_count_adds_up(kind: type[Work] | type[InputCounts]) -> None:
    names = [field.name for field in fields(kind)]
    total, other = kind(*range(len(names))), kind(*range(10, 10 + len(names)))
    total.add(other)  # type: ignore[arg-type]
    assert astuple(total) == tuple(10 + 2 * at for at in range(len(names)))
    if isinstance(other, Work):
        assert other.copy() == other


def test_seconds_of_partitions_side_by_side() -> None:
    def result(seconds: float) -> StepResult:
        return StepResult({"v": Delta(((seconds,),))}, InputCounts(inserted=1), Work(rounds=2), {"maintain": seconds})

    both = [result(2.0), result(1.0)]
    assert merge_results(both).seconds == {"maintain": 3.0}
    side_by_side = merge_results(both, max)
    assert side_by_side.seconds == {"maintain": 2.0}
    assert side_by_side.deltas == {"v": Delta(((1.0,), (2.0,)))}
    assert side_by_side.work == Work(rounds=2)


# Owners


VALUES: Sequence[Value] = (0, 1, -1, 2**62, True, False, 0.0, -0.0, 1.5, "", "a", "é", "\ud800", Term("p", (1, "x")))


def test_owners_are_the_same_in_every_process() -> None:
    """Routing is part of the format of a snapshot: it may not change."""
    owners = [owner_of(value, 1000) for value in VALUES]
    assert owners == [0, 789, 67, 525, 789, 0, 0, 0, 784, 0, 47, 902, 434, 671]


@given(values=st.lists(st.integers(-(2**63), 2**63 - 1) | st.booleans(), min_size=1), partitions=st.integers(2, 9))
def test_owners_of_whole_columns(values: list[Value], partitions: int) -> None:
    assert owners_of(values_of(values), partitions).tolist() == [owner_of(value, partitions) for value in values]


@given(values=st.lists(st.floats(allow_nan=False), min_size=1), partitions=st.integers(2, 9))
def test_owners_of_floats(values: list[Value], partitions: int) -> None:
    assert owners_of(values_of(values), partitions).tolist() == [owner_of(value, partitions) for value in values]


@given(
    values=st.lists(st.sampled_from(VALUES) | st.text(), min_size=1),
    partitions=st.integers(2, 5),
    kind=st.sampled_from([Type.UNKNOWN, Type.INTEGER, Type.FLOAT]),
)
def test_encoded_values_have_the_same_owner(values: list[Value], partitions: int, kind: Type) -> None:
    if kind is not Type.UNKNOWN:
        wanted = int if kind is Type.INTEGER else float
        values = [value for value in values if type(value) is wanted]
    dictionary = Dictionary(200)
    column = dictionary.encode_column(values, kind)
    for number in range(partitions):
        owned = Owner(number, partitions, dictionary).owns(column, kind)
        assert owned.tolist() == [owner_of(value, partitions) == number for value in values]


def test_an_owner_learns_new_values() -> None:
    dictionary = Dictionary(200)
    owner = Owner(0, 2, dictionary)
    for text in ("a", "b", "c", "d"):
        column = dictionary.encode_column([text], Type.STRING)
        assert owner.owns(column, Type.STRING).tolist() == [owner_of(text, 2) == 0]
    assert owner.owns(np.empty(0, np.int64), Type.STRING).tolist() == []


# Plans travel


def test_plans_can_be_pickled() -> None:
    text = PIVOT + 'best(X, max<D>) :- reachable(X, Y), D = abs(Y - X), contains("a", cat("a", "b")) = true.\n'
    plan = lower_plan(compile_program(Source("test.dl", text)))
    copy = pickle.loads(pickle.dumps(plan))
    assert copy.placement == plan.placement
    assert copy.strata == plan.strata
    here, there = Partition(plan, Limits()), Partition(copy, Limits())
    changes = _random_links(3, 20, 40)
    assert dict(there.step(changes, None).deltas) == dict(here.step(changes, None).deltas)
