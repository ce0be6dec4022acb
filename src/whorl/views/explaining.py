"""Why and why not, asked of the state of a host: which partition knows, and whether it computes what is asked."""

from __future__ import annotations

from collections.abc import Sequence

from whorl.connectors.rows import read_row
from whorl.diagnostics.errors import UserError
from whorl.hosts.moving import gather, gather_facts, place_facts
from whorl.kernel.partition import Partition
from whorl.kernel.proofs.derivations import Key, Rows, hidden_relations
from whorl.logical.lower import lower_program
from whorl.logical.rewrites import rewrite_plan
from whorl.model.types import Type
from whorl.model.values import Value, row_key
from whorl.physical.lower import lower_plan
from whorl.physical.plan import PhysicalPlan
from whorl.views.absence import WhyNot, explain_absence
from whorl.views.asking import Asked, Target, is_computed, locate, resolve
from whorl.views.proof import Proof
from whorl.views.proving import prove

RESTRICTING = ("magic_sets", "drop_unused")  # rewrites after which some rows are not computed


def partitions_of(host: object) -> Sequence[Partition]:
    """Return the state of a host; raise if it shows none."""
    found: Sequence[Partition] | None = getattr(host, "partitions", None)
    if found is None:
        raise UserError("E649")
    return gather(found)


def ask(view: str, row: Sequence[object], types: Sequence[Type]) -> Asked:
    """Return a row of Python values as a question; None stands for any value."""
    if not isinstance(row, tuple | list) or len(row) != len(types):
        found = len(row) if isinstance(row, tuple | list) else row
        raise UserError("E644", None, name=view, expected=len(types), found=found, row=row)
    values: list[Value | None] = []
    for position, (value, kind) in enumerate(zip(row, types, strict=True)):
        plain = None if value is None else read_row((value,), (kind,))
        if value is not None and plain is None:
            facts = {"name": view, "position": position + 1, "expected": kind, "found": type(value).__name__}
            raise UserError("E645", None, row=row, **facts)
        values.append(None if plain is None else plain[0])
    return Asked(view, tuple(values))


def ask_fact(plan: PhysicalPlan, relation: str, row: Sequence[object]) -> Asked:
    """Return a fact of Python values as a question; a timestamp that is no column may be left out."""
    known = plan.logical.program.relations.get(relation)
    if known is None or not known.base:
        names = [each.name for each in plan.logical.program.base_relations()]
        raise UserError("E654", None, name=relation, known=", ".join(names) or "none")
    types = [column.type for column in known.columns]
    timed = known.lifted and known.timed and isinstance(row, tuple | list) and len(row) == len(types) + 1
    return ask(relation, row[1:] if timed else row, types)


def explain_row(partitions: Sequence[Partition], asked: Asked, *, hint: str) -> Proof:
    """Return the proof of the first row that fits; raise with a ``hint`` if there is none."""
    if not is_computed(partitions[0].plan.logical, asked):
        partitions = [full_partition(partitions)]
    found = find_row(partitions, asked)
    if found is None:
        raise UserError("E647", None, row=asked, hint=hint)
    partition, target, key = found
    return prove(partition, key, target.view)


def explain_missing(partitions: Sequence[Partition], asked: Asked, *, hint: str) -> WhyNot:
    """Return why no row fits; raise with a ``hint`` if one does."""
    if len(partitions) > 1 or hidden_relations(partitions[0]) or not is_computed(partitions[0].plan.logical, asked):
        partitions = [full_partition(partitions)]
    found = find_row(partitions, asked)
    if found is not None:
        raise UserError("E648", None, row=asked, hint=hint)
    return explain_absence(partitions[0], resolve(partitions[0], asked))


def find_row(partitions: Sequence[Partition], asked: Asked) -> tuple[Partition, Target, Key] | None:
    """Return the first row that fits, in the order of rows, with the partition that holds it."""
    found = []
    for partition in partitions:
        target = resolve(partition, asked)
        key = locate(partition, target)
        if key is not None:
            found.append((partition, target, key))
    return min(found, key=lambda each: row_key(Rows(each[0]).read(each[2])), default=None)


def full_partition(partitions: Sequence[Partition]) -> Partition:
    """Return a partition that computes every relation in full, from the same facts."""
    first = partitions[0]
    logical = rewrite_plan(lower_program(first.plan.logical.program), RESTRICTING)
    plan = lower_plan(logical)
    if len(partitions) == 1:
        return Partition(plan, first.limits, first)
    split = [name for name in first.base if first.plan.split_column(name) is not None]
    (full,) = place_facts(gather_facts(partitions, split), plan, first.limits, 1, stepped=True)
    return full
