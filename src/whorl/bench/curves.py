"""Series as lines, a small picture for each figure, in one SVG file.

Figures are on a logarithmic scale; what is 0 has no point.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

from whorl.bench.results import CaseResult
from whorl.bench.series import Metric, Series, contestants_of, short_name, values_of

_COLOURS = ("#2b6cb0", "#c05621", "#2f855a", "#b7791f", "#6b46c1", "#c53030", "#4a5568")
_WIDE, _HIGH, _GAP, _LEFT, _HEAD = 300, 170, 30, 70, 44
_ACROSS = 3  # pictures side by side
_LONG = 8  # letters of a name that has room


def draw_series(series: Sequence[Series], results: Mapping[str, CaseResult]) -> str:
    """Return the picture of all series of which something was measured."""
    parts: list[str] = []
    top = _GAP
    for each in series:
        shown = [metric for metric in each.metrics if _has_values(each, metric, results)]
        if not shown:
            continue
        parts += _head(each, top, results)
        for at, metric in enumerate(shown):
            left = _GAP + at % _ACROSS * (_WIDE + _LEFT)
            parts += _panel(each, metric, results, left + _LEFT, top + _HEAD + at // _ACROSS * (_HIGH + 2 * _GAP))
        top += _HEAD + math.ceil(len(shown) / _ACROSS) * (_HIGH + 2 * _GAP)
    width = _GAP + _ACROSS * (_WIDE + _LEFT) + _GAP
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{top}" font-family="sans-serif">',
        f'<rect width="{width}" height="{top}" fill="white"/>',
    ]
    return "\n".join([*lines, *parts, "</svg>", ""])


def _has_values(series: Series, metric: Metric, results: Mapping[str, CaseResult]) -> bool:
    who = contestants_of(series, results)
    return any(value > 0 for name in who for _at, value in values_of(series, name, metric, results))


def _head(series: Series, top: int, results: Mapping[str, CaseResult]) -> list[str]:
    """Return the title, and the contestants in their colours."""
    lines = [f'<text x="{_GAP}" y="{top}" font-size="14" font-weight="bold">{escape(series.title)}</text>']
    left = _GAP
    for name, colour in _coloured(series, results):
        short = short_name(name)
        lines.append(f'<text x="{left}" y="{top + 18}" font-size="12" fill="{colour}">{escape(short)}</text>')
        left += 20 + 7 * len(short)
    return lines


def _coloured(series: Series, results: Mapping[str, CaseResult]) -> list[tuple[str, str]]:
    return [(name, _COLOURS[at % len(_COLOURS)]) for at, name in enumerate(contestants_of(series, results))]


def _point(name: str, x: float, y: int) -> str:
    """Return the name below a point; long names are slanted, so that they do not touch."""
    slant = f'text-anchor="end" transform="rotate(-20 {x:.1f} {y})"' if len(name) > _LONG else 'text-anchor="middle"'
    return f'<text x="{x:.1f}" y="{y}" font-size="10" {slant}>{escape(name)}</text>'


def _panel(series: Series, metric: Metric, results: Mapping[str, CaseResult], left: int, top: int) -> list[str]:
    curves = {
        (name, colour): [(at, value) for at, value in values_of(series, name, metric, results) if value > 0]
        for name, colour in _coloured(series, results)
    }
    values = [value for curve in curves.values() for _at, value in curve]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)

    def place(at: int, value: float) -> tuple[float, float]:
        across = left + (_WIDE - _GAP) * (at + 0.5) / len(series.points)
        return across, top + _HIGH - _HIGH * (math.log10(value) - low) / (high - low)

    lines = [
        f'<text x="{left}" y="{top - 6}" font-size="12" fill="#555">{escape(metric.text)}</text>',
        f'<path d="M{left} {top}V{top + _HIGH}H{left + _WIDE - _GAP}" fill="none" stroke="#888"/>',
    ]
    for power in range(low, high + 1):
        y = place(0, 10.0**power)[1]
        shown = metric.show(10.0**power) if metric.unit or power >= 0 else f"{10.0**power:g}"
        lines.append(f'<text x="{left - 4}" y="{y + 4:.1f}" font-size="10" text-anchor="end">{shown}</text>')
    lines += [_point(point, place(at, 10.0**low)[0], top + _HIGH + 14) for at, point in enumerate(series.points)]
    for (_name, colour), curve in curves.items():
        places = [place(at, value) for at, value in curve]
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        lines.append(f'<polyline points="{line}" fill="none" stroke="{colour}" stroke-width="1.5"/>')
        lines += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{colour}"/>' for x, y in places]
    return lines
