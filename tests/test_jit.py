"""What was compiled is kept on disk, and counts while no file that it may contain a part of has changed.

What is damaged counts as not there, and where nothing can be kept, kernels are of use all the same.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
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


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a package with a kernel, and with the means to compile it."""
    folder = tmp_path / "arrays"
    folder.mkdir()
    shutil.copy(jit.__file__, folder / "jit.py")
    (folder / "kernels.py").write_text(_KERNEL)
    (folder / "part.py").write_text(_PART.format(step=1))
    return folder


def _start(folder: Path, *before: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a program that compiles kernels, after some lines of Python."""
    code = "\n".join([*before, "import arrays.kernels"])
    command = [sys.executable, "-c", code]
    return subprocess.run(
        command, cwd=folder.parent, capture_output=True, text=True, env=os.environ | environment, check=False
    )


def _run(folder: Path) -> list[str]:
    """Run it; return what it compiled, if it was not on disk, and what came out."""
    ran = _start(folder)
    assert (ran.returncode, ran.stderr) == (0, "")
    return ran.stdout.split()


def test_a_kernel_is_compiled_again_when_a_file_changed_that_it_has_a_part_from(folder: Path) -> None:
    assert _run(folder) == ["twice", "2"]
    assert _run(folder) == ["2"]
    (folder / "part.py").write_text(_PART.format(step=5))
    assert _run(folder) == ["twice", "10"]


def test_a_run_that_ends_while_it_saves_leaves_nothing_that_looks_new(folder: Path) -> None:
    assert _run(folder) == ["twice", "2"]
    (folder / "part.py").write_text(_PART.format(step=5))
    ended = _start(folder, "import os, pathlib", "pathlib.Path.replace = lambda *_: os._exit(1)")
    assert (ended.returncode, ended.stderr) == (1, "")
    assert _run(folder) == ["twice", "10"]
    assert _run(folder) == ["10"]


def test_what_a_kernel_has_within_it_may_come_from_disk_without_it(folder: Path) -> None:
    (folder / "kernels.py").write_text(_OUTER.format(name="outer"))
    assert _run(folder) == ["twice", "outer", "30", "3"]
    for data in (folder / "__pycache__").glob("kernels.outer-*"):
        data.unlink()
    assert _run(folder) == ["outer", "30", "3"]


def _flip(code: bytes) -> bytes:
    middle = len(code) // 2
    return code[:middle] + bytes([code[middle] ^ 1]) + code[middle + 1 :]


DAMAGE: dict[str, Callable[[bytes], bytes]] = {
    "nothing in it": lambda _: b"",
    "cut off within the seal": lambda code: code[:20],
    "cut off": lambda code: code[: len(code) // 2],
    "one bit": _flip,
    "something else": lambda _: b"PK" * 1000,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_a_file_that_is_damaged_counts_as_not_there(folder: Path, damage: Callable[[bytes], bytes]) -> None:
    assert _run(folder) == ["twice", "2"]
    (kept,) = (folder / "__pycache__").glob("kernels.twice-*")
    kept.write_bytes(damage(kept.read_bytes()))
    assert _run(folder) == ["twice", "2"]
    assert _run(folder) == ["2"]


def test_a_file_of_another_kernel_counts_as_not_there(folder: Path) -> None:
    (folder / "kernels.py").write_text(_OUTER.format(name="outer"))
    assert _run(folder) == ["twice", "outer", "30", "3"]
    (outer,), (twice,) = ((folder / "__pycache__").glob(f"kernels.{name}-*") for name in ("outer", "twice"))
    shutil.copy(twice, outer)
    assert _run(folder) == ["outer", "30", "3"]
    assert _run(folder) == ["30", "3"]


# Where nothing can be kept. Permissions do not hinder root, but these do.

_ALLOW_NO_BYTE = ("import resource", "resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))")


def _warnings(errors: str) -> list[str]:
    return [line.partition("RuntimeWarning: ")[2] for line in errors.splitlines() if "Warning" in line]


def _unkept(reason: str) -> str:
    return (
        f"compiled kernels cannot be kept on disk: {reason}. Every start compiles them again, which takes a minute; "
        "set NUMBA_CACHE_DIR to a folder that can be written"
    )


def test_kernels_are_of_use_when_they_cannot_be_saved(folder: Path) -> None:
    (folder / "kernels.py").write_text(_OUTER.format(name="outer"))
    ran = _start(folder, *_ALLOW_NO_BYTE)
    assert ran.stdout.split() == ["twice", "outer", "30", "3"]
    assert _warnings(ran.stderr) == [_unkept(f"{folder / '__pycache__'}: File too large")]
    assert list((folder / "__pycache__").glob("kernels.*.nbc*")) == []
    assert _run(folder) == ["twice", "outer", "30", "3"]


def test_kernels_are_of_use_when_there_is_no_folder_for_them(folder: Path, tmp_path: Path) -> None:
    (folder / "kernels.py").write_text(_OUTER.format(name="outer"))
    (folder / "__pycache__").write_text("not a folder")
    nowhere = str(folder / "__pycache__" / "below")
    ran = _start(folder, HOME=nowhere, XDG_CACHE_HOME=nowhere, NUMBA_CACHE_DIR="")
    assert ran.stdout.split() == ["twice", "outer", "30", "3"]
    assert _warnings(ran.stderr) == [_unkept("no folder for them can be written")]
    there = {"NUMBA_CACHE_DIR": str(tmp_path / "there")}
    assert [_start(folder, **there).stdout.split() for _ in range(2)] == [["twice", "outer", "30", "3"], ["30", "3"]]


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
