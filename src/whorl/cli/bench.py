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


@bench_app.command("peers")
def bench_peers(
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="CASE", help="Run this case, or all whose names start so; may repeat."),
    ] = None,
    runs: Annotated[
        int | None, typer.Option(min=1, metavar="N", help="Runs of each contestant; 5, or 2 if quick.")
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", metavar="DIR", help="Where results.json and results.svg go.")
    ] = Path("whorl-bench"),
    quick: Annotated[bool, typer.Option("--quick", help="Small data: see that it works.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Also what takes many minutes.")] = False,
    seconds: Annotated[
        float | None, typer.Option("--cap", min=1, metavar="SECONDS", help="The most that one measurement may take.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Other generated data.")] = 1,
) -> None:
    """Run the cases, compare the answers, and say which targets are met."""
    from whorl.bench.runner import Options
    from whorl.cli.bench_tables import run_peers

    options = Options(runs or (2 if quick else 5), seed, quick, full, seconds)
    run_peers(only or [], options, output)
