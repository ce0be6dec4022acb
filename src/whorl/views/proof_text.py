"""A proof as a tree of lines for a terminal.

Rows that a proof uses again are not proved again. A long proof is cut, and the end says what is left out; in full, it
goes on in blocks of its own where it would become too deep to read.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from whorl.model.values import format_value
from whorl.views.proof import Absence, Condition, Node, Part, Premise, Proof, Use

LINES = 60
DEPTH = 16
_MORE = "…"


@dataclass(frozen=True, slots=True)
class _Line:
    """Something to print: a row with what it rests on, or a text with parts below it."""

    text: str
    node: int | None = None
    parts: tuple[_Line, ...] = ()


@dataclass
class _Tree:
    """A tree on its way to lines."""

    proof: Proof
    lines_left: int | None
    lines: list[str] = field(default_factory=list)
    shown: set[int] = field(default_factory=set)
    waiting: deque[int] = field(default_factory=deque)

    def block(self, root: int) -> None:
        """Print a row with all below it."""
        if root in self.shown:
            return
        stack: list[tuple[_Line, str, str, int]] = [(_Line("", root), "", "", 0)]
        while stack:
            line, before, below, depth = stack.pop()
            if self.lines_left is not None and len(self.lines) >= self.lines_left:
                self._cut(before)
                continue
            text, children = self._describe(line, depth)
            self.lines.append(before + text)
            for at, child in enumerate(reversed(children)):
                corner, bar = ("└─ ", "   ") if at == 0 else ("├─ ", "│  ")
                stack.append((child, below + corner, below + bar, depth + 1))

    def _cut(self, before: str) -> None:
        if not self.lines[-1].endswith(_MORE):
            self.lines.append(before[:-3] + "└─ " + _MORE)

    def _describe(self, line: _Line, depth: int) -> tuple[str, list[_Line]]:
        """Return the text of a line, and what stands below it."""
        if line.node is None:
            return line.text, list(line.parts)
        node = self.proof.nodes[line.node]
        if node.kind == "fact":
            self.shown.add(line.node)
            return _head(node), []
        if line.node in self.shown:
            return f"{node.text}   shown above", []
        if depth >= DEPTH:
            if self.lines_left is None:
                self.waiting.append(line.node)
                return f"{node.text}   goes on below", []
            return f"{node.text}   {_MORE}", []
        self.shown.add(line.node)
        return _head(node), list(_below(node))


def _head(node: Node) -> str:
    return f"{node.text}   {node.reason}" if node.reason else node.text


def _below(node: Node) -> Iterator[_Line]:
    if len(node.uses) == 1 and not node.left_out:
        yield from (_part(part) for part in node.uses[0].parts)
        return
    for use in node.uses:
        yield _Line(_contribution(node, use), None, tuple(_part(part) for part in use.parts))
    if node.left_out:
        yield _Line(f"{_MORE} {node.left_out} more contribution{'' if node.left_out == 1 else 's'}")


def _contribution(node: Node, use: Use) -> str:
    functions = dict(node.aggregates)
    value = "" if use.value is None else f" {format_value(use.value)}"
    where = f" to {functions[use.column]}" if len(functions) > 1 and use.column is not None else ""
    rule = f"   by {use.rule.name}" if len({other.rule for other in node.uses}) > 1 else ""
    return f"contributes{value}{where}{rule}"


def _part(part: Part) -> _Line:
    if isinstance(part, Premise):
        return _Line("", part.node)
    return _Line(part_line(part))


def part_line(part: Absence | Condition) -> str:
    """Return a condition on one line, with its values where it has any."""
    if isinstance(part, Absence) or part.text == part.values:
        return part.text
    return f"{part.values}   ({part.text})"


def proof_text(proof: Proof, lines: int | None = LINES) -> str:
    """Return a proof as text, cut after some lines unless that is None."""
    tree = _Tree(proof, lines)
    tree.block(0)
    while tree.waiting:
        node = tree.waiting.popleft()
        if node not in tree.shown:
            tree.lines.append("")
            tree.block(node)
    return "\n".join([*tree.lines, "", *_footer(proof, len(tree.shown))])


def _footer(proof: Proof, shown: int) -> Iterator[str]:
    if proof.root.kind == "fact":
        yield "It is a fact: it arrived, and is still there."
    for rule in proof.rules():
        yield f"{rule.name}: {rule.text}"
    left_out = len(proof.nodes) - shown
    if left_out > 0:
        yield f"{left_out} of {len(proof.nodes)} rows are not shown."
    if proof.until is not None:
        yield f"The first of its facts expires at {proof.until}."
    if not proof.shortest:
        yield "There may be a shorter proof: the view is too large to look at all of them."
