"""Near misses: the names that somebody may have meant."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches


def suggest(name: str, known: Iterable[str]) -> str:
    """Return a hint that lists the known names nearest to ``name``, or the empty string."""
    candidates = sorted(set(known) - {name})
    folded = {candidate.lower(): candidate for candidate in reversed(candidates)}
    near = get_close_matches(name.lower(), folded, n=3, cutoff=0.6)
    if not near:
        return ""
    return "Did you mean " + " or ".join(f'"{folded[match]}"' for match in near) + "?"
