"""`whorl demo citations`: papers appear and cite others; the rank of papers by the citations of a year follows."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import ClassVar

from rich.text import Text

from whorl.cli.demos.scenario import (
    BETTER,
    CAME,
    DIM,
    WORSE,
    Deltas,
    Evidence,
    Question,
    Step,
    Told,
    Views,
    counted,
    number_of,
)
from whorl.model.delta import Change, Delta, Epoch
from whorl.model.values import Row
from whorl.views.picture import COLOURS, Picture
from whorl.views.proof import Premise, Proof

# fmt: off
_NAMES = (
    "Adler", "Baum", "Conti", "Duarte", "Ekman", "Fuchs", "Grau", "Holm", "Ito", "Jensen", "Kaya", "Lund", "Mori",
    "Nagy", "Okoro", "Petit", "Quist", "Rossi", "Sato", "Toth", "Urban", "Vega", "Weiss", "Yilmaz", "Zeman",
)
# fmt: on
_MONTH = 30 * 86400
_YEAR = 12
_PAPERS = 3
_OLD = 8
_TOP = 10
_SHOWN = 3


class Citations:
    """A few papers a month. Each cites some of those before it: young ones, and those that are cited often."""

    name: ClassVar[str] = "citations"
    summary: ClassVar[str] = "papers cite papers; the rank by the citations of one year follows"
    seed: ClassVar[int] = 3

    def __init__(self, seed: int) -> None:
        self._random = Random(seed)
        self._papers = [f"{name} 0" for name in self._random.sample(_NAMES, _OLD)]
        self._month = 0
        self._ranks: dict[str, int] = {}  # of the top, before the last epoch
        self._next: dict[str, int] = {}  # after it
        self._popular = list(self._papers)  # with one more entry for each citation

    # What happens

    def steps(self, count: int) -> Iterator[Step]:
        """Yield a year at once, and then a month each."""
        for number in range(1, count + 1):
            first = self._month + 1
            self._month = _YEAR if number == 1 else self._month + 1
            changes = [change for month in range(first, self._month + 1) for change in self._publish(month)]
            papers = dict.fromkeys(str(change.row[1]) for change in changes)
            words = [Text(f"+ {paper} cites {_citations(changes, paper)}", style=CAME) for paper in papers]
            if number == 1:
                words = [
                    Text(f"+ {counted(len(papers), 'paper')} of a year", style=CAME),
                    Text(f"  {counted(len(changes), 'citation')}", style=CAME),
                ]
            yield Step(Epoch(number, tuple(changes), self._month * _MONTH), words)

    def _publish(self, month: int) -> Iterator[Change]:
        before = list(self._papers)
        for name in self._random.sample(_NAMES, _PAPERS):
            paper = f"{name} {month}"
            self._papers.append(paper)
            for cited in self._draw_cited(before):
                self._popular.append(cited)
                yield Change("cites", (month * _MONTH, paper, cited), 1)

    def _draw_cited(self, before: list[str]) -> list[str]:
        """Draw what a paper cites: half of them among the young, half among the often cited."""
        found = set(self._random.sample(before[-_OLD:], 2))
        for _each in range(self._random.randint(1, 3)):
            found.add(self._random.choice(self._popular[-40:]))
        return sorted(found)

    # What is told

    def tell(self, deltas: Deltas, views: Views) -> Told:
        """Return the top, and how it moved."""
        changed = deltas.get("rank", Delta())
        count = len({row[0] for row in (*changed.inserted, *changed.deleted)})
        totals = f"month {self._month}, {len(views['rank'])} papers ranked, {count} changed"
        top = _top(views["rank"])
        self._ranks, self._next = self._next, {str(row[0]): place for place, row in enumerate(top, 1)}
        return Told({"the top ten": [self._line(place, row) for place, row in enumerate(top, 1)]}, totals)

    def _line(self, place: int, row: Row) -> Text:
        before = self._ranks.get(str(row[0]))
        move, style = "  ", ""
        if before is None:
            move, style = ("* ", CAME) if self._ranks else ("  ", "")
        elif before != place:
            move, style = (f"▲{before - place}", BETTER) if place < before else (f"▼{place - before}", WORSE)
        return Text.assemble((f"{place:>2} ", DIM), (f"{move:<3}", style), f"{row[0]:<10} {number_of(row):5.2f}")

    def ask(self, deltas: Deltas) -> Question | None:
        """Return the paper of the top that moved most."""
        delta = deltas.get("rank", Delta())
        old = {row[0]: row for row in delta.deleted}
        found = [(old.get(row[0]), row) for row in delta.inserted if str(row[0]) in self._next]
        if not found:
            return None
        return Question("rank", *max(found, key=lambda pair: self._move(*pair)))

    def _move(self, old: Row | None, new: Row) -> tuple[int, float]:
        """Return by how many places a paper moved, and by how much its rank changed."""
        paper = str(new[0])
        places = abs(self._ranks.get(paper, _TOP + 1) - self._next[paper])
        return places, abs(number_of(new) - number_of(old))

    def explain(self, evidence: Evidence) -> str:
        """Return where a paper has its rank from, and what it lost or won."""
        old, new = evidence.question.before, evidence.question.after
        assert new is not None, "questions are about papers of the top"
        assert evidence.after is not None, "a row that is there has a proof"
        now = _contributions(evidence.after)
        before = {} if evidence.before is None else _contributions(evidence.before)
        parts = [f"from {_listed(now)}"]
        if before:
            new_ones = {citer: value for citer, value in now.items() if citer not in before}
            lost = {citer: value for citer, value in before.items() if citer not in now}
            parts += [f"new: {_listed(new_ones)}"] if new_ones else []
            parts += [f"out of the window: {_listed(lost)}"] if lost else []
        change = f"{number_of(new):.2f}" if old is None else f"{number_of(old):.2f} → {number_of(new):.2f}"
        return f"{new[0]} {change}: {'; '.join(parts)}"

    # What is drawn

    def draw(self, views: Views) -> str:
        """Return the top as bars."""
        top = _top(views["rank"])
        picture = Picture(640, 70 + 34 * len(top), "The top ten by citation rank")
        picture.text((20, 30), f"Citation rank in month {self._month}, by the citations of a year", bold=True)
        longest = max((number_of(row) for row in top), default=1.0)
        for place, row in enumerate(top):
            y = 50 + 34 * place
            width = 400 * number_of(row) / longest
            picture.text((120, y + 17), f"{row[0]}", anchor="end")
            picture.rectangle((130, y), width, 24, COLOURS[0])
            picture.text((138 + width, y + 17), f"{number_of(row):.2f}")
        return picture.svg()


def _citations(changes: list[Change], paper: str) -> int:
    return sum(1 for change in changes if change.row[1] == paper)


def _top(rows: set[Row]) -> list[Row]:
    return sorted(rows, key=lambda row: (-number_of(row), str(row[0])))[:_TOP]


def _contributions(proof: Proof) -> dict[str, float]:
    """Return what each citing paper gives, by the uses of the rule that sums."""
    found: dict[str, float] = {}
    node = next(node for node in proof.nodes if node.aggregates and node.row == proof.root.row)
    for use in node.uses:
        premises = [proof.nodes[part.node] for part in use.parts if isinstance(part, Premise)]
        citer = next((str(each.row[0]) for each in premises if each.relation == "cites"), None)
        if citer is not None and isinstance(use.value, int | float):
            found[citer] = float(use.value)
    return found


def _listed(contributions: dict[str, float]) -> str:
    best = sorted(contributions.items(), key=lambda each: -each[1])
    shown = ", ".join(f"{citer} {value:.2f}" for citer, value in best[:_SHOWN])
    more = len(best) - _SHOWN
    return f"{shown} and {more} more" if more > 0 else shown or "itself"
