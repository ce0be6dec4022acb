"""Durations in seconds, the unit of timestamps."""

from __future__ import annotations

from whorl.analysis.draft import Errors
from whorl.diagnostics.names import suggest
from whorl.diagnostics.wording import listed
from whorl.model.schema import Window
from whorl.model.values import INTEGER_MAX
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


def resolve_duration(duration: ast.Duration, errors: Errors, *, counted: bool = False) -> int | None:
    """Return a duration in seconds, or a count of facts; report one that is none, and return None."""
    if duration.amount <= 0:
        errors.add("E320", duration.span, amount=duration.amount)
        return None
    if duration.unit and counted:
        errors.add("E321", duration.span, unit=duration.unit)
        return None
    seconds = UNITS.get(duration.unit.lower()) if duration.unit else 1
    if seconds is None:
        known = [names[-1] for names in _SECONDS]
        facts = {"known": listed(known, "and"), "hint": suggest(duration.unit, known)}
        errors.add("E110", duration.span, unit=duration.unit, **facts)
        return None
    if duration.amount * seconds > INTEGER_MAX:
        errors.add("E112", duration.span, text=f"of seconds in {duration}")
        return None
    return duration.amount * seconds


def resolve_window(window: ast.Window, errors: Errors) -> Window | None:
    """Return a window in seconds or facts; report one that is none, and return None."""
    size = resolve_duration(window.size, errors, counted=window.counted)
    if window.slide is None:
        return None if size is None else Window(size, None, window.counted)
    slide = resolve_duration(window.slide, errors, counted=window.counted)
    if size is None or slide is None:
        return None
    if slide > size:
        errors.add("E322", window.slide.span, size=window.size, slide=window.slide)
        return None
    return Window(size, slide, window.counted)
