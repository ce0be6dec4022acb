"""Partitions in Spark's workers that send each other rows."""

from __future__ import annotations

import os
import signal
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

import whorl
from tests.golden_cases import Case, cases
from whorl.cli.files import load_functions, read_source
from whorl.diagnostics.errors import ProgramErrors, UserError
from whorl.hosts.inprocess import InProcess
from whorl.hosts.spark.host import SparkHost, SparkPartitions
from whorl.kernel.state.owner import owner_of
from whorl.logical.compile import compile_program
from whorl.model.delta import Delta
from whorl.syntax.deltas import parse_deltas

pytestmark = pytest.mark.xdist_group("spark")  # one process, and one session, for all

COMPONENTS = """
RELATION edge(X: Integer, Y: Integer).
component(X, min<X>) :- edge(X, _).
component(Y, min<L>) :- component(X, L), edge(X, Y).
"""


LABELLED = ("regions/reachability", "regions/resilience", "views/reach_right", "views/reach_nonlinear")


def _check_labelled(case: Case, spark: Any) -> None:
    """Compare a case, unless labels do not serve its program, which the kernel in this process says too."""
    program, functions = read_source(case.folder / "program.dl"), load_functions(case.functions_path())
    try:
        alone = InProcess(lambda types: compile_program(program, functions, types), None, "absorption")
        for epoch in parse_deltas(read_source(case.folder / "input.deltas")):
            alone.commit(epoch)
    except (UserError, ProgramErrors) as refused:
        pytest.skip(f"{refused}".splitlines()[0])
    case.check(SparkHost(spark, partitions=3, placement="first", strategy="absorption"))


@pytest.mark.parametrize("case", cases()[3::12], ids=lambda case: case.name)
def test_some_golden_cases_with_exchange_on_spark(case: Case, spark: Any) -> None:
    case.check(SparkHost(spark, partitions=3, placement="first"))


@pytest.mark.parametrize("case", [each for each in cases() if each.name in LABELLED], ids=lambda case: case.name)
def test_some_golden_cases_with_labels_that_travel_on_spark(case: Case, spark: Any) -> None:
    _check_labelled(case, spark)


@pytest.mark.slow
@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_golden_cases_with_exchange_on_spark(case: Case, spark: Any) -> None:
    case.check(SparkHost(spark, partitions=3, placement="first"))


@pytest.mark.slow
@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_golden_cases_with_labels_that_travel_on_spark(case: Case, spark: Any) -> None:
    _check_labelled(case, spark)


def _chain(length: int) -> list[tuple[int, int]]:
    return [(at, at + 1) for at in range(length)]


def test_components_exchange_no_more_often_than_a_chain_changes_partitions(spark: Any) -> None:
    context = spark.sparkContext
    context.setJobGroup("components", "count jobs")
    try:
        session = whorl.open(COMPONENTS, host=whorl.SparkHost(spark, partitions=3))
        session.insert("edge", _chain(12))
        changes = session.commit()
        jobs = len(context.statusTracker().getJobIdsForGroup("components"))
    finally:
        context.setJobGroup("other", "")
    assert len(changes["component"].inserted) == 13
    owners = [owner_of(node, 3) for node in range(13)]
    hops = sum(left != right for left, right in pairwise(owners))
    assert 0 < hops < 12, "some neighbours live together"
    assert 2 < jobs <= hops + 3  # the input, what the fixpoint sends, its end


def test_a_program_that_keeps_a_column_is_one_job(spark: Any) -> None:
    context = spark.sparkContext
    context.setJobGroup("reach", "count jobs")
    try:
        rules = "reachable(X, Y) :- link(X, Y).\nreachable(X, Y) :- link(X, Z), reachable(Z, Y).\n"
        session = whorl.open(rules, host=whorl.SparkHost(spark, partitions=3))
        session.insert("link", _chain(6))
        session.commit()
        assert len(context.statusTracker().getJobIdsForGroup("reach")) == 1
    finally:
        context.setJobGroup("other", "")


def test_a_worker_that_is_killed_comes_back_with_what_others_had_sent(spark: Any, tmp_path: Path) -> None:
    session = whorl.open(COMPONENTS, host=whorl.SparkHost(spark, partitions=3, folder=tmp_path))
    session.insert("edge", [*_chain(9), (20, 21)])
    session.commit()
    session.insert("edge", [(9, 10)])
    session.commit()
    assert isinstance(session._host, SparkPartitions)
    deployment = session._host._deployment
    process = deployment._anchors.ask(deployment._request("idle"), "who is there")[1].process
    os.kill(process, signal.SIGKILL)
    session.delete("edge", [(4, 5)])
    apart, joined = tuple((at, 5) for at in range(5, 11)), tuple((at, 0) for at in range(5, 11))
    assert session.commit()["component"] == Delta(apart, joined)
    session.insert("edge", [(4, 5)])
    assert session.commit()["component"] == Delta(joined, apart)
