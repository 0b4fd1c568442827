"""Compiles kernels to object code. The one module, with `primitives`, that needs Numba; runs in processes of its own.

Each module of kernels becomes an object file that stands for itself: what it calls of other modules is compiled into
it. A kernel's function there is `minutch.<module>.<name>(result, words...) -> status`: it takes integers as they are
and arrays as the addresses of NumPy's array objects (struct PyArrayObject), whose data and sizes it hands on.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from functools import cache
from os import cpu_count
from pathlib import Path
from subprocess import PIPE, Popen
from tempfile import TemporaryDirectory
from typing import Any

from minutch.errors import StoreError
from minutch.kernels import library, native

_DATA, _DIMENSIONS = 16, 32
"""Offsets in struct PyArrayObject: of the pointer to the elements, and of that to the sizes."""
_C_LIBRARY = {"malloc", "free", "memcpy", "memmove", "memset", "memcmp"}
_SOURCES = Path(__file__).parents[2]
_WORKER = """
import sys
sys.path.insert(0, sys.argv[1])
from minutch.kernels.build import compile_into
compile_into(sys.argv[2], sys.argv[3:])
"""


def warm() -> bool:
    """Compile kernels unless that has been done; whether there was anything to do. Raises OSError: nowhere to write."""
    if library.installed() is not None:
        return False
    if library.install(compile_all()) is None:
        raise PermissionError(f"none of {', '.join(map(str, library.folders()))} can be written")
    return True


def compile_all() -> dict[str, bytes]:
    """The object code of all modules of kernels, compiled by a process for each core. Raises StoreError."""
    names = library.modules()
    count = min(len(names), cpu_count() or 1)
    with TemporaryDirectory(prefix="minutch-kernels-") as folder:
        command = [sys.executable, "-c", _WORKER, str(_SOURCES), folder]
        shares = [names[first::count] for first in range(count)]
        running = [Popen([*command, *share], stderr=PIPE) for share in shares]
        for process in running:
            _, errors = process.communicate()
            if process.returncode:
                raise StoreError(f"kernels could not be compiled: {errors.decode(errors='replace').strip()[-2000:]}")
        return {name: Path(folder, name).read_bytes() for name in names}


def compile_into(folder: str, names: list[str]) -> None:
    """What a worker does: the object code of some modules, a file each."""
    for name in names:
        Path(folder, name).write_bytes(compile_module(name))


def compile_module(name: str) -> bytes:
    """The object code of a module of kernels."""
    import numba

    config: Any = numba.config
    config.CPU_NAME, config.CPU_FEATURES = library.processor(), ""
    from llvmlite import binding as llvm
    from numba.core.registry import cpu_target

    from minutch.kernels import primitives

    kernels = [kernel for kernel in _kernels() if kernel.module == name]
    typing, target = cpu_target.typing_context, cpu_target.target_context
    typing.refresh()
    target.refresh()
    whole = llvm.parse_assembly(primitives.RUNTIME + (primitives.RELEASE if name == "find" else ""))
    with importlib.import_module("numba.core.compiler_lock").global_compiler_lock:
        for kernel in kernels:
            compiled = _compiled(kernel, typing, target)
            symbol = compiled.fndesc.llvm_func_name
            module = llvm.parse_bitcode(compiled.library._final_module.as_bitcode())
            types = [str(argument.type) for argument in module.get_function(symbol).arguments]
            module.link_in(llvm.parse_assembly(_wrapper(kernel, symbol, types)))
            whole.link_in(module)
    _hide(whole)
    whole.verify()
    _check(name, whole)
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=library.processor(), opt=3, reloc="pic", codemodel="default", jit=True
    )
    return bytes(machine.emit_object(whole))


@cache
def _kernels() -> tuple[native.Kernel, ...]:
    """All kernels, after Numba's functions have taken the places of all that kernels call."""
    import numba

    from minutch.kernels.primitives import PRIMITIVES

    makers: dict[str, Callable[[Any], Any]] = {
        "primitive": lambda function: PRIMITIVES[function.__name__],
        "inlined": lambda function: numba.njit(function, inline="always", error_model="numpy"),
        "inner": lambda function: numba.njit(function, error_model="numpy"),
    }
    names = ("native", "memory", *library.modules())
    modules = [importlib.import_module(f"minutch.kernels.{name}") for name in names]
    made: dict[Any, Any] = {}
    for module in modules:
        for attribute, value in list(vars(module).items()):
            if isinstance(value, native.Kernel):
                made.setdefault(value, makers["inner"](value.function))
            elif kind := getattr(value, "kernel_kind", None):
                made.setdefault(value, makers[kind](value))
            else:
                continue
            setattr(module, attribute, made[value])
    return tuple(value for value in made if isinstance(value, native.Kernel))


