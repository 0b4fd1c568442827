"""org.apache.nutch.indexer.NutchDocument, NutchField and NutchIndexAction: what goes to a search
engine.

    NutchDocument       byte version (2), vint number of fields, (text name, NutchField)*, float
                        weight, Metadata
    NutchField          float weight, int number of values, (text Java class, value)*
    NutchIndexAction    byte action, NutchDocument

Values and their Java classes: str String, bool Boolean, int Integer, Long Long, float Float, Date
Date (long, ms).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Self

from minutch.errors import FormatError
from minutch.hadoop.formats import javahash
from minutch.hadoop.formats.javaio import DataInput, DataOutput
from minutch.hadoop.formats.writables import Writable
from minutch.records.metadata import Metadata, read_version

ADD: Final = 0
DELETE: Final = 1
UPDATE: Final = 2
FieldValue = str | bool | int | float


_Codec = tuple[str, Callable[[DataInput], Any], Callable[[DataOutput, Any], None]]


class Long(int):
    """An int that is a java.lang.Long in a NutchField."""


class Date(int):
    """An int that is a java.util.Date in a NutchField: milliseconds since the epoch."""


_CODECS: Final[dict[type, _Codec]] = {
    str: ("java.lang.String", DataInput.read_text, DataOutput.write_text),
    bool: ("java.lang.Boolean", DataInput.read_boolean, DataOutput.write_boolean),
    int: ("java.lang.Integer", DataInput.read_int, DataOutput.write_int),
    Long: ("java.lang.Long", lambda data: Long(data.read_long()), DataOutput.write_long),
    float: ("java.lang.Float", DataInput.read_float, DataOutput.write_float),
    Date: ("java.util.Date", lambda data: Date(data.read_long()), DataOutput.write_long),
}
_READERS: Final = {name: read for name, read, _ in _CODECS.values()}


def value_text(value: FieldValue) -> str:
    """Returns a value as Java prints it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return javahash.float_to_string(value)
    return javahash.date_to_string(value) if isinstance(value, Date) else str(value)


@dataclass(slots=True)
class NutchField(Writable):
    """The values of one field."""

    class_name = "org.apache.nutch.indexer.NutchField"
    values: list[FieldValue] = field(default_factory=list)
    weight: float = 1.0

    @classmethod
    def read(cls, data: DataInput) -> Self:
        weight = data.read_float()
        result = cls([], weight)
        for _ in range(data.read_int()):
            start = data.pos
            name = data.read_text()
            if name not in _READERS:
                raise FormatError("class that a NutchField cannot hold", offset=start, found=name)
            result.values.append(_READERS[name](data))
        return result

    def write(self, out: DataOutput) -> None:
        out.write_float(self.weight)
        out.write_int(len(self.values))
        for value in self.values:
            codec = _CODECS.get(type(value))
            if codec is None:
                raise FormatError("value that a NutchField cannot hold", found=type(value).__name__)
            out.write_text(codec[0])
            codec[2](out, value)

    def __str__(self) -> str:
        return "[" + ", ".join(map(value_text, self.values)) + "]"


@dataclass(slots=True)
class NutchDocument(Writable):
    """Fields by name, a weight (boost) and metadata."""

    class_name = "org.apache.nutch.indexer.NutchDocument"
    fields: dict[str, NutchField] = field(default_factory=dict)
    weight: float = 1.0
    metadata: Metadata = field(default_factory=Metadata)

    def add(self, name: str, value: FieldValue) -> None:
        """Adds a value to a field."""
        self.fields.setdefault(name, NutchField()).values.append(value)

    def first(self, name: str) -> FieldValue | None:
        """Returns the first value of a field (getFieldValue)."""
        found = self.fields.get(name)
        return found.values[0] if found and found.values else None

    def java_names(self) -> list[str]:
        """Returns the field names in the order of Java's HashMap."""
        names = list(self.fields)
        return [
            names[i]
            for i in javahash.hash_map_order([javahash.string_hash(name) for name in names])
        ]

    @classmethod
    def read(cls, data: DataInput) -> Self:
        read_version(data, "NutchDocument", (2,))
        fields = {}
        for _ in range(data.read_vint()):
            name = data.read_text()
            fields[name] = NutchField.read(data)
        return cls(fields, data.read_float(), Metadata.read(data))

    def write(self, out: DataOutput) -> None:
        out.write_byte(2)
        out.write_vint(len(self.fields))
        for name in self.java_names():
            out.write_text(name)
            self.fields[name].write(out)
        out.write_float(self.weight)
        self.metadata.write(out)

    def __str__(self) -> str:
        return (
            "doc {\n"
            + "".join(f"\t{name}:\t{self.fields[name]}\n" for name in self.java_names())
            + "}\n"
        )


@dataclass(slots=True)
class NutchIndexAction(Writable):
    """A document with what to do with it: ADD, DELETE or UPDATE."""

    class_name = "org.apache.nutch.indexer.NutchIndexAction"
    document: NutchDocument = field(default_factory=NutchDocument)
    action: int = ADD

    @classmethod
    def read(cls, data: DataInput) -> Self:
        action = data.read_byte()
        return cls(NutchDocument.read(data), action)

    def write(self, out: DataOutput) -> None:
        out.write_byte(self.action)
        self.document.write(out)
