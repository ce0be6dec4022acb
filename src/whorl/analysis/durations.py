"""Durations in seconds, the unit of timestamps."""

from __future__ import annotations

from whorl.analysis.draft import Errors
from whorl.model.schema import Window
from whorl.syntax import ast

_SECONDS = {
    ("s", "sec", "second", "seconds"): 1,
    ("m", "min", "minute", "minutes"): 60,
    ("h", "hour", "hours"): 3_600,
    ("d", "day", "days"): 86_400,
    ("w", "week", "weeks"): 604_800,
    ("month", "months"): 30 * 86_400,
    ("y", "year", "years"): 365 * 86_400,
}
UNITS = {name: seconds for names, seconds in _SECONDS.items() for name in names}


def resolve_duration(duration: ast.Duration, errors: Errors, *, counted: bool = False) -> int:
    """Return a duration in seconds, or a count of facts; report one that is not positive or has no known unit."""
    if duration.amount <= 0:
        errors.add("E320", duration.span, amount=duration.amount)
        return 1
    if not duration.unit:
        return duration.amount
    if counted:
        errors.add("E321", duration.span, unit=duration.unit)
        return duration.amount
    seconds = UNITS.get(duration.unit.lower())
    if seconds is None:
        known = "s, minutes, hours, days, weeks, months, years"
        errors.add("E110", duration.span, unit=duration.unit, known=known)
        return duration.amount
    return duration.amount * seconds


def resolve_window(window: ast.Window, errors: Errors) -> Window:
    """Return a window in seconds or facts; report a slide longer than the window."""
    size = resolve_duration(window.size, errors, counted=window.counted)
    slide = None
    if window.slide is not None:
        slide = resolve_duration(window.slide, errors, counted=window.counted)
        if slide > size:
            errors.add("E322", window.span, size=size, slide=slide)
            slide = size
    return Window(size, slide, window.counted)
