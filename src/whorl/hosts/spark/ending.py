"""How a worker ends.

Spark closes its end of the connection to a worker that has been idle for a minute. PySpark's worker then tries to write
to it, fails, and prints where. Nothing is wrong, so it ends without a word instead, as any Unix program does.
"""

from __future__ import annotations

import signal


def end_quietly() -> None:
    """Let this process end when it writes to a connection that has been closed."""
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
