"""How array kernels are compiled: ahead of any program, with fixed types, cached on disk, without the interpreter lock.

`prefetch` asks the processor to load an array element early. It is an instruction, not a read: dropping it changes
nothing but speed, and it is dropped when the JIT is off. It asks for the second cache: of elements far away the first
can wait for a few only, and then everything else waits too.

What is on disk counts as fresh while no file of this folder has changed. Numba looks at the file of a kernel alone, but
kernels contain parts from other files, and with another layout of arrays an old one would read what is not there. So
each compiled kernel is one file that begins with a seal: a digest of its code, of what it was compiled from and of the
processor that it is for. A file that is old, cut off, damaged or of another machine has another seal, and counts as not
there. Where nothing can be kept, kernels are compiled at every start, and the user is told once.

Every start of a program waits for its kernels, so reading them is kept short. They are stored as machine code alone,
without the LLVM code from which others could take them in; a kernel that contains another takes in its function, by
`within`. And Numba's libraries of functions, without which nothing can be compiled, wait until something is.
"""

from __future__ import annotations

import pickle
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any
from uuid import uuid4

import numba
import numpy as np
from llvmlite import binding, ir  # type: ignore[import-untyped]
from numba import config, njit, types
from numba.core import cgutils
from numba.core.caching import CompileResultCacheImpl, FunctionCache, NullCache
from numba.core.runtime.nrt import rtsys
from numba.core.serialize import dumps
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

INT = types.int64
INTS = types.Array(types.int64, 1, "C")
INT32S = types.Array(types.int32, 1, "C")
BYTES = types.Array(types.uint8, 1, "C")
BOOLS = types.Array(types.boolean, 1, "C")
ROWS = types.Array(types.int64, 2, "C")
BLOCK = 256
EMPTY = -1
GOLDEN = np.uint64(0x9E3779B97F4A7C15)


watchers: list[Callable[[str], None]] = []  # are told of each function that was compiled, and not found on disk
warners: list[Callable[[str], None]] = []  # are told, once, why nothing can be kept on disk; without any, Python warns
_reasons: list[str] = []  # why kernels could not be kept


def _tell_unkept(reason: str) -> None:
    """Say that kernels cannot be kept, the first time."""
    _reasons.append(reason)
    if len(_reasons) > 1:
        return
    message = (
        f"compiled kernels cannot be kept on disk: {reason}. Every start compiles them again, which takes a minute; "
        "set NUMBA_CACHE_DIR to a folder that can be written"
    )
    for warner in warners:
        warner(message)
    if not warners:
        warnings.warn(message, RuntimeWarning, stacklevel=2)


def _stamp(sources: Sequence[Path]) -> bytes:
    """Return what names the content of some files."""
    content = sha256()
    for path in sources:
        content.update(path.name.encode() + sha256(path.read_bytes()).digest())
    return content.digest()


_SOURCES = sorted(Path(__file__).parent.glob("*.py"))  # none in an archive, where Numba's own stamp must do
_STAMP = _stamp(_SOURCES)
_SEAL_SIZE = sha256().digest_size


class _CodeAlone(CompileResultCacheImpl):
    """Machine code without the LLVM code that it came from, in whose place stands the name of its entry."""

    def reduce(self, compiled: Any) -> Any:
        """Return what is written to disk."""
        (name, kind, (code, _)), *others = super().reduce(compiled)  # type: ignore[no-untyped-call]
        entry = compiled.fndesc.llvm_cpython_wrapper_name
        named = binding.parse_assembly(f'define void @"{entry}"() {{ ret void }}')
        return (name, kind, (code, named.as_bitcode())), *others


