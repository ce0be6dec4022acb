"""`whorl demo network`: links fail and recover; who is connected, and the cheapest routes, follow."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations
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
    counted,
    number_of,
)
from whorl.model.delta import Change, Delta, Epoch
from whorl.model.values import Row
from whorl.views.picture import Picture, Point
from whorl.views.proof import Proof

PLACES = ("Bern", "Brno", "Cork", "Gent", "Graz", "Kiel", "Lviv", "Oslo", "Riga")
PAIRS = len(PLACES) * (len(PLACES) - 1) // 2
_CHORDS = 3
_DEAREST = 9
_FAILING = 0.7
_MOST_DOWN = 4

Link = tuple[str, str]


class Network:
    """Links that are up with a cost, or down. Every change is drawn from one seeded generator."""

    name: ClassVar[str] = "network"
    summary: ClassVar[str] = "links fail and recover; the cheapest routes follow"
    seed: ClassVar[int] = 29

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self.down: set[Link] = set()
        self.costs = {link: self._random.randint(1, _DEAREST) for link in self._draw_links()}

    def _draw_links(self) -> list[Link]:
        """Draw a tree, so that all places are connected, and a few chords, so that there are detours."""
        places = list(PLACES)
        self._random.shuffle(places)
        tree = {_link(place, self._random.choice(places[max(0, i - 3) : i])) for i, place in enumerate(places) if i}
        others = [pair for pair in combinations(PLACES, 2) if pair not in tree]
        return sorted(tree | set(self._random.sample(others, _CHORDS)))

    # What happens

    def steps(self, count: int) -> Iterator[Step]:
        """Yield the first epoch, in which every link comes up, and then one with a change or two each."""
        changes = [self._fact(link, 1) for link in self.costs]
        words = [Text(f"+ {counted(len(changes), 'link')} up", style=CAME)]
        yield Step(Epoch(1, tuple(changes)), words)
        for number in range(2, count + 1):
            drawn = [self._change(link) for link in self._draw_changing(self._random.choice((1, 1, 2)))]
            words, changes = [text for text, _change in drawn], [change for _text, change in drawn]
            yield Step(Epoch(number, tuple(changes)), words)

    def _draw_changing(self, size: int) -> list[Link]:
        """Draw the links that change next; when many are down, one of them is sure to recover."""
        chosen = self._random.sample(sorted(self.costs), size)
        if len(self.down) >= _MOST_DOWN and not self.down & set(chosen):
            chosen[0] = self._random.choice(sorted(self.down))
        return chosen

    def _change(self, link: Link) -> tuple[Text, Change]:
        name = "–".join(link)
        if link in self.down:
            self.down.remove(link)
            return Text(f"+ {name} recovers, {self.costs[link]}", style=CAME), self._fact(link, 1)
        if self._random.random() < _FAILING:
            self.down.add(link)
            return Text(f"- {name} fails", style=WENT), self._fact(link, -1)
        others = [cost for cost in range(1, _DEAREST + 1) if cost != self.costs[link]]
        self.costs[link] = self._random.choice(others)
        return Text(f"+ {name} now costs {self.costs[link]}", style="cyan"), self._fact(link, 1)

    def _fact(self, link: Link, weight: int) -> Change:
        return Change("link", (*link, self.costs[link]), weight)

    # What is told

    def tell(self, deltas: Deltas, views: Views) -> Told:
        """Return the pairs that came and went, and the routes that changed."""
        up = len(self.costs) - len(self.down)
        connected = len(views["connected"])
        columns = {
            "connected pairs": _pair_lines(deltas.get("connected", Delta())),
            "cheapest routes": _route_lines(deltas.get("route", Delta())),
        }
        return Told(columns, f"{up} of {len(self.costs)} links up, {connected} of {PAIRS} pairs connected")

    def ask(self, deltas: Deltas) -> Question | None:
        """Return a route that went; if none did, the one that changed most."""
        found = [(old, new) for _key, old, new in Pairing(deltas.get("route", Delta()), 2)]
        if not found:
            return None
        worst = max(found, key=lambda pair: (pair[1] is None, abs(number_of(pair[1]) - number_of(pair[0]))))
        return Question("route", *worst)

    def explain(self, evidence: Evidence) -> str:
        """Return which way a route took, what became of it, and which way it takes now."""
        row = evidence.question.after or evidence.question.before
        assert row is not None, "a question has a row"
        broken = "" if evidence.before is None else self._broken(evidence.before)
        if evidence.after is None:
            assert evidence.before is not None, "a question has a proof"
            return f"{_pair(row)} is gone: it went {_way(evidence.before)}; {broken}, and no other way is left"
        now = f"the cheapest way is {_way(evidence.after)}"
        if evidence.question.before is None:
            return f"{_pair(row)} costs {row[-1]}: {now}"
        change = f"{_pair(row)} {evidence.question.before[-1]} → {row[-1]}"
        return f"{change}: {broken}; {now}" if broken else f"{change}: {now}"

    def _broken(self, proof: Proof) -> str:
        """Return what became of the links that a proof rests on."""
        found = []
        for fact in proof.facts():
            left, right, cost = fact.row
            link = (str(left), str(right))
            if link in self.down:
                found.append(f"{_pair(fact.row)} failed")
            elif self.costs[link] != cost:
                found.append(f"{_pair(fact.row)} now costs {self.costs[link]}")
        return ", ".join(found)

    # What is drawn

    def draw(self, views: Views) -> str:
        """Return the network: the wider a link, the more of the cheapest routes use it."""
        picture = Picture(760, 620, "The network, and what the cheapest routes use")
        places = self._places((380, 320), 230)
        used = self._routes_by_link(views["route"])
        for link in sorted(self.costs, key=lambda each: used.get(each, 0)):
            start, end = (places[place] for place in link)
            routes = used.get(link, 0)
            if link in self.down:
                picture.line(start, end, "#dd7777", dashed=True)
            else:
                picture.line(start, end, "#4477aa" if routes else "#bbbbbb", width=1 + routes / 2)
        for link, cost in self.costs.items():
            (x1, y1), (x2, y2) = (places[place] for place in link)
            down = link in self.down
            middle = (x1 * 0.55 + x2 * 0.45, y1 * 0.55 + y2 * 0.45 + 4)
            text = "down" if down else f"{cost}"
            picture.text(middle, text, colour="#aa3333" if down else "#222", anchor="middle", boxed=True)
        names = self._places((380, 324), 258)
        for place, centre in places.items():
            picture.circle(centre, 7, "#222")
            picture.text(names[place], place, anchor="middle", bold=True)
        up = len(self.costs) - len(self.down)
        picture.text(
            (20, 30), f"{up} of {len(self.costs)} links up, {len(views['connected'])} of {PAIRS} pairs connected"
        )
        picture.text((20, 48), "numbers are costs; the wider a link, the more cheapest routes use it", colour="#777")
        return picture.svg()

    def _places(self, centre: Point, radius: float) -> dict[str, Point]:
        """Return the places on a circle, neighbours near each other."""
        order: list[str] = []
        waiting = [PLACES[0]]
        while waiting:
            place = waiting.pop()
            if place not in order:
                order.append(place)
                waiting += sorted({end for link in self.costs if place in link for end in link} - {place}, reverse=True)
        turn = 2 * math.pi / len(order)
        return {
            place: (centre[0] + radius * math.sin(at * turn), centre[1] - radius * math.cos(at * turn))
            for at, place in enumerate(order)
        }

    def _routes_by_link(self, routes: set[Row]) -> dict[Link, int]:
        """Return how many of the cheapest routes could use each link that is up."""
        costs = {(place, place): 0.0 for place in PLACES}
        for row in routes:
            costs[str(row[0]), str(row[1])] = costs[str(row[1]), str(row[0])] = number_of(row)
        found: dict[Link, int] = {}
        for link in set(self.costs) - self.down:
            for start, end in combinations(PLACES, 2):
                ways = (((start, a), (b, end)) for a, b in (link, link[::-1]))
                best = min(costs.get(first, math.inf) + costs.get(last, math.inf) for first, last in ways)
                whole = costs.get((start, end), math.inf)
                found[link] = found.get(link, 0) + (best + self.costs[link] == whole < math.inf)
        return found


def _link(left: str, right: str) -> Link:
    return (left, right) if left < right else (right, left)


def _pair(row: Row) -> str:
    return f"{row[0]}–{row[1]}"


def _pair_lines(delta: Delta) -> list[Text]:
    return [Text(f"- {_pair(row)}", style=WENT) for row in delta.deleted] + [
        Text(f"+ {_pair(row)}", style=CAME) for row in delta.inserted
    ]


def _route_lines(delta: Delta) -> list[Text]:
    """Show a route that only changed its cost on one line: dearer in yellow, cheaper in green."""
    lines: list[Text] = []
    for _key, old, new in sorted(Pairing(delta, 2), key=lambda each: (each[2] is not None, each[1] is None, each[0])):
        if old is None and new is not None:
            lines.append(Text(f"+ {_pair(new)} {new[-1]}", style=CAME))
        elif old is not None and new is None:
            lines.append(Text(f"- {_pair(old)} {old[-1]}", style=WENT))
        elif old is not None and new is not None:
            style = WORSE if number_of(new) > number_of(old) else BETTER
            lines.append(Text(f"  {_pair(new)} {old[-1]} → {new[-1]}", style=style))
    return lines


def _way(proof: Proof) -> str:
    """Return the way that the proof of a route takes, as in `Bern -6- Graz -7- Riga`."""
    hops = {node.row[0]: node.row for node in proof.nodes if node.relation == "hop"}
    at, parts = proof.root.row[0], [str(proof.root.row[0])]
    while at in hops:
        _start, at, cost = hops.pop(at)
        parts.append(f"-{cost}- {at}")
    return " ".join(parts)
