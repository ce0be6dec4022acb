"""Frames in, views out, once."""

from __future__ import annotations

from typing import Any

import pytest

import whorl
from tests.spark.feeding import REACH, rows_of


@pytest.mark.parametrize("partitions", [1, 3])
def test_evaluate_gives_views_as_frames(spark: Any, partitions: int) -> None:
    frame = spark.createDataFrame([("a", "b"), ("b", "c"), ("c", "a")], "x string, y string")
    found = whorl.evaluate(spark, REACH, {"link": frame}, partitions=partitions)
    assert found["reachable"].columns == ["X", "Y"]
    assert rows_of(found["reachable"]) == {(x, y) for x in "abc" for y in "abc"}
