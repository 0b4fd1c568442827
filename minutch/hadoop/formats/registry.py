"""The base of all Writables, and how a Java class name, or a byte, leads to one.

`register` adds a class by its `class_name` (importing `writables` adds Hadoop's own). Who has
further classes hands in a finder (`add_finder`), which imports one when its name is met in a file:
`minutch.records` does so for Nutch's. org.apache.hadoop.io.GenericWritable is one of several
classes behind one byte.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Self, TypeVar

from minutch.errors import FormatError
from minutch.hadoop.formats.javaio import DataInput, DataOutput

Finder = Callable[[str], "type[Writable] | None"]
_FINDERS: list[Finder] = []

ALIASES = {
    name: f"org.apache.hadoop.io.{java}"
    for name, java in {
        "null": "NullWritable",
        "long": "LongWritable",
        "UTF8": "UTF8",
        "MD5Hash": "MD5Hash",
    }.items()
}
"""Short names in the oldest files (WritableName) → Java class names."""


class Writable:
    """Base of everything that a SequenceFile can hold."""

    __slots__ = ()
    class_name: ClassVar[str] = ""

    @classmethod
    def read(cls, data: DataInput) -> Self:
        """Returns the value at `data.pos`; raises FormatError."""
        raise FormatError(
            "this class cannot be read by itself", found=cls.class_name or cls.__name__
        )

    def write(self, out: DataOutput) -> None:
        """Appends the value's bytes to `out`."""
        raise FormatError(
            "this class cannot be written by itself", found=self.class_name or type(self).__name__
        )

    def java_hash(self) -> int:
        """Java's hashCode, a signed 32-bit number."""
        return 0

    def to_bytes(self) -> bytes:
        """Returns the value's bytes."""
        out = DataOutput()
        self.write(out)
        return bytes(out.buf)

    @classmethod
    def from_bytes(cls, data: bytes | bytearray | memoryview) -> Self:
        """Returns the value that takes up exactly `data`; FormatError for left-over bytes, too."""
        source = DataInput(data)
        value = cls.read(source)
        # More than the record says is damage, or a class that is not the file's.
        if source.remaining:
            raise FormatError(
                f"bytes left over after {cls.class_name.rpartition('.')[2]}",
                offset=source.pos,
                expected=f"{source.pos} bytes",
                found=source.end,
            )
        return value


W = TypeVar("W", bound=type[Writable])

REGISTRY: dict[str, type[Writable]] = {}
"""Java class name → class, of those that have been imported."""


def register(cls: W) -> W:
    """Class decorator: make `cls` known by its `class_name`."""
    REGISTRY[cls.class_name] = cls
    return cls


def add_finder(finder: Finder) -> None:
    """Lets `finder` import the class of a Java name not yet in REGISTRY; None if it has none."""
    _FINDERS.append(finder)


def lookup(class_name: str, offset: int | None = None) -> type[Writable]:
    """Returns the class of a Java name; FormatError (at `offset`, its place) if there is none."""
    # WritableName.getClass.
    class_name = ALIASES.get(class_name, class_name)
    found = REGISTRY.get(class_name) or next(
        filter(None, (find(class_name) for find in _FINDERS)), None
    )
    if found is None:
        raise FormatError("unknown Writable class", offset=offset, found=class_name)
    # Under the name that was asked for: finders are slow.
    REGISTRY[class_name] = found
    return found


class GenericWritable(Writable):
    """org.apache.hadoop.io.GenericWritable: a value of one of `types`, after its index (a byte)."""

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
        # GenericWritable.TYPE is a byte, read with & 0xff: up to 256 classes.
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
