"""Where compiled kernels lie, and how they get into memory.

    <folder>/kernels-<digest>/<module>.o        object code, one file for each module of kernels, then its SHA-256

The digest is that of the sources of kernels and of the processor that the code is for. A folder that holds the
package comes first (an installation compiles kernels there), then the user's cache, then one in the system's temporary
folder that belongs to the user alone. Where nothing is found, all kernels are compiled, by processes that
run `build`, into the first of them that can be written. Where none can, they are compiled for this process alone and
the log says so. What a killed process left half-written (`.new`) goes when the next one writes there.
"""

from __future__ import annotations

import fcntl
import hashlib
import logging
import os
import pickle
import platform
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from subprocess import PIPE, Popen
from tempfile import gettempdir
from threading import RLock
from typing import Any

from minutch.errors import StoreError

log = logging.getLogger(__name__)

PACKAGE = Path(__file__).parent / "objects"
WIDE = ("avx2", "bmi", "bmi2", "f16c", "fma", "lzcnt", "movbe")
"""What a processor must have for x86-64-v3, the level that kernels are compiled for where they can be."""
KEPT = 4
"""Versions of compiled kernels that stay in a folder."""
_NEW = ".new"
_DIGEST_SIZE = 32
_SOURCES = Path(__file__).parents[2]
_WORKER = """
import sys
sys.path.insert(0, sys.argv[1])
from minutch.kernels.build import send_modules
send_modules(sys.argv[2:])
"""

_lock = RLock()


@cache
def processor() -> str:
    """The processor that kernels are compiled for, by LLVM's name: x86-64-v3, or what all of its kind have."""
    import llvmlite.binding as llvm

    if platform.machine().lower() in {"x86_64", "amd64"}:
        features = llvm.get_host_cpu_features()
        return "x86-64-v3" if all(features.get(name) for name in WIDE) else "x86-64"
    return "generic"


@cache
def version() -> str:
    """The name of the folder that this version's object code lies in."""
    names = ("native", "memory", "seeded", "primitives", "build", *modules())
    digest = hashlib.sha256(b"".join(_sources()[name] for name in names))
    digest.update(f"{sys.platform} {platform.machine()} {processor()}".encode())
    return f"kernels-{digest.hexdigest()[:16]}"


@cache
def modules() -> list[str]:
    """The modules that hold kernels."""
    return [name for name, source in _sources().items() if b"\n@kernel\n" in source]


@cache
def _sources() -> dict[str, bytes]:
    """The modules of this folder."""
    return {path.stem: path.read_bytes() for path in sorted(Path(__file__).parent.glob("*.py"))}


def folders() -> Iterator[Path]:
    """Where compiled kernels may lie, the best place first."""
    yield PACKAGE
    with suppress(RuntimeError):  # where there is no home
        yield Path.home() / ".cache" / "minutch"
    if hasattr(os, "getuid"):
        yield Path(gettempdir()) / f"minutch-{os.getuid()}"


def installed() -> Path | None:
    """The folder with this version's object code; None if it has not been compiled yet."""
    for folder in folders():
        found = folder / version()
        if (found / modules()[-1]).with_suffix(".o").is_file() and _is_ours(folder):
            return found
    return None


