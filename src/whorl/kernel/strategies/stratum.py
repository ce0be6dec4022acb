"""What all strategies share: the compiled rules of a stratum, and the changes of what it reads."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from whorl.analysis.program import Relation, Stages
from whorl.diagnostics.errors import UserError
from whorl.kernel.arrays.rowset import NEW
from whorl.kernel.exchange import CHANGED, FRESH, Exchange
from whorl.kernel.operators.compiling import compile_at_atom, compile_at_head, compile_at_nothing
from whorl.kernel.operators.pipeline import Pipeline, State
from whorl.kernel.state.best import BestRows
from whorl.kernel.state.frontier import Frontier
from whorl.kernel.state.relation import Ints, Mask, Moves, StoredRelation
from whorl.model.limits import Limits
from whorl.model.types import Type
from whorl.model.values import format_row
from whorl.physical.plan import PhysicalRule, PhysicalStratum
from whorl.syntax import ast

EITHER = 3  # alive before or after this epoch
READ = 16384  # rows that enter a pipeline at once


class Strategy(Protocol):
    """Maintains one stratum."""

    def step(self) -> None:
        """Bring the stratum up to date with what it reads."""

    def reset(self) -> None:
        """Forget what was kept beside the rows; the next step starts anew."""


@runtime_checkable
class Renumbered(Protocol):
    """A strategy that can go on when rows that it owns or reads have got new numbers; others start anew."""

    def renumbered(self, name: str, moved: Moves) -> None:
        """Take over the new numbers of a relation's rows, -1 for those that are gone; the others are as before."""


@runtime_checkable
class Resumable(Protocol):
    """A strategy that can go on from rows and labels as they were saved; others start anew at the next step."""

    def resume(self) -> None:
        """Build what is kept beside the rows, which are up to date."""


@runtime_checkable
class Remembering(Resumable, Protocol):
    """A resumable strategy that also has something to say, as plain JSON, beside rows and labels."""

    def memo(self) -> dict[str, Any]:
        """Return what to remember."""

    def recall(self, memo: Mapping[str, Any]) -> None:
        """Take over what was remembered, before `resume`."""


@dataclass(frozen=True)
class Entry:
    """An atom of a rule: which relation it reads, and how."""

    rule: int
    atom: int
    relation: str
    positive: bool
    inside: bool  # whether the relation belongs to the stratum itself, here or in another partition


