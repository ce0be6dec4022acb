"""Programs and what belongs to them: files of rules, files of Python functions."""

from __future__ import annotations

import importlib.util
import re
import traceback
from os import PathLike
from pathlib import Path

from whorl.diagnostics.errors import UserError
from whorl.diagnostics.source import Source
from whorl.model.functions import Function

_TEXT = re.compile(r"\n|:-|<-|←|\.\s*\Z")  # a line break, an arrow, or a statement's end


def open_program(program: str | PathLike[str]) -> Source:
    """Return a program given as a path, or as its text.

    A string is a path if it ends in `.dl`, and a text if it holds a line break or an arrow or ends with a full stop;
    any other string is a path too.
    """
    if isinstance(program, str) and "\n" in program:
        return Source("program", program)
    if isinstance(program, str) and not program.endswith(".dl") and _TEXT.search(program):
        return Source("program", program)
    return read_source(Path(program))


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
