"""How the rows of files become epochs.

- Without more, everything is one epoch.
- A column `epoch` puts each row into the epoch of that number; files without the column go into the first.
- Cut by event time, with steps of s seconds: the epoch that ends at b, a multiple of s, holds the facts with timestamps
  in (b - s, b] and moves event time to b. So after it the views are those of event time b, whatever the order of the
  file. Rows without a timestamp go into the first epoch. Where nothing arrives, epochs go on as long as facts may still
  expire, and then skip to the next fact.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from math import gcd

import numpy as np

from whorl.analysis.program import Relation
from whorl.connectors.files import Feed
from whorl.diagnostics.errors import UserError
from whorl.model.batch import Array, Batch


@dataclass(frozen=True, slots=True)
class Cut:
    """One epoch of input: its number, the event time it moves to, and for each feed the rows that belong to it."""

    number: int
    time: int | None
    parts: tuple[tuple[Feed, Array | slice], ...]

    def batches(self) -> Iterator[Batch]:
        """Yield the rows, split where insertions and deletions meet."""
        for feed, positions in self.parts:
            batch = feed.batch.take(positions)
            if feed.weights is None:
                yield batch
                continue
            weights = feed.weights[positions]
            edges = [0, *(np.flatnonzero(np.diff(weights)) + 1).tolist(), len(weights)]
            for start, stop in pairwise(edges):
                if stop > start:
                    run = batch.take(slice(start, stop))
                    yield Batch(run.relation, run.columns, run.count, int(weights[start]))


def cut_by_number(feeds: Sequence[Feed]) -> list[Cut]:
    """Cut by the column `epoch`; all at once where no file has one."""
    parts: dict[int, list[tuple[Feed, Array | slice]]] = {}
    whole = [feed for feed in feeds if feed.epochs is None]
    for feed in feeds:
        if feed.epochs is not None:
            for number, positions in _groups(feed.epochs):
                parts.setdefault(number, []).append((feed, positions))
    first = parts.setdefault(min(parts, default=1), [])
    first[:0] = [(feed, slice(None)) for feed in whole]
    return [Cut(number, None, tuple(parts[number])) for number in sorted(parts)]


def cut_by_time(feeds: Sequence[Feed], relations: Mapping[str, Relation], step: int) -> list[Cut]:
    """Cut at multiples of ``step`` seconds of event time."""
    parts: dict[int, list[tuple[Feed, Array | slice]]] = {}
    whole: list[tuple[Feed, Array | slice]] = []
    for feed in feeds:
        if feed.epochs is not None:
            raise UserError("E624", None, path=feed.path)
        if not relations[feed.batch.relation].timed:
            whole.append((feed, slice(None)))
        elif feed.batch.count:
            for end, positions in _groups(-(-feed.batch.columns[0].data // step) * step):
                parts.setdefault(end, []).append((feed, positions))
    if not any(relations[feed.batch.relation].timed for feed in feeds):
        raise UserError("E625")
    if not parts:
        return [Cut(1, None, tuple(whole))]
    ends = sorted(parts)
    parts[ends[0]][:0] = whole
    return [Cut(end, end, tuple(parts.get(end, ()))) for end in _ends(ends, step, _lifetime(relations.values()))]


def _ends(ends: Sequence[int], step: int, lifetime: int) -> Iterator[int]:
    """Yield the ends of epochs: those with facts, and between them those at which facts may expire."""
    for end, following in zip(ends, [*ends[1:], ends[-1] + step], strict=True):
        yield from range(end, min(following, end + lifetime + step), step)


def _lifetime(relations: Iterable[Relation]) -> int:
    """Return how long after its timestamp a fact may still be seen: a slide shows its end late."""
    longest = 0
    for each in relations:
        window = each.window
        seen = window.size + (window.slide or 0) if window is not None and not window.counted else 0
        longest = max(longest, each.ttl or 0, seen)
    return longest


def common_slide(relations: Iterable[Relation]) -> int | None:
    """Return the step that meets the slides of all streams, None if no stream slides by time."""
    windows = [each.window for each in relations if each.window is not None and not each.window.counted]
    slides = [window.slide for window in windows if window.slide is not None]
    return reduce(gcd, slides) if slides else None


def _groups(keys: Array) -> Iterator[tuple[int, Array]]:
    """Yield each key with the positions that have it, in their order."""
    order = np.argsort(keys, kind="stable")
    found, starts = np.unique(keys[order], return_index=True)
    yield from zip(found.tolist(), np.split(order, starts[1:]), strict=True)
