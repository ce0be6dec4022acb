"""Which strategy maintains which kind of stratum, and why."""

from __future__ import annotations

from whorl.diagnostics.errors import UserError

STRATEGIES = ("auto", "recompute", "counting", "dred", "support")


def choose_strategy(wanted: str, kind: str, *, recursive: bool) -> tuple[str, str]:
    """Return the strategy for a stratum and the reason."""
    assert kind in ("rows", "best"), "other kinds have one strategy each"
    if kind == "best":
        if wanted in ("recompute", "dred"):
            return wanted, "asked for"
        return "dred", "min or max in recursion: groups whose best value lost a derivation are chosen anew"
    if wanted == "auto":
        if recursive:
            return "support", "recursive rows: a row that loses its derivation looks for another of smaller rank"
        return "counting", "not recursive: the number of derivations says when a row goes"
    if wanted == "counting" and recursive:
        return "support", "counting serves rules without recursion only: a cycle would keep itself alive"
    return wanted, "asked for"


def check_strategy(wanted: str) -> None:
    """Refuse a name that is no strategy."""
    if wanted not in STRATEGIES:
        raise UserError("E401", None, name=wanted, known=", ".join(STRATEGIES))
