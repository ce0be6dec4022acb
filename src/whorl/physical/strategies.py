"""Which strategy maintains which kind of stratum, and why."""

from __future__ import annotations

from whorl.diagnostics.errors import UserError

STRATEGIES = ("auto", "recompute", "counting", "expiry", "dred", "pf", "support", "derivations")

_SERVES = {
    "rows": ("recompute", "expiry", "dred", "pf", "support", "derivations"),
    "best": ("recompute", "expiry", "dred"),
    "reference": ("recompute",),
}
_REFUSALS = {
    "rows": "it is recursive, and a cycle of rows would keep its own count above zero",
    "best": "it keeps the best value of each group inside its recursion",
}


def choose_strategy(
    wanted: str, kind: str, relations: tuple[str, ...], *, recursive: bool, expires: bool, why: str = ""
) -> tuple[str, str]:
    """Return the strategy for a stratum and the reason; refuse one that does not serve it.

    ``expires`` says that rows can only die of age: nothing is negated, and what is read carries times of death.
    """
    if wanted == "auto":
        return _choose(kind, recursive=recursive, expires=expires)
    served = _SERVES[kind] if recursive or kind != "rows" else ("counting", *_SERVES[kind])
    if wanted not in served:
        names = ", ".join(f'"{name}"' for name in relations)
        reason = why or _REFUSALS[kind]
        raise UserError("E402", None, strategy=wanted, relations=names, reason=reason, served=", ".join(served))
    return wanted, "asked for"


def _choose(kind: str, *, recursive: bool, expires: bool) -> tuple[str, str]:
    if kind == "reference":
        return "recompute", "nothing else serves it"
    if expires:
        return "expiry", "rows die of age only: the time of death is their label, and a window that moves joins nothing"
    if kind == "best":
        return "dred", "min or max in recursion: groups whose best value lost a derivation are chosen anew"
    if recursive:
        return "support", "recursive rows: a row that loses its derivation looks for another of smaller rank"
    return "counting", "not recursive: the number of derivations says when a row goes"


def check_strategy(wanted: str) -> None:
    """Refuse a name that is no strategy."""
    if wanted not in STRATEGIES:
        raise UserError("E401", None, name=wanted, known=", ".join(STRATEGIES))
