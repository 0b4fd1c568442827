"""Compiles kernels and links them into the shared library that `library` loads.

    python -m minutch.kernels.build     after a kernel has changed; the build backend does the same
                                        (`wheel`)

The one module, with `intrinsics`, that needs Numba and llvmlite, in processes of its own: one for
each core, and one for the modules that are compiled for newer processors too. Each module of
kernels becomes an object file that stands for itself, as what it calls of other modules is compiled
into it. `link` makes one library of them.

A kernel is the C function `minutch_<module>_<name>(int64_t *result, int64_t *words)`: its words are
integers, and addresses of NumPy's array objects (struct PyArrayObject), whose data and sizes it
takes. One more function, `library.CALL`, is what Python calls, for all of them: it makes words of
Python's objects, if arrays have the type and the kind of elements that the kernel wants, and the
other way round, and lets go of Python's lock meanwhile. What it needs of Python it is told by
addresses (`native.CallWords`), so that the library needs memcpy, memset and the like of the C
library of its process, and nothing else.
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
_OTHER_AT, _DIMENSIONS_AT = native.OTHER_AT, native.DIMENSIONS_AT
_LETTER, _BYTE_ORDER = 25, 26
"""Offsets in struct PyArray_Descr."""
_IN_ROWS_AND_ALIGNED: Final = 0x101
_BIG: Final = ord(">")
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
        (Path(folder) / "call.o").write_bytes(_emit(_call_and_mark()))


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
    whole = llvm.parse_assembly("")
    for kernel in kernels:
        if kernel.module == name:
            entry = _entry(kernel)
            whole.link_in(llvm.parse_assembly(entry.inspect_llvm()))
            whole.get_function(entry.native_name).name = library.symbol(kernel, _processor())
    for callback in callbacks:
        if callback.module == name:
            compiled = _numba().cfunc("void(int64)", **_options())(callback.function)
            whole.link_in(llvm.parse_assembly(compiled.inspect_llvm()))
            whole.get_function(compiled.native_name).name = library.symbol(callback, _processor())
    _hide(whole)
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


def _hide(whole: Any) -> None:
    """Export nothing but the library's own symbols: LLVM may inline the rest, and drop it."""
    for found in (*whole.functions, *whole.global_variables):
        if not found.is_declaration and not found.name.startswith(library.PREFIX):
            found.linkage = "internal"


def _call_and_mark() -> Any:
    """A module with what Python calls, and the digest of the sources that the library is made
    of.
    """
    from llvmlite import binding as llvm
    from llvmlite import ir

    compiled = _numba().cfunc("int64(int64, int64, int64)", **_options())(_caller())
    whole = llvm.parse_assembly(compiled.inspect_llvm())
    whole.get_function(compiled.native_name).name = library.CALL
    module = ir.Module()
    digest = ir.Constant(
        ir.ArrayType(ir.IntType(8), library.DIGEST_SIZE), bytearray(library.digest())
    )
    mark = ir.GlobalVariable(module, digest.type, library.MARK)
    mark.global_constant, mark.initializer = True, digest
    whole.link_in(llvm.parse_assembly(str(module)))
    _hide(whole)
    return whole


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
    """The C function (where the result goes, address of words) that calls a kernel."""
    if len(kernel.parameters) > native.MOST_WORDS:
        raise MinutchError(f"{kernel.name} takes more than {native.MOST_WORDS} arguments")
    store64, returns = _primitive("store64"), kernel.result
    arguments, compiled = _arguments(kernel), _numba().njit(kernel.function, **_options())

    def entry(result: Any, words: Any) -> Any:
        if returns == "None":
            compiled(*arguments(words))
        else:
            store64(result, np.int64(compiled(*arguments(words))))

    return _numba().cfunc("void(int64, int64)", **_options())(entry)


def _caller() -> Any:
    """The function of Python's (an array with `native.CallWords`, address of arguments, their
    number) -> object, or 0 with an error set.
    """
    load8, load32, load64 = map(_primitive, ("load8", "load32", "load64"))
    call7, scratch64 = _primitive("call7"), _primitive("scratch64")

    def plain_word(address: Any, number: Any) -> Any:
        return np.int64(load64(address + 8 * number))

    def plain_is_array(array: Any, ndarray: Any, kind: Any) -> Any:
        if (
            np.int64(load64(array + _TYPE)) != ndarray
            or np.int64(load32(array + _DIMENSIONS)) != kind >> _DIMENSIONS_AT
        ):
            return False
        dtype = np.int64(load64(array + _ELEMENTS))
        found = np.int64(load8(dtype + _LETTER))
        is_packed = np.int64(load32(array + _FLAGS)) & _IN_ROWS_AND_ALIGNED == _IN_ROWS_AND_ALIGNED
        is_kind = found == kind & 0xFF or found == kind >> _OTHER_AT & 0xFF
        return is_packed and is_kind and np.int64(load8(dtype + _BYTE_ORDER)) != _BIG

    def plain_ask(function: Any, value: Any, other: Any) -> Any:
        return call7(function, value, other, 0, 0, 0, 0, 0)

    njit = _numba().njit(forceinline=True, **_options())
    word, is_array, ask = map(njit, (plain_word, plain_is_array, plain_ask))

    table_of = native.CallWords
    wrong_at, count_at, result_at, array_at = map(
        int, (table_of.WRONG, table_of.COUNT, table_of.RESULT, table_of.NDARRAY)
    )
    item, as_integer, error, new_reference = map(
        int, (table_of.TUPLE_ITEM, table_of.AS_INTEGER, table_of.ERROR, table_of.NEW_REFERENCE)
    )
    let_go, entry, take_back, as_object = map(
        int, (table_of.LET_GO, table_of.ENTRY, table_of.TAKE_BACK, table_of.AS_OBJECT)
    )
    first, most = int(table_of.ARGUMENTS), native.MOST_WORDS

    def call(array: Any, arguments: Any, count: Any) -> Any:
        table = np.int64(load64(array + _DATA))
        words, result = scratch64(most), scratch64(1)
        if count != word(table, count_at):
            return ask(word(table, new_reference), word(table, wrong_at), 0)
        at, used = first, 0
        for number in range(count):
            given = word(arguments, number)
            record, fields = word(table, at), word(table, at + 1)
            at += 2
            if record != 0 and np.int64(load64(given + _TYPE)) != record:
                return ask(word(table, new_reference), word(table, wrong_at), 0)
            for field in range(fields):
                value, kind = given, word(table, at)
                at += 1
                if record != 0:
                    value = ask(word(table, item), given, field)
                if kind == 0:
                    value = ask(word(table, as_integer), value, 0)
                    if value == -1 and ask(word(table, error), 0, 0) != 0:
                        return np.int64(0)
                elif not is_array(value, word(table, array_at), kind):
                    return ask(word(table, new_reference), word(table, wrong_at), 0)
                words[used] = value
                used += 1
        result[0] = word(table, result_at)
        state = ask(word(table, let_go), 0, 0)
        ask(word(table, entry), np.int64(result.ctypes.data), np.int64(words.ctypes.data))
        ask(word(table, take_back), state, 0)
        return ask(word(table, as_object), result[0], 0)

    return call


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


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        try:
            build()
        except (MinutchError, ImportError, OSError) as exc:
            sys.exit(f"minutch: {exc}")
