"""Figures of many runs put together: medians by case and contestant, and all of it as JSON."""

from __future__ import annotations

import os
import platform
import resource
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import whorl
from whorl.bench.answer import differing
from whorl.bench.outcome import Outcome

NOT_DONE, NOT_TRIED = "not done", "not tried"  # in notes


@dataclass(slots=True)
class Tally:
    """The outcomes of one contestant in one case; `note` says why there are none, or fewer."""

    contestant: str
    outcomes: list[Outcome] = field(default_factory=list)
    note: str = ""
    spent: float = 0.0  # CPU time after which it was not done

    @property
    def figures(self) -> dict[str, float]:
        """The median of each figure, and what a row of the answer takes in bytes."""
        names = dict.fromkeys(name for outcome in self.outcomes for name in outcome.figures)
        out = {name: median(o.figures[name] for o in self.outcomes if name in o.figures) for name in names}
        rows = self._rows
        if rows:
            out |= {f"{name}.row": out[name] / rows for name in ("state", "rss") if name in out}
        return out

    @property
    def late(self) -> bool:
        """Whether it was not done in the time it had, or not tried as that was to be expected."""
        return NOT_DONE in self.note or NOT_TRIED in self.note

    @property
    def _rows(self) -> int:
        return next((o.answers["load"].rows for o in self.outcomes if "load" in o.answers), 0)

    def to_json(self) -> dict[str, object]:
        """Return plain data, with the figures of every run."""
        return {
            "contestant": self.contestant,
            "version": next((outcome.version for outcome in self.outcomes), ""),
            "rows": self._rows,
            "note": self.note,
            "median": self.figures,
            "runs": [outcome.figures for outcome in self.outcomes],
        }


@dataclass(slots=True)
class CaseResult:
    """One case: its contestants, and whether they gave the same answers."""

    name: str
    title: str
    tallies: list[Tally] = field(default_factory=list)
    alike: str = ""  # what it shares with cases that must have the same answers

    def figure(self, contestant: str, name: str) -> float | None:
        """Return the median of a figure; for the contestant `*` the best of Whorl's strategies."""
        chosen = [t for t in self.tallies if t.contestant == contestant or (contestant == "*" and _own(t.contestant))]
        values = [tally.figures[name] for tally in chosen if name in tally.figures]
        return min(values, default=None)

    def spent(self, contestant: str) -> float:
        """Return the CPU time after which a contestant was not done, 0 if it was, or nobody knows."""
        return next((tally.spent for tally in self.tallies if tally.contestant == contestant), 0.0)

    def disagreements(self) -> list[str]:
        """Return who gave another answer than the first, in any run."""
        found: list[str] = []
        for run in range(max((len(tally.outcomes) for tally in self.tallies), default=0)):
            answers = {t.contestant: t.outcomes[run].answers for t in self.tallies if run < len(t.outcomes)}
            found += differing(answers)
        return found

    @property
    def first(self) -> Outcome | None:
        """The first outcome of all, if there is one."""
        return next((outcome for tally in self.tallies for outcome in tally.outcomes), None)

    def to_json(self) -> dict[str, object]:
        """Return plain data."""
        contestants = [tally.to_json() for tally in self.tallies]
        return {
            "case": self.name,
            "title": self.title,
            "contestants": contestants,
            "disagreements": self.disagreements(),
        }


def disagreements(results: Sequence[CaseResult]) -> list[str]:
    """Return who gave another answer than the first, in any case or in any that is alike."""
    found = [f"{result.name}, {text}" for result in results for text in result.disagreements()]
    for alike in dict.fromkeys(result.alike for result in results if result.alike):
        firsts = {result.name: result.first for result in results if result.alike == alike}
        found += differing({name: outcome.answers for name, outcome in firsts.items() if outcome is not None})
    return found


def _own(contestant: str) -> bool:
    return contestant.startswith("whorl ")


def describe_machine() -> dict[str, object]:
    """Return what the figures depend on."""
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "system": platform.platform(),
        "python": platform.python_version(),
        "whorl": whorl.__version__,
        "load": os.getloadavg(),
    }


def spent_seconds() -> float:
    """Return the CPU time of all measurements that have ended, also of those that were cut short."""
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "")


def by_name(results: Sequence[CaseResult]) -> Mapping[str, CaseResult]:
    """Return the results by the names of their cases."""
    return {result.name: result for result in results}
