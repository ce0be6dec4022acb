"""`auto` for recursion: follow the change, or derive everything again, whichever has proved cheaper.

What following changes cost is remembered by their size (powers of two of what appeared and what vanished), for each
way of labelling rows that serves the stratum. An epoch is followed if that is predicted to cost less than deriving
everything; and even then only for so long: a step that takes as long as half of that is given up, and remembered as
dear. Before anything is known about deletions, their cost is guessed from how many rows lose a derivation by
them: so much of the inputs may go that a trial would cost more than it teaches. Deriving again keeps labels, so that
the next epoch can be followed; after several such epochs in a row it keeps none, which is cheaper, until it is time to
try again.

Costs are seconds of this thread. They decide how an epoch is brought about, never what it brings about.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from time import thread_time
from typing import Any

from whorl.kernel.state.relation import Moves
from whorl.kernel.strategies.fixpoint import TooLong
from whorl.kernel.strategies.rederive import Rederive
from whorl.kernel.strategies.stratum import Resumable, Stratum

_GIVE_UP = 0.5  # of the cost of deriving everything
_FIRST_TIME = 2.0  # likewise, when indexes are built on the way
_WORTH_TRYING = 0.5  # following costs so much of deriving everything that another way may be better
_TRIAL = 3  # epochs
_PATIENCE = 8  # epochs derived again before following is tried again, then twice as many, ...
_TRUST = 0.6  # weight of what was known before
_DEAR = 3.0  # to look at a row that lost a derivation costs so many times what it costs to derive one
_NEGLIGIBLE = 0.005  # seconds: below this nothing is worth deciding

Size = tuple[int, int]


@dataclass
class _Arm:
    """One way of following changes, and what it has cost."""

    strategy: Rederive
    started: bool = False  # whether changes were followed once, and the indexes for it built
    costs: dict[Size, float] = field(default_factory=dict)
    recent: list[float] = field(default_factory=list)

    def predict(self, size: Size) -> float | None:
        """Return what changes of a size cost: as before, or in proportion to smaller ones; None if nothing is known."""
        if size in self.costs:
            return self.costs[size]
        guesses = [
            cost * 2 ** max(size[0] - known[0], size[1] - known[1], 0)
            for known, cost in self.costs.items()
            if (known[0] > 0) >= (size[0] > 0) and (known[1] > 0) >= (size[1] > 0)
        ]
        return min(guesses, default=None)

    def learn(self, size: Size, seconds: float) -> None:
        """Remember a cost."""
        known = self.costs.get(size)
        if known is not None:  # forget quickly what was much dearer
            seconds = min(_TRUST * known + (1 - _TRUST) * seconds, 2 * seconds)
        self.costs[size] = seconds
        self.recent = [*self.recent[1 - _TRIAL :], seconds]

    def mean(self) -> float:
        """Return the mean of the last costs."""
        return sum(self.recent) / len(self.recent) if self.recent else 0.0


class Elastic:
    """Chooses in every epoch how a stratum is brought up to date."""

    def __init__(self, stratum: Stratum, arms: Mapping[str, Rederive]) -> None:
        self._stratum = stratum
        self._arms = {name: _Arm(strategy) for name, strategy in arms.items()}
        self._current = next(iter(arms))
        self._trial: str | None = None  # the arm that was left for a trial of the current one
        self._untried = list(arms)[1:]
        self._labelled = False  # whether the current arm's labels are right
        self._derived_in_a_row = 0
        self._patience = _PATIENCE
        self._scratch: float | None = None  # what deriving everything costs
        self._guessed: dict[Size, int] = {}  # how often following deletions was guessed to be too dear
        self._fresh = True
        self.how = ""
        self.predicted: float | None = None

    @property
    def labelled(self) -> Rederive | None:
        """The strategy whose labels rows have, None if they have none."""
        return self._arms[self._current].strategy if self._labelled else None

    @property
    def strategy(self) -> str:
        """The way of following changes in use."""
        return self._current

    @property
    def nbytes(self) -> int:
        """The memory kept beside the rows."""
        return sum(arm.strategy.nbytes for arm in self._arms.values())

    def reset(self) -> None:
        """Derive again at the next step."""
        self._fresh = True

    def memo(self) -> dict[str, Any]:
        """Return what to remember with the rows: the way in use, whether its labels are right, what else costs."""
        labelled = self._labelled and not self._fresh
        return {"current": self._current, "labelled": labelled, "scratch": self._scratch}

    def recall(self, memo: Mapping[str, Any]) -> None:
        """Go on in the way that was in use."""
        self._current, self._scratch = memo["current"], memo["scratch"]
        self._labelled = memo["labelled"]
        self._untried = [name for name in self._arms if name != self._current]

    def resume(self) -> None:
        """Go on from the rows and labels that were saved, if the way in use can."""
        arm = self._arms[self._current].strategy
        arm.prepare()
        if self._labelled and isinstance(arm, Resumable):
            arm.resume()
            self._fresh = arm.fresh

    def renumbered(self, name: str, moved: Moves) -> None:
        """Let whoever labels the rows take over their new numbers."""
        if self._labelled and not self._fresh:
            self._arms[self._current].strategy.renumbered(name, moved)
        else:
            self._stratum.resume()

    def step(self) -> None:
        """Bring the stratum up to date, in the way that is predicted to cost less."""
        self.how, self.predicted = "", None
        if self._fresh:
            self._fresh = False
            self._derive(labels=True)
            return
        if not self._stratum.changed():
            return
        size = self._size()
        arm = self._arms[self._current]
        if not self._labelled:
            self._derive_unlabelled(size)
            return
        self.predicted = arm.predict(size)
        if self.predicted is None:
            self.predicted = self._guess(arm, size)
        if (
            self._scratch is not None
            and self.predicted is not None
            and self.predicted > max(self._scratch, _NEGLIGIBLE)
        ):
            self.predicted = self._scratch
            self._derived_in_a_row += 1
            self._derive(labels=self._derived_in_a_row <= 1)
            return
        self._follow(arm, size)

    def _size(self) -> Size:
        appeared = vanished = 0
        for name in self._stratum.inputs:
            relation = self._stratum.relation(name)
            came, went = relation.pending()
            appeared += len(came) + (len(relation.relabelled()) if relation.dying else 0)
            vanished += len(went)
        return appeared.bit_length(), vanished.bit_length()

    def _guess(self, arm: _Arm, size: Size) -> float | None:
        """Return what deletions of a size may cost of which nothing is known; None if that is to be tried."""
        vanished = rows = 0
        for name in self._stratum.inputs:
            relation = self._stratum.relation(name)
            went = len(relation.pending()[1])
            if went and not relation.dying:
                vanished += went
                rows += relation.living
        times = self._guessed.get(size, 0)
        if not vanished or self._scratch is None or times >= _PATIENCE:
            return None
        lost = arm.strategy.share_lost(min(vanished / rows, 1.0))
        guess = None if lost is None else _DEAR * lost * self._scratch
        if guess is not None and guess > self._scratch:
            self._guessed[size] = times + 1
        return guess

    def _derive_unlabelled(self, size: Size) -> None:
        """Derive everything, with labels if it is time to follow changes again."""
        self._derived_in_a_row += 1
        again = self._derived_in_a_row >= self._patience
        self.predicted = self._scratch
        self._derive(labels=again)
        if again:
            self._patience *= 2
            self._derived_in_a_row = 0
            self._guessed[size] = _PATIENCE  # it is time to know
            for arm in self._arms.values():
                arm.costs.pop(size, None)

    def _derive(self, *, labels: bool) -> None:
        started = thread_time()
        self.how = "derived again" if labels else "derived again, without labels"
        strategy = self._arms[self._current].strategy
        strategy.deadline = None  # an epoch that was refused on the way has left one
        strategy.prepare()
        strategy.start(plain=not labels)
        self._labelled = labels
        seconds = thread_time() - started
        self._scratch = seconds if self._scratch is None else 0.5 * self._scratch + 0.5 * seconds

    def _follow(self, arm: _Arm, size: Size) -> None:
        self.how = "followed"
        started = thread_time()
        patience = _GIVE_UP if arm.started else _FIRST_TIME
        limit = None if self._scratch is None else max(patience * self._scratch, _NEGLIGIBLE)
        arm.strategy.deadline = None if limit is None else started + limit
        try:
            arm.strategy.follow_changes()
        except TooLong:
            assert limit is not None, "without a limit nothing takes too long"
            arm.learn(size, 2.5 * max(_GIVE_UP * (self._scratch or 0.0), _NEGLIGIBLE))
            arm.strategy.deadline = None
            self._derive(labels=True)
            self.how = "given up, derived again"
            self._derived_in_a_row = 1
            return
        finally:
            arm.strategy.deadline = None
        self._derived_in_a_row = 0
        if arm.started:
            arm.learn(size, thread_time() - started)
            self._consider_others(arm)
        arm.started = True

    def _consider_others(self, arm: _Arm) -> None:
        """Try another way for some epochs if this one is dear, and go back if it is no better."""
        if len(arm.recent) < _TRIAL or self._scratch is None:
            return
        if self._trial is not None:
            before = self._trial
            self._trial = None
            if arm.mean() > self._arms[before].mean():
                self._switch(before)
        elif self._untried and arm.mean() > max(_WORTH_TRYING * self._scratch, _NEGLIGIBLE):
            self._trial = self._current
            self._switch(self._untried.pop(0))

    def _switch(self, name: str) -> None:
        """Let another way label the rows, from the next epoch on."""
        self._current = name
        self._fresh = True
        self._arms[name].recent = []
