"""Whorl keeps recursive views over changing data up to date."""

from __future__ import annotations

from typing import TYPE_CHECKING

from whorl.diagnostics.errors import ProgramErrors, UserError, WhorlError
from whorl.model.delta import Delta
from whorl.model.functions import function
from whorl.model.limits import Limits
from whorl.model.values import Term

if TYPE_CHECKING:
    from os import PathLike

    from whorl.views.session import Functions, HostFactory, Session

__version__ = "0.1.0"
__all__ = [
    "Delta",
    "Limits",
    "ProgramErrors",
    "Term",
    "UserError",
    "WhorlError",
    "__version__",
    "function",
    "open",
]


def open(
    program: str | PathLike[str],
    *,
    functions: Functions = (),
    strategy: str = "auto",
    limits: Limits | None = None,
    partitions: int = 1,
    host: HostFactory | None = None,
) -> Session:
    """Open a program, and return a session that maintains its views.

    ``program`` is a path (`*.dl`) or the text of the rules. ``functions`` are Python functions for the rules, or a path
    to a file of them. ``strategy`` says how views are maintained; `reference` recomputes them. ``host`` makes whoever
    maintains the views, instead of the kernel in this process.
    """
    from whorl.views.session import open_session

    return open_session(
        program, functions=functions, strategy=strategy, limits=limits, partitions=partitions, host=host
    )
