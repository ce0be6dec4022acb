"""Why a row vanished: the facts that went in the epoch that took it, as far as its last proofs rested on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from whorl.kernel.partition import Partition
from whorl.kernel.proofs.ancestry import Builder
from whorl.views.absence import WhyNot
from whorl.views.answering import Question
from whorl.views.answers import Fact, Facts
from whorl.views.asking import Asked, locate, resolve
from whorl.views.explaining import explain_missing


@dataclass(frozen=True, slots=True)
class Vanished:
    """Which epoch took a row, and the facts with which its last proofs went.

    The time is None where there is none, or where the epoch is known by its saved state alone.

    Where facts that went do not explain it, since something negated came or a better value did, `instead` says what
    kept the row from being there after that epoch.
    """

    row: str
    epoch: int
    time: int | None
    lost: Facts
    instead: WhyNot | None = None

    def how(self, fact: Fact) -> str:
        """Return how a fact went."""
        if fact.until is None or (self.time is not None and self.time < fact.until):
            return "was deleted"
        return f"expired at {fact.until}" if self.time is not None else f"was deleted, or expired at {fact.until}"

    def __str__(self) -> str:
        at = "" if self.time is None else f", at {self.time}"
        lines = [f"{self.row} went in epoch {self.epoch}{at}."]
        lines += [f"  {fact} {self.how(fact)}" for fact in self.lost]
        return "\n".join(lines if self.instead is None else [*lines, str(self.instead)])

    def to_json(self) -> dict[str, object]:
        """Return it as plain data."""
        lost = [fact.to_json() | {"how": self.how(fact)} for fact in self.lost]
        plain: dict[str, object] = {"row": self.row, "epoch": self.epoch, "time": self.time, "lost": lost}
        return plain if self.instead is None else plain | {"instead": self.instead.to_json()}


def is_there(partitions: Sequence[Partition], asked: Asked) -> bool:
    """Whether a row that fits is there."""
    return any(locate(partition, resolve(partition, asked)) is not None for partition in partitions)


def explain_vanished(
    before: Sequence[Partition], after: Sequence[Partition], asked: Asked, epoch: int, time: int | None
) -> Vanished:
    """Return why a row that is in one state is not in the next; ``epoch`` and ``time`` led there."""
    question = Question(before, asked, "")
    ancestry, builder = question.ancestry, Builder(question.ancestry)
    facts = {leaf: question.facts([ancestry.keys[leaf]])[0] for leaf in sorted(ancestry.leaves)}
    lost = [leaf for leaf, fact in facts.items() if not is_there(after, Asked(fact.relation, fact.row))]
    if builder.without(lost) is not None:
        missing = explain_missing(after, asked, hint="")
        return Vanished(question.row, epoch, time, (), missing)
    for leaf in list(lost):  # name only those that matter
        others = [other for other in lost if other != leaf]
        if builder.without(others) is None:
            lost = others
    return Vanished(question.row, epoch, time, question.facts(ancestry.keys[leaf] for leaf in lost))
