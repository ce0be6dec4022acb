"""Files that the command line names: programs, deltas, Python functions."""

from __future__ import annotations

import importlib.util
import traceback
from pathlib import Path

from whorl.diagnostics.errors import UserError
from whorl.diagnostics.source import Source
from whorl.model.functions import Function


def read_source(path: Path) -> Source:
    """Read a text file."""
    try:
        return Source(path.name, path.read_text(encoding="utf-8").removeprefix("\ufeff"))
    except OSError as error:
        raise UserError("E701", None, path=path, reason=error.strerror or str(error)) from None
    except UnicodeDecodeError:
        raise UserError("E702", None, path=path) from None


def load_functions(path: Path | None) -> tuple[Function, ...]:
    """Run a Python file and return the functions it marks with `@whorl.function`."""
    if path is None:
        return ()
    read_source(path)
    spec = importlib.util.spec_from_file_location(f"whorl_functions_{path.stem}", path)
    if spec is None or spec.loader is None:
        raise UserError("E703", None, path=path, reason="Its name does not end in .py")
    module = importlib.util.module_from_spec(spec)
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        raise UserError("E703", None, path=path, reason=_reason(error, path)) from error
    found = tuple(
        marked
        for value in vars(module).values()
        if isinstance(marked := getattr(value, "whorl_function", None), Function)
    )
    if not found:
        raise UserError("E704", None, path=path)
    return found


def _reason(error: BaseException, path: Path) -> str:
    """Say what a Python file raised, and on which of its lines."""
    frames = traceback.extract_tb(error.__traceback__)
    line = next((frame.lineno for frame in reversed(frames) if Path(frame.filename) == path.absolute()), None)
    text = f"{type(error).__name__}: {error}"
    return f"Line {line}: {text}" if line else text
