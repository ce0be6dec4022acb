"""A small writer of SVG: shapes in, a drawing out that needs nothing else.

>>> picture = Picture(40, 20, "a line")
>>> picture.line((0, 0), (40, 20), "#999")
>>> picture.svg().splitlines()[-2:]
['<line x1="0" y1="0" x2="40" y2="20" stroke="#999" stroke-width="1"/>', '</svg>']
"""

from __future__ import annotations

from xml.sax.saxutils import escape, quoteattr

Point = tuple[float, float]

# Colours that stay apart, for things that are told apart.
COLOURS = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#ee8866", "#225555", "#bb99cc", "#777777")
_CHARACTER = 0.56  # of the size of a font, about


class Picture:
    """A drawing on white; what is drawn later lies above."""

    def __init__(self, width: float, height: float, title: str) -> None:
        self.width, self.height = width, height
        self._title = title
        self._shapes: list[str] = []

    def line(self, start: Point, end: Point, colour: str, *, width: float = 1, dashed: bool = False) -> None:
        """Draw a line."""
        ends = f'x1="{_number(start[0])}" y1="{_number(start[1])}" x2="{_number(end[0])}" y2="{_number(end[1])}"'
        dashes = ' stroke-dasharray="5 4"' if dashed else ""
        self._shapes.append(f'<line {ends} stroke="{colour}" stroke-width="{_number(width)}"{dashes}/>')

    def circle(self, centre: Point, radius: float, fill: str, stroke: str = "none") -> None:
        """Draw a disc."""
        place = f'cx="{_number(centre[0])}" cy="{_number(centre[1])}" r="{_number(radius)}"'
        self._shapes.append(f'<circle {place} fill="{fill}" stroke="{stroke}"/>')

    def rectangle(self, corner: Point, width: float, height: float, fill: str) -> None:
        """Draw a rectangle from its upper left corner."""
        place = f'x="{_number(corner[0])}" y="{_number(corner[1])}"'
        self._shapes.append(f'<rect {place} width="{_number(width)}" height="{_number(height)}" rx="2" fill="{fill}"/>')

    def text(
        self,
        at: Point,
        text: str,
        *,
        colour: str = "#222",
        size: float = 12,
        anchor: str = "start",
        bold: bool = False,
        boxed: bool = False,
    ) -> None:
        """Write a line of text; `boxed` lays white below it, so that it can be read above lines."""
        if boxed:
            wide = len(text) * size * _CHARACTER + 6
            left = at[0] - {"start": 3, "middle": wide / 2, "end": wide - 3}[anchor]
            self.rectangle((left, at[1] - size), wide, size + 5, "white")
        place = f'x="{_number(at[0])}" y="{_number(at[1])}" text-anchor={quoteattr(anchor)}'
        weight = ' font-weight="bold"' if bold else ""
        shown = escape(text)
        self._shapes.append(f'<text {place} font-size="{_number(size)}" fill="{colour}"{weight}>{shown}</text>')

    def svg(self) -> str:
        """Return the drawing."""
        size = f'width="{_number(self.width)}" height="{_number(self.height)}"'
        box = f'viewBox="0 0 {_number(self.width)} {_number(self.height)}"'
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" {size} {box} font-family="sans-serif">',
                f"<title>{escape(self._title)}</title>",
                '<rect width="100%" height="100%" fill="white"/>',
                *self._shapes,
                "</svg>",
            ]
        )


def _number(value: float) -> str:
    return f"{value:.1f}".rstrip("0").rstrip(".") if value % 1 else f"{value:.0f}"
