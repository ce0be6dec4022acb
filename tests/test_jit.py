"""What was compiled is kept on disk, and counts while no file that it may contain a part of has changed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from whorl.kernel.arrays import jit

_PART = """
from arrays.jit import inlined

@inlined
def step(number):
    return number + {step}
"""
_KERNEL = """
from arrays.jit import INT, kernel, watchers
watchers.append(print)
from arrays.part import step

@kernel(INT(INT))
def twice(number):
    return step(step(number))

print(twice(0))
"""


def _run(folder: Path) -> list[str]:
    """Run a program that compiles a kernel; return what it compiled, if it was not on disk, and what came out."""
    ran = subprocess.run(
        [sys.executable, "-c", "import arrays.kernels"], cwd=folder.parent, capture_output=True, text=True, check=True
    )
    return ran.stdout.split()


def test_a_kernel_is_compiled_again_when_a_file_changed_that_it_has_a_part_from(tmp_path: Path) -> None:
    folder = tmp_path / "arrays"
    folder.mkdir()
    shutil.copy(jit.__file__, folder / "jit.py")
    (folder / "kernels.py").write_text(_KERNEL)
    (folder / "part.py").write_text(_PART.format(step=1))
    assert _run(folder) == ["twice", "2"]
    assert _run(folder) == ["2"]
    (folder / "part.py").write_text(_PART.format(step=5))
    assert _run(folder) == ["twice", "10"]
