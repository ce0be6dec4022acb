"""From a proof in the kernel's terms to one in the program's: its rules and relations, conditions with their values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from whorl.analysis.expressions import evaluate
from whorl.analysis.program import Program, Relation, Rule
from whorl.diagnostics.errors import InternalError
from whorl.diagnostics.source import Span
from whorl.kernel.partition import Partition
from whorl.kernel.proofs.derivations import Derivation, Key, Rows
from whorl.kernel.proofs.instances import Instance, Instances, program_name
from whorl.kernel.proofs.proving import find_proof
from whorl.kernel.proofs.search import BUDGET, Found
from whorl.logical.plan import AntiJoin, Contribution, Join, Output
from whorl.model.values import Row, Value
from whorl.syntax.comments import blank_comments
from whorl.views.literals import part_text, row_text
from whorl.views.proof import Absence, Condition, Node, Part, Premise, Proof, RuleText, Use


def prove(partition: Partition, key: Key, view: Output | None = None, budget: int = BUDGET) -> Proof:
    """Return the proof of a row that is alive; ``view`` is the output that shows it, if it was asked for there."""
    found, rows = find_proof(partition, key, budget)
    return _Builder(partition, found, rows, view).proof()


class RuleTexts:
    """The rules of a program as its text has them."""

    def __init__(self, program: Program) -> None:
        every = sorted(program.rules, key=lambda rule: rule.origin)
        self._numbers = {place: at for at, place in enumerate(dict.fromkeys(map(_statement, every)), 1)}

    def of(self, rule: Rule) -> RuleText:
        """Return the text of a rule."""
        span = rule.span
        return RuleText(self._numbers[_statement(rule)], span.line if span else None, statement_text(span))


def _statement(rule: Rule) -> Span | int:
    """Return what rules share that come from one statement: several heads are several rules."""
    return rule.origin if rule.span is None else rule.span


def statement_text(span: Span | None) -> str:
    """Return a statement on one line, without comments."""
    if span is None:
        return ""
    text = " ".join(blank_comments(span.text).split())
    return text if text.endswith(".") else text + "."


class _Builder:
    """Turns each row of a proof into a node; contributions become uses of their rows."""

    def __init__(self, partition: Partition, found: Found, rows: Rows, view: Output | None) -> None:
        self._partition = partition
        self._program = partition.plan.logical.program
        self._found = found
        self._rows = rows
        self._view = view
        self._instances = Instances(self._program)
        self._texts = RuleTexts(self._program)
        rows.read_all(found.chosen)
        root = self._root()
        self._keys = [key for key in self._ordered(root) if not _contributes(key[0])]
        self._places = {key: at for at, key in enumerate(self._keys)}

    def _root(self) -> Key:
        """Return the row that heads the proof: a view that shows every column is its relation."""
        root, way = self._found.root, self._found.chosen[self._found.root]
        view = self._view
        if view is not None and root[0].startswith("out^") and way is not None:
            relation = self._partition.plan.relations[way.premises[0][0]]
            if len(view.types) == len(relation.columns):
                return way.premises[0]
        return root

    def _ordered(self, root: Key) -> list[Key]:
        """Return the rows of the proof, each before what it rests on."""
        order: dict[Key, None] = {}
        stack = [root]
        while stack:
            key = stack.pop()
            if key in order:
                continue
            order[key] = None
            way = self._found.chosen[key]
            stack.extend(reversed(way.premises) if way is not None else ())
        return list(order)

    def proof(self) -> Proof:
        nodes = in_reading_order([self._node(key) for key in self._keys])
        ends = [node.until for node in nodes if node.until is not None]
        height = self._found.heights[self._keys[0]]
        return Proof(nodes, height, self._found.shortest, min(ends, default=None))

    def _node(self, key: Key) -> Node:
        way, row = self._found.chosen[key], self._rows.read(key)
        if way is None:
            return self._fact(key, row)
        if key[0].startswith("out^"):
            return self._query(key, row, way)
        name = program_name(key[0])
        aggregates = tuple(sorted(self._program.relations[name].aggregates.items()))
        improved = key[1] < 0
        if way.rule is not None:
            kind = "aggregate" if aggregates else "rule"
            use = self._use(key, way, aggregates[0][0] if aggregates else None)
            return Node(name, row, kind, (use,), aggregates, improved=improved)
        uses = tuple(self._contribution(premise) for premise in way.premises)
        return Node(name, row, "aggregate", uses, aggregates, way.left_out, improved=improved)

    def _fact(self, key: Key, row: Row) -> Node:
        relation = self._partition.plan.relations[key[0]]
        time = self._partition.base[key[0]].time_of(key[1]) if relation.timed or relation.ttl is not None else None
        counted = relation.window.size if relation.window is not None and relation.window.counted else None
        return Node(relation.name, row, "fact", time=time, until=life_end(relation, time), counted=counted)

    def _query(self, key: Key, row: Row, way: Derivation) -> Node:
        name = key[0].removeprefix("out^")
        query = next(query for query in self._program.queries if query.name == name)
        line = query.span.line if query.span else None
        use = Use(RuleText(0, line, statement_text(query.span)), (Premise(self._places[way.premises[0]]),))
        return Node(name, row, "query", (use,))

    def _contribution(self, key: Key) -> Use:
        way = self._found.chosen[key]
        assert way is not None, "contributions are derived"
        return self._use(key, way, int(key[0].split("^")[-2]) - 1)

    def _use(self, key: Key, way: Derivation, column: int | None) -> Use:
        premises = [(premise, self._rows.read(premise)) for premise in way.premises]
        row = self._rows.read(key)
        instance = self._instances.find(way, row, premises)
        if instance is None:
            message = f"no rule of the program explains {program_name(key[0])}{row}"
            raise InternalError(message)
        parts = tuple(part for part in self._parts(instance))
        value = None if column is None else _contributed(instance, column, self._program)
        return Use(self._texts.of(instance.rule), parts, column, value)

    def _parts(self, instance: Instance) -> Sequence[Part]:
        parts: list[Part] = []
        for step, used in zip(instance.plan.steps, instance.used, strict=True):
            if isinstance(step, Join):
                assert used is not None, "an atom takes a row"
                parts.append(Premise(self._places[used]))
            elif isinstance(step, AntiJoin):
                parts.append(Absence(f"not {row_text(step.relation, step.args, instance.binding)}"))
            else:
                parts.append(Condition(part_text(step), part_text(step, instance.binding)))
        return parts


def in_reading_order(nodes: Sequence[Node]) -> tuple[Node, ...]:
    """Return nodes in the order in which a tree shows them, with their references."""
    places: dict[int, int] = {}
    stack = [0]
    while stack:
        at = stack.pop()
        if at not in places:
            places[at] = len(places)
            stack.extend(reversed(nodes[at].premises()))
    return tuple(replace(nodes[at], uses=tuple(_moved(use, places) for use in nodes[at].uses)) for at in places)


def _moved(use: Use, places: Mapping[int, int]) -> Use:
    parts = (Premise(places[part.node]) if isinstance(part, Premise) else part for part in use.parts)
    return replace(use, parts=tuple(parts))


def _contributes(relation: str) -> bool:
    parts = relation.split("^")
    return len(parts) > 2 and parts[-2].isdigit()


def _contributed(instance: Instance, column: int, program: Program) -> Value | None:
    arg = instance.plan.args[column]
    return evaluate(arg.value, instance.binding, program.functions) if isinstance(arg, Contribution) else None


def life_end(relation: Relation, time: int | None) -> int | None:
    """Return the event time at which a fact of a time expires, None if it does not."""
    window = relation.window if relation.window is not None and not relation.window.counted else None
    size = window.size if window is not None else relation.ttl
    if time is None or size is None:
        return None
    end = time + size
    slide = window.slide if window is not None else None
    return end if slide is None else -(-end // slide) * slide
