"""Links object files into a shared library, by the machine's linker or else by the one in the
package `ziglang`.

The library is linked against nothing: the few functions that it calls are found in the process that
loads it. So one file serves every Python, with any C library.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from subprocess import run
from typing import Final

from minutch.errors import MinutchError

PACKAGE: Final = "ziglang>=0.13"
"""Has a linker for machines without one."""
_COMPILERS: Final = ("cc", "gcc", "clang")
_LINKERS: Final = ("ld", "ld.lld")
_BY_COMPILER: Final = ("-shared", "-nostdlib", "-s", "-Wl,-z,noexecstack")
_BY_LINKER: Final = ("-shared", "-s", "-z", "noexecstack")


def linker() -> list[str] | None:
    """The command that links, up to the names of files; None if there is nothing that could."""
    for names, options in ((_COMPILERS, _BY_COMPILER), (_LINKERS, _BY_LINKER)):
        for name in names:
            if found := shutil.which(name):
                return [found, *options]
    return [sys.executable, "-m", "ziglang", "cc", *_BY_COMPILER] if find_spec("ziglang") else None


def link(objects: Sequence[Path], target: Path) -> None:
    """Write the library, whole or not at all. Raises MinutchError without a linker, or with what it
    said.
    """
    command = linker()
    if command is None:
        raise MinutchError(
            f"no linker: install a C compiler (cc), binutils (ld) or the package {PACKAGE}"
        )
    new = target.with_name(f"{target.name}.{os.getpid()}.new")
    try:
        done = run(
            [*command, "-o", str(new), *map(str, objects)],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise MinutchError(
                f"{command[0]} did not link the kernels: {done.stderr.strip()[-2000:]}"
            )
        new.chmod(0o755)
        new.replace(target)
    finally:
        new.unlink(missing_ok=True)
