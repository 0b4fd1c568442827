"""The machine code that primitives stand for, as intrinsics of Numba's. Imported by `build`
alone.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.imputils import impl_ret_untracked
from numba.extending import intrinsic
from numba.np.arrayobj import make_array, populate_array

_WORD, _BYTE = ir.IntType(64), ir.IntType(8).as_pointer()


def _call7(
    typingctx: Any, function: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any
) -> Any:
    word = types.int64
    signature = word(word, word, word, word, word, word, word, word)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        pointer = builder.inttoptr(args[0], ir.FunctionType(_WORD, [_WORD] * 7).as_pointer())
        return builder.call(pointer, args[1:])

    return signature, codegen


def _copy_bytes(typingctx: Any, target: Any, source: Any, size: Any) -> Any:
    word = types.int64

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target, source, size = args
        memcpy = builder.module.declare_intrinsic("llvm.memcpy", [_BYTE, _BYTE, _WORD])
        false = ir.Constant(ir.IntType(1), 0)  # not volatile
        builder.call(
            memcpy, [builder.inttoptr(target, _BYTE), builder.inttoptr(source, _BYTE), size, false]
        )
        return context.get_dummy_value()

    return types.void(word, word, word), codegen


def _prefetch(typingctx: Any, address: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        word = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [_BYTE, word, word, word])
        function = builder.module.declare_intrinsic("llvm.prefetch", [_BYTE], kind)
        read, keep, data = (ir.Constant(word, value) for value in (0, 3, 1))
        builder.call(function, [builder.inttoptr(args[0], _BYTE), read, keep, data])
        return context.get_dummy_value()

    return types.void(types.int64), codegen


def _folded_product(typingctx: Any, a: Any, b: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(*(builder.zext(value, wide) for value in args))
        halves = product, builder.lshr(product, ir.Constant(wide, 64))
        return builder.xor(*(builder.trunc(half, _WORD) for half in halves))

    return types.uint64(types.uint64, types.uint64), codegen


def _loader(bits: int) -> Any:
    def load(typingctx: Any, address: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = ir.IntType(bits)
            value = builder.load(builder.inttoptr(args[0], kind.as_pointer()))
            value.align = 1  # values in files are unaligned
            return value if bits == 64 else builder.zext(value, _WORD)

        return types.uint64(types.int64), codegen

    return intrinsic(load)


def _big_loader(bits: int) -> Any:
    def load(typingctx: Any, address: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = ir.IntType(bits)
            value = builder.load(builder.inttoptr(args[0], kind.as_pointer()))
            value.align = 1
            value = builder.bswap(value)
            return value if bits == 64 else builder.sext(value, _WORD)

        return types.int64(types.int64), codegen

    return intrinsic(load)


def _storer(bits: int) -> Any:
    def store(typingctx: Any, address: Any, value: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = ir.IntType(bits)
            value = args[1] if bits == 64 else builder.trunc(args[1], kind)
            builder.store(value, builder.inttoptr(args[0], kind.as_pointer())).align = 1
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), codegen

    return intrinsic(store)


def _of_16(comparison: str) -> Any:
    def compare(typingctx: Any, address: Any, byte: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            byte = ir.IntType(8)
            kind = ir.VectorType(byte, 16)
            vector = builder.load(builder.inttoptr(args[0], kind.as_pointer()))
            vector.align = 1
            first = builder.insert_element(
                ir.Constant(kind, ir.Undefined),
                builder.trunc(args[1], byte),
                ir.Constant(ir.IntType(32), 0),
            )
            zeros = ir.Constant(ir.VectorType(ir.IntType(32), 16), None)
            same = builder.shuffle_vector(first, ir.Constant(kind, ir.Undefined), zeros)
            found = builder.icmp_unsigned(comparison, vector, same)
            return builder.zext(builder.bitcast(found, ir.IntType(16)), _WORD)

        return types.uint64(types.int64, types.int64), codegen

    return intrinsic(compare)


def _trailing_zeros(typingctx: Any, word: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 1))

    return types.int64(types.uint64), codegen


def _scratch(element: Any) -> Any:
    def scratch(typingctx: Any, size: Any) -> Any:
        if not isinstance(size, types.IntegerLiteral):
            return None  # not a constant
        kind = types.Array(element, 1, "C")
        count = size.literal_value

        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            data = cgutils.alloca_once(builder, ir.ArrayType(context.get_data_type(element), count))
            builder.store(ir.Constant(data.type.pointee, None), data)
            first = builder.bitcast(data, context.get_data_type(element).as_pointer())
            return array_of(context, builder, kind, first, [ir.Constant(_WORD, count)])

        return kind(size), codegen

    return intrinsic(prefer_literal=True)(scratch)


def array_of(context: Any, builder: Any, kind: Any, data: Any, shape: list[Any]) -> Any:
    """An array of the type `kind` over memory that somebody else owns, row by row without gaps."""
    size = ir.Constant(_WORD, context.get_abi_sizeof(context.get_data_type(kind.dtype)))
    strides = [size] if len(shape) == 1 else [builder.mul(shape[1], size), size]
    array = make_array(kind)(context, builder)
    populate_array(array, data=data, shape=shape, strides=strides, itemsize=size, meminfo=None)
    return impl_ret_untracked(context, builder, kind, array._getvalue())  # noqa: SLF001 - Numba has no public name for it


PRIMITIVES: dict[str, Any] = {
    "call7": intrinsic(_call7),
    "copy_bytes": intrinsic(_copy_bytes),
    "prefetch": intrinsic(_prefetch),
    "folded_product": intrinsic(_folded_product),
    "equal_of_16": _of_16("=="),
    "least_of_16": _of_16(">="),
    "trailing_zeros": intrinsic(_trailing_zeros),
    "load8": _loader(8),
    "load32": _loader(32),
    "load64": _loader(64),
    "load_int": _big_loader(32),
    "load_long": _big_loader(64),
    "store8": _storer(8),
    "store32": _storer(32),
    "store64": _storer(64),
    "scratch32": _scratch(types.int32),
    "scratch64": _scratch(types.int64),
}
