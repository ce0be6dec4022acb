"""Views as CSV: `<view>.csv` holds the rows, sorted; `<view>.changes.csv` holds `epoch,op,...`, epoch by epoch.

A sink is used in a `with`. Only if all went well do the files take their names, or the text comes out: after an error
there is nothing, or what was there before.
"""

from __future__ import annotations

import csv
import io
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from whorl.diagnostics.errors import UserError
from whorl.model.delta import Delta
from whorl.model.types import Type
from whorl.model.values import Row, Value, format_value


def format_text(value: Value, kind: Type) -> str:
    """Write a value as a file holds it: strings as they are, all else as the language writes it."""
    return value if isinstance(value, str) and kind is Type.STRING else format_value(value)


class Sink(ABC):
    """Where views go."""

    @abstractmethod
    def _stream(self, name: str) -> IO[str]:
        """Return the file that will have a name."""

    @abstractmethod
    def _close(self, *, kept: bool) -> None:
        """Let what was written appear, or vanish."""

    def write_snapshot(self, view: str, columns: Sequence[str], types: Sequence[Type], rows: Iterable[Row]) -> None:
        """Write the rows of a view under a header."""
        writer = csv.writer(self._stream(f"{view}.csv"), lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([format_text(value, kind) for value, kind in zip(row, types, strict=True)] for row in rows)

    def open_changes(self, view: str, columns: Sequence[str]) -> None:
        """Start the changes of a view."""
        csv.writer(self._stream(f"{view}.changes.csv"), lineterminator="\n").writerow(["epoch", "op", *columns])

    def write_changes(self, view: str, types: Sequence[Type], number: int, delta: Delta) -> None:
        """Add what an epoch did to a view: rows that vanished first."""
        writer = csv.writer(self._stream(f"{view}.changes.csv"), lineterminator="\n")
        for sign, rows in (("-", delta.deleted), ("+", delta.inserted)):
            for row in rows:
                texts = [format_text(value, kind) for value, kind in zip(row, types, strict=True)]
                writer.writerow([number, sign, *texts])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close(kept=kind is None)


class FolderSink(Sink):
    """Files in a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._open: dict[str, tuple[Path, IO[str]]] = {}
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UserError("E626", None, path=folder, reason=error.strerror or str(error)) from None

    def _stream(self, name: str) -> IO[str]:
        if name not in self._open:
            path = self._folder / f".{name}.part"
            try:
                self._open[name] = path, path.open("w", encoding="utf-8", newline="")
            except OSError as error:
                raise UserError("E626", None, path=self._folder, reason=error.strerror or str(error)) from None
        return self._open[name][1]

    def _close(self, *, kept: bool) -> None:
        for name, (path, stream) in self._open.items():
            stream.close()
            if kept:
                path.replace(self._folder / name)
            else:
                path.unlink(missing_ok=True)


class TextSink(Sink):
    """One text, handed over at the end."""

    def __init__(self, emit: Callable[[str], None]) -> None:
        self._text = io.StringIO(newline="")
        self._emit = emit

    def _stream(self, name: str) -> IO[str]:
        return self._text

    def _close(self, *, kept: bool) -> None:
        if kept:
            self._emit(self._text.getvalue())
