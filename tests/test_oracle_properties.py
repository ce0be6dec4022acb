"""What holds for every program and every stream of changes, whoever maintains the views."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.generators import PLAIN, WINDOWED, GeneratedProgram, cases, insert_streams, programs
from whorl.analysis.program import Relation
from whorl.diagnostics.errors import UserError
from whorl.diagnostics.source import Source
from whorl.logical.compile import compile_program
from whorl.model.delta import Change, Epoch, difference
from whorl.model.limits import Limits
from whorl.model.values import Row
from whorl.oracle.model import evaluate_plan
from whorl.oracle.session import Oracle

Case = tuple[GeneratedProgram, tuple[Epoch, ...]]
Views = dict[str, set[Row]]


def _oracle(program: GeneratedProgram, limits: Limits | None = None) -> Oracle:
    source = Source("generated", program.text)
    return Oracle(lambda types: compile_program(source, data_types=types), limits)


def _views(oracle: Oracle) -> Views:
    return {output.name: oracle.rows(output.name) for output in oracle.plan.outputs}


@settings(max_examples=80)
@given(cases(PLAIN))
def test_a_delta_is_the_difference_of_two_evaluations(case: Case) -> None:
    program, epochs = case
    oracle = _oracle(program)
    base: Views = {relation.name: set() for relation in program.base}
    for fact in oracle.plan.program.facts:
        base[fact.relation].add(fact.row)
    before: Views = {output.name: set() for output in oracle.plan.outputs}
    for epoch in epochs:
        result = oracle.commit(epoch)
        for change in epoch.changes:
            (base[change.relation].add if change.weight > 0 else base[change.relation].discard)(change.row)
        after = evaluate_plan(oracle.plan, base, Limits())
        deltas = {name: difference(before[name], after[name]) for name in after}
        assert result.deltas == {name: delta for name, delta in deltas.items() if delta}
        assert _views(oracle) == after
        before = after


@settings(max_examples=80)
@given(cases(WINDOWED))
def test_deltas_add_up_to_the_views_over_windows(case: Case) -> None:
    program, epochs = case
    oracle = _oracle(program)
    views = _views(oracle)
    for epoch in epochs:
        for name, delta in oracle.commit(epoch).deltas.items():
            assert not views[name] & set(delta.inserted), "only new rows appear"
            assert views[name] >= set(delta.deleted), "only present rows vanish"
            views[name] = (views[name] - set(delta.deleted)) | set(delta.inserted)
        assert views == _views(oracle)


class _Alive:
    """The facts of one base relation that views see, told from all changes so far and not kept up to date.

    A fact's time is the largest timestamp it arrived in time with since it was last deleted. It is alive while that is
    after the edge of the window; and what is alive shows when event time passes a multiple of the slide.
    """

    def __init__(self, relation: Relation) -> None:
        self._relation = relation
        self._size = relation.ttl if relation.window is None else relation.window.size
        self._slide = 1 if relation.window is None or relation.window.slide is None else relation.window.slide
        self._history: list[tuple[Change, int | None, int | None]] = []  # change, its time, event time
        self._seen: set[Row] = set()
        self._stage: int | None = None
        self._first: int | None = None  # what arrived before there was a time counts from the first there was

    def step(self, changes: Sequence[Change], now: int | None) -> set[Row]:
        self._first = now if self._first is None else self._first
        for change in changes:
            stamp = change.row[0] if self._relation.timed else now
            assert stamp is None or isinstance(stamp, int)
            self._history.append((change, stamp, now))
        slides = self._relation.window is not None and self._relation.window.slide is not None
        stage = None if now is None or not slides else now // self._slide
        if stage is None or stage != self._stage:
            self._stage = stage
            facts = {self._fact(change) for change, _stamp, _then in self._history}
            self._seen = {fact for fact in facts if self._alive(fact, now)}
        return self._seen

    def _fact(self, change: Change) -> Row:
        return change.row[1:] if self._relation.lifted else change.row

    def _alive(self, fact: Row, now: int | None) -> bool:
        inserts: list[tuple[int | None, int | None]] = []
        for change, stamp, then in self._history:
            if self._fact(change) == fact:
                inserts = [*inserts, (stamp, then)] if change.weight > 0 else []
        times = [stamp for stamp, then in inserts if self._inside(stamp, then)]
        return any(self._inside(self._first if time is None else time, now) for time in times)

    def _inside(self, time: int | None, now: int | None) -> bool:
        if self._size is None or time is None or now is None:
            return True
        return time > now - now % self._slide - self._size


@settings(max_examples=120)
@given(cases(WINDOWED))
def test_views_are_the_model_over_the_facts_alive(case: Case) -> None:
    program, epochs = case
    if program.ordered:
        return
    oracle = _oracle(program)
    alive = {relation.name: _Alive(oracle.plan.relations[relation.name]) for relation in program.base}
    initial = [Change(fact.relation, fact.row, 1) for fact in oracle.plan.program.facts]
    for epoch in epochs:
        oracle.commit(epoch)
        changes = [*initial, *epoch.changes]
        initial = []
        base = {
            name: each.step([c for c in changes if c.relation == name], oracle.time) for name, each in alive.items()
        }
        assert _views(oracle) == evaluate_plan(oracle.plan, base, Limits()), program.text


@settings(max_examples=80)
@given(cases(WINDOWED), st.booleans())
def test_a_null_epoch_emits_nothing(case: Case, timed: bool) -> None:
    program, epochs = case
    oracle = _oracle(program)
    for epoch in epochs:
        oracle.commit(epoch)
        null = Epoch(epoch.number, (), oracle.time if timed else None)
        assert oracle.commit(null).deltas == {}, program.text


@settings(max_examples=80)
@given(cases(WINDOWED), st.randoms(use_true_random=False))
def test_the_order_of_changes_to_distinct_rows_does_not_matter(case: Case, random: st.DataObject) -> None:
    program, epochs = case
    streams = {relation.name for relation in program.base if relation.stream}

    def fact(change: Change) -> tuple[str, Row]:
        return change.relation, change.row[1:] if change.relation in streams else change.row

    def shuffle(epoch: Epoch) -> Epoch:
        rank = {key: random.random() for key in map(fact, epoch.changes)}  # type: ignore[attr-defined]
        return replace(epoch, changes=tuple(sorted(epoch.changes, key=lambda change: rank[fact(change)])))

    if program.ordered:
        return
    one, other = _oracle(program), _oracle(program)
    for epoch in epochs:
        assert one.commit(epoch).deltas == other.commit(shuffle(epoch)).deltas, program.text


FAULTS: Sequence[tuple[str, Epoch]] = (
    ("E503", Epoch(0, (Change("nobody", (1, 2), 1),))),
    ("E501", Epoch(0, (Change("", (1, 2, 3, 4, 5), 1),))),
    ("E502", Epoch(0, (Change("", ("a", "b", "c", "d", "e"), 1),))),
    ("E505", Epoch(0, (), -(10**6))),
)


@settings(max_examples=60)
@given(cases(WINDOWED), st.sampled_from(FAULTS))
def test_a_refused_epoch_leaves_everything_as_it_was(case: Case, fault: tuple[str, Epoch]) -> None:
    program, epochs = case
    code, wrong = fault
    relation = program.base[0]
    width = len(relation.domains) + relation.stream + (code == "E501")
    faulty = tuple(replace(c, relation=c.relation or relation.name, row=c.row[:width]) for c in wrong.changes)
    touched, untouched = _oracle(program), _oracle(program)
    for epoch in epochs:
        views = _views(touched)
        if wrong.time is None or touched.time is not None:
            with pytest.raises(UserError) as raised:
                touched.commit(Epoch(epoch.number, (*epoch.changes, *faulty), wrong.time))
            assert raised.value.code == code
            assert _views(touched) == views
        assert touched.commit(epoch).deltas == untouched.commit(epoch).deltas, program.text


@settings(max_examples=80)
@given(cases(PLAIN), st.integers(1, 12))
def test_an_epoch_beyond_a_limit_leaves_everything_as_it_was(case: Case, tuples: int) -> None:
    program, epochs = case
    limited, spared = _oracle(program, Limits(tuples=tuples)), _oracle(program)
    for epoch in epochs:
        views = _views(limited)
        try:
            found = limited.commit(epoch).deltas
        except UserError as error:
            assert error.code == "E507"
            assert _views(limited) == views
            continue
        assert found == spared.commit(epoch).deltas, program.text


@settings(max_examples=80)
@given(st.data())
def test_inserts_give_the_same_views_however_they_are_cut_into_epochs(data: st.DataObject) -> None:
    program = data.draw(programs(PLAIN))
    changes = data.draw(insert_streams(program))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(changes)), max_size=3)))
    whole, cut = _oracle(program), _oracle(program)
    whole.commit(Epoch(1, changes))
    for number, (start, stop) in enumerate(zip([0, *cuts], [*cuts, len(changes)], strict=True), 1):
        cut.commit(Epoch(number, changes[start:stop]))
    assert _views(cut) == _views(whole), program.text
