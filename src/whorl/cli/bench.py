"""`whorl bench`: its commands. What they need is imported when they run."""

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
    from whorl.cli.bench_tables import list_cases

    list_cases()


Only = Annotated[
    list[str] | None,
    typer.Option("--only", metavar="CASE", help="Run this case, or all whose names start so; may repeat."),
]
Runs = Annotated[int | None, typer.Option(min=1, metavar="N", help="Runs of each contestant; 5, or 2 if quick.")]
Output = Annotated[Path, typer.Option("--output", metavar="DIR", help="Where results.json and results.svg go.")]
Quick = Annotated[bool, typer.Option("--quick", help="Small data: see that it works.")]
Full = Annotated[bool, typer.Option("--full", help="Also what takes many minutes.")]
Cap = Annotated[
    float | None, typer.Option("--cap", min=1, metavar="SECONDS", help="The most that one measurement may take.")
]
Seed = Annotated[int, typer.Option("--seed", help="Other generated data.")]


@bench_app.command("peers")
def bench_peers(
    only: Only = None,
    runs: Runs = None,
    output: Output = Path("whorl-bench"),
    quick: Quick = False,
    full: Full = False,
    seconds: Cap = None,
    seed: Seed = 1,
) -> None:
    """Run the cases, compare the answers, and say which targets are met."""
    from whorl.bench.runner import Options
    from whorl.bench.suite import PEERS
    from whorl.cli.bench_tables import run_suite

    options = Options(runs or (2 if quick else 5), seed, quick, full, seconds)
    run_suite(PEERS, only or [], options, output)


@bench_app.command("spark")
def bench_spark(
    only: Only = None,
    runs: Runs = None,
    output: Output = Path("whorl-bench-spark"),
    quick: Quick = False,
    full: Full = False,
    seconds: Cap = None,
    seed: Seed = 1,
) -> None:
    """Run the cases on Spark, beside what Spark does itself."""
    from whorl.bench.runner import Options
    from whorl.bench.suite import ON_SPARK
    from whorl.cli.bench_tables import run_suite

    options = Options(runs or (2 if quick else 5), seed, quick, full, seconds)
    run_suite(ON_SPARK, only or [], options, output)


@bench_app.command("regions")
def bench_regions(
    only: Only = None,
    runs: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Runs of each contestant; 1: only CPU times differ.")
    ] = None,
    output: Output = Path("whorl-bench-regions"),
    quick: Quick = False,
    seconds: Cap = None,
    seed: Seed = 1,
    data: Annotated[
        Path | None, typer.Option("--data", metavar="DIR", help="Also run real networks from this folder.")
    ] = None,
) -> None:
    """Count what each strategy ships on a simulated network."""
    from whorl.bench.runner import Options
    from whorl.cli.bench_series import run_regions

    seconds = seconds or (5 if quick else None)
    options = Options(runs or 1, seed, quick, seconds=seconds, data=None if data is None else str(data))
    run_regions(only or [], options, output)
