"""The central property: after every epoch a host's views and deltas equal those of the reference evaluator."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from whorl.diagnostics.errors import UserError
from whorl.diagnostics.source import Source
from whorl.hosts.inprocess import InProcess
from whorl.logical.compile import compile_program
from whorl.model.delta import Epoch
from whorl.oracle.session import Oracle


def follow_reference(text: str, epochs: Sequence[Epoch], host: InProcess) -> None:
    """Compare a host with the reference after every epoch; what the reference refuses, the host must refuse too.

    A host may say instead that its strategy does not serve the program (E402).
    """
    source = Source("generated", text)
    oracle = Oracle(lambda types: compile_program(source, data_types=types))
    for epoch in epochs:
        try:
            wanted = oracle.commit(epoch)
        except UserError as refused:
            with pytest.raises(UserError) as also:
                host.commit(epoch)
            assert also.value.code in (refused.code, "E402")
            return
        found = host.commit(epoch)
        assert dict(found.deltas) == dict(wanted.deltas), text
        assert found.counts == wanted.counts, text
        for output in oracle.plan.outputs:
            assert host.rows(output.name) == oracle.rows(output.name), text
