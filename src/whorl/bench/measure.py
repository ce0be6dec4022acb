"""Measuring inside a process: CPU time of all threads (user and system), wall time, and how far memory grew."""

from __future__ import annotations

import gc
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter, process_time
from types import TracebackType


class Meter:
    """Measures a `with` block."""

    def __init__(self) -> None:
        self.cpu = 0.0
        self.wall = 0.0

    def __enter__(self) -> Meter:
        self._cpu, self._wall = process_time(), perf_counter()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.cpu = process_time() - self._cpu
        self.wall = perf_counter() - self._wall


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
