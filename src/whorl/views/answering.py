"""What a row rests on, asked of the state of a host; what a fact carries, tried on it."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from whorl.diagnostics.errors import UserError
from whorl.kernel.partition import Partition
from whorl.kernel.proofs.ancestry import Ancestry, Leaves, gather, longest_life
from whorl.kernel.proofs.derivations import Key, Rows
from whorl.kernel.proofs.exact import why_inexact
from whorl.kernel.proofs.minimal import Found, TooHard, minimal_proofs, smallest_cuts
from whorl.kernel.proofs.proving import find_proof
from whorl.kernel.proofs.trial import try_without
from whorl.kernel.state.relation import Ints
from whorl.model.delta import Delta
from whorl.model.values import Row, row_key
from whorl.views.answers import Critical, Cuts, Fact, Facts, Lifetime, Proofs
from whorl.views.asking import Asked, is_computed, locate, resolve
from whorl.views.explaining import full_partition
from whorl.views.proving import life_end

LIMIT = 100  # sets that are shown unless more are asked for


def answer_proofs(partitions: Sequence[Partition], asked: Asked, limit: int = LIMIT, *, hint: str) -> Proofs:
    """Return the minimal proofs of a row; raise with a ``hint`` if it is not there."""
    question = Question(partitions, asked, hint)
    found = minimal_proofs(question.ancestry, limit)
    if found.sets or not found.complete:
        return Proofs(question.row, question.sets(found), found.complete)
    proof, _rows = find_proof(question.partition, question.key)  # a value was improved through itself
    facts = [key for key, way in proof.chosen.items() if way is None]
    return Proofs(question.row, (question.facts(facts),), complete=False)


def answer_cuts(partitions: Sequence[Partition], asked: Asked, limit: int = LIMIT, *, hint: str) -> Cuts:
    """Return the smallest sets of facts whose loss takes a row away; refuse where the rows alive do not tell."""
    question = Question(partitions, asked, hint)
    reason = why_inexact(question.partition, question.key[0])
    if reason is not None:
        raise UserError("E651", None, row=question.row, reason=reason)
    try:
        found = smallest_cuts(question.ancestry, limit)
    except TooHard:
        raise UserError("E653", None, row=question.row) from None
    return Cuts(question.row, question.sets(found), found.complete)


def answer_lifetime(partitions: Sequence[Partition], asked: Asked, *, hint: str) -> Lifetime:
    """Return until when a row holds if nothing arrives or is deleted."""
    question = Question(partitions, asked, hint)
    ancestry, exact = question.ancestry, why_inexact(question.partition, question.key[0]) is None
    life = longest_life(ancestry, question.end)
    if life is None:  # a value was improved through itself: its proof bounds it from below
        proof, _rows = find_proof(question.partition, question.key)
        facts = [key for key, way in proof.chosen.items() if way is None]
        until = min((question.end(key) for key in facts), default=math.inf)
        return _lifetime(question, until, [key for key in facts if question.end(key) == until], exact=False)
    return _lifetime(question, life[0], [ancestry.keys[leaf] for leaf in life[1]], exact=exact)


def _lifetime(question: Question, until: float, bounds: Sequence[Key], *, exact: bool) -> Lifetime:
    if math.isinf(until):
        return Lifetime(question.row, None, (), exact)
    return Lifetime(question.row, int(until), question.facts(bounds), exact)


class Question:
    """A row that is asked about: where it is, and all it follows from."""

    def __init__(self, partitions: Sequence[Partition], asked: Asked, hint: str) -> None:
        whole = len(partitions) == 1 and is_computed(partitions[0].plan.logical, asked)
        self.partition = partitions[0] if whole else full_partition(partitions)
        target = resolve(self.partition, asked)
        key = locate(self.partition, target)
        if key is None:
            raise UserError("E647", None, row=asked, hint=hint)
        self.key = key
        self._rows = Rows(self.partition)
        self.row = str(Asked(asked.relation, self._rows.read(key)))
        self.ancestry: Ancestry = gather(self.partition, key, self.row)

    def sets(self, found: Found) -> tuple[Facts, ...]:
        """Return sets of leaves as sets of facts, smallest first."""
        self._rows.read_all(self.ancestry.keys[leaf] for leaves in found.sets for leaf in leaves)
        sets = [self._leaves(leaves) for leaves in found.sets]
        return tuple(sorted(sets, key=lambda facts: (len(facts), [_fact_order(fact) for fact in facts])))

    def _leaves(self, leaves: Leaves) -> Facts:
        return self.facts([self.ancestry.keys[leaf] for leaf in leaves])

    def facts(self, keys: Iterable[Key]) -> Facts:
        """Return facts by name, in order."""
        return tuple(sorted((self._fact(key) for key in keys), key=_fact_order))

    def _fact(self, key: Key) -> Fact:
        end = self.end(key)
        return Fact(key[0], self._rows.read(key), None if math.isinf(end) else int(end))

    def end(self, key: Key) -> float:
        """Return when a fact expires, infinite if it does not by itself."""
        return fact_end(self.partition, key)


def fact_end(partition: Partition, key: Key) -> float:
    """Return the event time at which a fact expires, infinite if it does not by itself."""
    relation = partition.plan.relations[key[0]]
    end = life_end(relation, partition.base[key[0]].time_of(key[1])) if key[0] in partition.base else None
    return math.inf if end is None else end


def _fact_order(fact: Fact) -> tuple[object, ...]:
    return fact.relation, row_key(fact.row)


def answer_critical(partitions: Sequence[Partition], asked: Asked, views: Iterable[str]) -> Critical:
    """Return what would change in views if a fact alone went."""
    partition = partitions[0] if len(partitions) == 1 else full_partition(partitions)
    if asked.relation not in partition.base:
        raise UserError("E654", None, name=asked.relation, known=", ".join(partition.base) or "none")
    key = locate(partition, resolve(partition, asked))
    if key is None:
        raise UserError("E647", None, row=asked, hint="Only a fact that is there can be taken away.")
    end = fact_end(partition, key)
    fact = Fact(key[0], Rows(partition).read(key), None if math.isinf(end) else int(end))
    shown = {output.name: output.relation for output in partition.plan.outputs if output.name in set(views)}
    changes = try_without(partition, [key], shown.values())
    deltas = {view: Delta(*(_rows(partition, name, each) for each in changes[name])) for view, name in shown.items()}
    return Critical(fact, {view: delta for view, delta in deltas.items() if delta})


def _rows(partition: Partition, name: str, numbers: Ints) -> tuple[Row, ...]:
    return tuple(sorted(Rows(partition).decode(name, numbers.tolist()), key=row_key))