def _compiled(kernel: native.Kernel, typing: Any, target: Any) -> Any:
    compiler: Any = importlib.import_module("numba.core.compiler")
    flags = compiler.Flags()
    flags.no_cpython_wrapper = flags.no_cfunc_wrapper = flags.nrt = True
    flags.boundscheck = False
    flags.error_model = "numpy"
    signature = tuple(map(_numba_type, kernel.parameters))
    return compiler.compile_extra(typing, target, kernel.function, signature, None, flags, {})


def _numba_type(name: str) -> Any:
    import numba
    from numba.core import types

    if name in native.SCALARS:
        return types.int64
    shape = native.SHAPES[name]
    return types.Array(numba.from_dtype(shape.dtype), shape.dimensions, "C")


def _hide(module: Any) -> None:
    """Let no other object file see what is in this one, but for the functions that Python calls."""
    for found in (*module.functions, *module.global_variables):
        if not found.is_declaration and not found.name.startswith("minutch."):
            found.linkage = "internal"


def _check(name: str, module: Any) -> None:
    """Raise StoreError if something is missing that the C library does not have: loading would end the process."""
    called = {function.name for function in module.functions if function.is_declaration}
    unknown = {symbol for symbol in called if not symbol.startswith("llvm.")} - _C_LIBRARY
    if unknown:
        raise StoreError(
            f"kernels of {name} use more of Python or Numba than there will be: {', '.join(sorted(unknown))}"
        )


def _wrapper(kernel: native.Kernel, symbol: str, types: list[str]) -> str:
    """LLVM assembly of the function that Python calls."""
    words = [f"i64 %a{number}" for number in range(len(kernel.parameters))]
    lines: list[str] = []
    values: list[str] = []
    for number, name in enumerate(kernel.parameters):
        if name in native.SCALARS:
            values.append(f"%a{number}")
        else:
            values += _array(number, native.SHAPES[name], lines)
    arguments = [f"{kind} {value}" for kind, value in zip(types, ["%result", "%error", *values], strict=True)]
    declared = ", ".join(types)
    return "\n".join(
        [
            f'declare i32 @"{symbol}"({declared})',
            f'define i32 @"minutch.{kernel.module}.{kernel.name}"({", ".join(["ptr %result", *words])}) {{',
            "  %error = alloca ptr",
            *lines,
            f'  %status = call i32 @"{symbol}"({", ".join(arguments)})',
            "  ret i32 %status",
            "}",
        ]
    )


def _array(number: int, shape: native.Shape, lines: list[str]) -> Iterator[str]:
    """What Numba takes an array for: its owner (twice), elements, bytes of one, data, sizes, steps."""
    a = f"%a{number}"
    lines += [
        f"  {a}.object = inttoptr i64 {a} to ptr",
        f"  {a}.data.at = getelementptr i8, ptr {a}.object, i64 {_DATA}",
        f"  {a}.data = load ptr, ptr {a}.data.at",
        f"  {a}.sizes.at = getelementptr i8, ptr {a}.object, i64 {_DIMENSIONS}",
        f"  {a}.sizes = load ptr, ptr {a}.sizes.at",
        f"  {a}.size0 = load i64, ptr {a}.sizes",
    ]
    size = shape.dtype.itemsize
    if shape.dimensions == 1:
        return iter(["null", "null", f"{a}.size0", str(size), f"{a}.data", f"{a}.size0", str(size)])
    lines += [
        f"  {a}.size1.at = getelementptr i64, ptr {a}.sizes, i64 1",
        f"  {a}.size1 = load i64, ptr {a}.size1.at",
        f"  {a}.all = mul i64 {a}.size0, {a}.size1",
        f"  {a}.step = mul i64 {a}.size1, {size}",
    ]
    sizes = [f"{a}.size0", f"{a}.size1", f"{a}.step", str(size)]
    return iter(["null", "null", f"{a}.all", str(size), f"{a}.data", *sizes])
