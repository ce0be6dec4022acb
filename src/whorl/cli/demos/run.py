"""Run a demo: step by step, on Spark or in this process, shown as it goes, with a picture at the end."""

from __future__ import annotations

import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from rich.console import Console

from whorl.cli.demos.citations import Citations
from whorl.cli.demos.engines import Engine, InThisProcess, Witness
from whorl.cli.demos.network import Network
from whorl.cli.demos.rides import Rides
from whorl.cli.demos.scenario import Evidence, Scenario, Step, program_path
from whorl.cli.demos.sensors import Sensors
from whorl.cli.demos.show import Plain, Shown, Tables, duration, signed
from whorl.diagnostics.errors import UserError
from whorl.model.values import Row
from whorl.syntax.deltas import format_header
from whorl.views.proof import Proof
from whorl.views.proof_text import proof_text

SCENARIOS: dict[str, type[Scenario]] = {each.name: each for each in (Network, Sensors, Rides, Citations)}
HOSTS = ("spark", "local")
PICTURES = Path("whorl-demo")
_PAUSE_S = 1.0
_PROOF_ROWS = 14


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """What the command line asks for."""

    name: str
    epochs: int
    seed: int
    host: str = "spark"
    plain: bool = False
    keep: Path | None = None

    @property
    def folder(self) -> Path:
        """Where the picture goes."""
        return PICTURES if self.keep is None else self.keep


def make_scenario(name: str, seed: int) -> Scenario:
    """Return the world of a demo, as the seed makes it."""
    make: Callable[[int], Scenario] = SCENARIOS[name]
    return make(seed)


def run_demo(console: Console, options: DemoOptions) -> bool:
    """Run a demo; return False if the user stopped it."""
    _open_folder(options)
    path = program_path(options.name)
    scenario = make_scenario(options.name, options.seed)
    shown: Shown = Plain(console) if options.plain else Tables(console, options.epochs)
    shown.program(f"whorl demo {options.name}: {scenario.summary}", path.read_text(encoding="utf-8"))
    pause = _PAUSE_S if console.is_terminal and not options.plain else 0.0
    run = _Run(options, scenario, shown, Witness(path), pause)
    work = options.keep or Path(tempfile.mkdtemp(prefix="whorl-demo-"))
    try:
        run.all_epochs(lambda: _start_engine(options, path, run.witness, work, shown))
    except KeyboardInterrupt:
        _remove(options, work)
        shown.note("stopped")
        return False
    except UserError:
        log = work / "spark.log"
        if log.exists() and log.stat().st_size:
            shown.note(f"Spark's log: {log}")
        else:
            _remove(options, work)
        raise
    _remove(options, work)
    if options.keep is not None:
        save_demo(options)
    shown.note(run.farewell())
    return True


def _remove(options: DemoOptions, work: Path) -> None:
    """Remove the input, the state and the log of a run, unless they are kept."""
    if options.keep is None:
        shutil.rmtree(work, ignore_errors=True)


def _start_engine(options: DemoOptions, path: Path, witness: Witness, work: Path, shown: Shown) -> Engine:
    if options.host == "local":
        return InThisProcess(path)
    from whorl.cli.demos.on_spark import OnSpark, targets_of

    return OnSpark(path, targets_of(witness.session), work, shown.say)


def _open_folder(options: DemoOptions) -> None:
    """Make the folder of the picture, before anything takes long."""
    if options.keep is not None and any((options.keep / name).exists() for name in ("checkpoint", "input")):
        raise UserError("E842", None, path=options.keep)
    try:
        options.folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UserError("E841", None, path=options.folder, reason=error.strerror or str(error)) from None


def save_demo(options: DemoOptions) -> tuple[Path, Path]:
    """Write the program and the changes of a run as files, to replay and to play with; return where."""
    lines: list[str] = []
    for step in make_scenario(options.name, options.seed).steps(options.epochs):
        lines.append(format_header(step.epoch.number, step.epoch.time))
        lines.extend(signed(change) for change in step.epoch.changes)
    program, deltas = (options.folder / f"{options.name}.{kind}" for kind in ("dl", "deltas"))
    _write(program, program_path(options.name).read_text(encoding="utf-8"))
    _write(deltas, "\n".join(lines) + "\n")
    return program, deltas


