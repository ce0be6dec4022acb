"""What one process measured for one contestant, as plain data that crosses the process border."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from statistics import fmean, median
from typing import Any

from whorl.bench.answer import Answer


@dataclass(frozen=True, slots=True)
class Outcome:
    """Figures by name, such as `load.cpu`, and answers by the moment they were taken.

    `skipped` says why a contestant does not take part, `failed` what went wrong; then there are no figures. `spent` is
    the CPU time after which it was not done, if that was it.
    """

    figures: dict[str, float] = field(default_factory=dict)
    answers: dict[str, Answer] = field(default_factory=dict)
    version: str = ""
    skipped: str = ""
    failed: str = ""
    spent: float = 0.0

    def to_json(self) -> dict[str, object]:
        """Return plain data."""
        return asdict(self)

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Outcome:  # Any: parsed JSON
        """Return the outcome that plain data describe."""
        answers = {moment: Answer(**answer) for moment, answer in data.pop("answers").items()}
        return cls(answers=answers, **data)


@dataclass(slots=True)
class Steps:
    """Collects the costs of steps by kind; their medians are the figures."""

    values: dict[str, list[float]] = field(default_factory=dict)

    def add(self, kind: str, **costs: float) -> None:
        """Note what a step cost."""
        for name, cost in costs.items():
            self.values.setdefault(f"{kind}.{name}", []).append(cost)

    def figures(self) -> dict[str, float]:
        """Return the median of each cost, of probes the most, and of CPU time also the mean and the worst."""
        out = {name: (max if name.endswith(".probes") else median)(values) for name, values in self.values.items()}
        for name, values in self.values.items():
            if name.endswith(".cpu") and len(values) > 1:
                kind = name.removesuffix("cpu")
                out |= {f"{kind}mean": fmean(values), f"{kind}worst": max(values)}
        return out
