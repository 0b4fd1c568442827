"""Compiles kernels and links them into the shared library that `library` loads.

    python -m minutch.kernels.build     after a kernel has changed; the build backend does the same
                                        (`wheel`)

The one module, with `intrinsics`, that needs Numba and llvmlite, in processes of its own: one for
each core, and one for the modules that are compiled for newer processors too. Each module of
kernels becomes an object file that stands for itself, as what it calls of other modules is compiled
into it. `link` makes one library of them.

A kernel is the C function `minutch_<module>_<name>(int64_t *result, ndarray type, words...) ->
int32_t`: it takes integers as they are and arrays as the addresses of NumPy's array objects (struct
PyArrayObject), whose data and sizes it hands on if they have the type and the kind of elements that
the kernel wants; otherwise it returns WRONG_ARRAY. The library needs memcpy, memset and the like of
the C library of its process, and nothing else.
"""

from __future__ import annotations

import gc
import importlib
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from subprocess import PIPE, STDOUT, Popen
from tempfile import TemporaryDirectory
from typing import Any, Final, cast

import numpy as np

from minutch.errors import MinutchError
from minutch.kernels import library, native
from minutch.kernels.link import link

_TYPE, _DATA, _DIMENSIONS, _SIZES, _ELEMENTS, _FLAGS = 8, native.DATA_OFFSET, 24, 32, 56, 64
"""Offsets in struct PyArrayObject: the object's type, elements, how many dimensions, their sizes,
the dtype.
"""
_LETTER, _BYTE_ORDER = 25, 26
"""Offsets in struct PyArray_Descr."""
_IN_ROWS_AND_ALIGNED: Final = 0x101
_BIG: Final = ord(">")
_LETTERS: Final = {
    "uint8": "BB",
    "int8": "bb",
    "uint32": "II",
    "int32": "ii",
    "uint64": "LQ",
    "int64": "lq",
    "float32": "ff",
    "bool": "??",
}
"""Kind of element → its letters: long and long long may have the same size."""
_NEEDED: Final = {"memcpy", "memmove", "memset", "memcmp"}
"""The functions that the library needs of the process that loads it: functions of its C library."""
_SOURCES: Final = Path(__file__).parents[2]
_WORKER: Final = """
import sys
sys.path.insert(0, sys.argv[1])
from minutch.kernels.build import write_objects
write_objects(*sys.argv[2:4], sys.argv[4:])
"""


def build(target: Path = library.PATH) -> None:
    """Compile all kernels and link them. Raises MinutchError with what the compiler or the linker
    said.
    """
    names = sorted(library.modules(), key=library.size_of, reverse=True)  # for equal shares
    count = min(len(names), os.cpu_count() or 1)
    shares = [(library.BASELINE, names[first::count]) for first in range(count)]
    if library.BASELINE == "x86-64":
        shares.append((library.NEWER, list(library.FASTER_ON_NEWER)))
    with TemporaryDirectory(prefix="minutch-kernels-") as folder:
        worker = [sys.executable, "-c", _WORKER, str(_SOURCES), folder]
        running = [
            Popen([*worker, processor, *share], stdout=PIPE, stderr=STDOUT)
            for processor, share in shares
        ]
        try:
            for process in running:
                said, _ = process.communicate()
                if process.returncode:
                    raise MinutchError(
                        "kernels were not compiled:"
                        f" {said.decode(errors='replace').strip()[-2000:]}"
                    )
        finally:
            for process in running:
                process.kill()
        link(sorted(Path(folder).glob("*.o")), target)


def write_objects(folder: str, processor: str, names: list[str]) -> None:
    """Write the object code of modules of kernels to files in a folder, for one processor in each
    process; with the first module, the library's mark.
    """
    gc.disable()  # of what the compiler makes, nearly all is kept to the end
    config = _numba().config
    config.CPU_NAME, config.CPU_FEATURES = processor, ""
    # Numba's own optimizing is left out: `_emit` does it once more, for a module as a whole. 51
    # instead of 62 CPU s, and the same speed of all kernels. At level 0, LLVM would touch nothing.
    config.OPT = type(config.OPT)(1)
    for name in names:
        (Path(folder) / f"{name}.{_processor()}.o").write_bytes(compile_module(name))
    if library.modules()[0] in names and _processor() == library.BASELINE:
        (Path(folder) / "mark.o").write_bytes(_emit(_mark()))


def _processor() -> str:
    """The processor that this process compiles for."""
    return str(_numba().config.CPU_NAME)


def _numba() -> Any:
    import numba

    return numba


