"""`absorption`: the label of a row is a Boolean function over the rows that the stratum reads.

Each row that is read has a variable, and so has each absence that a negated atom needs. Rows used together multiply
labels (and), other derivations add to them (or); what adds nothing new is absorbed. So a label says exactly which
combinations of inputs a row follows from, and that it is false says that it follows from none: what goes is set to
false in the labels that depend on it, and rows that are left with false go. Circles cannot keep each other alive.

*Eager* propagation tells every change of a label on, as the whole new label: see `EagerLabels`. *Lazy* propagation
tells only the first derivation of a row; others are added to its own label, and when what was told has become false,
the shortest of them is told. Rows that fell for want of it then return. What is told is then a conjunction, and a label
is no more than one for each derivation: see `LazyLabels`.

With `min` or `max` in recursion, every candidate of a group that was derived has a label; the best of those that are
not false is alive, and only what is alive is followed.

Cost of an insertion: an operation on labels for each derivation. Of a deletion: such for each row whose label depends
on what went, and the derivations of what is told anew. Memory: a label for each row, and an index from variables to
rows. Beyond a number of nodes, or of entries of the index, the stratum goes on as `dred`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from whorl.kernel.labels.circles import Steps
from whorl.kernel.labels.diagrams import CAP, Diagrams, Function, TooManyNodes
from whorl.kernel.labels.eager import EagerLabels
from whorl.kernel.labels.labels import Labels
from whorl.kernel.labels.lazy import LazyLabels
from whorl.kernel.labels.naming import ByContent, ByName
from whorl.kernel.labels.spelling import Spelling
from whorl.kernel.labels.variables import Absent, Key, Naming, Present, Used, Variables
from whorl.kernel.state.relation import Ints, Moves
from whorl.kernel.strategies.candidates import Candidates
from whorl.kernel.strategies.dred import Dred
from whorl.kernel.strategies.fixpoint import Rows
from whorl.kernel.strategies.rederive import Rederive
from whorl.kernel.strategies.stratum import Entry, Stratum
from whorl.logical.plan import AntiJoin
from whorl.physical.plan import Channel
from whorl.syntax import ast

_ROOM = 1 << 16  # nodes at first, for which memory is reserved
_ROOM_APART = 1 << 20  # where other partitions would have to start again too
_MORE = 16  # times as many when they do not suffice: everything is derived again then


class Absorption(Rederive):
    """Boolean functions as labels."""

    trace = True
    better = True  # a row whose label changed may be told of again

    def __init__(
        self, stratum: Stratum, *, lazy: bool | None = None, cap: int = CAP, naming: Naming | None = None
    ) -> None:
        super().__init__(stratum)
        self._lazy = stratum.plan.ship == "lazy" if lazy is None else lazy
        self._cap = cap
        self._room = min(_ROOM, cap)
        self._naming = naming
        if stratum.exchange is not None:
            stratum.exchange.labelling = self
            self._naming = ByContent(stratum.plan, stratum.state, stratum.exchange.sources)
            self._room = min(_ROOM_APART, cap)
        self._names = (*stratum.plan.relations, *stratum.plan.imports)
        self._negated = [list(_negated_atoms(stratum, rule)) for rule in range(len(stratum.rules))]
        self._instead: Dred | None = None  # who goes on where labels do not serve
        self.how = ""
        self._fallen = self.nothing()
        self._forget_all()

    def _forget_all(self) -> None:
        plan = self.stratum.plan
        self.variables = Variables(self._naming)
        self._labels: Labels[Any]  # of one kind or the other: batches of them only pass through here
        spelling = Spelling(self.variables, self._naming if isinstance(self._naming, ByContent) else ByName())
        self._steps: Steps | None = None
        if plan.circles is not None:
            self._steps = Steps(plan.circles, self.variables, self.stratum.state.relations, spelling.facts)
        if self._lazy:
            self._labels = LazyLabels(self._names, self.variables, spelling, self._cap)
        else:
            always = {channel.source for channel in plan.channels if plan.ship == "plain"}
            self._labels = EagerLabels(self._names, always, self.variables, spelling, self._room)
        self._candidates = {name: Candidates(best) for name, best in self.stratum.best.items()}

    # What others may ask and tell

    @property
    def strategy(self) -> str:
        """The strategy in use."""
        return "absorption" if self._instead is None else "dred"

    @property
    def diagrams(self) -> Diagrams:
        """The manager of the functions that `label` and `sent` return."""
        return self._labels.diagrams

    def label(self, name: str, number: int) -> Function:
        """Return what is known of a row: false if it is not there."""
        return self._labels.label(name, number)

    def sent(self, name: str, number: int) -> Function:
        """Return what other rows were told of a row."""
        return self._labels.told(name, number)

    def meaning(self, variable: int) -> Present | Absent | None:
        """Return what a variable stands for, None if it came from elsewhere."""
        return self.variables.meanings.get(variable)

    def waiting(self, channel: Channel, numbers: Ints) -> tuple[Ints, Ints]:
        """Tell which rows the other side has to know of, and of which it knows less than there is."""
        return self._labels.waiting(channel.source, channel.target, numbers)

    def ship(self, channel: Channel, numbers: Ints) -> Any:
        """Return what the other side is told of rows from now on."""
        return self._labels.ship(channel.source, channel.target, numbers)

    def encode(self, receiver: int, labels: Any) -> bytes:
        """Return labels as bytes for another partition, which gets them in this order."""
        return self._labels.encode(receiver, labels)

    def decode(self, sender: int, content: bytes, count: int) -> Any:
        """Return the labels that another partition has sent."""
        return self._labels.decode(sender, content, count)

    def take_over(self, name: str, rows: Ints, labels: Any) -> Ints:
        """Add labels from elsewhere to rows; return those of which others have to be told."""
        return self._add(name, rows, labels)

    def forget(self, variables: Iterable[int], grown: Rows) -> None:
        """Set variables to false; let rows go, and collect those of which others have to be told, for `grow`."""
        lost = self.variables.known(variables)
        if not len(lost):
            return
        work = self.stratum.state.work
        for name, losses in self._labels.forget(lost):
            work.doubted += losses.changed
            work.labels += losses.changed
            relation = self.stratum.relation(name)
            fallen = self.stratum.retire(name, losses.gone[relation.is_alive(losses.gone)])
            work.fallen += len(fallen)
            self._fallen[name].append(fallen)
            relation.note_changes(losses.released)
            grown[name].append(losses.released)
            if name in self._candidates:
                grown[name].append(self._candidates[name].choose(losses.gone, fallen))

    # Deriving

    @property
    def nbytes(self) -> int:
        """About the memory that labels take."""
        if self._instead is not None:
            return self._instead.nbytes
        return self._labels.nbytes + (0 if self._steps is None else self._steps.nbytes)

    def also(self, rule: int) -> tuple[str, ...]:
        """Return the variables that say what must be absent."""
        return tuple(name for _atom, _columns, names in self._negated[rule] for name in names)

    def joined(self, entry: Entry, numbers: Ints, needs: list[int]) -> Iterator[Ints]:
        """Yield the derivations that use one of some rows; of the stratum's own, those that are alive."""
        if entry.inside:
            numbers = numbers[self.stratum.relation(entry.relation).is_alive(numbers)]
        return super().joined(entry, numbers, needs)

    def accept(self, rule: int, chunk: Ints) -> Ints:
        """Add the derivations of a chunk to labels; return the rows of which others have to be told."""
        width = self.stratum.head(rule).width
        inside = {
            place: self._labels.premises(name, np.ascontiguousarray(chunk[:, width + place]))
            for place, name in self.stratum.inside_premises(rule)
        }
        if self._steps is not None and rule in self._steps.rules:
            ((place, used),) = inside.items()
            lines, inside[place] = self._labels.straight(used, self._steps, self._steps.heads(chunk))
            chunk = chunk[lines]
        rows = np.ascontiguousarray(chunk[:, :width])
        return self._add(self.stratum.rules[rule].relation, rows, self._offers(rule, chunk, width, inside))

    def _offers(self, rule: int, chunk: Ints, first: int, inside: Mapping[int, Any]) -> Any:
        """Return what each derivation needs: the conjunction of what it uses, where labels of the stratum are given."""
        labels = self._labels
        factors: list[Any] = []
        premises = self.stratum.premises(rule)
        for place, name in enumerate(premises):
            if place in inside:
                factors.append(inside[place])
            else:
                numbers = np.ascontiguousarray(chunk[:, first + place])
                factors.append(labels.inputs(self.variables.present(name, numbers)))
        column = first + len(premises)
        for atom, _columns, names in self._negated[rule]:
            keys = map(tuple, chunk[:, column : column + len(names)].tolist())
            factors.append(labels.inputs(self.variables.absent(rule, atom, keys)))
            column += len(names)
        return labels.together(factors, len(chunk))

    def _add(self, name: str, rows: Ints, offers: Any) -> Ints:
        relation = self.stratum.relation(name)
        told = self._labels.offer(name, relation.number(rows), offers)
        self.stratum.state.work.labels += len(told)
        relation.note_changes(told)
        if name in self._candidates:
            self._candidates[name].add(told)
            return told[relation.is_alive(told)]
        relation.revive(told)
        return told

    # Changes

    def step(self) -> None:
        """Follow the changes of the inputs; go on in another way if labels become too large."""
        if self._instead is not None:
            self._instead.step()
            self.fresh = self._instead.fresh
            return
        try:
            super().step()
        except TooManyNodes:
            if self.stratum.exchange is not None:
                raise  # the other partitions have to make room too
            self.make_room()
            self.step()

    def make_room(self) -> None:
        """Start anew with more room for labels, or without labels if they have all the room that they may have."""
        if self._instead is not None:
            return
        self.fresh = True
        if not self._lazy and self._room < self._cap:
            self._room = min(_MORE * self._room, self._cap)
        else:
            self._give_up()

    def _give_up(self) -> None:
        self._instead = Dred(self.stratum)
        if self.stratum.exchange is not None:
            self.stratum.exchange.labelling = None
        self.how = f"since labels took more than {self._cap} nodes"
        self._room = 1
        self._forget_all()

    def reset(self) -> None:
        """Derive again from nothing at the next step."""
        self.fresh = True
        if self._instead is not None:
            self._instead.reset()

    def renumbered(self, name: str, moved: Moves) -> None:
        """Derive again: labels and variables belong to numbers."""
        if self._instead is not None:
            self._instead.renumbered(name, moved)
        else:
            self.reset()

    def start(self, *, plain: bool = False) -> None:
        """Derive everything."""
        self._forget_all()
        super().start(plain=plain)

    def follow_changes(self) -> None:
        """Set what went to false, and derive what is new."""
        self._fallen = self.nothing()
        grown = self.nothing()
        lost = self._lost()
        if self.stratum.exchange is not None and self._naming is not None:
            lost = self.stratum.exchange.announce(lost, self._naming)
        self.forget(lost, grown)
        self.enter_inputs(grown)
        self.grow(grown)
        for name, parts in self._fallen.items():
            for numbers in parts:
                self.stratum.state.work.returned += int(self.stratum.relation(name).is_alive(numbers).sum())

    def _lost(self) -> Used:
        """Return the variables of inputs that vanished, which an exchange finds itself, and of absences that ended."""
        lost: list[Used] = []
        for entry in self.stratum.entries:
            if entry.inside:
                continue
            relation = self.stratum.relation(entry.relation)
            appeared, vanished = relation.pending()
            if entry.positive and self.stratum.exchange is None:
                lost.append(self.variables.gone(entry.relation, vanished))
            elif not entry.positive and len(appeared):
                lost.append(self.variables.come(entry.rule, entry.atom, self._keys(entry, relation.read(appeared))))
        return frozenset[int]().union(*lost)

    def _keys(self, entry: Entry, rows: Ints) -> list[Key]:
        """Return the values that rows give the variables of a negated atom; those that its constants rule out, none."""
        _atom, columns, _names = next(each for each in self._negated[entry.rule] if each[0] == entry.atom)
        step = self.stratum.rules[entry.rule].atoms[entry.atom][0]
        assert isinstance(step, AntiJoin)
        types = self.stratum.relation(entry.relation).types
        for column, arg in enumerate(step.args):
            if isinstance(arg, ast.Constant):
                rows = rows[rows[:, column] == self.stratum.state.dictionary.encode(arg.value, types[column])]
        return [tuple(row) for row in rows[:, columns].tolist()]


def _negated_atoms(stratum: Stratum, rule: int) -> Iterator[tuple[int, list[int], list[str]]]:
    """Yield the negated atoms of a rule, with the columns that hold variables, and those."""
    for atom, (step, positive) in enumerate(stratum.rules[rule].atoms):
        if not positive:
            assert isinstance(step, AntiJoin)
            held = [(at, arg.name) for at, arg in enumerate(step.args) if isinstance(arg, ast.Variable)]
            yield atom, [at for at, _name in held], [name for _at, name in held]