class _SealedFiles:
    """Compiled code on disk, each in a file of its own behind its seal; Numba would keep an index in another file."""

    def __init__(self, folder: str, base: str, stamp: object) -> None:
        self._base = Path(folder, base)
        self._stamp = stamp

    def load(self, key: object) -> Any:
        """Return what was compiled; None if it is not there, or is not what its seal says."""
        try:
            content = self._path(key).read_bytes()
        except OSError:
            return None
        seal, code = content[:_SEAL_SIZE], content[_SEAL_SIZE:]
        return pickle.loads(code) if seal == self._seal(key, code) else None

    def save(self, key: object, compiled: object) -> None:
        """Write it under another name first: whoever reads finds all of it or nothing."""
        code, path = dumps(compiled), self._path(key)  # type: ignore[no-untyped-call]
        partial = path.with_name(f"{path.name}.{uuid4().hex}")
        try:
            partial.write_bytes(self._seal(key, code) + code)
            partial.replace(path)
        except OSError:
            with suppress(OSError):
                partial.unlink()
            raise

    def _path(self, key: object) -> Path:
        return self._base.with_name(f"{self._base.name}.{sha256(repr(key).encode()).hexdigest()[:16]}.nbc")

    def _seal(self, key: object, code: bytes) -> bytes:
        """Return a digest of the code and of all that it depends on; the key names the processor."""
        return sha256(repr((numba.__version__, self._stamp, key)).encode() + code).digest()


class _FolderCache(FunctionCache):
    """What was compiled, on disk, as long as the files of this folder are the same."""

    _impl_class = _CodeAlone

    def __init__(self, function: Any) -> None:
        super().__init__(function)  # type: ignore[no-untyped-call]
        stamp = _STAMP if _SOURCES else self._impl.locator.get_source_stamp()
        kept: Any = _SealedFiles(self._cache_path, self._impl.filename_base, stamp)  # does for Numba what its own does
        self._cache_file = kept

    def load_overload(self, signature: Any, target: Any) -> Any:
        """Read what was compiled, with all that it needs to run and nothing that only a compiler needs."""
        rtsys.initialize(target)
        return self._load_overload(signature, target)  # type: ignore[no-untyped-call]

    def save_overload(self, signature: Any, compiled: Any) -> None:
        """Write what was compiled; it is of use without."""
        try:
            self._save_overload(signature, compiled)  # type: ignore[no-untyped-call]
        except OSError as error:
            _tell_unkept(f"{self._cache_path}: {error.strerror or error}")


def _find_cache(function: Any) -> Any:
    """Return where a kernel is kept; that is nowhere if there is no folder for it."""
    try:
        return _FolderCache(function)
    except RuntimeError as error:  # so Numba says that it found none, or none of the kinds that it was told to look for
        chosen = getattr(config, "CACHE_LOCATOR_CLASSES", "")
        _tell_unkept(str(error) if chosen else "no folder for them can be written")
        return NullCache()


def kernel(signature: Any) -> Callable[[Any], Any]:
    """Compile a function over arrays for one signature. Numba's objects are untyped, hence Any."""

    def decorate(function: Any) -> Any:
        compiled = njit(function, nogil=True, boundscheck=False, error_model="numpy")
        if config.DISABLE_JIT:  # type: ignore[attr-defined]
            return compiled
        compiled._cache = _find_cache(function)  # Numba has no other way to another cache
        compiled.compile(signature)
        compiled.disable_compile()
        if watchers and compiled.stats.cache_misses:
            for watcher in watchers:
                watcher(function.__name__)
        return compiled

    return decorate


def inlined(function: Any) -> Any:
    """Make a function part of every kernel that calls it."""
    return njit(function, forceinline=True, boundscheck=False, error_model="numpy")


def part(function: Any) -> Any:
    """Compile a function once, for kernels that call it for a whole block."""
    return njit(function, boundscheck=False, error_model="numpy")


def within(compiled: Any) -> Any:
    """Return what a kernel does, as a part for other kernels."""
    return part(getattr(compiled, "py_func", compiled))


if config.DISABLE_JIT:  # type: ignore[attr-defined]

    def prefetch(array: Any, index: Any) -> None:
        """Do nothing."""

else:

    @intrinsic
    def prefetch(_context: Any, array: Any, index: Any) -> Any:
        """Load ``array[index]`` into the second cache soon."""

        def generate(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            data = make_array(signature.args[0])(context, builder, args[0]).data  # type: ignore[no-untyped-call]
            place = builder.bitcast(builder.gep(data, [args[1]]), ir.IntType(8).as_pointer())
            word = ir.IntType(32)
            kind = ir.FunctionType(ir.VoidType(), [place.type, word, word, word])
            call = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")  # type: ignore[no-untyped-call]
            builder.call(call, [place, word(0), word(2), word(1)])
            return context.get_dummy_value()

        return types.void(array, index), generate
