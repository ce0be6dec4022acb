"""Why a row is in a view, as data: a tree of rows, each with the rule that derives it from others.

Rows that a proof uses twice are named twice and proved once: the nodes are listed, the root first, and refer to each
other by their place in the list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from whorl.model.values import LIST, Row, Term, Value, format_row, format_value


@dataclass(frozen=True, slots=True)
class RuleText:
    """A rule as the program writes it; `number` counts the rules of the text. A query has the number 0."""

    number: int
    line: int | None
    text: str

    @property
    def name(self) -> str:
        """How a proof refers to it."""
        place = "" if self.line is None else f" (line {self.line})"
        return f"rule {self.number}{place}" if self.number else f"query{place}"


@dataclass(frozen=True, slots=True)
class Premise:
    """A positive condition: the row that it takes, by its place among the nodes."""

    node: int


@dataclass(frozen=True, slots=True)
class Absence:
    """A negated condition: no row fits it."""

    text: str


@dataclass(frozen=True, slots=True)
class Condition:
    """A comparison or calculation: as the rule writes it, and with values."""

    text: str
    values: str


Part: TypeAlias = Premise | Absence | Condition


@dataclass(frozen=True, slots=True)
class Use:
    """One use of a rule; for an aggregate, `value` is what it contributes to the column `column`."""

    rule: RuleText
    parts: tuple[Part, ...]
    column: int | None = None
    value: Value | None = None


@dataclass(frozen=True, slots=True)
class Node:
    """A row of a proof.

    `kind` is `fact` (it arrived), `rule` (a rule derives it), `aggregate` (it gathers what the uses of rules
    contribute; `left_out` of them are not listed), or `query` (the output takes it from a relation). A fact has its
    `time`, if it is timed, and the event time `until` which it lives. `improved` marks a value on the way to a better
    one: it held while the view was computed, and is no longer there.
    """

    relation: str
    row: Row
    kind: str
    uses: tuple[Use, ...] = ()
    aggregates: tuple[tuple[int, str], ...] = ()
    left_out: int = 0
    time: int | None = None
    until: int | None = None
    counted: int | None = None
    improved: bool = False

    @property
    def text(self) -> str:
        """The row as the language writes it."""
        return format_row(self.relation, self.row)

    def premises(self) -> tuple[int, ...]:
        """Return the nodes that it rests on, in order, each once."""
        parts = (part for use in self.uses for part in use.parts if isinstance(part, Premise))
        return tuple(dict.fromkeys(part.node for part in parts))

    @property
    def reason(self) -> str:
        """Why it holds, in a few words."""
        if self.kind == "fact":
            return self._life()
        if self.kind == "query":
            return f"by {self.uses[0].rule.name}"
        rules = ", ".join(dict.fromkeys(use.rule.name for use in self.uses))
        return f"{self._gathers()}by {rules}{', improved since' if self.improved else ''}"

    def _gathers(self) -> str:
        """Return what an aggregate does with its contributions."""
        functions = ", ".join(function for _column, function in self.aggregates)
        if all(function in ("min", "max") for _column, function in self.aggregates):
            return f"{functions}, " if functions else ""
        count = len(self.uses) + self.left_out
        return f"{functions} of {count} contribution{'' if count == 1 else 's'} "

    def _life(self) -> str:
        parts = [] if self.time is None else [f"at {self.time}"]
        if self.until is not None:
            parts.append(f"until {self.until}")
        if self.counted is not None:
            parts.append(f"among the last {self.counted}")
        return ", ".join(parts)


@dataclass(frozen=True, slots=True)
class Proof:
    """Why a row holds. `shortest` tells whether no proof has smaller height; `until` when its first fact expires."""

    nodes: tuple[Node, ...]
    height: int
    shortest: bool
    until: int | None = None

    @property
    def root(self) -> Node:
        """The row that was asked for."""
        return self.nodes[0]

    def rules(self) -> tuple[RuleText, ...]:
        """Return the rules used, in the order of the text."""
        used = {use.rule for node in self.nodes for use in node.uses}
        return tuple(sorted(used, key=lambda rule: rule.number))

    def facts(self) -> tuple[Node, ...]:
        """Return the base facts it rests on."""
        return tuple(node for node in self.nodes if node.kind == "fact")

    def __str__(self) -> str:
        from whorl.views.proof_text import proof_text  # noqa: PLC0415  # a rendering, not a part

        return proof_text(self)

    def to_json(self) -> dict[str, object]:
        """Return the proof as plain data."""
        return {
            "row": self.root.text,
            "height": self.height,
            "shortest": self.shortest,
            "until": self.until,
            "rules": [{"number": rule.number, "line": rule.line, "text": rule.text} for rule in self.rules()],
            "nodes": [_node_json(number, node) for number, node in enumerate(self.nodes)],
        }


def _node_json(number: int, node: Node) -> dict[str, object]:
    out: dict[str, object] = {
        "id": number,
        "relation": node.relation,
        "row": [value_json(value) for value in node.row],
        "text": node.text,
        "kind": node.kind,
    }
    for name in ("time", "until", "counted"):
        if getattr(node, name) is not None:
            out[name] = getattr(node, name)
    if node.aggregates:
        out["aggregates"] = [{"column": column, "function": function} for column, function in node.aggregates]
        out["left_out"] = node.left_out
    if node.improved:
        out["improved"] = True
    if node.uses:
        out["uses"] = [_use_json(use) for use in node.uses]
    return out


def _use_json(use: Use) -> dict[str, object]:
    out: dict[str, object] = {"rule": use.rule.number}
    if use.column is not None and use.value is not None:
        out |= {"column": use.column, "value": value_json(use.value)}
    return out | {"parts": [_part_json(part) for part in use.parts]}


def _part_json(part: Part) -> dict[str, object]:
    if isinstance(part, Premise):
        return {"premise": part.node}
    if isinstance(part, Absence):
        return {"absent": part.text}
    return {"condition": part.text, "values": part.values}


def value_json(value: Value) -> object:
    """Return a value as JSON has it: lists as lists, other terms as text."""
    if isinstance(value, Term):
        return [value_json(arg) for arg in value.args] if value.name == LIST else format_value(value)
    return value
