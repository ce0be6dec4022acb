"""Word of the kernel's compilation, which takes a while, once on every machine."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager


class Compiling:
    """Says that the kernel is compiled, and how far it is; nothing if it is found on disk."""

    def __init__(self) -> None:
        self._count = 0
        self._warning = ""

    def note(self, _name: str) -> None:
        """Take note of a function that was compiled."""
        self._count += 1
        if sys.stderr.isatty():
            print(f"\rcompiling the kernel (once per machine) ... {self._count}", end="", file=sys.stderr, flush=True)
        elif self._count == 1:
            print("compiling the kernel (once per machine) ...", file=sys.stderr, flush=True)

    def warn(self, message: str) -> None:
        """Take note that it will not be found on disk; the line at hand comes to its end first."""
        self._warning = message

    def end(self) -> None:
        """Close the line."""
        if self._count and sys.stderr.isatty():
            print(file=sys.stderr)
        if self._warning:
            print(self._warning, file=sys.stderr)


@contextmanager
def announced() -> Iterator[None]:
    """Say what becomes of kernels that are loaded within."""
    from whorl.kernel.arrays import jit

    compiling = Compiling()
    jit.watchers.append(compiling.note)
    jit.warners.append(compiling.warn)
    try:
        yield
    finally:
        jit.watchers.remove(compiling.note)
        jit.warners.remove(compiling.warn)
        compiling.end()


def load_kernel() -> None:
    """Import the kernel, and say so if that takes long."""
    with announced():
        import whorl.hosts.inprocess  # noqa: F401  # it is the import that compiles
