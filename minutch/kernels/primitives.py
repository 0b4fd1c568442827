"""What the primitives of `native` stand for in machine code. Imported by `build` alone: this needs Numba.

`PRIMITIVES` has an intrinsic of Numba's for each name; `RUNTIME` is what Numba's own runtime would provide.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

RUNTIME = """
declare ptr @malloc(i64)
declare void @free(ptr)

; An array that a kernel makes for itself:  reference count | destructor | its argument | data | size
define ptr @NRT_MemInfo_alloc_aligned(i64 %size, i32 %align) {
  %alignment = zext i32 %align to i64
  %head = add i64 %alignment, 48
  %room = add i64 %size, %head
  %block = call ptr @malloc(i64 %room)
  %failed = icmp eq ptr %block, null
  br i1 %failed, label %none, label %fill
fill:
  %address = ptrtoint ptr %block to i64
  %beyond = add i64 %address, %head
  %data = sub i64 %beyond, 1
  %steps = udiv i64 %data, %alignment
  %aligned = mul i64 %steps, %alignment
  store i64 1, ptr %block
  %destructor = getelementptr i64, ptr %block, i64 1
  store i64 0, ptr %destructor
  %place = getelementptr i64, ptr %block, i64 3
  store i64 %aligned, ptr %place
  %length = getelementptr i64, ptr %block, i64 4
  store i64 %size, ptr %length
  ret ptr %block
none:
  ret ptr null
}

define void @NRT_MemInfo_call_dtor(ptr %block) {
  call void @free(ptr %block)
  ret void
}
"""
"""Memory of arrays that kernels make (numba/core/runtime/nrt.cpp has the layout)."""

RELEASE = """
; A C function that releases an ArrowArray: sets the integer that its private data (at 72) points to, and clears the
; pointer to itself (at 64). Polars may call it at any time, also when no Python may run.
define void @minutch.find.release(ptr %array) {
  %private = getelementptr i8, ptr %array, i64 72
  %flag = load ptr, ptr %private
  store i64 1, ptr %flag
  %release = getelementptr i8, ptr %array, i64 64
  store ptr null, ptr %release
  ret void
}
"""


def _call7(typingctx: Any, function: Any, a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any) -> Any:
    word = types.int64
    signature = word(word, word, word, word, word, word, word, word)

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        integer = ir.IntType(64)
        pointer = builder.inttoptr(args[0], ir.FunctionType(integer, [integer] * 7).as_pointer())
        return builder.call(pointer, args[1:])

    return signature, codegen


def _copy_bytes(typingctx: Any, target: Any, source: Any, size: Any) -> Any:
    word = types.int64

    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        byte = ir.IntType(8).as_pointer()
        target, source, size = args
        memcpy = builder.module.declare_intrinsic("llvm.memcpy", [byte, byte, ir.IntType(64)])
        false = ir.Constant(ir.IntType(1), 0)
        builder.call(memcpy, [builder.inttoptr(target, byte), builder.inttoptr(source, byte), size, false])
        return context.get_dummy_value()

    return types.void(word, word, word), codegen


def _prefetch(typingctx: Any, address: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        byte, word = ir.IntType(8).as_pointer(), ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
        function = builder.module.declare_intrinsic("llvm.prefetch", [byte], kind)
        read, keep, data = (ir.Constant(word, value) for value in (0, 3, 1))
        builder.call(function, [builder.inttoptr(args[0], byte), read, keep, data])
        return context.get_dummy_value()

    return types.void(types.int64), codegen


def _folded_product(typingctx: Any, a: Any, b: Any) -> Any:
    def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        wide = ir.IntType(128)
        product = builder.mul(*(builder.zext(value, wide) for value in args))
        halves = product, builder.lshr(product, ir.Constant(wide, 64))
        return builder.xor(*(builder.trunc(half, ir.IntType(64)) for half in halves))

    return types.uint64(types.uint64, types.uint64), codegen


def _loader(bits: int) -> Any:
    def load(typingctx: Any, address: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = ir.IntType(bits)
            value = builder.load(builder.inttoptr(args[0], kind.as_pointer()))
            value.align = 1
            return value if bits == 64 else builder.zext(value, ir.IntType(64))

        return types.uint64(types.int64), codegen

    return intrinsic(load)


def _big_loader(bits: int) -> Any:
    def load(typingctx: Any, address: Any) -> Any:
        def codegen(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            kind = ir.IntType(bits)
            value = builder.load(builder.inttoptr(args[0], kind.as_pointer()))
            value.align = 1
            value = builder.bswap(value)
            return value if bits == 64 else builder.sext(value, ir.IntType(64))

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


PRIMITIVES: dict[str, Any] = {
    "call7": intrinsic(_call7),
    "copy_bytes": intrinsic(_copy_bytes),
    "prefetch": intrinsic(_prefetch),
    "folded_product": intrinsic(_folded_product),
    "load8": _loader(8),
    "load32": _loader(32),
    "load64": _loader(64),
    "load_int": _big_loader(32),
    "load_long": _big_loader(64),
    "store8": _storer(8),
    "store32": _storer(32),
    "store64": _storer(64),
}