def _write(path: Path, text: str) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError("E841", None, path=path, reason=error.strerror or str(error)) from None


@dataclass(slots=True)
class _Run:
    """A run on its way."""

    options: DemoOptions
    scenario: Scenario
    shown: Shown
    witness: Witness
    pause_s: float
    seconds: list[float] = field(default_factory=list)
    proof: tuple[int, Proof] | None = None
    _views: dict[str, set[Row]] = field(default_factory=dict)

    def all_epochs(self, start: Callable[[], Engine]) -> None:
        """Start the engine, run all epochs, and draw how things stand then."""
        self._views = {name: set() for name in self.witness.views}
        steps = self.scenario.steps(self.options.epochs)
        with self.shown.waiting():
            engine = start()
            try:
                self._epoch(engine, next(steps))
            except BaseException:
                _close(engine)
                raise
        try:
            for step in steps:
                time.sleep(self.pause_s)
                self._epoch(engine, step)
        finally:
            _close(engine)
        _write(self.picture, self.scenario.draw(self._views))

    def _epoch(self, engine: Engine, step: Step) -> None:
        outcome = engine.commit(step.epoch)
        self.seconds.append(outcome.seconds)
        for name, delta in outcome.deltas.items():
            self._views[name] = (self._views[name] - set(delta.deleted)) | set(delta.inserted)
        told = self.scenario.tell(outcome.deltas, self._views)
        evidence = self.witness.follow(step.epoch, self.scenario.ask(outcome.deltas))
        self.witness.compare(self._views, step.epoch)
        why = None if evidence is None else self.scenario.explain(evidence)
        self._keep_proof(step.epoch.number, evidence)
        self.shown.epoch(step, told, outcome.deltas, duration(outcome.seconds), why)

    def _keep_proof(self, epoch: int, evidence: Evidence | None) -> None:
        """Keep the proof that is shown at the end: the deepest that fits on a screen."""
        proof = None if evidence is None else evidence.after
        if proof is not None and len(proof.nodes) <= _PROOF_ROWS:
            self.proof = max([*filter(None, [self.proof]), (epoch, proof)], key=lambda each: each[1].height)

    @property
    def picture(self) -> Path:
        """Where the picture is."""
        return self.options.folder / f"{self.options.name}.svg"

    def farewell(self) -> str:
        """Return what is said at the end: a proof, times, and what to do next."""
        name, seed, epochs = self.options.name, self.options.seed, self.options.epochs
        again = f"whorl demo {name}{' --host local' if self.options.host == 'local' else ''}"
        lines = [
            *self._proof(),
            *self._times(),
            "",
            f"The picture:  {self.picture}",
            f"Another run:  {again} --seed {seed + 1}",
        ]
        keep = self.options.keep
        if keep is None:
            return "\n".join([*lines, f"Keep all:     {again} --seed {seed} --epochs {epochs} --keep DIR"])
        lines += [f"Run it again: whorl replay {keep / name}.dl {keep / name}.deltas"]
        if self.options.host == "spark":
            lines += [f"Change log:   {keep / 'checkpoint' / 'changes'}, Parquet, a folder for each view"]
        return "\n".join(lines)

    def _proof(self) -> list[str]:
        if self.proof is None:
            return []
        number, proof = self.proof
        tree, _blank, _rules = proof_text(proof).partition("\n\n")  # the rules stand above
        return [f"The proof of {proof.root.text} in epoch {number}, as whorl why shows it:", "", tree, ""]

    def _times(self) -> list[str]:
        later = self.seconds[1:]
        on_spark = self.options.host == "spark"
        what = "from the file's arrival to the committed epoch" if on_spark else "by the kernel in this process"
        lines = [
            f"The first epoch took {duration(self.seconds[0])}{', with the start of the query' if on_spark else ''}."
        ]
        if later:
            middle, most = duration(statistics.median(later)), duration(max(later))
            lines.append(f"Those after it took {middle} (median; {most} at most), {what}.")
        lines.append("After each, the rows were compared with those of a second copy, which has the proofs.")
        return lines


def _close(engine: Engine) -> None:
    """Close an engine, whatever it says: the run is over."""
    with suppress(Exception, KeyboardInterrupt):
        engine.close()
