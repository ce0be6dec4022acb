"""Partitions that send each other rows: the same views and deltas, and what crosses is counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import whorl
from tests.generators import PLAIN, WINDOWED, GeneratedProgram, cases
from tests.golden_cases import Case as GoldenCase
from tests.golden_cases import cases as golden_cases
from tests.reference import follow_reference
from whorl.diagnostics.errors import UserError
from whorl.diagnostics.source import Source
from whorl.hosts.inprocess import InProcess
from whorl.hosts.simulated.host import Simulated
from whorl.kernel import strategies
from whorl.kernel.exchange import Exchange, Letter
from whorl.kernel.state.owner import owner_of
from whorl.kernel.state.relation import Ints
from whorl.kernel.strategies import absorption
from whorl.kernel.strategies.absorption import Absorption
from whorl.kernel.strategies.dred import Dred
from whorl.logical.compile import compile_program
from whorl.model.batching import Batching
from whorl.model.delta import Change, Epoch
from whorl.model.limits import Limits
from whorl.model.report import EpochReport
from whorl.physical import lower
from whorl.physical.explain import explain_physical
from whorl.physical.lower import lower_plan

Case = tuple[GeneratedProgram, tuple[Epoch, ...]]
STRATEGIES = ["auto", "recompute", "dred", "pf", "support", "derivations", "absorption"]
REACHABLE = """
RELATION link(X: String, Y: String).
reachable(X, Y) :- link(X, Y).
reachable(X, Y) :- link(X, Z), reachable(Z, Y).
"""
COMPONENTS = """
RELATION edge(X: Integer, Y: Integer).
component(X, min<X>) :- edge(X, _).
component(Y, min<L>) :- component(X, L), edge(X, Y).
"""
LINKS = [("A", "B"), ("B", "E"), ("E", "A"), ("E", "B")]  # of three nodes that live in three partitions


def _host(
    text: str,
    partitions: int,
    placement: str,
    strategy: str = "auto",
    limits: Limits | None = None,
    ship: str = "lazy",
) -> InProcess:
    source = Source("test.dl", text)
    return InProcess(
        lambda types: compile_program(source, data_types=types), limits, strategy, partitions, placement, ship
    )


def _commit(host: InProcess, number: int, *changes: tuple[int, str, tuple[object, ...]]) -> EpochReport:
    rows = tuple(Change(relation, row, weight) for weight, relation, row in changes)  # type: ignore[arg-type]
    return host.commit(Epoch(number, rows))


def _shipped(report: EpochReport) -> dict[str, int]:
    rows: dict[str, int] = {}
    for each in report.shipped:
        rows[each.channel] = rows.get(each.channel, 0) + each.rows
    return rows


# The same views


@pytest.mark.parametrize("placement", ["first", "join"])
@pytest.mark.parametrize("case", golden_cases(), ids=lambda case: case.name)
def test_golden_cases_with_exchange(case: GoldenCase, placement: str) -> None:
    case.check(lambda compile_plan, limits: InProcess(compile_plan, limits, "auto", 3, placement))


@pytest.mark.parametrize("ship", ["lazy", "eager"])
@pytest.mark.parametrize("case", golden_cases(), ids=lambda case: case.name)
def test_golden_cases_with_labels_that_cross(case: GoldenCase, ship: str) -> None:
    case.check(lambda plan, limits: InProcess(plan, limits, "absorption", 2, "auto", ship), may_not_serve=True)


def _check(case: Case, strategy: str, partitions: int, placement: str, ship: str) -> None:
    program, epochs = case
    try:
        follow_reference(program.text, epochs, _host(program.text, partitions, placement, strategy, ship=ship))
    except UserError as refused:  # the strategy does not serve such programs
        assert refused.code == "E402"
        assert strategy not in ("auto", "recompute")


_any_case = st.one_of(cases(PLAIN), cases(WINDOWED))
_ways = (
    st.sampled_from(STRATEGIES),
    st.sampled_from([2, 3, 7]),
    st.sampled_from(["first", "join", "auto"]),
    st.sampled_from(["lazy", "eager", "plain"]),
)


@settings(max_examples=150)
@given(_any_case, *_ways)
def test_partitions_that_exchange_equal_the_reference(
    case: Case, strategy: str, partitions: int, placement: str, ship: str
) -> None:
    _check(case, strategy, partitions, placement, ship)


@pytest.mark.slow
@settings(max_examples=3_000)
@given(_any_case, *_ways)
def test_partitions_that_exchange_equal_the_reference_at_length(
    case: Case, strategy: str, partitions: int, placement: str, ship: str
) -> None:
    _check(case, strategy, partitions, placement, ship)


@settings(max_examples=40)
@given(_any_case, st.sampled_from([2, 3]), st.sampled_from([40, 200]))
def test_labels_that_grow_too_large_are_given_up_everywhere(case: Case, partitions: int, cap: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(strategies._STRATEGIES, "absorption", partial(Absorption, cap=cap))
        patch.setattr(absorption, "_ROOM_APART", 20)
        _check(case, "absorption", partitions, "first", "eager")


@settings(max_examples=40)
@given(cases(WINDOWED), st.integers(1, 8))
def test_an_epoch_that_one_partition_refuses_is_refused_by_all(case: Case, tuples: int) -> None:
    program, epochs = case
    tight, free = _host(program.text, 3, "first", limits=Limits(tuples=tuples)), _host(program.text, 3, "first")
    for epoch in epochs:
        try:
            found = tight.commit(epoch)
        except UserError:
            views = [output.name for output in free.plan.outputs]
            assert {view: tight.rows(view) for view in views} == {view: free.rows(view) for view in views}
            continue
        assert dict(found.deltas) == dict(free.commit(epoch).deltas), program.text


@settings(max_examples=30)
@given(_any_case, st.integers(0, 3), st.sampled_from([3, 4]))
def test_a_snapshot_goes_on_with_exchange(
    tmp_path_factory: pytest.TempPathFactory, case: Case, after: int, partitions: int
) -> None:
    program, epochs = case
    source, folder = Source("generated", program.text), tmp_path_factory.mktemp("snapshot")
    whole = _host(program.text, 3, "first")
    host = _host(program.text, 3, "first")
    for at, epoch in enumerate(epochs):
        try:
            wanted = whole.commit(epoch)
        except UserError:
            return
        assert dict(host.commit(epoch).deltas) == dict(wanted.deltas)
        if at == after:
            host.save(folder)
            host = InProcess.restore(
                folder,
                lambda types: compile_program(source, data_types=types),
                partitions=partitions,
                placement="first",
            )


@pytest.mark.parametrize("strategy", ["auto", "absorption"])
def test_rows_that_travelled_are_explained_by_the_rules_as_written(strategy: str) -> None:
    session = whorl.open(COMPONENTS, partitions=3, strategy=strategy)
    session.insert("edge", [(1, 2), (2, 3)])
    session.commit()
    proof = str(session["component"].why((3, 1)))
    assert proof.startswith("component(3, 1)   min, by rule 2 (line 4)")
    assert "^" not in proof
    assert "edge(1, 2)" in proof
    assert "no row fits" in str(session["component"].why_not((4, 1)))


# What crosses


def _network(strategy: str) -> tuple[InProcess, EpochReport]:
    host = _host(REACHABLE, 3, "first", strategy)
    return host, _commit(host, 1, *((1, "link", link) for link in LINKS))


@pytest.mark.parametrize("strategy", ["dred", "pf", "support", "derivations", "recompute"])
def test_links_and_what_follows_are_shipped_once(strategy: str) -> None:
    _network_host, report = _network(strategy)
    assert _shipped(report) == {"link^2": 4, "reachable^in": 12}
    assert len(report.deltas["reachable"].inserted) == 9


@pytest.mark.parametrize("strategy", ["dred", "pf", "support", "derivations"])
def test_a_lost_link_ships_less_than_everything(strategy: str) -> None:
    """Counts, proofs and derivations kept save the rows that links still derive: 10 rows cross, not 22 as below."""
    host, _report = _network(strategy)
    report = _commit(host, 2, (-1, "link", ("E", "B")))
    assert not report.deltas
    assert _shipped(report) == {"link^2": 1, "reachable^in": 9}


def test_dred_as_published_tells_sixteen_rows_that_are_news(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without counts all nine rows fall and return, as in figure 5 of REGIONS, which counts 16 rows shipped.

    These are the link, the nine rows that fall, and the six that return by way of another node. Six more cross to nodes
    that have heard of it from elsewhere. A row lives at one node, so that one set holds what all nodes know.
    """
    monkeypatch.setattr(Dred, "saved", lambda *_given: None)
    letters: list[Letter] = []
    take = Exchange._take

    def listen(self: Exchange, given: Sequence[Letter]) -> Iterator[tuple[str, int, Ints]]:
        letters.extend(given)
        return take(self, given)

    host, _report = _network("dred")
    monkeypatch.setattr(Exchange, "_take", listen)
    report = _commit(host, 2, (-1, "link", ("E", "B")))
    assert not report.deltas
    assert _shipped(report) == {"link^2": 1, "reachable^in": 21}
    known, news = {(x, y) for x in "ABE" for y in "ABE"}, 1
    for letter in letters:
        rows = set(zip(*(column.to_list() for column in letter.columns), strict=True))
        if letter.channel == "reachable^in" and letter.weight < 0:
            news += len(rows & known)
            known -= rows
        elif letter.channel == "reachable^in":
            known |= set(LINKS[:3])  # what a node derives by itself, once everything has fallen
            news += len(rows - known)
            known |= rows
    assert known == {(x, y) for x in "ABE" for y in "ABE"}
    assert news == 16


