"""Measuring inside a process: CPU time of all threads (user and system), wall time, and how far memory grew.

Where the work is in other processes, `TreeMeter` counts those too that this one started, and those that they started.

The clock of a process may know of a thread that runs on another core only what it had used by the last tick, some
milliseconds ago. To read the clock of that thread brings both up to date. Threads may start in the block, so they are
listed at both of its ends.
"""

from __future__ import annotations

import gc
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import clock_gettime, perf_counter, process_time, thread_time
from types import TracebackType

_OF_THREAD = 6  # in the number of a Linux clock: CPU time of one thread


class Meter:
    """Measures a `with` block."""

    def __init__(self) -> None:
        self.cpu = 0.0
        self.wall = 0.0

    def __enter__(self) -> Meter:
        _bring_up_to_date()
        self._cpu, self._wall = process_time(), perf_counter()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.wall = perf_counter() - self._wall
        own = thread_time()
        _bring_up_to_date()
        own = thread_time() - own  # to look for threads is not the block's work
        self.cpu = process_time() - self._cpu - own


def _thread_clocks() -> list[int]:
    """Return the CPU clocks of the threads of this process; none where the system does not list them."""
    tasks = Path("/proc/self/task")
    return [~int(task) << 3 | _OF_THREAD for task in os.listdir(tasks)] if tasks.is_dir() else []


def _bring_up_to_date() -> None:
    """Read the clocks of all threads, so that the clock of the process knows what they have used."""
    for clock in _thread_clocks():
        with suppress(OSError):  # a thread that has ended is counted already
            clock_gettime(clock)


class TreeMeter(Meter):
    """Measures a `with` block; CPU time is that of this process and of all below it, as far as the system tells."""

    def __enter__(self) -> TreeMeter:
        super().__enter__()
        self._cpu = tree_cpu()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        super().__exit__(kind, error, at)
        self.cpu = tree_cpu() - self._cpu

    @property
    def figures(self) -> dict[str, float]:
        """What a load took; without CPU time where the system does not tell."""
        return {"load.wall": self.wall} | ({"load.cpu": self.cpu} if self.cpu > 0 else {})


def tree_cpu() -> float:
    """Return the CPU seconds of this process and all below it, with what they inherited from those that ended."""
    times: dict[int, tuple[int, int]] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        except OSError:  # it has ended meanwhile
            continue
        times[int(path.parent.name)] = int(fields[1]), sum(map(int, fields[11:15]))
    wanted, ticks = {os.getpid()}, 0
    while found := {pid for pid in times if pid in wanted or times[pid][0] in wanted}:
        ticks += sum(times.pop(pid)[1] for pid in found)
        wanted = found
    return ticks / os.sysconf("SC_CLK_TCK")


@dataclass(slots=True)
class Memory:
    """Peak resident memory of this process above where it stood when the object was made, in bytes."""

    start: int

    @classmethod
    def watch(cls) -> Memory | None:
        """Start to watch; return None where the system does not tell."""
        gc.collect()
        try:
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # forgets the peak so far
            return cls(_status("VmRSS"))
        except (OSError, KeyError):
            return None

    @property
    def growth(self) -> int:
        """How far the peak rose since."""
        return _status("VmHWM") - self.start


def _status(name: str) -> int:
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise KeyError(name)
