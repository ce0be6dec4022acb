"""How a state came about, as the driver knows it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from whorl.hosts.spark.layout import START
from whorl.hosts.spark.protocol import Origin


@dataclass(frozen=True, slots=True)
class History:
    """How the state came about: tokens, oldest first, and which of them were saved."""

    tokens: tuple[str, ...] = (START,)
    snapshots: tuple[str, ...] = ()
    origin: Origin | None = None

    @property
    def base(self) -> str:
        """The token of the state that counts."""
        return self.tokens[-1]

    def after(self, token: str, *, saved: bool) -> History:
        """Return the history with one epoch more; if the state before it was saved, only two saved states are kept."""
        if not saved:
            return replace(self, tokens=(*self.tokens, token))
        snapshots = (*self.snapshots, self.base)[-2:]
        first = self.tokens.index(snapshots[0]) if len(snapshots) == 2 else 0
        return replace(self, tokens=(*self.tokens[first:], token), snapshots=snapshots)
