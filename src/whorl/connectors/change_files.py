"""Changes of a view as a CSV file that grows, epoch by epoch: `<view>.changes.csv`, with `epoch,op,...`.

An epoch may be written again, after a crash: what the file has of it then goes first. So each stands there once.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path

from whorl.diagnostics.errors import UserError


class ChangeFile:
    """One growing file."""

    def __init__(self, path: Path, columns: Sequence[str]) -> None:
        self._path = path
        self._header = _line(["epoch", "op", *columns])

    def write(self, epoch: int, changes: Iterable[Sequence[str]]) -> None:
        """Add the changes of an epoch, each with its operation first."""
        text = "".join(_line([str(epoch), *change]) for change in changes)
        try:
            self._cut(epoch)
            with self._path.open("a", encoding="utf-8", newline="") as file:
                file.write(text)
        except OSError as error:
            raise UserError("E626", None, path=self._path, reason=error.strerror or str(error)) from None

    def _cut(self, epoch: int) -> None:
        """Drop what the file has of an epoch, or behind it; start it if there is none."""
        if not self._path.exists():
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_text(self._header, encoding="utf-8")
            return
        with self._path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))[1:]
        kept = [row for row in rows if row and row[0].isdigit() and int(row[0]) < epoch]
        if len(kept) < len(rows):
            temporary = self._path.with_name(f".{self._path.name}.part")
            temporary.write_text(self._header + "".join(map(_line, kept)), encoding="utf-8")
            temporary.replace(self._path)


def _line(fields: Sequence[str]) -> str:
    text = io.StringIO(newline="")
    csv.writer(text, lineterminator="\n").writerow(fields)
    return text.getvalue()
