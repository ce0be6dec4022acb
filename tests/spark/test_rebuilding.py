"""State that some partitions have written gives the same views in others, whatever their number and strategy."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden_cases import Case, cases
from whorl.cli.files import load_functions, read_source
from whorl.hosts.inprocess import InProcess
from whorl.hosts.routing import route_changes, routing_place
from whorl.hosts.spark.arrivals import split_batches
from whorl.hosts.spark.files import write_file
from whorl.hosts.spark.layout import START, Layout, new_token
from whorl.hosts.spark.rebuilding import Mirror, Written, rebuild, split_names
from whorl.hosts.spark.shares import encode_batches, encode_entry
from whorl.kernel.partition import Partition
from whorl.kernel.resume import save_partition
from whorl.logical.compile import compile_program
from whorl.logical.intake import Checked, DataTypes, Intake
from whorl.logical.plan import LogicalPlan
from whorl.model.batch import batch_of
from whorl.model.delta import Epoch
from whorl.model.limits import Limits
from whorl.model.values import Row
from whorl.physical.lower import lower_plan
from whorl.syntax.deltas import parse_deltas

PARTITIONS = 3


class Writer:
    """Partitions that write a log and states as those of a deployment do."""

    def __init__(self, folder: Path, plan: LogicalPlan, limits: Limits) -> None:
        self._layout = Layout(folder)
        self._plan = lower_plan(plan)
        self._partitions = [
            Partition(self._plan, limits, number=number, partitions=PARTITIONS) for number in range(PARTITIONS)
        ]
        self._tokens, self._snapshots = [START], list[str]()

    def take(self, number: int, checked: Checked) -> None:
        """Log an epoch, and step; save the state before every second one."""
        if number % 2 == 0:
            self._snapshots.append(self._tokens[-1])
            for each in self._partitions:
                save_partition(each, self._layout.state(self._tokens[-1], each.number))
        token = new_token(number)
        single = [batch_of(change.relation, [change.row], change.weight) for change in checked.changes]
        batches = [*single, *checked.batches]
        places = {batch.relation: routing_place(self._plan, batch.relation) for batch in batches}
        shares = {own: encode_batches(each) for own, each in split_batches(batches, places, PARTITIONS).items()}
        write_file(self._layout.entry(token), encode_entry(checked.time, shares, ()), durable=False)
        for partition, share in zip(self._partitions, route_changes(self._plan, (), batches, PARTITIONS), strict=True):
            partition.step((), checked.time, share.batches)
        self._tokens.append(token)

    @property
    def written(self) -> Written:
        snapshots = [token for token in self._snapshots if token != START]
        return Written(self._layout, self._tokens, snapshots, None, PARTITIONS, split_names(self._plan))


def rows_of(partitions: list[Partition]) -> dict[str, set[Row]]:
    return {
        output.name: set().union(*(each.rows(output.name) for each in partitions))
        for output in partitions[0].plan.outputs
    }


def epochs_of(case: Case) -> list[Epoch]:
    return list(parse_deltas(read_source(case.folder / "input.deltas")))


@pytest.mark.parametrize(
    "case", [case for case in cases() if not (case.folder / "expected.err").exists()], ids=lambda case: case.name
)
def test_golden_cases_in_other_partitions(case: Case, tmp_path: Path) -> None:
    program, functions = read_source(case.folder / "program.dl"), load_functions(case.functions_path())
    limits = Limits(**case.options())
    learnt: DataTypes = {}
    first = Intake(lambda types: compile_program(program, functions, types))
    for epoch in epochs_of(case):
        checked = first.take(epoch)
        first.keep(checked)
        learnt = checked.data_types
    # With all types known from the start, as frames tell them, there is one plan.
    plan = compile_program(program, functions, learnt)
    intake, writer, mirror = Intake(lambda _types: plan, columnar=True), Writer(tmp_path, plan, limits), Mirror()
    wanted = InProcess(lambda _types: plan, limits, "recompute")
    physical = lower_plan(plan)
    for epoch in epochs_of(case):
        checked = intake.take(epoch)
        intake.keep(checked)
        writer.take(epoch.number, checked)
        wanted.commit(epoch)
        expected = {output.name: wanted.rows(output.name) for output in wanted.plan.outputs}
        assert rows_of([mirror.at(writer.written, physical, limits)]) == expected
    for strategy, partitions in (("auto", 2), ("recompute", 4)):
        other = lower_plan(plan, strategy)
        found = [rebuild(writer.written, other, limits, number, partitions) for number in range(partitions)]
        assert rows_of(found) == expected
