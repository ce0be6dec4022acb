"""Places at which a test may end the driver, to see that nothing is lost and nothing counts twice.

`WHORL_FAIL_AT=after-step:3` kills this process, with a signal that cannot be caught, when it comes to that place in
epoch 3. Without the variable nothing happens.
"""

from __future__ import annotations

import os
import signal

VARIABLE = "WHORL_FAIL_AT"
BEFORE_STEP, AFTER_STEP, AFTER_LOG = "before-step", "after-step", "after-log"
HALF_MANIFEST, AFTER_MANIFEST = "half-manifest", "after-manifest"
HALF_PUBLISHED, AFTER_PUBLISHED, AFTER_CALLBACK = "half-published", "after-published", "after-callback"
POINTS = (
    BEFORE_STEP,
    AFTER_STEP,
    AFTER_LOG,
    HALF_MANIFEST,
    AFTER_MANIFEST,
    HALF_PUBLISHED,
    AFTER_PUBLISHED,
    AFTER_CALLBACK,
)


def reach(point: str, epoch: int) -> None:
    """Come to a place; the process may end here."""
    if os.environ.get(VARIABLE) == f"{point}:{epoch}":
        os.kill(os.getpid(), signal.SIGKILL)
