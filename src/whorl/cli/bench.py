"""`whorl bench`: its commands, each a suite of cases. What they need is imported when they run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

bench_app = typer.Typer(
    help="Measure Whorl beside what people can install.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
)


@bench_app.command("list")
def bench_list() -> None:
    """Show the cases, and who takes part in them."""
    from whorl.cli.bench_run import list_cases

    list_cases()


Only = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="CASE", help="Run this case, or all whose names start so; may repeat."),
]
Runs = Annotated[int | None, typer.Option(min=1, metavar="N", help="Runs of each contestant; 5, or 2 if quick.")]
Once = Annotated[
    int | None, typer.Option("--runs", min=1, metavar="N", help="Runs of each contestant; 1: only CPU times differ.")
]
Output = Annotated[Path, typer.Option("--output", metavar="DIR", help="Where results.json and results.svg go.")]
Quick = Annotated[bool, typer.Option("--quick", help="Small data: see that it works.")]
Full = Annotated[bool, typer.Option("--full", help="Also what takes many minutes.")]
Cap = Annotated[
    float | None, typer.Option("--cap", min=1, metavar="SECONDS", help="The most that one measurement may take.")
]
Seed = Annotated[int, typer.Option("--seed", help="Other generated data.")]
Data = Annotated[Path | None, typer.Option("--data", metavar="DIR", help="Also run real networks from this folder.")]


def _add_suite(name: str, text: str, folder: Path) -> None:
    """Add the command of a suite."""

    @bench_app.command(name, help=text)
    def run(
        only: Only = None,
        runs: Runs = None,
        output: Output = folder,
        quick: Quick = False,
        full: Full = False,
        seconds: Cap = None,
        seed: Seed = 1,
    ) -> None:
        from whorl.bench.suite import SUITES
        from whorl.cli.bench_run import run_suite

        suite = SUITES[name]
        run_suite(suite, only or [], suite.options(runs, seconds, seed, quick=quick, full=full), output)


_add_suite("peers", "Run the cases, compare the answers, and say which targets are met.", Path("whorl-bench"))
_add_suite("spark", "Run the cases on Spark, beside what Spark does itself.", Path("whorl-bench-spark"))


@bench_app.command("regions")
def bench_regions(
    only: Only = None,
    runs: Once = None,
    output: Output = Path("whorl-bench-regions"),
    quick: Quick = False,
    full: Full = False,
    seconds: Cap = None,
    seed: Seed = 1,
    data: Data = None,
) -> None:
    """Count what each strategy ships on a simulated network."""
    from whorl.bench.suite import SUITES
    from whorl.cli.bench_run import run_suite

    suite = SUITES["regions"].with_data(data)
    run_suite(suite, only or [], suite.options(runs, seconds, seed, quick=quick, full=full), output)
