"""What was compiled is kept on disk, and counts while no file that it may contain a part of has changed."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from whorl.kernel import arrays
from whorl.kernel.arrays import jit

FOLDER = Path(arrays.__file__).parent
MODULES = [import_module(f"{arrays.__name__}.{path.stem}") for path in FOLDER.glob("*.py") if path.stem != "__init__"]

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


_OUTER = """
from arrays.jit import INT, kernel, watchers, within
watchers.append(print)
from arrays.part import step

@kernel(INT(INT))
def twice(number):
    return step(step(number))

twice_within = within(twice)

@kernel(INT(INT))
def {name}(number):
    return 10 * twice_within(number)

print({name}(1), twice(1))
"""


def test_what_a_kernel_has_within_it_may_come_from_disk_without_it(tmp_path: Path) -> None:
    folder = tmp_path / "arrays"
    folder.mkdir()
    shutil.copy(jit.__file__, folder / "jit.py")
    (folder / "part.py").write_text(_PART.format(step=1))
    (folder / "kernels.py").write_text(_OUTER.format(name="outer"))
    assert _run(folder) == ["twice", "outer", "30", "3"]
    for data in (folder / "__pycache__").glob("kernels.outer-*"):
        data.unlink()
    assert _run(folder) == ["outer", "30", "3"]


def _dispatchers(module: ModuleType) -> list[Any]:
    return [value for value in vars(module).values() if hasattr(value, "py_func")]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_kernels_contain_parts_only(module: ModuleType) -> None:
    """On disk a kernel is without what another would need to contain it: that is for `within`."""
    kernels = {id(each) for every in MODULES for each in _dispatchers(every) if each.stats.cache_path is not None}
    assert kernels
    inside = [
        (function.py_func.__name__, name)
        for function in _dispatchers(module)
        for name in function.py_func.__code__.co_names
        if id(function.py_func.__globals__.get(name)) in kernels
    ]
    assert inside == []
