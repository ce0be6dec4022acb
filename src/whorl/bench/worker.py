"""One measurement in a process of its own: `python -m whorl.bench.worker JOB RESULT`, both JSON files."""

from __future__ import annotations

import json
import os
import resource
import sys
from dataclasses import asdict, dataclass
from math import ceil
from pathlib import Path

from whorl.bench.contestants import Contestant
from whorl.bench.outcome import Outcome
from whorl.bench.suite import find_case
from whorl.diagnostics.errors import WhorlError


@dataclass(frozen=True, slots=True)
class Job:
    """Which case to build, and whom to measure."""

    case: str
    contestant: Contestant
    seed: int
    steps: int | None = None
    quick: bool = False
    data: str | None = None
    cpu_s: float | None = None  # the most CPU time that it may take

    def to_text(self) -> str:
        """Return the job as JSON."""
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Job:
        """Return the job that JSON describes."""
        data = json.loads(text)
        return cls(**data | {"contestant": Contestant(**data["contestant"])})


def run_job(job: Job) -> Outcome:
    """Measure in this process."""
    case = find_case(job.case, job.data)
    workload = case.build(job.seed, quick=job.quick).first(job.steps)
    warm_up = case.build(job.seed, quick=True).first(4)
    return job.contestant.measure(workload, warm_up)


def main() -> None:
    """Read the job, measure, write the result."""
    asked, result = (Path(word) for word in sys.argv[1:3])
    job = Job.from_text(asked.read_text(encoding="utf-8"))
    if job.cpu_s is not None:
        resource.setrlimit(resource.RLIMIT_CPU, (ceil(job.cpu_s), ceil(job.cpu_s) + 1))
    if job.contestant.in_turns:
        _stay_on_one_core()
    try:
        outcome = run_job(job)
    except Exception as error:  # whatever an engine raises is the result, and the others go on
        first = (str(error).splitlines() or [""])[0]
        outcome = Outcome(failed=first if isinstance(error, WhorlError) else f"{type(error).__name__}: {first}")
    result.write_text(json.dumps(outcome.to_json()), encoding="utf-8")


def _stay_on_one_core() -> None:
    """Let no thread wake up on another core, where what it needs is not in the cache."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})


if __name__ == "__main__":
    main()
