"""The shared library of compiled kernels: `_kernels.<system>-<machine>.so` beside this module.

An installation makes it (`build`, `wheel`); it carries a digest of the kernels' sources, so a
checkout whose kernels have changed since is told from one that has not. With
`MINUTCH_KERNELS=python` in the environment there is no library: `interpreted` runs the kernels'
sources. This is the one module that looks at that variable.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from minutch.errors import MinutchError

if TYPE_CHECKING:
    from minutch.kernels.native import Callback, Kernel

FOLDER: Final = Path(__file__).parent
PATH: Final = FOLDER / f"_kernels.{sys.platform}-{platform.machine().lower()}.so"
PREFIX: Final = "minutch_"
"""The prefix of the library's own symbols."""
MARK: Final = PREFIX + "digest"
"""The symbol of the digest of the sources."""
DIGEST_SIZE: Final = 16
BASELINE: Final = "x86-64" if platform.machine().lower() in {"x86_64", "amd64"} else "generic"
"""The processor that all kernels are compiled for, by LLVM's name."""
NEWER: Final = "x86-64-v3"
"""The level that nearly all x86-64 processors since 2015 have."""
FASTER_ON_NEWER: Final = ("simhash",)
"""Modules that are compiled for NEWER too: 1.8 times as fast there. Others gain a tenth at most."""
PROCESSORS: Final = Path("/proc/cpuinfo")
_NEWER_HAS: Final = {"avx", "avx2", "bmi1", "bmi2", "f16c", "fma", "abm", "movbe"}
"""The flags in PROCESSORS that tell NEWER from the processors before it."""
_HINT: Final = (
    "`pip install` of the checkout makes them, as bin/minutch does, or `python -m"
    " minutch.kernels.build` where Numba is installed; MINUTCH_KERNELS=python does without them,"
    " slowly"
)
_NOT_COMPILED: Final = (
    "__init__",
    "arrow",
    "interpreted",
    "library",
    "libdeflate",
    "clibrary",
    "link",
    "wheel",
)
"""Modules of this folder that no machine code depends on."""


@cache
def is_interpreted() -> bool:
    """Tell whether kernels are to be interpreted: MINUTCH_KERNELS=python."""
    return os.environ.get("MINUTCH_KERNELS") == "python"


@cache
def _sources() -> dict[str, bytes]:
    """The modules that the library is made of."""
    found = {path.stem: path.read_bytes() for path in sorted(FOLDER.glob("*.py"))}
    return {name: source for name, source in found.items() if name not in _NOT_COMPILED}


def modules() -> list[str]:
    """The modules that hold kernels."""
    return [name for name, source in _sources().items() if b"\n@kernel\n" in source]


def size_of(module: str) -> int:
    """Bytes of a module's source."""
    return len(_sources()[module])


def digest() -> bytes:
    """The digest of the sources that the library is made of."""
    return hashlib.blake2b(b"".join(_sources().values()), digest_size=DIGEST_SIZE).digest()


def symbol(function: Kernel | Callback, processor: str = BASELINE) -> str:
    """The name of the C function of a kernel that is compiled for a processor."""
    variant = "" if processor == BASELINE else processor.replace("-", "_") + "_"
    return f"{PREFIX}{variant}{function.module}_{function.name}"


@cache
def is_newer() -> bool:
    """Tell whether this processor is a NEWER one; where the system doesn't tell, it is not."""
    try:
        with PROCESSORS.open(encoding="ascii", errors="replace") as lines:
            flags = next((line for line in lines if line.startswith("flags")), "")
    except OSError:
        return False
    return set(flags.split()) >= _NEWER_HAS


def is_built() -> bool:
    """Tell whether the library is there and made of these sources."""
    try:
        return _mark(ctypes.CDLL(str(PATH))) == digest()
    except (OSError, ValueError):
        return False


@cache
def load() -> ctypes.CDLL | None:
    """The library; None where kernels are interpreted. Kernels are found by reading memory alone
    from then on.

    Raises MinutchError if it is missing, can't be loaded, or is made of other sources than these.
    """
    if is_interpreted():
        return None
    is_newer()
    try:
        found = ctypes.CDLL(str(PATH))
        mark = _mark(found)
    except (OSError, ValueError) as exc:
        raise MinutchError(f"the compiled kernels can't be loaded: {exc}", hint=_HINT) from exc
    if mark != digest():
        raise MinutchError(f"{PATH} was made before the kernels beside it were changed", hint=_HINT)
    return found


def _mark(found: ctypes.CDLL) -> bytes:
    return bytes((ctypes.c_char * DIGEST_SIZE).in_dll(found, MARK))


def find_kernel(kernel: Kernel) -> Any:
    """The C function of a kernel, or what stands for it where kernels are interpreted."""
    loaded = load()
    if loaded is None:
        from minutch.kernels.interpreted import function_of

        return function_of(kernel)
    is_faster = kernel.module in FASTER_ON_NEWER and is_newer()
    found = loaded[symbol(kernel, NEWER if is_faster else BASELINE)]
    found.restype, found.argtypes = ctypes.c_int32, kernel.types()
    return found


@cache
def find_callback(callback: Callback) -> int:
    """The address of a callback's C function."""
    loaded = load()
    if loaded is None:
        raise MinutchError(f"{callback.name}: no C function where kernels are interpreted")
    return ctypes.cast(loaded[symbol(callback)], ctypes.c_void_p).value or 0