def install(objects: dict[str, bytes]) -> Path | None:
    """Write object code to the first folder that takes it; None if none does."""
    for folder in folders():
        try:
            is_shared = Path(gettempdir()) in folder.parents
            folder.mkdir(mode=0o700 if is_shared else 0o755, parents=True, exist_ok=True)
            if not _is_ours(folder):
                continue
            with _alone_in(folder):
                _write(objects, folder)
                _forget_old(folder)
        except OSError:
            continue
        return folder / version()
    return None


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Hold the system's lock of a folder, which is free as soon as its process is gone."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _write(objects: dict[str, bytes], folder: Path) -> None:
    """Write object code, whole or not at all; what is there already stays."""
    new = folder / _NEW
    shutil.rmtree(new, ignore_errors=True)
    try:
        new.mkdir(mode=0o700)
        for module, code in objects.items():
            (new / f"{module}.o").write_bytes(code + hashlib.sha256(code).digest())
        new.chmod(0o755)
        if not (folder / version()).exists():  # else another process was faster
            new.rename(folder / version())
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _is_ours(folder: Path) -> bool:
    """Whether nobody else can have put code there: it is outside the temporary folder, or belongs to this user."""
    if Path(gettempdir()) not in folder.parents or not hasattr(os, "getuid"):
        return True
    status = folder.lstat()
    return status.st_uid == os.getuid() and not status.st_mode & 0o022


def _forget_old(folder: Path) -> None:
    found = sorted(folder.glob("kernels-*"), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in found[KEPT:]:
        shutil.rmtree(old, ignore_errors=True)


def warm() -> bool:
    """Compile kernels unless that has been done; whether there was anything to do. Raises OSError: nowhere to write."""
    if installed() is not None:
        return False
    if install(compile_all()) is None:
        raise PermissionError(f"none of {', '.join(map(str, folders()))} can be written")
    return True


def compile_all() -> dict[str, bytes]:
    """The object code of all modules of kernels, compiled by a process for each core. Raises StoreError."""
    names = modules()
    count = min(len(names), os.cpu_count() or 1)
    command = [sys.executable, "-c", _WORKER, str(_SOURCES)]
    shares = [names[first::count] for first in range(count)]
    running = [Popen([*command, *share], stdout=PIPE, stderr=PIPE) for share in shares]
    found: dict[str, bytes] = {}
    try:
        for process in running:
            output, errors = process.communicate()
            if process.returncode:
                raise StoreError(f"kernels could not be compiled: {errors.decode(errors='replace').strip()[-2000:]}")
            found |= pickle.loads(output)
    finally:
        for process in running:
            process.kill()
    return found


@cache
def _objects() -> Path | dict[str, bytes]:
    """The folder of the object code, or the code itself where it could not be written anywhere."""
    found = installed()
    if found is not None:
        return found
    log.warning("compiling kernels, once on this machine (about 20 s); `minutch warm` does it ahead of time")
    objects = compile_all()
    written = install(objects)
    if written is None:
        places = ", ".join(map(str, folders()))
        log.warning("none of %s can be written: kernels are compiled at every run. Make one of them writable.", places)
    return written or objects


def find() -> None:
    """Find the object code, or compile it: afterwards kernels are loaded by reading alone."""
    with _lock:
        _objects()


@cache
def _engine() -> Any:
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple().create_target_machine(jit=True)
    # A module's sections have to be within 2 GiB of each other; LLVM's own manager of memory leaves that to chance.
    return llvm.create_mcjit_compiler(llvm.parse_assembly(""), target, use_lmm=True)


@cache
def _load(module: str) -> None:
    import llvmlite.binding as llvm

    objects = _objects()
    code = objects[module] if isinstance(objects, dict) else _read(objects / f"{module}.o")
    _engine().add_object_file(llvm.ObjectFileRef.from_data(code))
    _engine().finalize_object()


def _read(path: Path) -> bytes:
    """Object code, which has to be what was written: LLVM ends the process at anything else."""
    data = path.read_bytes()
    code, digest = data[:-_DIGEST_SIZE], data[-_DIGEST_SIZE:]
    if hashlib.sha256(code).digest() != digest:
        raise StoreError(f"{path}: damaged object code of kernels; delete its folder")
    return code


def address(module: str, name: str) -> int:
    """The address of a kernel's function, loaded if it is not in memory yet."""
    with _lock:
        _load(module)
        found = int(_engine().get_function_address(f"minutch.{module}.{name}"))
    if not found:
        raise StoreError(f"object code of kernels in {_objects()} lacks {module}.{name}; delete its folder")
    return found