@pytest.mark.parametrize(
    ("ship", "published", "computed", "lost"),
    [
        ("lazy", True, 16, 5),
        ("eager", True, 19, 2),
        ("plain", True, 20, 2),
        ("lazy", False, 12, 3),
        ("eager", False, 13, 2),
    ],
)
def test_what_labels_ship(
    ship: str, published: bool, computed: int, lost: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Plain shipping tells of four derivations more than sets do; one of them adds nothing that was not told before.

    A lost link is told to the two other nodes; lazily, alternatives are then released. So it was published; where
    derivations that lead back to their own row are left out, labels ship less than sets.
    """
    if published:
        monkeypatch.setattr(lower, "with_circles", lambda plan: plan)
    source = Source("test.dl", REACHABLE)
    host = Simulated(lambda types: compile_program(source, data_types=types), 3, strategy="absorption", ship=ship)
    report = _commit(host, 1, *((1, "link", link) for link in LINKS))
    assert sum(_shipped(report).values()) == computed
    report = _commit(host, 2, (-1, "link", ("E", "B")))
    assert not report.deltas
    assert _shipped(report)["link^2"] + _shipped(report)["^variables"] == 2
    assert sum(_shipped(report).values()) == lost


def test_bytes_are_those_of_the_values() -> None:
    _network_host, report = _network("dred")
    assert {(each.channel, each.rows, each.bytes, each.label_bytes) for each in report.shipped} == {
        ("link^2", 1, 2, 0),
        ("reachable^in", 3, 6, 0),
    }
    _network_host, report = _network("support")
    assert {each.label_bytes for each in report.shipped if each.channel == "reachable^in"} == {24}


def test_only_a_recursion_without_a_column_to_keep_is_exchanged_by_itself() -> None:
    kept = lower_plan(compile_program(Source("test.dl", REACHABLE)), placement="auto")
    lost = lower_plan(compile_program(Source("test.dl", COMPONENTS)), placement="auto")
    assert not kept.exchanges
    assert lost.exchanges
    small = "found(Y) :- link(0, Y).\nfound(Y) :- found(X), link(X, Y).\n"
    assert not lower_plan(compile_program(Source("test.dl", small)), placement="auto").exchanges
    assert "component^out -> component^in: to the owner of column 1 (X), until the fixpoint" in explain_physical(lost)


@pytest.mark.parametrize(
    ("ship", "told"),
    [
        ("lazy", "one derivation of each row, another when that is lost"),
        (
            "eager",
            "new rows at once, other derivations "
            "when 5 of them wait or they have waited 0.1 s or what was told is lost",
        ),
        ("plain", "every derivation of each row"),
    ],
)
def test_the_plan_says_how_labels_cross(ship: str, told: str) -> None:
    program = compile_program(Source("test.dl", REACHABLE))
    plan = lower_plan(program, "absorption", "first", ship, Batching(rows=5))
    assert f"  to other partitions: {told}" in explain_physical(plan).splitlines()
    assert "to other partitions" not in explain_physical(lower_plan(program, "dred", "first", ship))


@pytest.mark.parametrize("last", range(8, 12))
def test_a_chain_that_gets_longer_crosses_only_between_owners(last: int) -> None:
    """The label of a chain goes on to its new end: one row, if another partition owns that."""
    host = _host(COMPONENTS, 3, "auto")
    _commit(host, 1, *((1, "edge", (at, at + 1)) for at in range(last)))
    report = _commit(host, 2, (1, "edge", (last, last + 1)))
    assert _shipped(report).get("component^in", 0) == (owner_of(last, 3) != owner_of(last + 1, 3))


PATHS = """
RELATION link(X: Integer, Y: Integer, C: Integer).
path(X, Y, C, 1) :- link(X, Y, C).
path(X, Y, C, H) :- link(X, Z, C1), path(Z, Y, C2, H1), C = C1 + C2, H = H1 + 1.
cheapest(X, Y, min<C>) :- path(X, Y, C, _).
query cheapest(X, Y, C).
"""


@pytest.mark.parametrize("more", ["", "shortest(X, Y, min<H>) :- path(X, Y, _, H).\nquery shortest(X, Y, H).\n"])
def test_paths_that_cannot_win_are_not_shipped(more: str) -> None:
    """What a partition sends are the best paths it knows; of a ring, one for each pair of nodes and way round."""
    host = _host(PATHS + more, 3, "first")
    ring = [(at, (at + 1) % 8, 1) for at in range(8)] + [((at + 1) % 8, at, 3) for at in range(8)]
    report = _commit(host, 1, *((1, "link", link) for link in ring))
    assert report.deltas["cheapest"].inserted[1] == (0, 1, 1)
    assert 0 < _shipped(report)["path^in"] <= 8 * 8 * 2 * 2
    report = _commit(host, 2, (-1, "link", (0, 1, 1)))
    assert (0, 1, 3 * 7) in report.deltas["cheapest"].inserted  # the other way round, which lost before


def test_an_unknown_placement_is_refused() -> None:
    with pytest.raises(UserError) as refused:
        lower_plan(compile_program(Source("test.dl", REACHABLE)), placement="nowhere")
    assert refused.value.code == "E403"
    assert "auto, apart, join, first" in str(refused.value)


def test_an_unknown_way_to_ship_is_refused() -> None:
    with pytest.raises(UserError) as refused:
        lower_plan(compile_program(Source("test.dl", REACHABLE)), ship="slowly")
    assert refused.value.code == "E404"
    assert "lazy, eager, plain" in str(refused.value)
