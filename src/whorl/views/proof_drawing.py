"""A proof as a drawing: DOT for other programs, and SVG drawn here.

The drawing is a tree from the row downwards, a line of boxes for each step; a row that is used again gets a dashed line
to the box it has. Boxes beyond a number are left out, and one box says how many.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from xml.sax.saxutils import escape

from whorl.views.proof import Node, Premise, Proof
from whorl.views.proof_text import part_line

BOXES = 200
_CHARACTER, _LINE, _PADDING = 7.3, 16, 10  # of a font of 12 pixels
_BETWEEN, _BELOW, _MARGIN = 24, 46, 20
_TEXT_WIDTH = 60
_FILLS = {"fact": "#eef6ee", "rule": "#eef2fb", "aggregate": "#fbf3e4", "query": "#f3eefb"}
_STROKES = {"fact": "#5a8f5a", "rule": "#5573b5", "aggregate": "#b58a3c", "query": "#8055b5"}


@dataclass(frozen=True, slots=True)
class _Drawn:
    """The part of a proof that is drawn: its boxes in order, the tree, and the lines beside the tree."""

    boxes: tuple[int, ...]
    children: dict[int, list[int]]
    again: tuple[tuple[int, int], ...]
    left_out: int


def _select(proof: Proof, boxes: int | None) -> _Drawn:
    """Choose what is drawn, nearest to the row first."""
    order: dict[int, None] = {0: None}
    children: dict[int, list[int]] = {0: []}
    again: list[tuple[int, int]] = []
    queue = deque([0])
    while queue:
        at = queue.popleft()
        for premise in proof.nodes[at].premises():
            if premise in order:
                again.append((at, premise))
            elif boxes is None or len(order) < boxes:
                order[premise] = None
                children[at].append(premise)
                children[premise] = []
                queue.append(premise)
    return _Drawn(tuple(order), children, tuple(again), len(proof.nodes) - len(order))


def label_lines(node: Node) -> list[str]:
    """Return what stands in a box: the row, why it holds, and the conditions that are no rows."""
    lines = [node.text]
    if node.reason:
        lines.append(node.reason)
    uses = node.uses if len(node.uses) == 1 else ()
    lines.extend(part_line(part) for use in uses for part in use.parts if not isinstance(part, Premise))
    return [line if len(line) <= _TEXT_WIDTH else line[: _TEXT_WIDTH - 1] + "…" for line in lines]


def proof_dot(proof: Proof, boxes: int | None = BOXES) -> str:
    """Return a proof in the language of Graphviz."""
    drawn = _select(proof, boxes)
    lines = ["digraph proof {", "  node [shape=box, fontname=monospace, style=filled];", "  edge [arrowhead=none];"]
    for at in drawn.boxes:
        node = proof.nodes[at]
        label = "\\n".join(_quoted(line) for line in label_lines(node))
        lines.append(f'  n{at} [label="{label}", fillcolor="{_FILLS[node.kind]}", color="{_STROKES[node.kind]}"];')
    for at, below in drawn.children.items():
        lines.extend(f"  n{at} -> n{child};" for child in below)
    lines.extend(f"  n{at} -> n{child} [style=dashed];" for at, child in drawn.again)
    if drawn.left_out:
        lines.append(f'  more [label="{_more(drawn.left_out)}", fillcolor=white, style="filled,dashed"];')
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _more(count: int) -> str:
    return f"{count} more row{'' if count == 1 else 's'}"


@dataclass(frozen=True, slots=True)
class _Box:
    """A placed box."""

    left: float
    top: float
    width: float
    height: float
    lines: tuple[str, ...]
    kind: str

    @property
    def middle(self) -> float:
        return self.left + self.width / 2

    @property
    def bottom(self) -> float:
        return self.top + self.height


def _sizes(lines: list[str]) -> tuple[float, float]:
    return max(len(line) for line in lines) * _CHARACTER + 2 * _PADDING, len(lines) * _LINE + 1.4 * _PADDING


def _place(proof: Proof, drawn: _Drawn) -> dict[int, _Box]:
    """Give each box its place: subtrees side by side, a row above the middle of what it rests on."""
    labels = {at: label_lines(proof.nodes[at]) for at in drawn.boxes}
    sizes = {at: _sizes(lines) for at, lines in labels.items()}
    depth = {0: 0}
    for at in drawn.boxes:  # a box comes after the one above it
        depth.update((child, depth[at] + 1) for child in drawn.children[at])
    spans: dict[int, float] = {}
    for at in reversed(drawn.boxes):
        below = drawn.children[at]
        inner = sum(spans[child] for child in below) + _BETWEEN * max(0, len(below) - 1)
        spans[at] = max(sizes[at][0], inner)
    heights: dict[int, float] = {}
    for at in drawn.boxes:
        heights[depth[at]] = max(heights.get(depth[at], 0), sizes[at][1])
    tops = [float(_MARGIN)]
    for level in range(len(heights)):
        tops.append(tops[-1] + heights[level] + _BELOW)
    starts = {0: float(_MARGIN)}
    boxes: dict[int, _Box] = {}
    for at in drawn.boxes:
        below = drawn.children[at]
        inner = sum(spans[child] for child in below) + _BETWEEN * max(0, len(below) - 1)
        start = starts[at] + (spans[at] - inner) / 2
        for child in below:
            starts[child] = start
            start += spans[child] + _BETWEEN
        width, height = sizes[at]
        left = starts[at] + (spans[at] - width) / 2
        boxes[at] = _Box(left, tops[depth[at]], width, height, tuple(labels[at]), proof.nodes[at].kind)
    return boxes


def proof_svg(proof: Proof, boxes: int | None = BOXES) -> str:
    """Return a proof as a drawing that needs nothing else."""
    drawn = _select(proof, boxes)
    placed = _place(proof, drawn)
    edges = [(at, child, "") for at, below in drawn.children.items() for child in below]
    edges += [(at, child, ' stroke-dasharray="4 3"') for at, child in drawn.again]
    parts = [_curve(placed[at], placed[child], style) for at, child, style in edges]
    parts.extend(_box(box) for box in placed.values())
    width = max(box.left + box.width for box in placed.values()) + _MARGIN
    height = max(box.bottom for box in placed.values()) + _MARGIN
    if drawn.left_out:
        height += _LINE
        parts.append(f'<text x="{_MARGIN}" y="{height - 8:.0f}" fill="#666">{_more(drawn.left_out)} not shown</text>')
    title = escape(_printable(f"Why {proof.root.text}"))
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
            f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="monospace" font-size="12">',
            f"<title>{title}</title>",
            '<rect width="100%" height="100%" fill="white"/>',
            *parts,
            "</svg>",
        ]
    )


def _curve(above: _Box, below: _Box, style: str) -> str:
    half = (above.bottom + below.top) / 2
    path = f"M{above.middle:.1f},{above.bottom:.1f} C{above.middle:.1f},{half:.1f} {below.middle:.1f},{half:.1f} "
    return f'<path d="{path}{below.middle:.1f},{below.top:.1f}" fill="none" stroke="#999"{style}/>'


def _box(box: _Box) -> str:
    shape = f'x="{box.left:.1f}" y="{box.top:.1f}" width="{box.width:.1f}" height="{box.height:.1f}" rx="5"'
    parts = [f'<g><rect {shape} fill="{_FILLS[box.kind]}" stroke="{_STROKES[box.kind]}"/>']
    for at, line in enumerate(box.lines):
        weight = ' font-weight="bold"' if at == 0 else ' fill="#555"'
        top = box.top + 0.7 * _PADDING + (at + 0.75) * _LINE
        parts.append(f'<text x="{box.left + _PADDING:.1f}" y="{top:.1f}"{weight}>{escape(_printable(line))}</text>')
    return "".join([*parts, "</g>"])


def _printable(text: str) -> str:
    """Return a text without the characters that XML cannot hold."""
    return "".join(char if char >= " " and char not in "\ufffe\uffff" else "\ufffd" for char in text)
