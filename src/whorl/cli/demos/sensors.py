"""`whorl demo sensors`: heat moves over a grid of sensors; the regions it makes appear, merge and vanish."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from random import Random
from typing import ClassVar

from rich.text import Text

from whorl.cli.demos.scenario import (
    CAME,
    DIM,
    WENT,
    Deltas,
    Evidence,
    Pairing,
    Question,
    Step,
    Told,
    Views,
    counted,
)
from whorl.model.delta import Change, Delta, Epoch
from whorl.model.values import Row
from whorl.views.picture import COLOURS, Picture, Point
from whorl.views.proof import Proof

_WIDE, _HIGH, _APART = 13, 8, 10
_SOURCES, _RADIUS, _SPEED = 3, 11.0, 8.0
_MINUTE = 60
_COOL = 4
_FADING = 0.18
_LETTERS = "ABCDEFGHJK"
_STYLES = ("blue", "red", "green", "yellow", "cyan", "magenta", "bright_red", "bright_green", "bright_magenta", "white")


class Sensors:
    """A few sources of heat wander about. Sensors near one report heat, and some others report that all is well."""

    name: ClassVar[str] = "sensors"
    summary: ClassVar[str] = "heat moves; regions of hot sensors appear, merge and vanish"
    seed: ClassVar[int] = 8

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._places = {
            1 + column + row * _WIDE: (column * _APART, row * _APART) for row in range(_HIGH) for column in range(_WIDE)
        }
        self._sources = [self._draw_source() for _each in range(_SOURCES)]
        self._before: dict[int, int] = {}  # the region of each hot sensor, before the last epoch
        self._after: dict[int, int] = {}  # and after it
        self._old_letters: dict[int, int] = {}  # of the regions before
        self._letters: dict[int, int] = {}

    def _draw_source(self) -> tuple[Point, float]:
        place = (self._random.uniform(0, (_WIDE - 1) * _APART), self._random.uniform(0, (_HIGH - 1) * _APART))
        return place, self._random.uniform(0, 2 * math.pi)

    # What happens

    def steps(self, count: int) -> Iterator[Step]:
        """Yield one minute after the other; in the first the sensors are made known too."""
        for number in range(1, count + 1):
            time = number * _MINUTE
            if number > 1:
                self._sources = [self._moved(*source) for source in self._sources]
            known = [Change("sensor", (sensor, *place), 1) for sensor, place in self._places.items() if number == 1]
            hot = self._draw_readings(time)
            others = self._random.sample(sorted(set(self._places) - {change.row[1] for change in hot}), _COOL)
            cool = [Change("reading", (time, sensor, self._random.randint(15, 40)), 1) for sensor in others]
            words = [Text(f"+ {len(known)} sensors", style=CAME)] if known else []
            words += [Text(f"+ {counted(len(hot), 'hot reading')}", style=CAME)] if hot else []
            words += [Text(f"+ {counted(len(cool), 'cool reading')}", style=DIM)]
            yield Step(Epoch(number, (*known, *hot, *cool), time), words)

    def _draw_readings(self, time: int) -> list[Change]:
        found = []
        for sensor, place in self._places.items():
            near = min(math.dist(place, source) for source, _heading in self._sources)
            if near <= _RADIUS:
                found.append(Change("reading", (time, sensor, round(100 - 4 * near)), 1))
        return found

    def _moved(self, place: Point, heading: float) -> tuple[Point, float]:
        """Return a source a minute later: it wanders on, turns back at the border, or fades while another begins."""
        if self._random.random() < _FADING:
            return self._draw_source()
        heading += self._random.uniform(-0.6, 0.6)
        x, y = place[0] + _SPEED * math.cos(heading), place[1] + _SPEED * math.sin(heading)
        if 0 <= x <= (_WIDE - 1) * _APART and 0 <= y <= (_HIGH - 1) * _APART:
            return (x, y), heading
        return place, heading + math.pi / 2

    # What is told

    def tell(self, deltas: Deltas, views: Views) -> Told:
        """Return how regions changed, and a map of them."""
        self._before, self._after = self._after, {_int(row, 0): _int(row, 1) for row in views["region"]}
        self._old_letters = self._letters
        self._letters = self._name_regions()
        regions = len(self._letters)
        totals = f"{counted(regions, 'region')}, {counted(len(self._after), 'hot sensor')}"
        return Told({"regions": list(self._region_lines()), "the grid": self._map()}, totals)

    def _name_regions(self) -> dict[int, int]:
        """Give each region the letter of the one that most of its sensors were in, if it is free, or a new one."""
        shared = Counter((self._before[each], now) for each, now in self._after.items() if each in self._before)
        letters: dict[int, int] = {}
        for old, now in sorted(shared, key=lambda pair: (-shared[pair], pair)):
            if now not in letters and self._old_letters[old] not in letters.values():
                letters[now] = self._old_letters[old]
        for region in sorted(set(self._after.values()) - set(letters)):
            taken = {*letters.values(), *self._old_letters.values()}
            letters[region] = next((n for n in range(len(_LETTERS)) if n not in taken), len(_LETTERS) - 1)
        return letters

    def _region_lines(self) -> Iterator[Text]:
        old, new = Counter(self._before.values()), Counter(self._after.values())
        letters = {letter: region for region, letter in self._old_letters.items()}
        for region, size in sorted(new.items(), key=lambda each: self._letters[each[0]]):
            before = letters.get(self._letters[region])
            parents = {
                self._before[each] for each, now in self._after.items() if now == region and each in self._before
            }
            others = " and ".join(sorted(self._old_letter(each) for each in parents if each != before))
            name = self._letter(region)
            if before is None:
                split = f" from {others}" if others else ""
                yield Text(f"+ {name}{split}: {counted(size, 'sensor')}", style=CAME)
            elif others:
                yield Text(f"  {name} takes {others}: {old[before]} → {size}", style="magenta")
            elif old[before] != size:
                yield Text(f"  {name}: {old[before]} → {size} sensors", style="cyan")
        alive = {self._before[each] for each in self._after if each in self._before}
        for region in sorted(set(old) - alive):
            yield Text(f"- {self._old_letter(region)} vanishes", style=WENT)

    def _old_letter(self, region: int) -> str:
        return _LETTERS[self._old_letters[region]]

    def _letter(self, region: int) -> str:
        return _LETTERS[self._letters[region]]

    def _map(self) -> list[Text]:
        lines, regions = [], self._after
        for row in range(_HIGH):
            line = Text()
            for sensor in range(1 + row * _WIDE, 1 + (row + 1) * _WIDE):
                if sensor in regions:
                    line.append(f"{self._letter(regions[sensor])} ", style=_STYLES[self._letters[regions[sensor]]])
                else:
                    line.append("· ", style=DIM)
            lines.append(line)
        return lines

    def ask(self, deltas: Deltas) -> Question | None:
        """Return a sensor that came into another region; if there is none, one that left or came."""
        found = [(old, new) for _key, old, new in Pairing(deltas.get("region", Delta()), 1)]
        best = max(found, key=lambda pair: self._worth(*pair), default=None)
        return None if best is None else Question("region", *best)

    def _worth(self, old: Row | None, new: Row | None) -> tuple[int, float]:
        """Return how much a change is worth explaining: another region, a region that ends, a long way to the first."""
        if old is not None and new is not None:
            far = math.dist(self._places[_int(new, 0)], self._places[_int(new, 1)])
            told = self._old_letters[_int(old, 1)] != self._letters[_int(new, 1)] or self._merged(new)
            return 2 if told else -1, far
        if old is not None:
            return 1 if _int(old, 1) not in self._after.values() else 0, 0
        assert new is not None, "a change has a row"
        return 0, math.dist(self._places[_int(new, 0)], self._places[_int(new, 1)])

    def _merged(self, row: Row) -> bool:
        """Whether a region has the name that another had before."""
        before = self._old_letters.get(_int(row, 1))
        return before is not None and before != self._letters[_int(row, 1)]

    def explain(self, evidence: Evidence) -> str:
        """Return by which neighbours a sensor belongs to its region, or what has aged out."""
        old, new = evidence.question.before, evidence.question.after
        if evidence.after is None or new is None:
            assert evidence.before is not None, "a question has a proof"
            assert old is not None, "a question has a row"
            heat, time = next((n.row[1], n.time or 0) for n in evidence.before.facts() if n.relation == "reading")
            reading = f"its reading of {heat} at minute {time // _MINUTE}"
            return f"sensor {old[0]} left {self._old_letter(_int(old, 1))}: {reading} aged out"
        name, chain = self._letter(_int(new, 1)), _chain(evidence.after)
        way = "it is the first of it" if len(chain) == 1 else f"hot and close all the way {_dashed(chain)}"
        if old is None or evidence.before is None:
            return f"sensor {new[0]} is in {name}: {way}"
        if self._merged(new):
            return f"{name} and {self._old_letter(_int(new, 1))} are one: {way}"
        lost = [sensor for sensor in _chain(evidence.before) if sensor not in self._after]
        if lost:
            way = f"its way was {_dashed(_chain(evidence.before))}, and {lost[0]} is no longer hot"
        return f"sensor {new[0]} went from {self._old_letter(_int(old, 1))} to {name}: {way}"

    # What is drawn

    def draw(self, views: Views) -> str:
        """Return the grid, a colour for each region, and where the heat is."""
        regions = {_int(row, 0): _int(row, 1) for row in views["region"]}
        scale, left, top = 5.0, 60.0, 90.0
        at = {sensor: (left + x * scale, top + y * scale) for sensor, (x, y) in self._places.items()}
        picture = Picture(
            2 * left + (_WIDE - 1) * _APART * scale, top + 50 + (_HIGH - 1) * _APART * scale, "Hot regions"
        )
        for (x, y), _heading in self._sources:
            picture.circle((left + x * scale, top + y * scale), _RADIUS * scale, "#fff0dd", "#ffcc99")
        hot = sorted(regions)
        for one in hot:
            for other in hot:
                if one < other and math.dist(self._places[one], self._places[other]) <= 1.5 * _APART:
                    picture.line(at[one], at[other], self._colour(regions[one]), width=5)
        for sensor, place in at.items():
            if sensor in regions:
                picture.circle(place, 11, self._colour(regions[sensor]))
                picture.text((place[0], place[1] + 4), f"{sensor}", colour="white", size=10, anchor="middle")
            else:
                picture.circle(place, 3, "#bbb")
        for number, region in enumerate(sorted(set(regions.values()))):
            picture.circle((left + 130 * number, 50), 7, self._colour(region))
            size = sum(1 for each in regions.values() if each == region)
            picture.text((left + 12 + 130 * number, 54), f"{self._letter(region)}: {counted(size, 'sensor')}")
        picture.text((left - 7, 28), "Regions of hot sensors; the pale discs are the sources of heat", colour="#777")
        return picture.svg()

    def _colour(self, region: int) -> str:
        return COLOURS[self._letters[region]]


def _int(row: Row, column: int) -> int:
    value = row[column]
    assert isinstance(value, int), "a column of whole numbers"
    return value


def _chain(proof: Proof) -> list[int]:
    """Return the sensors from the one that was asked for to the first of its region."""
    return list(dict.fromkeys(_int(node.row, 0) for node in proof.nodes if node.relation == "region"))


def _dashed(chain: list[int]) -> str:
    return " – ".join(map(str, chain))
