"""Rows of a gathered frame, checked: batches of what fits, and a reason for each row that does not.

A row that does not fit its relation is set aside, with the reason; the others go on. What is wrong with a whole column
was refused before the first row came (`lanes.match_inputs`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from whorl.connectors.arrow import read_column
from whorl.connectors.target import Misfit
from whorl.connectors.text import to_numpy
from whorl.hosts.routing import owners_of
from whorl.hosts.spark.lanes import NUMBER, OPERATION, Lane, column_name
from whorl.hosts.spark.shares import ALL
from whorl.model.batch import Array, Batch, Values, batch_of
from whorl.model.delta import Change
from whorl.model.types import Type


@dataclass(slots=True)
class Arrived:
    """What came in: rows by relation, those that did not fit, and the latest event time."""

    batches: list[Batch] = field(default_factory=list)
    misfits: dict[str, list[str]] = field(default_factory=dict)  # lines of JSON, by relation
    rows: int = 0
    time: int | None = None

    def add(self, other: Arrived) -> None:
        """Take more in."""
        self.batches += other.batches
        self.rows += other.rows
        self.time = latest(self.time, other.time)
        for name, lines in other.misfits.items():
            self.misfits.setdefault(name, []).extend(lines)


def latest(left: int | None, right: int | None) -> int | None:
    """Return the later of two times."""
    known = [time for time in (left, right) if time is not None]
    return max(known, default=None)


def read_arrivals(table: pa.Table, lanes: Sequence[Lane]) -> Arrived:
    """Check the rows of a gathered frame."""
    arrived = Arrived()
    if not table.num_rows:
        return arrived
    numbers = table.column(NUMBER)
    for number in pc.unique(numbers).to_pylist():
        own = table.filter(pc.equal(numbers, number))
        arrived.add(_read_lane(own, number, lanes[number]))
    return arrived


def _read_lane(table: pa.Table, number: int, lane: Lane) -> Arrived:
    columns = [table.column(column_name(number, at)) for at in range(len(lane.target.types))]
    signs, reasons = _signs(table.column(OPERATION))
    values: list[Values] = []
    for at, column in enumerate(columns):
        reasons |= {row: reason for row, reason in _nothings(column, lane, at) if row not in reasons}
    for at, column in enumerate(columns):
        reasons |= _oddities(column, lane, at, reasons)
    kept = np.setdiff1d(np.arange(table.num_rows), np.fromiter(reasons, np.int64, len(reasons)))
    for kind, column in zip(lane.target.types, columns, strict=True):
        values.append(_widened(read_column(column.take(pa.array(kept)), kind), kind))
    whole = Batch(lane.target.relation, tuple(values), len(kept))
    batches = list(_runs(whole, signs[kept]))
    times = [int(batch.columns[0].data.max()) for batch in batches if lane.timed and batch.weight > 0]
    shown = [_shown(lane, columns, row, reason) for row, reason in sorted(reasons.items())]
    misfits = {lane.target.relation: shown} if shown else {}
    return Arrived(batches, misfits, table.num_rows, max(times, default=None))


def _signs(column: pa.ChunkedArray) -> tuple[Array, dict[int, str]]:
    """Return the weight of each row, and the rows whose operation is none."""
    signs = column.to_pylist()
    weights = np.fromiter(({"+": 1, "-": -1}.get(sign, 0) for sign in signs), np.int64, len(signs))
    strange = np.flatnonzero(weights == 0).tolist()
    return weights, {row: f"the operation is {json.dumps(signs[row])}" for row in strange}


def _nothings(column: pa.ChunkedArray, lane: Lane, at: int) -> Iterator[tuple[int, str]]:
    """Yield the rows that have no value, or no finite one."""
    empty = to_numpy(pc.is_null(column))
    if pa.types.is_floating(column.type):
        empty = empty | ~to_numpy(pc.fill_null(pc.is_finite(column), False))  # noqa: FBT003 - pyarrow's order
    for row in np.flatnonzero(empty).tolist():
        value = column[row].as_py()
        what = "has no value" if value is None else f"holds {value}"
        yield row, f"column {lane.target.label(at)} {what}"


def _oddities(column: pa.ChunkedArray, lane: Lane, at: int, known: dict[int, str]) -> dict[int, str]:
    """Return the rows whose text is no list or term; other types were checked as whole columns."""
    kind = lane.target.types[at]
    if kind not in (Type.LIST, Type.TERM):
        return {}
    found: dict[int, str] = {}
    for row in range(len(column)):
        if row not in known:
            try:
                read_column(column.slice(row, 1), kind)
            except Misfit as misfit:
                found[row] = f"column {lane.target.label(at)} holds {misfit.found or 'nothing'}, not a {kind}"
    return found


def _widened(values: Values, kind: Type) -> Values:
    if kind is Type.FLOAT and values.type is Type.INTEGER:
        return Values(Type.FLOAT, values.data.astype(np.float64))
    return values


def _runs(whole: Batch, weights: Array) -> Iterator[Batch]:
    """Split a batch where insertions and deletions meet."""
    edges = [0, *(np.flatnonzero(np.diff(weights)) + 1).tolist(), len(weights)]
    for start, stop in pairwise(edges):
        if stop > start:
            run = whole.take(slice(start, stop))
            yield Batch(run.relation, run.columns, run.count, int(weights[start]))


def _shown(lane: Lane, columns: Sequence[pa.ChunkedArray], row: int, reason: str) -> str:
    labels = lane.target.names or [f"{at + 1}" for at in range(len(columns))]
    held = {label: column[row].as_py() for label, column in zip(labels, columns, strict=True)}
    return json.dumps({"reason": reason, "row": held}, default=str)


def split_batches(batches: Sequence[Batch], places: dict[str, int | None], partitions: int) -> dict[str, list[Batch]]:
    """Return the batches for each partition, and those for all of them."""
    found: dict[str, list[Batch]] = {}
    for batch in batches:
        place = places[batch.relation]
        if place is None or partitions == 1:
            found.setdefault(ALL, []).append(batch)
            continue
        owners = owners_of(batch.columns[place], partitions)
        for number in np.unique(owners).tolist():
            found.setdefault(str(number), []).append(batch.take(np.flatnonzero(owners == number)))
    return found


def batches_of(changes: Sequence[Change]) -> list[Batch]:
    """Return rows as batches: of each relation, runs of insertions and deletions in their order."""
    by_relation: Mapping[str, list[Change]] = {change.relation: [] for change in changes}
    for change in changes:
        by_relation[change.relation].append(change)
    found: list[Batch] = []
    for name, own in by_relation.items():
        start = 0
        for stop in range(1, len(own) + 1):
            if stop == len(own) or own[stop].weight != own[start].weight:
                found.append(batch_of(name, [change.row for change in own[start:stop]], own[start].weight))
                start = stop
    return found
