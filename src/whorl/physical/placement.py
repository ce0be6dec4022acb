"""Where the tuples of each relation live when a program runs as several partitions.

A relation is either *split* by one of its columns, so that a tuple lives in the partition that owns the value there,
or *copied*, so that every partition holds and derives all of it. Partitions never exchange tuples; so

- a rule whose head is copied reads copied relations only;
- a rule whose head is split by column c reads copied relations, and relations split by a column in which the rule has
  the variable of the head's column c. If it reads no split relation positively, it derives the tuples of all
  partitions, and each keeps those it owns (`PhysicalRule.owned`).

Hence whoever reads a split relation is split too, and whatever a copied relation depends on is copied. In

    reachable(X, Y) :- link(X, Y).
    reachable(X, Y) :- link(X, Z), reachable(Z, Y).

`reachable` is split by its second column, which the recursion keeps, and `link` is copied.

Cost: there are no figures to go by, so relations are tried in the order in which they are expected to be large:
those of recursive strata, the widest first; outputs; other derived relations, last strata first; inputs. Each takes the
first column that goes with what is decided already; columns that more atoms share come first, Booleans last.

A program whose recursion keeps no column exchanges tuples instead: every relation gets a home, and rules run where a
variable of theirs is at home (`whorl.physical.homes`, `whorl.physical.localize`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from whorl.diagnostics.wording import listed
from whorl.model.types import Type
from whorl.physical.alignment import Link, Needs, alignments
from whorl.physical.homes import choose_homes
from whorl.physical.localize import localize
from whorl.physical.plan import PhysicalPlan, PhysicalStratum, Placed

_ATTEMPTS = 2_000  # partial choices looked at for one column, before it is given up
_COPIED = -1
Choice = Mapping[str, int]  # a column for each relation that is split, `_COPIED` for one that is not


def place_apart(plan: PhysicalPlan) -> PhysicalPlan:
    """Return the plan with a place for every relation, such that partitions never exchange tuples."""
    return _without_exchange(plan, _Search(plan).decide())


def place_with_exchange(plan: PhysicalPlan, by: str) -> PhysicalPlan:
    """Return the plan with a home for every relation, and channels for what crosses."""
    return localize(plan, choose_homes(plan, by, _Search(plan).allowed))


def copied_recursion(plan: PhysicalPlan) -> bool:
    """Whether a plan copies a recursion because it keeps no column, which it need not where partitions exchange.

    A relation of one column is no larger than what it is derived from, and is better copied: nobody then waits.
    """
    return any(
        stratum.recursive
        and stratum.kind in ("rows", "best", "frontier")
        and any(plan.split_column(name) is None and len(plan.relations[name].columns) > 1 for name in stratum.relations)
        for stratum in plan.strata
    )


def _without_exchange(plan: PhysicalPlan, placement: Mapping[str, Placed]) -> PhysicalPlan:
    """Return the plan with rules that keep only what their partition owns."""
    columns = {name: placed.column for name, placed in placement.items() if placed.column is not None}
    strata = tuple(_owning(stratum, columns) for stratum in plan.strata)
    return replace(plan, strata=strata, placement=placement)


def _owning(stratum: PhysicalStratum, columns: Mapping[str, int]) -> PhysicalStratum:
    """Return a stratum whose rules know the column they must check, if any."""
    rules = tuple(
        replace(rule, owned=columns.get(rule.relation))
        if not any(positive and name in columns for name, positive in rule.rule.relations())
        else rule
        for rule in stratum.rules
    )
    return replace(stratum, rules=rules)


class _Blocked(Exception):
    """The rule that stands against a choice."""

    def __init__(self, link: Link) -> None:
        super().__init__(link.head)
        self.link = link


@dataclass(slots=True)
class _Search:
    """Decides relation by relation."""

    plan: PhysicalPlan
    links: tuple[Link, ...] = ()
    chosen: dict[str, int] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)
    attempts: int = 0

    def __post_init__(self) -> None:
        self.links = tuple(link for stratum in self.plan.strata for link in alignments(stratum, self.plan.relations))

    def decide(self) -> dict[str, Placed]:
        for name, recursive in self._order():
            if name not in self.chosen:
                self._place(name, recursive=recursive)
        return {name: self._placed(name) for name in self.plan.relations if name in self.chosen}

    def _placed(self, name: str) -> Placed:
        column = self.chosen[name]
        return Placed(None if column == _COPIED else column, self.reasons[name])

    def _order(self) -> Iterator[tuple[str, bool]]:
        """Yield the relations in the order of their importance, with whether they are recursive."""
        recursive = [stratum for stratum in self.plan.strata if stratum.recursive]
        recursive.sort(key=lambda s: (-max(len(self.plan.relations[n].columns) for n in s.relations), s.number))
        for stratum in recursive:
            yield from ((name, True) for name in stratum.relations)
        yield from ((output.relation, False) for output in self.plan.outputs)
        for stratum in reversed(self.plan.strata):
            yield from ((name, False) for name in stratum.relations)
        yield from ((relation.name, False) for relation in self.plan.logical.program.base_relations())

    def _place(self, name: str, *, recursive: bool) -> None:
        columns = self._columns(name)
        if not columns:
            counted = self._counts(name)
            self.chosen[name] = _COPIED
            self.reasons[name] = "its window counts all arrivals" if counted else "it has no column to split by"
            return
        blocked: list[Link] = []
        for column in columns:
            self.attempts = 0
            try:
                found = self._complete({**self.chosen, name: column})
            except _Blocked as block:
                blocked.append(block.link)
                continue
            self._take(found, name, recursive=recursive)
            return
        self.chosen[name] = _COPIED
        self.reasons[name] = self._why_copied(name, blocked)

    def _take(self, found: Choice, name: str, *, recursive: bool) -> None:
        for other in found:
            if other not in self.chosen:
                own = next((s for s in self.plan.strata if other in s.relations), None)
                kept = recursive and own is not None and name in own.relations
                reason = "the recursion keeps it" if kept else "its readers are split alike"
                readers = any(other in (atom for atom, _positive in link.atoms) for link in self.links)
                self.reasons[other] = reason if kept or readers else "nothing else reads it"
        self.chosen.update(found)

    def _why_copied(self, name: str, blocked: list[Link]) -> str:
        """Return the reason in words: rules that keep no argument, or readers that no column serves."""
        own = next((stratum.number for stratum in self.plan.strata if name in stratum.relations), 0)
        if all(link.needs is Needs.ALL for link in blocked):
            return f"{listed([name for name, _positive in blocked[0].atoms], 'and')} has no split by its groups"
        if all(link.stratum == own for link in blocked):
            return f"no argument is preserved by the {_rules(blocked) or 'rules of the recursion'}"
        outside = [link for link in blocked if link.stratum != own]
        needing = [link for link in outside if self.chosen.get(link.head) == _COPIED]
        if needing:
            return f"{_heads(needing[:1])} needs all of it"
        return f"no column of it serves {_heads(outside)}"

    def _counts(self, name: str) -> bool:
        """Whether facts of a relation live by the number of arrivals."""
        relation = self.plan.relations[name]
        return relation.base and relation.window is not None and relation.window.counted

    def _columns(self, name: str) -> list[int]:
        """Return the columns that a relation may be split by, the best first."""
        columns = self.allowed(name)
        shared = dict.fromkeys(columns, 0)  # atoms that could be split with it
        for link in self.links:
            if link.head == name:
                for column in columns:
                    for atom, place in link.aligned.get(column, ()):
                        other, positive = link.atoms[atom]
                        shared[column] += positive and place in self.allowed(other)
        kinds = [column.type for column in self.plan.relations[name].columns]
        return sorted(columns, key=lambda c: (kinds[c] is Type.BOOLEAN, -shared[c], c))

    def allowed(self, name: str) -> list[int]:
        """Return the columns that tell the owner of everything that belongs to a row: its key, or its group."""
        if self._counts(name):
            return []
        relation = self.plan.relations[name]
        columns = [c for c in range(len(relation.columns)) if c not in relation.aggregates]
        if relation.base and any(column.key for column in relation.columns):
            columns = [c for c in columns if relation.columns[c].key]
        return [c for c in columns if all(c in group for group in self._groups(name))]

    def _groups(self, name: str) -> Iterator[tuple[int, ...]]:
        """Yield the groups within which rows of a relation are chosen."""
        for stratum in self.plan.strata:
            if stratum.source is not None:
                yield from (each.group for each in stratum.source.selections if each.relation == name)

    def _complete(self, chosen: Choice) -> Choice:
        """Return a choice extended by all that it makes necessary; raise if nothing fits."""
        self.attempts += 1
        for link in self.links:
            options = self._demand(link, chosen)
            if options is None:
                continue
            last = _Blocked(link)
            for name, column in options:
                if self.attempts > _ATTEMPTS:
                    break
                try:
                    return self._complete({**chosen, name: column})
                except _Blocked as block:
                    last = block
            raise last
        return chosen

    def _demand(self, link: Link, chosen: Choice) -> list[tuple[str, int]] | None:
        """Return None if a rule goes with a choice; else what could be chosen next, nothing if it never will."""
        split = [(at, chosen[name]) for at, (name, _) in enumerate(link.atoms) if chosen.get(name, _COPIED) != _COPIED]
        head = chosen.get(link.head)
        if head is None:
            if not split:
                return None
            options = self._columns(link.head)
            return [(link.head, c) for c in options if all(place in link.aligned.get(c, ()) for place in split)]
        if head == _COPIED:
            return [] if split else None
        if not all(place in link.aligned.get(head, ()) for place in split):
            return []
        return self._ground(link, head, {at for at, _column in split}, chosen)

    def _ground(self, link: Link, head: int, split: set[int], chosen: Choice) -> list[tuple[str, int]] | None:
        """Return which atoms must be split too, for a rule whose results nobody checks."""
        if link.needs is Needs.NONE:
            return None
        missing = [at for at in range(len(link.atoms)) if at not in split]
        if link.needs is Needs.ALL:
            return self._options(link, head, missing[:1], chosen) if missing else None
        if any(link.atoms[at][1] for at in split):
            return None
        return self._options(link, head, [at for at in missing if link.atoms[at][1]], chosen)

    def _options(self, link: Link, head: int, atoms: list[int], chosen: Choice) -> list[tuple[str, int]]:
        found: list[tuple[str, int]] = []
        for at in atoms:
            name = link.atoms[at][0]
            column, allowed = link.place(at, head), self.allowed(name)
            if name not in chosen and column is not None and column in allowed:
                found.append((name, column))
        return found


def _rules(links: list[Link]) -> str:
    """Name rules by their lines; nothing, if they are not of the text."""
    lines = [str(line) for line in sorted({link.line for link in links if link.line is not None})]
    if not lines:
        return ""
    return f"rule at line {lines[0]}" if len(lines) == 1 else f"rules at lines {listed(lines, 'and')}"


def _heads(links: list[Link]) -> str:
    """Name the relations that rules derive, with the lines of the rules."""
    shown: list[str] = []
    for head in dict.fromkeys(link.head for link in links):
        rules = _rules([link for link in links if link.head == head])
        shown.append(f"{head} ({rules})" if rules else head)
    return listed(shown, "and")
