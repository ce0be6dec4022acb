"""Results as files: `results.json` with every run, `results.svg` with the main figures."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path

from whorl.bench.case import Case
from whorl.bench.options import Options
from whorl.bench.results import CaseResult, describe_machine, spent_seconds
from whorl.bench.targets import Verdict
from whorl.diagnostics.errors import UserError
from whorl.diagnostics.names import suggest


def choose_cases(names: Sequence[str], cases: Sequence[Case]) -> tuple[Case, ...]:
    """Return the cases whose names are given or start so, all of them if none is given."""
    for name in names:
        if not any(_chosen(case, name) for case in cases):
            known = [case.name for case in cases]
            raise UserError("E661", None, name=name, hint=suggest(name, known) or "`whorl bench list` shows the cases.")
    return tuple(case for case in cases if not names or any(_chosen(case, name) for name in names))


def _chosen(case: Case, name: str) -> bool:
    return case.name == name or case.name.startswith(f"{name}-")


def open_folder(folder: Path) -> None:
    """Make the folder for the results before anything runs."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError("E662", None, path=folder, reason=error.strerror or str(error)) from None


def save_results(
    folder: Path,
    results: Sequence[CaseResult],
    verdicts: Sequence[Verdict],
    options: Options,
    picture: Callable[[Sequence[CaseResult]], str],
) -> tuple[Path, Path]:
    """Write what was measured so far."""
    data = {
        "machine": describe_machine(),
        "options": asdict(options),
        "cpu_s": spent_seconds(),
        "cases": [result.to_json() for result in results],
        "targets": [verdict.to_json() for verdict in verdicts],
    }
    written = folder / "results.json", folder / "results.svg"
    try:
        written[0].write_text(json.dumps(data, indent=2) + "\n", encoding="utf-8")
        written[1].write_text(picture(results), encoding="utf-8")
    except OSError as error:
        raise UserError("E662", None, path=folder, reason=error.strerror or str(error)) from None
    return written
