"""Runs cases: each measurement in a process of its own, the contestants of a case in turn, run after run."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from whorl.bench.case import Case, Entry
from whorl.bench.options import Options
from whorl.bench.outcome import Outcome
from whorl.bench.results import NOT_DONE, NOT_TRIED, CaseResult, Tally
from whorl.bench.worker import Job

Progress = Callable[[str], None]
_PATIENCE = 10.0  # how much longer than its CPU time a measurement may take on a busy machine


def run_cases(cases: Sequence[Case], options: Options, progress: Progress) -> Iterator[CaseResult]:
    """Run cases one after the other."""
    late: set[tuple[str, str]] = set()  # who was not done, or not tried, in which case
    for case in cases:
        progress(f"{case.name}: {case.title}")
        result = _Run(case, options, progress, {who for name, who in late if name == case.harder_than}).result()
        late |= {(case.name, tally.contestant) for tally in result.tallies if tally.late}
        yield result


class _Run:
    """One case on its way."""

    def __init__(self, case: Case, options: Options, progress: Progress, late: set[str]) -> None:
        self._case = case
        self._late = late
        self._options = options
        self._progress = progress

    def result(self) -> CaseResult:
        result = CaseResult(self._case.name, self._case.title, alike=self._case.alike)
        open_entries: list[tuple[Entry, Tally]] = []
        for entry in self._case.entries:
            tally = Tally(entry.contestant.label)
            result.tallies.append(tally)
            tally.note = self._left_out(entry)
            if not tally.note:
                open_entries.append((entry, tally))
        for run in range(1, self._options.runs + 1):  # all contestants once, then all again: noise hits them alike
            for entry, tally in open_entries:
                if not tally.note and run <= (entry.runs or run):
                    self._measure(entry, tally, run)
        return result

    def _left_out(self, entry: Entry) -> str:
        """Say why a contestant does not take part, or nothing."""
        if not self._options.full:
            if entry.on_demand:
                return "only with --full"
            if entry.hopeless and not self._options.quick:
                return f"{NOT_TRIED}: {entry.hopeless}"
            if entry.contestant.label in self._late:
                return f"{NOT_TRIED}: it was not done with {self._case.harder_than}"
        return entry.contestant.missing()

    def _measure(self, entry: Entry, tally: Tally, run: int) -> None:
        seconds = self._options.seconds or entry.seconds
        outcome = run_apart(self._job(entry, seconds), seconds)
        if outcome.skipped or outcome.failed:
            tally.note = outcome.skipped or f"failed: {outcome.failed}"
            tally.spent = outcome.spent
        else:
            tally.outcomes.append(outcome)
        shown = tally.note or ", ".join(f"{name} {value:.4g}" for name, value in _headline(outcome).items())
        self._progress(f"  run {run} of {entry.runs or self._options.runs}, {tally.contestant}: {shown}")

    def _job(self, entry: Entry, seconds: float) -> Job:
        options, who = self._options, entry.contestant
        cpu_s = seconds if who.alone else None
        return Job(self._case.name, who, options.seed, entry.steps, options.quick, options.data, cpu_s)


def _headline(outcome: Outcome) -> dict[str, float]:
    """Return the CPU times, or the wall times where nobody knows of CPU times."""
    for ending in (".cpu", ".wall"):
        found = {name: value for name, value in outcome.figures.items() if name.endswith(ending)}
        if found:
            return found
    return {}


def run_apart(job: Job, seconds: float) -> Outcome:
    """Measure in a process of its own, at most so many seconds; if CPU time is bounded, others may slow it down."""
    patience = seconds if job.cpu_s is None else _PATIENCE * seconds
    with tempfile.TemporaryDirectory() as folder:
        asked, told = Path(folder) / "job.json", Path(folder) / "result.json"
        asked.write_text(job.to_text(), encoding="utf-8")
        command = [sys.executable, "-m", "whorl.bench.worker", str(asked), str(told)]
        try:
            ended = subprocess.run(command, capture_output=True, text=True, timeout=patience, check=False)
        except subprocess.TimeoutExpired:
            return Outcome(failed=f"{NOT_DONE} after {patience:g} s")
        if ended.returncode == -signal.SIGXCPU:
            return Outcome(failed=f"{NOT_DONE} after {seconds:g} s of CPU time", spent=seconds)
        if ended.returncode or not told.exists():
            lines = ended.stderr.strip().splitlines() or [f"ended with {ended.returncode}"]
            return Outcome(failed=lines[-1][:200])
        return Outcome.from_json(json.loads(told.read_text(encoding="utf-8")))
