"""The way in: what holds for the whole process, before anything else is imported.

Imports make some hundred thousand objects that stay. Python looks through all of them for garbage again and again while
they grow in number, which took a sixth of a small run. Here it looks less often: epochs leave no cycles for it to find.
"""

from __future__ import annotations

import gc

_SELDOM = 20_000  # objects made and kept since the last look; Python's own number is 700 to 2,000


def main() -> None:
    """Run the command line."""
    gc.set_threshold(_SELDOM)
    from whorl.cli.main import main as run_commands

    run_commands()
