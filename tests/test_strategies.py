"""Which strategy serves which stratum: the table of docs/strategies/index.md against the code.

`pytest tests/test_strategies.py --update-golden` rewrites the tables.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from tests.command_line import whorl
from whorl.diagnostics.errors import UserError
from whorl.diagnostics.source import Source
from whorl.logical.compile import compile_program
from whorl.physical.lower import lower_plan
from whorl.physical.plan import PhysicalPlan
from whorl.physical.strategies import STRATEGIES

ROOT = Path(__file__).parent.parent
PAGES = ROOT / "docs" / "strategies"
INDEX = PAGES / "index.md"
NAMED = STRATEGIES[1:]
CLASSES = {
    "once.dl": "not recursive",
    "group.dl": "aggregate, not recursive",
    "recursive.dl": "recursive",
    "negated.dl": "recursive, negation below",
    "window.dl": "recursive, window",
    "window_negated.dl": "recursive, window, negation below",
    "best.dl": "`min` or `max` in recursion",
    "window_best.dl": "`min` or `max` in recursion, window",
    "sums.dl": "sum or count in recursion",
    "several.dl": "several aggregates in recursion",
    "selected.dl": "aggregate selection",
    "staged.dl": "stages",
    "staged_groups.dl": "stages, aggregate",
    "untyped.dl": "sums of unknown type",
}
EVERY_ROW = ("recompute", "expiry", "dred", "pf", "support", "derivations", "absorption")
SERVED = {
    "once.dl": (*EVERY_ROW, "counting"),
    "group.dl": (*EVERY_ROW, "counting"),
    "recursive.dl": EVERY_ROW,
    "negated.dl": EVERY_ROW,
    "window.dl": EVERY_ROW,
    "window_negated.dl": EVERY_ROW,
    "best.dl": ("recompute", "expiry", "dred", "absorption"),
    "window_best.dl": ("recompute", "expiry", "dred", "absorption"),
    "staged.dl": ("recompute", "derivations"),
} | dict.fromkeys(("sums.dl", "several.dl", "selected.dl", "staged_groups.dl", "untyped.dl"), ("recompute",))
TAKEN = {
    "once.dl": ("rows", "counting"),
    "group.dl": ("rows", "counting"),
    "recursive.dl": ("rows", "support"),
    "negated.dl": ("rows", "support"),
    "window.dl": ("rows", "expiry"),
    "window_negated.dl": ("rows", "support"),
    "best.dl": ("best", "dred"),
    "window_best.dl": ("frontier", "expiry"),
    "sums.dl": ("totals", "recompute"),
    "several.dl": ("totals", "recompute"),
    "selected.dl": ("selected", "recompute"),
    "staged.dl": ("staged", "recompute"),
    "staged_groups.dl": ("staged", "recompute"),
    "untyped.dl": ("reference", "recompute"),
}

every_class = pytest.mark.parametrize("name", CLASSES)


def _programs() -> dict[str, str]:
    """Return the examples of the page by their names."""
    text = INDEX.read_text(encoding="utf-8")
    return dict(re.findall(r"^```datalog (\S+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL))


def _plan(name: str, strategy: str) -> PhysicalPlan:
    return lower_plan(compile_program(Source(name, _programs()[name])), strategy)


def _refusal(name: str, strategy: str) -> UserError | None:
    try:
        _plan(name, strategy)
    except UserError as refused:
        assert refused.code == "E402"
        return refused
    return None


@every_class
@pytest.mark.parametrize("strategy", NAMED)
def test_a_strategy_serves_or_refuses(name: str, strategy: str) -> None:
    refused = _refusal(name, strategy)
    if strategy in SERVED[name]:
        assert refused is None
        assert {stratum.strategy for stratum in _plan(name, strategy).strata} <= {strategy, "counting"}
        return
    assert refused is not None
    assert refused.facts["strategy"] == strategy
    assert set(str(refused.facts["served"]).split(", ")) == set(SERVED[name])


@every_class
def test_auto_always_serves(name: str) -> None:
    first = _plan(name, "auto").strata[0]
    assert (first.kind, first.strategy) == TAKEN[name]


def test_a_window_may_change_from_deaths_to_ranks() -> None:
    assert _plan("window.dl", "auto").strata[0].arms == ("expiry", "support")
    assert _plan("window_best.dl", "auto").strata[0].arms == ("expiry",)
    assert _plan("recursive.dl", "auto").strata[0].arms == ("support",)
    assert _plan("recursive.dl", "support").strata[0].arms == ()
    assert _plan("once.dl", "auto").strata[0].arms == ()


# The page


def _serves() -> list[str]:
    lines = [f"| Stratum | Example | {' | '.join(NAMED)} | `auto` takes |", "|" + "---|" * (len(NAMED) + 3)]
    for name, title in CLASSES.items():
        cells = ["yes" if _refusal(name, strategy) is None else "" for strategy in NAMED]
        lines.append(f"| {title} | `{name}` | {' | '.join(cells)} | {_plan(name, 'auto').strata[0].strategy} |")
    return lines


def _reasons() -> list[str]:
    lines = ["| Example | Reason |", "|---|---|"]
    for name in CLASSES:
        refusals = (_refusal(name, strategy) for strategy in NAMED)
        reasons = {str(refused.facts["reason"]) for refused in refusals if refused is not None}
        lines += [f"| `{name}` | {reason} |" for reason in sorted(reasons)]
    return lines


@pytest.mark.parametrize(("table", "lines"), [("serves", _serves), ("reasons", _reasons)], ids=["serves", "reasons"])
def test_the_page_says_what_the_code_does(table: str, lines: object, update_golden: bool) -> None:
    assert callable(lines)
    text = INDEX.read_text(encoding="utf-8")
    found = re.search(rf"^<!-- table: {table} -->\n(.*?)<!-- end -->$", text, re.MULTILINE | re.DOTALL)
    assert found is not None
    expected = "\n" + "\n".join(lines()) + "\n\n"
    if update_golden:
        INDEX.write_text(text[: found.start(1)] + expected + text[found.end(1) :], encoding="utf-8")
        return
    assert found[1] == expected


def test_every_strategy_has_a_page_that_is_linked() -> None:
    text = INDEX.read_text(encoding="utf-8")
    assert {page.stem for page in PAGES.glob("*.md")} == {"index", *STRATEGIES}
    for strategy in STRATEGIES:
        assert f"[`{strategy}`]({strategy}.md)" in text
        page = (PAGES / f"{strategy}.md").read_text(encoding="utf-8")
        assert page.startswith(f"# {strategy}\n")
        assert "(index.md" in page


# The command line


@pytest.mark.parametrize("command", ["check", "explain", "run", "replay", "why"])
def test_help_names_every_strategy(command: str) -> None:
    text = " ".join(whorl(command, "--help").out.split())
    shown = text.split("--strategy NAME ", 1)[1].split(". ", 1)[0]
    assert [name for name in re.findall(r"[a-z]+", shown) if name in STRATEGIES] == list(STRATEGIES)


@every_class
def test_check_says_what_runs(name: str, tmp_path: Path) -> None:
    path = tmp_path / name
    path.write_text(_programs()[name], encoding="utf-8")
    plan = _plan(name, "auto")
    found = json.loads(whorl("check", str(path), "--json").out)["strategies"]
    assert [(each["relations"], each["strategy"], each["reason"], each["arms"]) for each in found] == [
        (list(stratum.relations), stratum.strategy, stratum.reason, list(stratum.arms)) for stratum in plan.strata
    ]
    lines = whorl("check", str(path)).out.splitlines()
    for stratum in plan.strata:
        assert f"  {', '.join(stratum.relations)}: {stratum.strategy} ({stratum.reason})" in lines


def test_check_says_that_types_may_change_the_plan(tmp_path: Path) -> None:
    for name, waits in (("untyped.dl", True), ("sums.dl", False)):
        path = tmp_path / name
        path.write_text(_programs()[name], encoding="utf-8")
        run = whorl("check", str(path))
        assert ("    data that tells the types of its columns may change this\n" in run.out) is waits


def test_check_refuses_what_a_strategy_does_not_serve(tmp_path: Path) -> None:
    path = tmp_path / "best.dl"
    path.write_text(_programs()["best.dl"], encoding="utf-8")
    run = whorl("check", str(path), "--strategy", "support")
    assert (run.code, run.out) == (1, "")
    assert run.err == (
        'E402 strategy "support" cannot maintain "route"\n'
        "  Detail: Reason: it keeps the best value of each group inside its recursion.\n"
        "  Hint: Use auto, or one of those that serve it: recompute, expiry, dred, absorption.\n"
    )


def test_check_plans_large_programs_only_if_asked(tmp_path: Path) -> None:
    path = tmp_path / "large.dl"
    path.write_text("".join(f"p{number}(X) :- q{number}(X).\n" for number in range(501)), encoding="utf-8")
    note = "Strategies\n  not planned for more than 500 rules; --strategy auto shows them\nOutputs\n"
    assert note in whorl("check", str(path)).out
    assert json.loads(whorl("check", str(path), "--json").out)["strategies"] is None
    assert len(json.loads(whorl("check", str(path), "--json", "--strategy", "auto").out)["strategies"]) == 501
