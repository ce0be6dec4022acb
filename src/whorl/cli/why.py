"""`whorl why`: the proof of a row, or what keeps it from being there."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
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
from whorl.views.explaining import RESTRICTING, explain_missing, explain_row
from whorl.views.proof import Proof
from whorl.views.proof_drawing import BOXES, proof_dot, proof_svg
from whorl.views.proof_text import LINES, proof_text
from whorl.views.session import Session
from whorl.views.vanished import Vanished, explain_vanished, is_there

FORMATS = ("text", "json", "dot", "svg")
_NOT_THERE = "Ask with --not why."
_STILL_THERE = "Leave out --gone to see why."
After = Callable[[InProcess, int], None]  # called with the number of each epoch that was taken


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
        without = RESTRICTING if options.question == "gone" else ()
        return compile_program(source, functions, types, without)

    def bring_to(last: int | None, after: After) -> Sequence[Partition]:
        host = InProcess(compile_plan, options.limits, options.strategy)
        if options.deltas is not None:
            _replay(host, read_source(options.deltas), last, after)
        else:
            _load(Session(source, host), host, options.inputs, last, after)
        return host.partitions

    def read(epoch: int | None) -> Partition:
        assert options.checkpoint is not None, "whoever reads a checkpoint has one"
        return _read_checkpoint(options.checkpoint, compile_plan, options, epoch)

    if options.question == "gone":
        if options.checkpoint is not None:
            vanished = _look_back(options.checkpoint, read, asked, options.epoch)
        else:
            vanished = _find_vanished(bring_to, asked, options.epoch)
        _write(_answer_text(vanished, options), options.output)
        return
    if options.checkpoint is not None:
        partitions: Sequence[Partition] = [read(options.epoch)]
    else:
        partitions = bring_to(options.epoch, lambda _host, _number: None)
    _write(_answer(partitions, asked, options), options.output)


def _find_vanished(
    bring_to: Callable[[int | None, After], Sequence[Partition]], asked: Asked, last: int | None
) -> Vanished:
    """Go through the epochs for the last that took a row away, then to the states before and after it."""
    seen: list[tuple[int, int | None, bool]] = []

    def look(host: InProcess, number: int) -> None:
        seen.append((number, host.time, is_there(host.partitions, asked)))

    bring_to(last, look)
    if seen and seen[-1][2]:
        raise UserError("E648", None, row=asked, hint=_STILL_THERE)
    turns = [(old[0], new) for old, new in pairwise(seen) if old[2] and not new[2]]
    if not turns:
        raise UserError("E655", None, row=asked, epoch=seen[-1][0] if seen else 0)
    before, (number, time, _there) = turns[-1]

    def pass_by(_host: InProcess, _number: int) -> None:
        return

    return explain_vanished(bring_to(before, pass_by), bring_to(number, pass_by), asked, number, time)


def _look_back(folder: Path, read: Callable[[int], Partition], asked: Asked, epoch: int | None) -> Vanished:
    """Go back through the epochs that a checkpoint keeps, to the last that took a row away."""
    first, last = _kept_epochs(folder)
    start = last if epoch is None else epoch
    after = read(start)
    if is_there([after], asked):
        raise UserError("E648", None, row=asked, hint=_STILL_THERE)
    for number in reversed(range(first, start)):
        before = read(number)
        if is_there([before], asked):
            return explain_vanished([before], [after], asked, number + 1, after.state.now)
        after = before
    raise UserError("E656", None, row=asked, first=first, last=last)


def _kept_epochs(folder: Path) -> tuple[int, int]:
    try:
        from whorl.hosts.spark.reading import kept_epochs
    except ModuleNotFoundError:
        raise UserError("E800", None, name="stream") from None
    return kept_epochs(folder)


def _read_checkpoint(folder: Path, compile_plan: Compile, options: WhyOptions, epoch: int | None) -> Partition:
    try:
        from whorl.hosts.spark.reading import read_state
    except ModuleNotFoundError:
        raise UserError("E800", None, name="stream") from None
    return read_state(folder, compile_plan, options.limits, options.strategy, epoch)


def _replay(host: InProcess, deltas: Source, last: int | None, after: After) -> None:
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
        after(host, epoch.number)


def _load(session: Session, host: InProcess, inputs: Sequence[str], last: int | None, after: After) -> None:
    for cut in cut_by_number(list(_read(session, inputs))):
        if last is not None and cut.number > last:
            break
        for batch in cut.batches():
            session.take(batch)
        session.commit(cut.time, number=cut.number)
        after(host, cut.number)


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
