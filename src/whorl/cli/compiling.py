"""Word of the kernel's compilation, which takes a while, once on every machine."""

from __future__ import annotations

import sys


class Compiling:
    """Says that the kernel is compiled, and how far it is; nothing if it is found on disk."""

    def __init__(self) -> None:
        self._count = 0

    def __call__(self, _name: str) -> None:
        """Take note of a function that was compiled."""
        self._count += 1
        if sys.stderr.isatty():
            print(f"\rcompiling the kernel (once per machine) ... {self._count}", end="", file=sys.stderr, flush=True)
        elif self._count == 1:
            print("compiling the kernel (once per machine) ...", file=sys.stderr, flush=True)

    def end(self) -> None:
        """Close the line."""
        if self._count and sys.stderr.isatty():
            print(file=sys.stderr)


def load_kernel() -> None:
    """Import the kernel, and say so if that takes long."""
    from whorl.kernel.arrays import jit

    compiling = Compiling()
    jit.watchers.append(compiling)
    try:
        import whorl.hosts.inprocess  # noqa: F401  # it is the import that compiles
    finally:
        jit.watchers.remove(compiling)
        compiling.end()
