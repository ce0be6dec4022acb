"""`whorl why`: the proof of a row, or what keeps it from being there."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import typer

from whorl.connectors.epochs import cut_by_number
from whorl.connectors.files import Feed, find_files, read_file
from whorl.connectors.programs import load_functions, read_source
from whorl.connectors.target import Target
from whorl.diagnostics.errors import ProgramErrors, UserError
from whorl.diagnostics.source import Source, line_span
from whorl.hosts.inprocess import InProcess
from whorl.kernel.partition import Partition
from whorl.logical.compile import compile_program
from whorl.logical.intake import Compile, DataTypes
from whorl.logical.plan import LogicalPlan
from whorl.model.limits import Limits
from whorl.model.types import Type
from whorl.syntax.deltas import parse_deltas
from whorl.views.answering import answer_critical, answer_cuts, answer_lifetime, answer_proofs
from whorl.views.asking import Asked, parse_asked
from whorl.views.explaining import explain_missing, explain_row
from whorl.views.proof import Proof
from whorl.views.proof_drawing import BOXES, proof_dot, proof_svg
from whorl.views.proof_text import LINES, proof_text
from whorl.views.session import Session

FORMATS = ("text", "json", "dot", "svg")
_NOT_THERE = "Ask with --not why."


class Answer(Protocol):
    """What there is to say about a row, other than its proof."""

    def to_json(self) -> dict[str, object]:
        """Return it as plain data."""


@dataclass(frozen=True, slots=True)
class WhyOptions:
    """What the command line asks for."""

    program: Path
    row: str
    inputs: Sequence[str] = ()
    deltas: Path | None = None
    epoch: int | None = None
    question: str = "why"
    format: str = "text"
    output: Path | None = None
    whole: bool = False
    strategy: str = "auto"
    functions: Path | None = None
    checkpoint: Path | None = None
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        if self.format not in FORMATS:
            _refuse("--format", f"{self.format} is none of {', '.join(FORMATS)}")
        if self.question != "why" and self.format in ("dot", "svg"):
            _refuse("--format", "only a proof can be drawn; use text or json")
        if self.inputs and self.deltas is not None:
            _refuse("--deltas", "give files with --input, or a file of deltas, not both")
        if self.checkpoint is not None and (self.inputs or self.deltas is not None):
            _refuse("--checkpoint", "its state is all there is; leave --input and --deltas out")
        if self.strategy == "reference":
            _refuse("--strategy", "the reference evaluator keeps nothing to explain; use another strategy")


def _refuse(option: str, message: str) -> None:
    raise typer.BadParameter(message, param_hint=option)


def one_question(**asked: bool) -> str:
    """Return the question that is asked; refuse more than one."""
    chosen = [name for name, wanted in asked.items() if wanted]
    if len(chosen) > 1:
        options = [f"--{'not' if name == 'missing' else name}" for name in chosen]
        _refuse(options[1], f"it does not go with {options[0]}; ask one thing at a time")
    return chosen[0] if chosen else "why"


def explain_asked(options: WhyOptions) -> None:
    """Bring the program to the epoch asked for, and print the answer."""
    asked = parse_asked(options.row)
    source, functions = read_source(options.program), load_functions(options.functions)

    def compile_plan(types: DataTypes) -> LogicalPlan:
        return compile_program(source, functions, types)

    if options.checkpoint is not None:
        partitions: Sequence[Partition] = [_read_checkpoint(options.checkpoint, compile_plan, options)]
    else:
        host = InProcess(compile_plan, options.limits, options.strategy)
        if options.deltas is not None:
            _replay(host, read_source(options.deltas), options.epoch)
        else:
            _load(Session(source, host), options)
        partitions = host.partitions
    _write(_answer(partitions, asked, options), options.output)


def _read_checkpoint(folder: Path, compile_plan: Compile, options: WhyOptions) -> Partition:
    try:
        from whorl.hosts.spark.reading import read_state
    except ModuleNotFoundError:
        raise UserError("E800", None, name="stream") from None
    return read_state(folder, compile_plan, options.limits, options.strategy, options.epoch)


def _replay(host: InProcess, deltas: Source, last: int | None) -> None:
    for epoch in parse_deltas(deltas):
        if last is not None and epoch.number > last:
            break
        try:
            host.commit(epoch)
        except (UserError, ProgramErrors) as refused:
            for error in refused.errors if isinstance(refused, ProgramErrors) else (refused,):
                error.epoch = epoch.number
                error.span = error.span or line_span(deltas, error.line or epoch.line)
            raise


def _load(session: Session, options: WhyOptions) -> None:
    cuts = cut_by_number(list(_read(session, options.inputs)))
    for cut in cuts:
        if options.epoch is not None and cut.number > options.epoch:
            break
        for batch in cut.batches():
            session.take(batch)
        session.commit(cut.time, number=cut.number)


def _read(session: Session, inputs: Sequence[str]) -> Iterator[Feed]:
    """Yield the rows of every file; the first of an undeclared relation tells the types to those after it."""
    targets: dict[str, Target] = {}
    for each in inputs:
        relation, equals, path = each.partition("=")
        if not equals or not relation or not path:
            _refuse("--input", f'{each} does not read as REL=PATH, such as "link=links.csv"')
        target = targets.get(relation) or session.target(relation)
        for file in find_files(Path(path)):
            feed = read_file(file, target, lambda _count: None)
            pairs = zip(target.types, feed.batch.columns, strict=True)
            types = tuple(v.type if kind is Type.UNKNOWN and len(v) else kind for kind, v in pairs)
            target = targets[relation] = replace(target, types=types)
            yield feed


def _answer(partitions: Sequence[Partition], asked: Asked, options: WhyOptions) -> str:
    if options.question != "why":
        return _answer_text(_other_answer(partitions, asked, options.question), options)
    proof = explain_row(partitions, asked, hint=_NOT_THERE)
    render: dict[str, Callable[[Proof], str]] = {
        "text": lambda each: proof_text(each, None if options.whole else LINES),
        "json": lambda each: json.dumps(each.to_json(), indent=2, ensure_ascii=False),
        "dot": lambda each: proof_dot(each, None if options.whole else BOXES),
        "svg": lambda each: proof_svg(each, None if options.whole else BOXES),
    }
    return render[options.format](proof)


def _other_answer(partitions: Sequence[Partition], asked: Asked, question: str) -> Answer:
    if question == "missing":
        return explain_missing(partitions, asked, hint="Leave out --not to see why.")
    if question == "proofs":
        return answer_proofs(partitions, asked, hint=_NOT_THERE)
    if question == "cuts":
        return answer_cuts(partitions, asked, hint=_NOT_THERE)
    if question == "lifetime":
        return answer_lifetime(partitions, asked, hint=_NOT_THERE)
    return answer_critical(partitions, asked, [output.name for output in partitions[0].plan.outputs])


def _answer_text(answer: Answer, options: WhyOptions) -> str:
    return json.dumps(answer.to_json(), indent=2, ensure_ascii=False) if options.format == "json" else str(answer)


def _write(text: str, output: Path | None) -> None:
    if output is None:
        typer.echo(text)
        return
    try:
        output.write_text(text + "\n", encoding="utf-8")
    except OSError as error:
        raise UserError("E626", None, path=output, reason=error.strerror or str(error)) from None
    typer.echo(f"wrote {output}")
