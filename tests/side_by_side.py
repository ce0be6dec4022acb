"""The reference beside every strategy that serves a program: the same changes, and the same refusals."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TypeAlias

import pytest

from whorl.diagnostics.errors import UserError
from whorl.diagnostics.source import Source
from whorl.hosts.inprocess import InProcess
from whorl.logical.compile import compile_program
from whorl.logical.plan import LogicalPlan
from whorl.model.delta import Epoch
from whorl.model.functions import Function
from whorl.model.types import Type
from whorl.oracle.session import Oracle
from whorl.physical.strategies import STRATEGIES

Compile: TypeAlias = Callable[[Mapping[str, Sequence[Type]] | None], LogicalPlan]


def check_side_by_side(
    text: str, epochs: Iterable[Epoch], codes: tuple[str, ...], functions: Sequence[Function] = ()
) -> None:
    """Check that every host gives the changes of the reference, and refuses what it refuses, with one of the codes."""

    def compiled(types: Mapping[str, Sequence[Type]] | None) -> LogicalPlan:
        return compile_program(Source("program.dl", text), functions, types)

    oracle = Oracle(compiled)
    hosts = _hosts(compiled)
    for epoch in epochs:
        try:
            wanted = dict(oracle.commit(epoch).deltas)
        except UserError as refused:
            assert refused.code in codes
            for host, kernel in hosts.items():
                with pytest.raises(UserError) as also:
                    kernel.commit(epoch)
                assert also.value.code in codes, (host, text)
            continue
        for host, kernel in hosts.items():
            assert dict(kernel.commit(epoch).deltas) == wanted, (host, text)


def _hosts(compiled: Compile) -> dict[tuple[str, int], InProcess]:
    hosts: dict[tuple[str, int], InProcess] = {}
    for strategy, partitions in [*((name, 1) for name in STRATEGIES), ("auto", 2)]:
        try:
            hosts[strategy, partitions] = InProcess(compiled, None, strategy, partitions=partitions)
        except UserError as refused:
            assert refused.code == "E402"
    return hosts
