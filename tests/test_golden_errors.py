"""Programs that must fail, each with its exact error text: `golden_errors/<code>/<case>/`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden_cases import HERE, expected
from whorl.cli.files import load_functions, read_source
from whorl.diagnostics.errors import ProgramErrors
from whorl.logical.compile import compile_program
from whorl.syntax.deltas import parse_deltas

FOLDER = HERE / "golden_errors"
CASES = sorted({path.parent for path in FOLDER.glob("*/*/*") if path.name in ("program.dl", "input.deltas")})


def _error(folder: Path) -> str:
    functions = folder / "functions.py"
    try:
        if (folder / "program.dl").exists():
            loaded = load_functions(functions if functions.exists() else None)
            compile_program(read_source(folder / "program.dl"), loaded)
        if (folder / "input.deltas").exists():
            parse_deltas(read_source(folder / "input.deltas"))
    except ProgramErrors as error:
        return f"{error}\n"
    return ""


@pytest.mark.parametrize("folder", CASES, ids=lambda folder: str(folder.relative_to(FOLDER)))
def test_error_text(folder: Path, update_golden: bool) -> None:
    found = _error(folder)
    if update_golden and found:
        (folder / "expected.err").write_text(found, encoding="utf-8")
    assert found, "the program must be refused"
    assert folder.parent.name in found, "the folder is named after the code"
    assert found == expected(folder / "expected.err")
