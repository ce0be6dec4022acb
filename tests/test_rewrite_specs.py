"""Each rewrite alone, on programs that show what it does and where it must hold back: `rewrites/<rewrite>.spec`.

A spec is a list of programs, each with its plan before and after. `unchanged` in the place of the second plan says that
the rewrite must not fire.

    === a heading
    p(X) :- q(X), 1 < 2.
    --- before
    (the plan as lowered)
    --- after
    (the plan as rewritten, or: unchanged)
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.golden_cases import HERE
from whorl.analysis.passes import analyze
from whorl.diagnostics.source import Source
from whorl.logical.explain import explain_plan
from whorl.logical.lower import lower_program
from whorl.logical.rewrites import NAMES, REWRITES
from whorl.syntax.parser import parse_program

FOLDER = HERE / "rewrites"
UNCHANGED = "unchanged"


@dataclass(frozen=True)
class Spec:
    """One program of a spec file."""

    heading: str
    program: str
    before: str
    after: str

    def text(self) -> str:
        return f"=== {self.heading}\n{self.program}\n--- before\n{self.before}\n--- after\n{self.after}\n"


def _read(path: Path) -> tuple[str, list[Spec]]:
    preface, *sections = f"\n{path.read_text(encoding='utf-8')}".split("\n=== ")
    return preface.strip(), [_parse(section) for section in sections]


def _parse(section: str) -> Spec:
    heading, _, rest = section.partition("\n")
    program, _, plans = rest.partition("\n--- before")
    before, _, after = plans.partition("\n--- after")
    return Spec(heading.strip(), program.strip(), before.strip("\n"), after.strip("\n"))


def _run(rewrite: str, spec: Spec) -> Spec:
    plan = lower_program(analyze(parse_program(Source(spec.heading, spec.program))))
    before = explain_plan(plan)
    after = explain_plan(REWRITES[NAMES.index(rewrite)](plan))
    return Spec(spec.heading, spec.program, before, UNCHANGED if after == before else after)


@pytest.mark.parametrize("rewrite", NAMES)
def test_rewrite(rewrite: str, update_golden: bool) -> None:
    path = FOLDER / f"{rewrite}.spec"
    preface, specs = _read(path)
    found = [_run(rewrite, spec) for spec in specs]
    if update_golden:
        path.write_text("\n".join([f"{preface}\n", *(spec.text() for spec in found)]), encoding="utf-8")
        specs = found
    assert [spec.text() for spec in found] == [spec.text() for spec in specs]
    assert any(spec.after != UNCHANGED for spec in specs), "some program shows what the rewrite does"
    assert any(spec.after == UNCHANGED for spec in specs), "some program shows where it holds back"
