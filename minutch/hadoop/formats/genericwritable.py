"""org.apache.hadoop.io.GenericWritable: one of several classes behind one byte."""

from __future__ import annotations

from typing import ClassVar, Self

from minutch.errors import FormatError
from minutch.hadoop.formats.javaio import DataInput, DataOutput
from minutch.hadoop.formats.registry import Writable, lookup


class GenericWritable(Writable):
    """org.apache.hadoop.io.GenericWritable: a value of one of `types`, whose index is stored in one
    byte.
    """

    __slots__ = ("instance",)
    types: ClassVar[tuple[str, ...]] = ()

    def __init__(self, instance: Writable) -> None:
        if instance.class_name not in self.types:
            raise FormatError(
                f"class that {type(self).__name__} cannot hold",
                expected="one of its types",
                found=instance.class_name,
            )
        self.instance = instance

    @classmethod
    def read(cls, data: DataInput) -> Self:
        start = data.pos
        index = data.read_unsigned_byte()
        if index >= len(cls.types):
            raise FormatError(
                "class index beyond the table",
                offset=start,
                expected=f"< {len(cls.types)}",
                found=index,
            )
        return cls(lookup(cls.types[index], start).read(data))

    def write(self, out: DataOutput) -> None:
        out.write_byte(self.types.index(self.instance.class_name))
        self.instance.write(out)

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and self.instance == other.instance

    def __hash__(self) -> int:
        return hash(self.instance)

    def __str__(self) -> str:
        name = self.instance.class_name
        return f"GW[class={name},value={self.instance}]"