class Stratum:
    """The rules of one stratum, compiled when first used."""

    def __init__(self, plan: PhysicalStratum, schemas: dict[str, Relation], state: State, limits: Limits) -> None:
        self.plan = plan
        self.rules = plan.rules
        self.state = state
        self.limits = limits
        self.exchange: Exchange | None = None  # where rows of the stratum travel between partitions
        self.names = (*plan.relations, *plan.imports)
        self._inside = frozenset(self.names)
        self.inputs = plan.inputs()
        self._schemas = schemas
        self._pipelines: dict[tuple[int, int, bool, tuple[str, ...]], Pipeline] = {}
        self._premises: dict[int, list[tuple[int, str]]] = {}
        self.entries = tuple(self._entries())
        self._readers = {name: [entry for entry in self.entries if entry.relation == name] for name in self.names}
        self._makers = {
            name: [number for number, rule in enumerate(self.rules) if rule.relation == name] for name in self.names
        }
        self.best = {
            best.relation: BestRows(state.relations[best.relation], best.column, lowest=best.function == "min")
            for best in plan.best
            if plan.kind == "best"
        }
        self.frontiers = {
            best.relation: Frontier(state.relations[best.relation], lowest=best.function == "min")
            for best in plan.best
            if plan.kind == "frontier"
        }
        state.frontiers.update(self.frontiers)

    def _entries(self) -> Iterator[Entry]:
        for number, rule in enumerate(self.rules):
            for atom, (step, positive) in enumerate(rule.atoms):
                name = step.relation  # type: ignore[union-attr]
                yield Entry(number, atom, name, positive, name in self._inside)

    @property
    def stages(self) -> Stages:
        """The stages of a staged stratum."""
        source = self.plan.source
        assert source is not None, "a staged stratum says what it comes from"
        assert source.stages is not None, "a staged stratum has stages"
        return source.stages

    def relation(self, name: str) -> StoredRelation:
        """Return a stored relation."""
        return self.state.relations[name]

    def head(self, rule: int) -> StoredRelation:
        """Return the relation that a rule derives."""
        return self.state.relations[self.rules[rule].relation]

    def take(self, rule: int, chunk: Ints) -> Ints:
        """Make the rows that a rule derived alive; return the numbers of those that were not."""
        name = self.rules[rule].relation
        return self.best[name].improve(chunk) if name in self.best else self.state.relations[name].add(chunk)

    def retire(self, name: str, numbers: Ints) -> Ints:
        """Let rows die; return those that were alive."""
        if name in self.frontiers:
            return self.frontiers[name].fall(numbers)
        return self.best[name].fall(numbers) if name in self.best else self.relation(name).retire(numbers)

    def let_fall(self, name: str, numbers: Ints, saved: Mask | None) -> Ints:
        """Take marks off rows, and let those die that nothing saved; return them."""
        if saved is not None and name not in self.frontiers and name not in self.best:
            return self.relation(name).let_fall(numbers, saved)
        self.relation(name).unmark(numbers)
        return self.retire(name, numbers if saved is None else numbers[~saved])

    def clear(self) -> None:
        """Let every row of the stratum die."""
        if self.exchange is not None:
            self.exchange.clear()
        for name in self._inside:
            relation = self.relation(name)
            if relation.count:
                relation.clear_marks()
                relation.retire(relation.alive())
        for best in self.best.values():
            best.clear()
        for frontier in self.frontiers.values():
            frontier.clear()

    def resume(self) -> None:
        """Go on from rows that were saved, or have got other numbers."""
        for best in self.best.values():
            best.resume()
        for frontier in self.frontiers.values():
            frontier.resume()

    def types(self, name: str) -> list[Type]:
        """Return the column types of a relation."""
        return [column.type for column in self._schemas[name].columns]

    def aggregates(self, name: str) -> dict[int, str]:
        """Return the aggregated columns of a relation with their functions, in their order."""
        return dict(sorted(self._schemas[name].aggregates.items()))

    def at_atom(self, entry: Entry, *, trace: bool, also: tuple[str, ...] = ()) -> Pipeline:
        """Return the pipeline of a rule entered at an atom."""
        return self._pipeline(entry.rule, entry.atom, trace=trace, also=also)

    def at_head(self, rule: int) -> Pipeline:
        """Return the pipeline that finds derivations of rows of a rule's head."""
        return self._pipeline(rule, -2, trace=True)

    def at_nothing(self, rule: int, *, trace: bool, also: tuple[str, ...] = ()) -> Pipeline:
        """Return the pipeline of a rule without positive atoms."""
        return self._pipeline(rule, -1, trace=trace, also=also)

    def _pipeline(self, rule: int, atom: int, *, trace: bool, also: tuple[str, ...] = ()) -> Pipeline:
        key = (rule, atom, trace, also)
        if key not in self._pipelines:
            self._pipelines[key] = self._compile(self.rules[rule], atom, trace=trace, also=also)
        return self._pipelines[key]

    def _compile(self, rule: PhysicalRule, atom: int, *, trace: bool, also: tuple[str, ...]) -> Pipeline:
        kinds = self.types(rule.relation)
        if atom == -2:
            return compile_at_head(rule, self.state)
        if atom == -1:
            return compile_at_nothing(rule, self.state, kinds, trace=trace, also=also)
        return compile_at_atom(rule, atom, self.state, kinds, trace=trace, also=also)

    def premises(self, rule: int) -> list[str]:
        """Return the relations of the positive atoms of a rule."""
        return [step.relation for step, positive in self.rules[rule].atoms if positive]  # type: ignore[union-attr]

    def inside_premises(self, rule: int) -> list[tuple[int, str]]:
        """Return the positive atoms of a rule that read the stratum itself: their place among those, the relation."""
        if rule not in self._premises:
            names = enumerate(self.premises(rule))
            self._premises[rule] = [(at, name) for at, name in names if name in self._inside]
        return self._premises[rule]

    def negates(self, rule: int) -> bool:
        """Whether a rule has negated atoms."""
        return any(not positive for _step, positive in self.rules[rule].atoms)

    def negated_variables(self, rule: int) -> tuple[str, ...]:
        """Return the variables of the negated atoms of a rule, each once."""
        atoms = [step for step, positive in self.rules[rule].atoms if not positive]
        args = [arg for atom in atoms for arg in atom.args]  # type: ignore[union-attr]
        return tuple(dict.fromkeys(arg.name for arg in args if isinstance(arg, ast.Variable)))

    def readers(self, name: str) -> list[Entry]:
        """Return the atoms that read a relation of the stratum itself."""
        return self._readers[name]

    def rules_of(self, name: str) -> list[int]:
        """Return the rules that derive a relation."""
        return self._makers[name]

    def needs_inside(self, rule: int, need: int) -> list[int]:
        """Return a need for the atoms of a rule that read the stratum itself, and to be alive now for the others."""
        return [need if step.relation in self._inside else NEW for step, _positive in self.rules[rule].atoms]  # type: ignore[union-attr]

    def comparable_best(self) -> bool:
        """Whether all relations of the stratum keep best rows by one function over one type."""
        columns = {(best.function, self.types(best.relation)[best.column]) for best in self.plan.best}
        return len(columns) == 1 and len(self.plan.best) == len(self.plan.relations)

    def improves(self, rule: int, chunk: Ints) -> bool:
        """Whether a derivation of a best row, with the rows it uses, is better than one of the stratum that it uses."""
        best = self.best[self.rules[rule].relation]
        width = self.head(rule).width
        own = best.keys(chunk[:, best.column])
        for place, name in self.inside_premises(rule):
            used = self.best[name].keys_of(chunk[:, width + place])
            if np.less(own, used).any():
                return True
        return False

    def fresh(self, *, own: bool) -> bool:
        """Whether everything is derived again: because it must be here, or in another partition of an exchange."""
        if self.exchange is not None:
            return bool(self.exchange.agreed & FRESH)
        return own

    def changed(self) -> bool:
        """Whether anything that the stratum reads has changed in this epoch, in whatever partition if they exchange."""
        if self.exchange is not None:
            return bool(self.exchange.agreed & CHANGED)
        return any(self.relation(name).has_changed() for name in self.inputs)

    def batches(self, name: str, numbers: Ints, *, trace: bool) -> Iterator[Ints]:
        """Yield rows by number, some at a time, with ``trace`` followed by their numbers."""
        relation = self.relation(name)
        if name in self.best:  # a better row may have taken the place of one on the way
            numbers = numbers[relation.is_alive(numbers, EITHER)]
        for low in range(0, len(numbers), READ):
            yield relation.read(numbers[low : low + READ], more=1 if trace else 0)

    @property
    def stored(self) -> int:
        """How many rows of the stratum are stored, dead ones included."""
        return sum(self.relation(name).count for name in self.plan.relations)

    def check_limits(self, rounds: int, rule: int | None, sample: Ints | None) -> None:
        """Raise if the stratum has used more than it may."""
        if rounds > self.limits.rounds:
            self.refuse("E506", self.limits.rounds, rule, sample)
        most, names = self.limits.tuples, self.plan.relations
        if self.stored > most and sum(len(self.relation(name).alive()) for name in names) > most:
            self.refuse("E507", self.limits.tuples, rule, sample)

    def refuse(self, code: str, limit: int, rule: int | None, sample: Ints | None) -> None:
        """Refuse the epoch for a limit; name a rule, and the first of some rows that it derives."""
        names = ", ".join(f'"{name}"' for name in self.plan.relations)
        own = self.rules[rule or 0]
        text = "none"
        if sample is not None and len(sample):
            row = self.state.dictionary.decode_rows(sample[:1], self.types(own.relation))[0]
            text = format_row(own.relation, row)
        line = own.rule.span.line if own.rule.span else "?"
        raise UserError(code, own.rule.span, limit=limit, relations=names, line=line, sample=text)


def needs_for(stratum: Stratum, rule: int, need: int) -> list[int]:
    """Return the same need for every atom of a rule."""
    return [need] * len(stratum.rules[rule].atoms)
