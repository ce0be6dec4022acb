"""The command line. Imports are inside the commands: `check` must not wait for what only others need."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from whorl.cli.bench import bench_app
from whorl.diagnostics.errors import ProgramErrors, UserError, WhorlError
from whorl.model.limits import MAX_DEPTH, Limits

app = typer.Typer(
    help="Recursive views over changing data: rules in, changes out.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
app.add_typer(bench_app, name="bench")

ProgramArgument = Annotated[Path, typer.Argument(metavar="PROGRAM", help="A Datalog program, *.dl.")]
FunctionsOption = Annotated[
    Path | None, typer.Option("--functions", metavar="FILE.py", help="Python functions for the rules.")
]
_STRATEGIES_HELP = "auto, recompute, counting, expiry, dred, pf, support, derivations or absorption."
PlanStrategyOption = Annotated[str, typer.Option("--strategy", metavar="NAME", help=_STRATEGIES_HELP)]
StrategyOption = Annotated[
    str,
    typer.Option(
        "--strategy",
        metavar="NAME",
        help="auto, recompute, counting, expiry, dred, pf, support, derivations, absorption; "
        "or reference, which recomputes.",
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print data for machines.")]
PartitionsOption = Annotated[
    int, typer.Option("--partitions", min=1, metavar="N", help="Parts that the state is split into.")
]
PlacementOption = Annotated[
    str,
    typer.Option(
        "--placement",
        metavar="NAME",
        help="Where rows live in several partitions: apart, join, first; auto exchanges rows where it must.",
    ),
]
VerifyOption = Annotated[bool, typer.Option("--verify", help="Compare with the reference evaluator after every epoch.")]
WithoutOption = Annotated[
    list[str] | None, typer.Option("--without", metavar="REWRITE", help="Leave a rewrite out; may repeat.")
]
MaxRoundsOption = Annotated[int | None, typer.Option(min=1, metavar="N", help="Rounds that one fixpoint may take.")]
MaxTuplesOption = Annotated[int | None, typer.Option(min=1, metavar="N", help="Tuples that one stratum may hold.")]
MaxDepthOption = Annotated[
    int | None, typer.Option(min=1, max=MAX_DEPTH, metavar="N", help="Depth that a term may reach.")
]


@app.callback(invoke_without_command=True)
def _root(version: Annotated[bool, typer.Option("--version", help="Print the version.")] = False) -> None:
    if version:
        from whorl import __version__

        typer.echo(f"whorl {__version__}")
        raise typer.Exit


@app.command()
def check(
    program: ProgramArgument,
    functions: FunctionsOption = None,
    strategy: Annotated[
        str | None, typer.Option("--strategy", metavar="NAME", help=_STRATEGIES_HELP, show_default="auto")
    ] = None,
    as_json: JsonOption = False,
    times: Annotated[bool, typer.Option("--times", help="Also print how long each pass took.")] = False,
) -> None:
    """Parse and analyse: relations, types, strata, windows, strategies."""
    from whorl.cli.check import check_program
    from whorl.cli.files import load_functions, read_source

    source = read_source(program)
    for line in check_program(source, load_functions(functions), strategy, as_json=as_json, times=times):
        typer.echo(line)


@app.command()
def explain(
    program: ProgramArgument,
    stage: Annotated[str, typer.Option("--stage", help="ast, logical or physical.")] = "logical",
    functions: FunctionsOption = None,
    strategy: PlanStrategyOption = "auto",
    placement: PlacementOption = "apart",
    without: WithoutOption = None,
    times: Annotated[bool, typer.Option("--times", help="Also print how long each rewrite took.")] = False,
) -> None:
    """Show a program as one stage of the compiler sees it."""
    from whorl.cli.explain import explain_ast, explain_logical, explain_strategies
    from whorl.cli.files import load_functions, read_source

    source = read_source(program)
    if stage == "ast":
        typer.echo(explain_ast(source), nl=False)
    elif stage == "logical":
        typer.echo(explain_logical(source, load_functions(functions), without or [], times=times))
    elif stage == "physical":
        typer.echo(explain_strategies(source, load_functions(functions), without or [], strategy, placement))
    else:
        message = f"{stage} is no stage; use ast, logical or physical"
        raise typer.BadParameter(message, param_hint="--stage")


@app.command()
def run(
    program: ProgramArgument,
    output: Annotated[str, typer.Option("--output", metavar="DIR", help="Where <view>.csv goes; - prints one view.")],
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", metavar="REL=PATH", help="A file of rows, or a folder of them; may repeat."),
    ] = None,
    emit: Annotated[
        str, typer.Option("--emit", metavar="WHAT", help="snapshot, changes (<view>.changes.csv) or both.")
    ] = "snapshot",
    view: Annotated[str | None, typer.Option("--view", metavar="NAME", help="Write this view only.")] = None,
    every: Annotated[
        str | None,
        typer.Option("--every", metavar="TIME", help='Cut streams into epochs: "5 minutes", or "slide".'),
    ] = None,
    functions: FunctionsOption = None,
    strategy: StrategyOption = "auto",
    partitions: Annotated[
        int | None,
        typer.Option(
            "--partitions", min=1, metavar="N", help="Parts that the state is split into; 1, or Spark's cores."
        ),
    ] = None,
    placement: PlacementOption = "auto",
    host: Annotated[str, typer.Option("--host", metavar="NAME", help="Where it runs: local or spark.")] = "local",
    master: Annotated[str, typer.Option("--master", metavar="URL", help="Spark's master.")] = "local[*]",
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on with files that come into the input folders.")
    ] = False,
    checkpoint: Annotated[
        Path | None, typer.Option("--checkpoint", metavar="DIR", help="Where --follow keeps state, to go on from.")
    ] = None,
    once: Annotated[bool, typer.Option("--once", help="With --follow: end when all files are in the views.")] = False,
    verify: VerifyOption = False,
    as_json: JsonOption = False,
    without: WithoutOption = None,
    max_rounds: MaxRoundsOption = None,
    max_tuples: MaxTuplesOption = None,
    max_depth: MaxDepthOption = None,
) -> None:
    """Files in, views out: CSV, JSON lines or Parquet, as one epoch or as many."""
    from whorl.cli.compiling import load_kernel
    from whorl.cli.explain import check_rewrites

    check_rewrites(without or [])
    load_kernel()
    from whorl.cli.run import RunOptions, run_program

    limits = _limits(max_rounds, max_tuples, max_depth)
    options = RunOptions(
        program,
        inputs or [],
        output,
        emit,
        view,
        every,
        strategy,
        partitions,
        verify,
        functions,
        limits,
        without or [],
        as_json,
        host,
        master,
        follow,
        checkpoint,
        once,
        placement,
    )
    if not follow:
        run_program(options)
        return
    from whorl.cli.follow import follow_program

    follow_program(options)


@app.command()
def replay(
    program: ProgramArgument,
    deltas: Annotated[Path, typer.Argument(metavar="FILE.deltas", help="Epochs in delta notation.")],
    functions: FunctionsOption = None,
    strategy: StrategyOption = "auto",
    partitions: PartitionsOption = 1,
    placement: PlacementOption = "auto",
    verify: VerifyOption = False,
    as_json: JsonOption = False,
    report: Annotated[bool, typer.Option("--report", help="Also print what each epoch did, and what it cost.")] = False,
    without: WithoutOption = None,
    max_rounds: MaxRoundsOption = None,
    max_tuples: MaxTuplesOption = None,
    max_depth: MaxDepthOption = None,
) -> None:
    """Epochs in, epochs out: apply each, and print the rows that appear (+) and vanish (-)."""
    from whorl.cli.explain import check_rewrites
    from whorl.cli.files import load_functions, read_source
    from whorl.cli.replay import replay_epochs

    check_rewrites(without or [])
    lines = replay_epochs(
        read_source(program),
        read_source(deltas),
        load_functions(functions),
        _limits(max_rounds, max_tuples, max_depth),
        without or [],
        strategy,
        partitions,
        placement,
        verify=verify,
        as_json=as_json,
        report=report,
    )
    for line in lines:
        typer.echo(line)


@app.command()
def why(
    program: ProgramArgument,
    row: Annotated[str, typer.Argument(metavar="ROW", help="""The row, as 'reachable("a", _)'; _ is any value.""")],
    inputs: Annotated[
        list[str] | None,
        typer.Option("--input", metavar="REL=PATH", help="A file of rows, or a folder of them; may repeat."),
    ] = None,
    deltas: Annotated[
        Path | None, typer.Option("--deltas", metavar="FILE.deltas", help="Epochs in delta notation, instead.")
    ] = None,
    checkpoint: Annotated[
        Path | None, typer.Option("--checkpoint", metavar="DIR", help="The state of a query on Spark, instead.")
    ] = None,
    epoch: Annotated[int | None, typer.Option("--epoch", metavar="N", help="Stop after this epoch.")] = None,
    missing: Annotated[bool, typer.Option("--not", help="Say why the row is not there.")] = False,
    proofs: Annotated[bool, typer.Option("--proofs", help="List the sets of facts that it follows from.")] = False,
    cuts: Annotated[bool, typer.Option("--cuts", help="List the fewest facts whose loss takes it away.")] = False,
    lifetime: Annotated[bool, typer.Option("--lifetime", help="Say when it expires, and by which fact.")] = False,
    critical: Annotated[bool, typer.Option("--critical", help="Say what goes with it; ROW is a fact.")] = False,
    gone: Annotated[bool, typer.Option("--gone", help="Say which facts took it along when it vanished.")] = False,
    form: Annotated[str, typer.Option("--format", metavar="NAME", help="text, json, dot or svg.")] = "text",
    output: Annotated[
        Path | None, typer.Option("--output", metavar="FILE", help="Write there, not to standard output.")
    ] = None,
    whole: Annotated[bool, typer.Option("--all", help="Do not cut a long proof.")] = False,
    functions: FunctionsOption = None,
    strategy: StrategyOption = "auto",
) -> None:
    """Say why a row is in a view: the rules and facts that it follows from."""
    from whorl.cli.compiling import load_kernel

    load_kernel()
    from whorl.cli.why import WhyOptions, explain_asked, one_question

    explain_asked(
        WhyOptions(
            program,
            row,
            inputs or [],
            deltas,
            epoch,
            one_question(missing=missing, proofs=proofs, cuts=cuts, lifetime=lifetime, critical=critical, gone=gone),
            form,
            output,
            whole,
            strategy,
            functions,
            checkpoint,
        )
    )


@app.command()
def demo(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Which demo: network, sensors, rides or citations.")
    ] = "network",
    epochs: Annotated[int, typer.Option("--epochs", min=1, metavar="N", help="How many epochs to run.")] = 12,
    seed: Annotated[
        int | None, typer.Option("--seed", metavar="N", help="Another world, other events.", show_default=False)
    ] = None,
    host: Annotated[str, typer.Option("--host", metavar="NAME", help="Where it runs: spark or local.")] = "spark",
    plain: Annotated[bool, typer.Option("--plain", help="Bare lines: no colour, no tables, no pauses.")] = False,
    keep: Annotated[
        Path | None,
        typer.Option("--keep", metavar="DIR", help="Keep it all: program, input, changes, state and picture."),
    ] = None,
    save: Annotated[
        Path | None, typer.Option("--save", metavar="DIR", help="Run nothing; write the program and its input.")
    ] = None,
) -> None:
    """Watch views follow a small generated world, live on Spark."""
    from rich.console import Console

    from whorl.cli.compiling import load_kernel

    load_kernel()
    from whorl.cli.demos.run import HOSTS, SCENARIOS, DemoOptions, run_demo, save_demo

    if name not in SCENARIOS:
        message = f"{name} is no demo; there are {', '.join(SCENARIOS)}"
        raise typer.BadParameter(message, param_hint="NAME")
    if host not in HOSTS:
        message = f"{host} is no host; there are {', '.join(HOSTS)}"
        raise typer.BadParameter(message, param_hint="--host")
    seed = SCENARIOS[name].seed if seed is None else seed
    if save is not None:
        program, deltas = save_demo(DemoOptions(name, epochs, seed, keep=save))
        typer.echo(f"wrote {program} and {deltas}")
    elif not run_demo(Console(), DemoOptions(name, epochs, seed, host, plain, keep)):
        raise typer.Exit(130)


def _limits(rounds: int | None, tuples: int | None, depth: int | None) -> Limits:
    """Return the limits that were given, and the usual ones for the rest."""
    given = {"rounds": rounds, "tuples": tuples, "depth": depth}
    return Limits(**{name: value for name, value in given.items() if value is not None})


def main() -> None:
    """Run the command line; errors go to standard error, with exit code 1."""
    try:
        app(prog_name="whorl")
    except (UserError, ProgramErrors) as error:
        _show_errors(error)
        sys.exit(1)
    except WhorlError as error:
        typer.echo(str(error), err=True)
        sys.exit(70)


def _show_errors(error: UserError | ProgramErrors) -> None:
    errors = error.errors if isinstance(error, ProgramErrors) else (error,)
    if "--json" in sys.argv:
        typer.echo(json.dumps({"errors": [each.to_json() for each in errors]}, indent=2))
        return
    for each in errors:
        typer.echo(str(each), err=True)
    if len(errors) > 1:
        typer.echo(f"{len(errors)} errors", err=True)
