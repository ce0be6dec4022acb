"""Errors that the user can act on, and those that are ours."""

from __future__ import annotations

from collections.abc import Sequence

from whorl.diagnostics.catalogue import CATALOGUE
from whorl.diagnostics.source import Span, show_span
from whorl.diagnostics.wording import Wording

_WORDING = Wording()


class WhorlError(Exception):
    """Anything that Whorl raises on purpose."""


class UserError(WhorlError):
    """A mistake in a program or in data: a code of the catalogue, a place, and the facts that fill its text."""

    def __init__(self, code: str, span: Span | None = None, **facts: object) -> None:
        self.code = code
        self.span = span
        self.facts = facts
        self.epoch: int | None = None  # the epoch that was refused
        self.line: int | None = None  # the line of the input that holds the change
        super().__init__(code)

    @property
    def message(self) -> str:
        """What is wrong, in one line."""
        return _WORDING.format(CATALOGUE[self.code].message, **self.facts)

    @property
    def detail(self) -> str:
        """What was found and what was expected; may be empty."""
        return _WORDING.format(CATALOGUE[self.code].detail, **self.facts)

    @property
    def hint(self) -> str:
        """What to do; may be empty."""
        return _WORDING.format(CATALOGUE[self.code].hint, **self.facts)

    def __str__(self) -> str:
        lines = [f"{self.code} {self.message}"]
        if self.span is not None:
            lines.append(show_span(self.span))
        if self.epoch is not None:
            lines.append(f"  Epoch: {self.epoch}, refused as a whole.")
        lines.extend(f"  {name}: {text}" for name, text in (("Detail", self.detail), ("Hint", self.hint)) if text)
        return "\n".join(lines)

    def to_json(self) -> dict[str, object]:
        """Return the error as plain data."""
        out: dict[str, object] = {"code": self.code, "message": self.message}
        if self.span is not None:
            line, column = self.span.source.position(self.span.start)
            out |= {"source": self.span.source.name, "line": line, "column": column, "text": self.span.text}
        if self.epoch is not None:
            out["epoch"] = self.epoch
        return out | {"detail": self.detail, "hint": self.hint}


class ProgramErrors(WhorlError):
    """Every error found in one program, in the order of its text."""

    def __init__(self, errors: Sequence[UserError]) -> None:
        unique = {str(error): error for error in errors}
        self.errors = tuple(sorted(unique.values(), key=lambda error: error.span.start if error.span else -1))
        super().__init__(*(error.code for error in self.errors))

    def __str__(self) -> str:
        return "\n".join(str(error) for error in self.errors)


class InternalError(WhorlError):
    """A fault of ours."""

    def __str__(self) -> str:
        return f"internal error: {super().__str__()}\nThis is a fault in Whorl. Please report it with the program."
