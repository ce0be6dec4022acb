"""Runs the command line inside the test's process, as the installed script does."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from importlib import import_module
from unittest.mock import patch

from whorl.cli.main import main

import_module("whorl.hosts.inprocess")  # compiles the kernel where it is not on disk, before anybody looks


@dataclass(frozen=True)
class Run:
    """What one call of the command line left behind."""

    code: int
    out: str
    err: str


def whorl(*arguments: str) -> Run:
    """Run `whorl` with arguments, in the current folder."""
    out, err = io.StringIO(), io.StringIO()
    code: int | str | None = 0
    with (
        patch.object(sys, "argv", ["whorl", *arguments]),
        patch.dict("os.environ", {"COLUMNS": "100"}),
        redirect_stdout(out),
        redirect_stderr(err),
    ):
        try:
            main()
        except SystemExit as ended:
            code = ended.code
    assert isinstance(code, int) or code is None
    return Run(code or 0, out.getvalue(), err.getvalue())
