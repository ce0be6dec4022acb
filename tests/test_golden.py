"""Every golden case gives its expected changes, under every configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.golden_cases import CONFIGS, Case, cases, expected
from whorl.cli.explain import explain_logical
from whorl.cli.files import load_functions, read_source


def _compare(path: Path, found: str, *, update: bool) -> None:
    if update and found:
        path.write_text(found, encoding="utf-8")
    assert found == expected(path)


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize("case", cases(), ids=lambda case: case.name)
def test_golden(case: Case, config: str, update_golden: bool) -> None:
    output, error = case.run(CONFIGS[config])
    if error.startswith("E402"):  # the strategy does not serve this program, and says so
        assert CONFIGS[config].strategy not in ("auto", "recompute", "reference")
        return
    update = update_golden and config == "oracle"
    _compare(case.folder / "expected.deltas", output, update=update)
    if CONFIGS[config].strategy == "reference":
        _compare(case.folder / "expected.err", error, update=update)
    else:  # the kernel meets a limit at another tuple, and says so under the same code
        assert error.split(" ")[0] == expected(case.folder / "expected.err").split(" ")[0]


@pytest.mark.parametrize(
    "case", [case for case in cases() if (case.folder / "explain.txt").exists()], ids=lambda case: case.name
)
def test_explain(case: Case, update_golden: bool) -> None:
    functions = load_functions(case.functions_path())
    text = explain_logical(read_source(case.folder / "program.dl"), functions, [], times=False) + "\n"
    _compare(case.folder / "explain.txt", text, update=update_golden)
