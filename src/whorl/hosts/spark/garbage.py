"""What a worker's garbage collector passes over.

Spark's workers look through all their objects after every task, and the compiled kernel alone has so many that this
takes longer than a small epoch. So what is there when a task begins is taken from the collector's sight: it survived
the look after the task before, so no garbage is kept. This is done at the first task, the second, the fourth and so on,
for a worker soon has all it needs. When a partition goes, everything is looked at once more.
"""

from __future__ import annotations

import gc


class Rest:
    """Counts the tasks of a worker since a partition went."""

    def __init__(self) -> None:
        self._tasks = 0

    def begin(self) -> None:
        """Begin a task."""
        self._tasks += 1
        if self._tasks & (self._tasks - 1) == 0:
            gc.freeze()

    def end(self) -> None:
        """Let the collector see everything, after this task: a partition went, and is in cycles."""
        gc.unfreeze()
        self._tasks = 0


REST = Rest()  # of this worker process
