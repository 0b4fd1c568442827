"""Compiles kernels to object code. The one module, with `primitives`, that needs Numba; runs in processes of its own.

Each module of kernels becomes an object file that stands for itself: what it calls of other modules is compiled into
it. A kernel's function there is `minutch.<module>.<name>(result, ndarray, words...) -> status`: it takes integers as
they are and arrays as the addresses of NumPy's array objects (struct PyArrayObject), whose data and sizes it hands on
if they have the type, `ndarray`, and the kind of elements that the kernel wants.
"""

from __future__ import annotations

import importlib
import os
import pickle
from collections.abc import Callable
from functools import cache
from typing import Any

from minutch.errors import StoreError
from minutch.kernels import library, native

_TYPE, _DATA, _DIMENSIONS, _SIZES, _ELEMENTS, _FLAGS = 8, native.DATA_OFFSET, 24, 32, 56, 64
"""Offsets in struct PyArrayObject: the object's type, the elements, how many dimensions, their sizes, the dtype."""
_LETTER, _BYTE_ORDER = 25, 26
"""Offsets in struct PyArray_Descr."""
_IN_ROWS_AND_ALIGNED = 0x101
_LETTERS = {
    "uint8": "B",
    "int8": "b",
    "uint32": "I",
    "int32": "i",
    "uint64": "LQ",
    "int64": "lq",
    "float32": "f",
    "bool": "?",
}
"""Kind of element → its letters: long and long long may have the same size."""
_C_LIBRARY = {"malloc", "free", "memcpy", "memmove", "memset", "memcmp"}


def send_modules(names: list[str]) -> None:
    """What a worker does: the object code of some modules goes to stdout, as a pickled dict, and nothing else does."""
    with os.fdopen(os.dup(1), "wb") as out:
        os.dup2(2, 1)
        pickle.dump({name: compile_module(name) for name in names}, out)


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
    names = ("native", "memory", "seeded", *library.modules())
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
    words = ["ptr %result", "ptr %ndarray", *(f"i64 %a{number}" for number in range(len(kernel.parameters)))]
    arrays = [(f"%a{n}", native.SHAPES[name]) for n, name in enumerate(kernel.parameters) if name in native.SHAPES]
    types_right: list[str] = []
    are_arrays = [_check_type(a, types_right) for a, _ in arrays]
    lines: list[str] = []
    are_right = [check for a, shape in arrays for check in _check_array(a, shape, lines)]
    values: list[str] = []
    for number, name in enumerate(kernel.parameters):
        is_array = name in native.SHAPES
        values += _array(f"%a{number}", native.SHAPES[name], lines) if is_array else [f"%a{number}"]
    arguments = [f"{kind} {value}" for kind, value in zip(types, ["%result", "%error", *values], strict=True)]
    return "\n".join(
        [
            f'declare i32 @"{symbol}"({", ".join(types)})',
            f'define i32 @"minutch.{kernel.module}.{kernel.name}"({", ".join(words)}) {{',
            "  %error = alloca ptr",
            *types_right,
            *_all("%are_arrays", are_arrays),
            "  br i1 %are_arrays, label %check, label %refuse",
            "check:",
            *lines,
            *_all("%are_right", are_right),
            "  br i1 %are_right, label %run, label %refuse",
            "run:",
            f'  %status = call i32 @"{symbol}"({", ".join(arguments)})',
            "  ret i32 %status",
            "refuse:",
            f"  ret i32 {native.WRONG_ARRAY}",
            "}",
        ]
    )


def _all(name: str, checks: list[str]) -> list[str]:
    """`name` is whether all of the truth values are true."""
    steps = [f"  {name}.{number + 1} = and i1 {name}.{number}, {check}" for number, check in enumerate(checks)]
    return [f"  {name}.0 = icmp eq i1 0, 0", *steps, f"  {name} = and i1 {name}.{len(checks)}, {name}.{len(checks)}"]


def _check_type(a: str, lines: list[str]) -> str:
    """Whether the object at an address is an array at all."""
    lines += [
        f"  {a}.object = inttoptr i64 {a} to ptr",
        *_load(f"{a}.type", "ptr", f"{a}.object", _TYPE),
        f"  {a}.is_array = icmp eq ptr {a}.type, %ndarray",
    ]
    return f"{a}.is_array"


def _check_array(a: str, shape: native.Shape, lines: list[str]) -> list[str]:
    """Whether an array is the one that it should be: names of truth values."""
    lines += [
        *_load(f"{a}.count", "i32", f"{a}.object", _DIMENSIONS),
        *_load(f"{a}.flags", "i32", f"{a}.object", _FLAGS),
        *_load(f"{a}.dtype", "ptr", f"{a}.object", _ELEMENTS),
        *_load(f"{a}.letter", "i8", f"{a}.dtype", _LETTER),
        *_load(f"{a}.order", "i8", f"{a}.dtype", _BYTE_ORDER),
        f"  {a}.is0 = icmp eq i32 {a}.count, {shape.dimensions}",
        f"  {a}.packed = and i32 {a}.flags, {_IN_ROWS_AND_ALIGNED}",
        f"  {a}.is1 = icmp eq i32 {a}.packed, {_IN_ROWS_AND_ALIGNED}",
        f"  {a}.is2 = icmp ne i8 {a}.order, {ord('>')}",
    ]
    letters = [ord(letter) for letter in _LETTERS[shape.dtype.name]]
    lines += [f"  {a}.letter{number} = icmp eq i8 {a}.letter, {letter}" for number, letter in enumerate(letters)]
    if len(letters) > 1:
        lines.append(f"  {a}.letters = or i1 {a}.letter0, {a}.letter1")
    return [*(f"{a}.is{number}" for number in range(3)), f"{a}.letters" if len(letters) > 1 else f"{a}.letter0"]


def _load(name: str, kind: str, base: str, offset: int) -> list[str]:
    return [f"  {name}.at = getelementptr i8, ptr {base}, i64 {offset}", f"  {name} = load {kind}, ptr {name}.at"]


def _array(a: str, shape: native.Shape, lines: list[str]) -> list[str]:
    """What Numba takes an array for: its owner (twice), elements, bytes of one, data, sizes, steps."""
    lines += [
        *_load(f"{a}.data", "ptr", f"{a}.object", _DATA),
        *_load(f"{a}.sizes", "ptr", f"{a}.object", _SIZES),
        f"  {a}.size0 = load i64, ptr {a}.sizes",
    ]
    size = str(shape.dtype.itemsize)
    if shape.dimensions == 1:
        return ["null", "null", f"{a}.size0", size, f"{a}.data", f"{a}.size0", size]
    lines += [
        *_load(f"{a}.size1", "i64", f"{a}.sizes", 8),
        f"  {a}.all = mul i64 {a}.size0, {a}.size1",
        f"  {a}.step = mul i64 {a}.size1, {size}",
    ]
    return ["null", "null", f"{a}.all", size, f"{a}.data", f"{a}.size0", f"{a}.size1", f"{a}.step", size]
