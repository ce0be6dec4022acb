"""Which strategy maintains which kind of stratum, and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from whorl.diagnostics.errors import UserError
from whorl.physical.plan import PhysicalStratum

STRATEGIES = ("auto", "recompute", "counting", "expiry", "dred", "pf", "support", "derivations", "absorption")

SHIPS = ("lazy", "eager", "plain")
PLACEMENTS = ("auto", "apart", "join", "first")

_SERVES = {
    "rows": ("recompute", "expiry", "dred", "pf", "support", "derivations", "absorption"),
    "best": ("recompute", "expiry", "dred", "absorption"),
    "totals": ("recompute",),
    "selected": ("recompute",),
    "staged": ("recompute", "derivations"),
    "staged groups": ("recompute",),
    "reference": ("recompute",),
}
_REFUSALS = {
    "rows": "it is recursive, and a cycle of rows would keep its own count above zero",
    "best": "it keeps the best value of each group inside its recursion",
    "totals": "it counts or adds up in its own recursion, or aggregates several columns or strings",
    "selected": "rows are selected inside the recursion",
    "staged": "it runs stage by stage",
    "staged groups": "it aggregates, stage by stage",
}
_STAGED = "stage by stage, and again from the first stage that a change can reach"
_ROUNDS = {
    "totals": "aggregates in recursion: groups that may have lost a contribution are filled anew",
    "selected": "only rows that are best in some choice go on: groups that may have lost theirs are filled anew",
    "staged": _STAGED,
    "staged groups": _STAGED,
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
    if kind in _ROUNDS:
        return "recompute", _ROUNDS[kind]
    if expires:
        return "expiry", "rows die of age only: the time of death is their label, and a window that moves joins nothing"
    if kind == "best":
        return "dred", "min or max in recursion: groups whose best value lost a derivation are chosen anew"
    if recursive:
        return "support", "recursive rows: a row that loses its derivation looks for another of smaller rank"
    return "counting", "not recursive: the number of derivations says when a row goes"


def with_arms(strata: Sequence[PhysicalStratum]) -> tuple[PhysicalStratum, ...]:
    """Let recursive strata choose in every epoch: follow the changes, in one of the ways that serve, or derive again.

    Times of death can give way to ranks only where no other stratum reads them.
    """
    by_death = {name for stratum in strata if stratum.strategy == "expiry" for name in stratum.inputs()}
    return tuple(replace(stratum, arms=_arms(stratum, by_death)) for stratum in strata)


def _arms(stratum: PhysicalStratum, by_death: set[str]) -> tuple[str, ...]:
    if not stratum.recursive or stratum.kind not in ("rows", "best", "frontier") or stratum.strategy == "recompute":
        return ()
    if stratum.kind == "rows" and stratum.strategy == "expiry" and not by_death & set(stratum.relations):
        return ("expiry", "support")
    return (stratum.strategy,)


def check_strategy(wanted: str) -> None:
    """Refuse a name that is no strategy."""
    if wanted not in STRATEGIES:
        raise UserError("E401", None, name=wanted, known=", ".join(STRATEGIES))


def check_placement(wanted: str) -> None:
    """Refuse a name that is no placement."""
    if wanted not in PLACEMENTS:
        raise UserError("E403", None, name=wanted, known=", ".join(PLACEMENTS))
