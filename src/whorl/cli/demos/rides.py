"""`whorl demo rides`: rides are offered and forgotten after an hour; the best price between any two places follows."""

from __future__ import annotations

import math
from collections.abc import Iterator
from random import Random
from typing import ClassVar

from rich.text import Text

from whorl.cli.demos.scenario import (
    BETTER,
    CAME,
    WENT,
    WORSE,
    Deltas,
    Evidence,
    Pairing,
    Question,
    Step,
    Told,
    Views,
    number_of,
)
from whorl.model.delta import Change, Delta, Epoch
from whorl.model.values import Row
from whorl.views.picture import Picture
from whorl.views.proof import Node, Proof

PLACES = {
    "Airport": (9, 1),
    "Harbour": (1, 6),
    "Market": (4, 4),
    "Museum": (5, 5),
    "Park": (3, 1),
    "Station": (6, 3),
    "Zoo": (1, 1),
}
_START = 8 * 3600
_SLIDE = 300
_HISTORY = 22  # rides that were offered in the hour before


class Rides:
    """Drivers offer rides between places, at fares that depend on the distance and on their mood."""

    name: ClassVar[str] = "rides"
    summary: ClassVar[str] = "rides come, and go after an hour; the best prices follow"
    seed: ClassVar[int] = 4

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._time = _START

    # What happens

    def steps(self, count: int) -> Iterator[Step]:
        """Yield the hour before eight, and then five minutes each. The last ride of an epoch comes at its end."""
        for number in range(1, count + 1):
            self._time = _START + (number - 1) * _SLIDE
            size, span = (_HISTORY, 12 * _SLIDE) if number == 1 else (self._random.randint(2, 4), _SLIDE)
            ages = sorted((self._random.randrange(span) for _each in range(size)), reverse=True)
            ages[-1] = 0
            changes = [Change("ride", (self._time - age, *self._draw_ride()), 1) for age in ages]
            words = [Text(f"+ {_arrow(c.row[1:])} {c.row[3]:.2f}", style=CAME) for c in changes]
            if number == 1:
                words = [Text(f"+ {size} rides since 7:00", style=CAME)]
            yield Step(Epoch(number, tuple(changes), self._time), words)

    def _draw_ride(self) -> tuple[str, str, float]:
        start, end = self._random.sample(sorted(PLACES), 2)
        fare = 1.5 + math.dist(PLACES[start], PLACES[end]) * self._random.choice((0.75, 1.0, 1.25, 1.75, 2.25))
        return start, end, round(2 * fare) / 2

    # What is told

    def tell(self, deltas: Deltas, views: Views) -> Told:
        """Return the prices that changed, the largest changes first."""
        pairs = len(PLACES) * (len(PLACES) - 1)
        delta = deltas.get("price", Delta())
        totals = f"{_clock(self._time)}, prices for {len(views['price'])} of {pairs} trips"
        return Told({"best prices": _price_lines(delta)}, totals)

    def ask(self, deltas: Deltas) -> Question | None:
        """Return a price that rose or fell; if there is none, one that came or went."""
        found = [(old, new) for _key, old, new in Pairing(deltas.get("price", Delta()), 2)]
        if not found:
            return None
        best = max(found, key=lambda pair: (None not in pair, abs(number_of(pair[1]) - number_of(pair[0]))))
        return Question("price", *best)

    def explain(self, evidence: Evidence) -> str:
        """Return the rides of the best price, and which ride of the old one left the window."""
        old, new = evidence.question.before, evidence.question.after
        row = new or old
        assert row is not None, "a question has a row"
        gone = (
            [] if evidence.before is None else [_ride(fact) for fact in evidence.before.facts() if self._is_over(fact)]
        )
        left = f"{', '.join(gone)} left the window" if gone else ""
        if evidence.after is None:
            return f"{_arrow(row)} has no price any more: {left}, and no other rides lead there"
        now = f"by {_way(evidence.after)}" if old is None else f"now by {_way(evidence.after)}"
        change = f"{_arrow(row)} {'' if old is None else f'{number_of(old):.2f} → '}{number_of(row):.2f}"
        return f"{change}: {left}; {now}" if left else f"{change}: {now}"

    def _is_over(self, fact: Node) -> bool:
        return fact.until is not None and fact.until <= self._time

    # What is drawn

    def draw(self, views: Views) -> str:
        """Return the best prices as a table, from row to column, the dearer the darker."""
        names = sorted(PLACES)
        prices = {(row[0], row[1]): number_of(row) for row in views["price"]}
        top = max(prices.values(), default=1.0)
        wide, high, left, upper = 82, 40, 100, 90
        picture = Picture(left + wide * len(names) + 20, upper + high * len(names) + 20, "The best prices")
        picture.text((20, 30), f"Best prices at {_clock(self._time)}, from (row) to (column)", bold=True)
        for column, name in enumerate(names):
            picture.text((left + (column + 0.5) * wide, upper - 10), name, anchor="middle")
        for line, start in enumerate(names):
            picture.text((left - 8, upper + (line + 0.6) * high), start, anchor="end")
            for column, end in enumerate(names):
                corner = (left + column * wide + 1.0, upper + line * high + 1.0)
                price = prices.get((start, end))
                picture.rectangle(corner, wide - 2, high - 2, "#f4f4f4" if price is None else _shade(price / top))
                text = "" if start == end else "none" if price is None else f"{price:.2f}"
                picture.text((corner[0] + wide / 2, corner[1] + 0.6 * high), text, anchor="middle")
        return picture.svg()


def _shade(part: float) -> str:
    return f"#{round(235 - 110 * part):02x}{round(243 - 80 * part):02x}fa"


def _clock(time: int) -> str:
    return f"{time // 3600}:{time // 60 % 60:02}"


def _arrow(row: Row) -> str:
    return f"{row[0]} → {row[1]}"


def _ride(fact: Node) -> str:
    return f"the ride {_arrow(fact.row)} of {_clock(fact.time or 0)}"


def _way(proof: Proof) -> str:
    """Return the rides that a best price is made of."""
    return ", ".join(f"{_arrow(fact.row)} {number_of(fact.row):.2f}" for fact in proof.facts())


def _price_lines(delta: Delta) -> list[Text]:
    found: list[tuple[float, Text]] = []
    for _key, old, new in Pairing(delta, 2):
        change = number_of(new) - number_of(old)
        if old is None and new is not None:
            found.append((0, Text(f"+ {_arrow(new)} {change:.2f}", style=CAME)))
        elif old is not None and new is None:
            found.append((math.inf, Text(f"- {_arrow(old)} {-change:.2f}", style=WENT)))
        elif old is not None and new is not None:
            text = f"  {_arrow(new)} {number_of(old):.2f} → {number_of(new):.2f}"
            found.append((abs(change), Text(text, style=WORSE if change > 0 else BETTER)))
    return [text for _weight, text in sorted(found, key=lambda each: (-each[0], each[1].plain))]