def compile_module(name: str) -> bytes:
    """The object code of a module of kernels. Raises MinutchError if it needs more than there will
    be.
    """
    from llvmlite import binding as llvm

    kernels, callbacks = _all()
    whole = llvm.parse_assembly(
        _check()[1] if any(kernel.module == name for kernel in kernels) else ""
    )
    for kernel in kernels:
        if kernel.module == name:
            entry = _entry(kernel)
            whole.link_in(llvm.parse_assembly(entry.inspect_llvm()))
            whole.link_in(_with_words(kernel, entry.native_name))
    for callback in callbacks:
        if callback.module == name:
            compiled = _numba().cfunc("void(int64)", **_options())(callback.function)
            whole.link_in(llvm.parse_assembly(compiled.inspect_llvm()))
            whole.get_function(compiled.native_name).name = library.symbol(callback, _processor())
    # Nothing but the library's own symbols is exported: LLVM may inline the rest, and drop it.
    for found in (*whole.functions, *whole.global_variables):
        if not found.is_declaration and not found.name.startswith(library.PREFIX):
            found.linkage = "internal"
    code = _emit(whole)
    called = {function.name for function in whole.functions if function.is_declaration}
    unknown = {symbol for symbol in called if not symbol.startswith("llvm.")} - _NEEDED
    if unknown:
        raise MinutchError(
            f"kernels of {name} need more than there will be: {', '.join(sorted(unknown))}"
        )
    return code


def _options() -> dict[str, Any]:
    """Kernels divide as C does, check no bounds, neither make arrays nor count references to them,
    and are not called from Python in the process that compiles them.
    """
    return {
        "error_model": "numpy",
        "boundscheck": False,
        "_nrt": False,
        "no_cpython_wrapper": True,
        "no_cfunc_wrapper": True,
    }


def _emit(module: Any) -> bytes:
    """The object code of a module, optimized as a whole."""
    from llvmlite import binding as llvm

    module.verify()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=_processor(), opt=3, reloc="pic", codemodel="default"
    )
    tuning = llvm.create_pipeline_tuning_options(speed_level=3)
    passes = llvm.create_pass_builder(machine, tuning)
    passes.getModulePassManager().run(module, passes)
    return bytes(machine.emit_object(module))


def _mark() -> Any:
    """A module with the digest of the sources that the library is made of."""
    from llvmlite import binding as llvm
    from llvmlite import ir

    module = ir.Module()
    digest = ir.Constant(
        ir.ArrayType(ir.IntType(8), library.DIGEST_SIZE), bytearray(library.digest())
    )
    mark = ir.GlobalVariable(module, digest.type, library.MARK)
    mark.global_constant, mark.initializer = True, digest
    return llvm.parse_assembly(str(module))


@cache
def _all() -> tuple[list[native.Kernel], list[native.Callback]]:
    """All kernels and callbacks, after Numba's functions have taken the places of all that they
    call.
    """
    from minutch.kernels.intrinsics import PRIMITIVES

    njit = _numba().njit
    makers: dict[str, Callable[[Any], Any]] = {
        "primitive": lambda function: PRIMITIVES[function.__name__],
        "inlined": lambda function: njit(function, forceinline=True, **_options()),
        "inner": lambda function: njit(function, **_options()),
    }
    # The first two define no kernels, but functions that kernels call.
    names = ("native", "memory", *library.modules())
    made: dict[Any, Any] = {}
    for module in [importlib.import_module(f"minutch.kernels.{name}") for name in names]:
        for attribute, value in list(vars(module).items()):
            if isinstance(value, native.Callback):
                made.setdefault(value, value)
            elif isinstance(value, native.Kernel):
                made.setdefault(value, makers["inner"](value.function))
            elif kind := getattr(value, "kernel_kind", None):
                made.setdefault(value, makers[kind](value))
            else:
                continue
            setattr(module, attribute, made[value])
    kernels = [value for value in made if isinstance(value, native.Kernel)]
    return kernels, [value for value in made if isinstance(value, native.Callback)]


def _entry(kernel: native.Kernel) -> Any:
    """The C function (where the result goes, address of words) -> 0 that calls a kernel."""
    store64, returns = _primitive("store64"), kernel.result
    arguments, compiled = _arguments(kernel), _numba().njit(kernel.function, **_options())

    def entry(result: Any, words: Any) -> Any:
        if returns == "None":
            compiled(*arguments(words))
        else:
            store64(result, np.int64(compiled(*arguments(words))))
        return 0

    return _numba().cfunc("int32(int64, int64)", **_options())(entry)


