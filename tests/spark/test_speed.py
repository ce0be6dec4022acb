"""What keeps epochs short: counted, not timed."""

from __future__ import annotations

import gc
from typing import Any

import pytest

import whorl

pytestmark = pytest.mark.xdist_group("spark")  # one process, and one session, for all


def test_workers_do_not_look_through_the_kernel_after_every_task(spark: Any) -> None:
    @whorl.function
    def resting(x: int) -> int:
        return x + gc.get_freeze_count()

    session = whorl.open("found(Y) :- start(X), Y = resting(X).", host=whorl.SparkHost(spark), functions=[resting])
    session.insert("start", [(0,)])
    ((found,),) = session.commit()["found"].inserted
    assert found > 10_000
