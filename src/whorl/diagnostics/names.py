"""Near misses: the names that somebody may have meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher

from whorl.diagnostics.wording import listed, quoted

_NEAR = 0.7  # how alike a name must be to be worth a hint
_SPREAD = 0.15  # how much less alike than the nearest one another may be


def suggest(name: str, known: Iterable[str]) -> str:
    """Return a hint that lists the known names nearest to ``name``, or the empty string.

    >>> suggest("egde", ["edge", "node"])
    'Did you mean "edge"?'
    """
    alike = {candidate: _likeness(name.lower(), candidate.lower()) for candidate in known if candidate != name}
    least = max(_NEAR, max(alike.values(), default=0.0) - _SPREAD)
    near = sorted((c for c, likeness in alike.items() if likeness >= least), key=lambda c: (-alike[c], c))
    return f"Did you mean {listed([quoted(candidate) for candidate in near[:3]])}?" if near else ""


def _likeness(name: str, candidate: str) -> float:
    """Return how alike two names are, from 0 to 1; 0 as soon as a cheap bound rules the pair out."""
    if len(name) > 2 and candidate.startswith(name):
        return max(_NEAR, len(name) / len(candidate))
    matcher = SequenceMatcher(None, name, candidate)
    if matcher.real_quick_ratio() < _NEAR or matcher.quick_ratio() < _NEAR:
        return 0.0
    return matcher.ratio()