@cache
def _check() -> tuple[str, str]:
    """The C function that tells whether an object is an array of a kind: its name, and a module
    with it.
    """
    load8, load32, load64 = map(_primitive, ("load8", "load32", "load64"))

    def is_array(array: Any, ndarray: Any, dimensions: Any, letter: Any, other: Any) -> Any:
        if (
            np.int64(load64(array + _TYPE)) != ndarray
            or np.int64(load32(array + _DIMENSIONS)) != dimensions
        ):
            return False
        dtype = np.int64(load64(array + _ELEMENTS))
        found = np.int64(load8(dtype + _LETTER))
        is_packed = np.int64(load32(array + _FLAGS)) & _IN_ROWS_AND_ALIGNED == _IN_ROWS_AND_ALIGNED
        return (
            is_packed and found in (letter, other) and np.int64(load8(dtype + _BYTE_ORDER)) != _BIG
        )

    compiled = _numba().cfunc("boolean(int64, int64, int64, int64, int64)", **_options())(is_array)
    return compiled.native_name, compiled.inspect_llvm()


def _primitive(name: str) -> Any:
    from minutch.kernels.intrinsics import PRIMITIVES

    return PRIMITIVES[name]


def _arguments(kernel: native.Kernel) -> Any:
    """The intrinsic (address of words) -> tuple of what the kernel takes, arrays as Numba has
    them.
    """
    from llvmlite import ir
    from numba import from_dtype
    from numba.core import types
    from numba.extending import intrinsic

    from minutch.kernels.intrinsics import array_of

    kinds = [
        (
            types.int64
            if name in native.SCALARS
            else types.Array(
                from_dtype(native.SHAPES[name].dtype), native.SHAPES[name].dimensions, "C"
            )
        )
        for name in kernel.parameters
    ]
    arranged = [
        types.BaseTuple.from_types(tuple(kind), type(kind)) if isinstance(kind, tuple) else kind
        for kind in kernel.together(kinds)
    ]
    word = ir.IntType(64)

    def load(builder: Any, address: Any, offset: int) -> Any:
        return builder.load(
            builder.inttoptr(builder.add(address, ir.Constant(word, offset)), word.as_pointer())
        )

    def arguments(typingctx: Any, words: Any) -> Any:
        result: Any = cast(Any, types).Tuple(arranged)

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            values = []
            for number, kind in enumerate(kinds):
                value = load(builder, args[0], 8 * number)
                if isinstance(kind, types.Array):
                    sizes = load(builder, value, _SIZES)
                    shape = [load(builder, sizes, 8 * axis) for axis in range(kind.ndim)]
                    pointer = context.get_data_type(kind.dtype).as_pointer()
                    data = builder.inttoptr(load(builder, value, _DATA), pointer)
                    value = array_of(context, builder, kind, data, shape)
                values.append(value)
            values = [
                context.make_tuple(builder, kind, value) if isinstance(value, tuple) else value
                for kind, value in zip(arranged, kernel.together(values), strict=True)
            ]
            return context.make_tuple(builder, result, values)

        return result(types.int64), codegen

    return intrinsic(arguments)


def _with_words(kernel: native.Kernel, entry: str) -> Any:
    """A module with the kernel's C function: it has as many parameters as there are words, and
    calls its entry.
    """
    from llvmlite import binding as llvm
    from llvmlite import ir

    word, status = ir.IntType(64), ir.IntType(32)
    module = ir.Module()
    callee = ir.Function(module, ir.FunctionType(status, [word] * 2), entry)
    check = ir.Function(module, ir.FunctionType(ir.IntType(8), [word] * 5), _check()[0])
    names = kernel.parameters
    kind = ir.FunctionType(status, [word] * (2 + len(names)))
    function = ir.Function(module, kind, library.symbol(kernel, _processor()))
    result, ndarray, *words = function.args
    builder = ir.IRBuilder(function.append_basic_block())
    room = builder.alloca(ir.ArrayType(word, len(names)))
    for number, (name, value) in enumerate(zip(names, words, strict=True)):
        builder.store(
            value, builder.gep(room, [ir.Constant(status, 0), ir.Constant(status, number)])
        )
        if name in native.SHAPES:
            shape = native.SHAPES[name]
            wanted = [
                ir.Constant(word, n)
                for n in (shape.dimensions, *map(ord, _LETTERS[shape.dtype.name]))
            ]
            is_right = builder.call(check, [value, ndarray, *wanted])
            with builder.if_then(
                builder.icmp_unsigned("==", is_right, ir.Constant(ir.IntType(8), 0)), likely=False
            ):
                builder.ret(ir.Constant(status, native.WRONG_ARRAY))
    builder.ret(builder.call(callee, [result, builder.ptrtoint(room, word)]))
    return llvm.parse_assembly(str(module))


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        try:
            build()
        except (MinutchError, ImportError, OSError) as exc:
            sys.exit(f"minutch: {exc}")
