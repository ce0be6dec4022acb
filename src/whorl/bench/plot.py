"""The main figure of every case as bars on a logarithmic scale, in one SVG file."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from whorl.bench.results import CaseResult

_FIGURES = ("load.engine", "load.cpu")  # of cases without steps
_STEPS = ("slide.cpu", "delete.cpu", "insert.cpu", "epoch.wall")
_ON_SPARK = ("load.wall",)  # where nobody knows of CPU time
_WIDTH, _LEFT, _RIGHT, _BAR, _HEAD, _GAP = 900, 190, 110, 18, 40, 22
_OWN, _OTHER = "#2b6cb0", "#a0a0a0"


@dataclass(frozen=True, slots=True)
class Panel:
    """One case: what is shown of it, and a bar for each contestant."""

    title: str
    caption: str
    bars: tuple[tuple[str, float], ...]

    @property
    def height(self) -> int:
        """How much room it takes."""
        return _HEAD + _BAR * len(self.bars) + _GAP


def draw(results: Sequence[CaseResult]) -> str:
    """Return the picture."""
    panels = [panel for result in results if (panel := build_panel(result)) is not None]
    height = sum(panel.height for panel in panels) + _GAP
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" font-family="sans-serif">',
        f'<rect width="{_WIDTH}" height="{height}" fill="white"/>',
    ]
    top = _GAP
    for panel in panels:
        lines += _draw_panel(panel, top)
        top += panel.height
    return "\n".join([*lines, "</svg>", ""])


def build_panel(result: CaseResult) -> Panel | None:
    """Choose what is shown of a case; return None if nothing was measured."""
    found = {tally.contestant: tally.figures for tally in result.tallies if tally.outcomes}
    names = {name for figures in found.values() for name in figures}
    main = next((name for name in (*_STEPS, *_FIGURES, *_ON_SPARK) if name in names), None)
    if main is None:
        return None
    other = _FIGURES[1] if main == _FIGURES[0] else main
    bars = [(who, figures.get(main, figures.get(other, 0.0))) for who, figures in found.items()]
    kind, clock = main.split(".")
    return Panel(
        result.name,
        f"{'wall' if clock == 'wall' else 'CPU'} time of one {kind}",
        tuple(bar for bar in bars if bar[1] > 0),
    )


def _draw_panel(panel: Panel, top: int) -> list[str]:
    lines = [
        f'<text x="10" y="{top + 14}" font-size="14" font-weight="bold">{escape(panel.title)}</text>',
        f'<text x="{_LEFT}" y="{top + 14}" font-size="12" fill="#555">{escape(panel.caption)}, logarithmic</text>',
    ]
    values = [value for _who, value in panel.bars]
    if not values:
        return lines
    low = math.floor(math.log10(min(values)) - 0.3)
    span = max(math.log10(max(values)) - low, 1e-9)
    for at, (who, value) in enumerate(panel.bars):
        y = top + _HEAD - 12 + _BAR * at
        width = (_WIDTH - _LEFT - _RIGHT) * (math.log10(value) - low) / span
        colour = _OWN if who.startswith("whorl") else _OTHER
        lines += [
            f'<text x="{_LEFT - 6}" y="{y + 11}" font-size="12" text-anchor="end">{escape(who)}</text>',
            f'<rect x="{_LEFT}" y="{y}" width="{width:.1f}" height="{_BAR - 4}" fill="{colour}"/>',
            f'<text x="{_LEFT + width + 5:.1f}" y="{y + 11}" font-size="12">{format_seconds(value)}</text>',
        ]
    return lines


def format_seconds(value: float) -> str:
    """Return a time in a unit that suits it."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value / 1e-6:.3g} µs"
