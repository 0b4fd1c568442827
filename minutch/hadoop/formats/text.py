"""Any file of Hadoop's as text or as JSON, and the files below a folder: what `hadoop fs -text`
shows.

Text has a line `key<TAB>value` for each record, with the strings that Java's toString gives (a
value may bring line breaks of its own). JSON has an object a line:

    {"file": …, "keyClass": …, "key": …, "valueClass": …, "value": …}

with numbers, strings, lists and objects by the names of the record's fields. Bytes are hexadecimal
strings, and so is a whole value whose class is not known; then `"raw": true` stands beside it. A
file that is no SequenceFile is given as it is, decompressed if its name or its first bytes say how;
in JSON its lines are `{"file": …, "line": …}`.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from minutch.errors import FormatError
from minutch.hadoop.formats.checksum import ChecksumReader, read_file
from minutch.hadoop.formats.compress import PACKAGE, codec, codec_for
from minutch.hadoop.formats.javaio import decode_text
from minutch.hadoop.formats.mapfile import DATA, INDEX
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.hadoop.formats.sequencewriter import MAGIC
from minutch.hadoop.formats.writables import BytesWritable, NullWritable, Writable, lookup

Decoder = Callable[[bytes], Writable]
Decoders = Mapping[str, Decoder]
"""Functions that read the records of some classes, by Java class name; others read themselves."""

_GZIP_MAGIC = b"\x1f\x8b"


@dataclasses.dataclass(frozen=True, slots=True)
class Raw(Writable):
    """The bytes of a value whose class is not known."""

    data: bytes

    def __str__(self) -> str:
        return self.data.hex()


def files_below(path: Path) -> Iterator[Path]:
    """Yields the files with data at or below `path`, folders in the order of their names.

    Of a MapFile that is its data. Names that begin with a dot or an underscore (checksums, locks,
    marks) are left out below a folder, as Hadoop leaves them out of a job's input.
    """
    if not path.is_dir():
        yield path
    elif (path / DATA).is_file() and (path / INDEX).is_file():
        yield path / DATA
    else:
        for entry in sorted(path.iterdir(), key=lambda entry: entry.name):
            if not entry.name.startswith((".", "_")):
                yield from files_below(entry)


def is_sequence_file(path: Path) -> bool:
    """Returns whether a file begins like a SequenceFile."""
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC


def as_text(path: Path, decoders: Decoders | None = None) -> Iterator[str]:
    """Yields the text of a file in pieces, line breaks included. Raises FormatError."""
    if not is_sequence_file(path):
        yield from _plain(path)
        return
    with SequenceFileReader(path) as reader:
        for key, value in _records(reader, decoders or {}):
            yield f"{key}\t{value}\n"


def as_json(path: Path, decoders: Decoders | None = None) -> Iterator[str]:
    """Yields a file as lines of JSON. Raises FormatError."""
    if not is_sequence_file(path):
        for line in "".join(_plain(path)).splitlines():
            yield _json_line({"file": str(path), "line": line})
        return
    with SequenceFileReader(path) as reader:
        head = {"file": str(path), "keyClass": reader.key_class}
        for key, value in _records(reader, decoders or {}):
            record = head | {
                "key": to_json(key),
                "valueClass": reader.value_class,
                "value": to_json(value),
            }
            if isinstance(key, Raw) or isinstance(value, Raw):
                record["raw"] = True
            yield _json_line(record)


def _json_line(record: dict[str, Any]) -> str:
    """One line; bytes that are not UTF-8 appear as escaped lone surrogates."""
    line = json.dumps(record, ensure_ascii=False, allow_nan=False)
    try:
        line.encode("utf-8")  # a lone surrogate can't be
    except UnicodeEncodeError:
        line = json.dumps(record, allow_nan=False)
    return line + "\n"


def _plain(path: Path) -> Iterator[str]:
    """Yields a file that is no SequenceFile."""
    with ChecksumReader(path) as reader:
        # `hadoop fs -text` goes by the first bytes, then by the ending of the name.
        begin = reader.read(len(_GZIP_MAGIC))
    packed = codec(PACKAGE + "GzipCodec") if begin == _GZIP_MAGIC else codec_for(path.name)
    if packed is not None:
        try:
            yield decode_text(packed.decompress(read_file(path)))
        except FormatError as exc:
            raise exc.at(path) from exc.__cause__
        return
    rest = b""
    with ChecksumReader(path) as reader:
        for piece in reader.pieces():
            # Whole lines: no character is cut in two.
            whole, newline, rest = (rest + piece).rpartition(b"\n")
            yield decode_text(whole + newline)
    yield decode_text(rest)


def _records(reader: SequenceFileReader, decoders: Decoders) -> Iterator[tuple[Writable, Writable]]:
    """Yields the records as Writables; values of unknown classes as Raw."""
    read_key, read_value = (
        decoders.get(name) or _decoder(name) for name in (reader.key_class, reader.value_class)
    )
    at = reader.position
    for key, value in reader:
        try:
            yield read_key(key), read_value(value)
        except FormatError as exc:
            exc.what, exc.offset = f"bad record: {exc.what}", at
            raise exc.at(reader.name) from exc.__cause__
        at = reader.position


def _decoder(class_name: str) -> Decoder:
    try:
        return lookup(class_name).from_bytes
    except FormatError:
        return Raw


def to_json(value: Any) -> Any:
    """Converts a value to JSON: its fields by Java's names, with nothing rounded or left out."""
    for kind, convert in _CONVERSIONS:
        if isinstance(value, kind):
            return convert(value)
    if dataclasses.is_dataclass(value):
        fields = {
            _java_name(item.name): to_json(getattr(value, item.name))
            for item in dataclasses.fields(value)
        }
        return fields["value"] if list(fields) == ["value"] else fields
    if hasattr(value, "instance"):
        return {"class": value.instance.class_name, "value": to_json(value.instance)}
    if hasattr(value, "__iter__"):
        return [to_json(item) for item in value]
    return str(value)


def _java_name(name: str) -> str:
    """`fetch_time` -> `fetchTime`."""
    first, *others = name.split("_")
    return first + "".join(map(str.capitalize, others))


def _float_to_json(value: float) -> float | str:
    return (
        value
        if math.isfinite(value)
        else "NaN"
        if math.isnan(value)
        else f"{'-' if value < 0 else ''}Infinity"
    )


def _mapping_to_json(value: Mapping[Any, Any]) -> Any:
    """Returns an object if keys are strings that differ, else a list of pairs and classes."""
    items = value.java_items() if hasattr(value, "java_items") else value.items()
    keys = [key if isinstance(key, str) else getattr(key, "value", None) for key in value]
    if all(isinstance(key, str) for key in keys) and len(set(keys)) == len(keys):
        return {key if isinstance(key, str) else key.value: to_json(item) for key, item in items}
    return [
        {"keyClass": key.class_name, "key": to_json(key), "value": to_json(item)}
        for key, item in items
    ]


_CONVERSIONS: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    ((str, bool, int, type(None)), lambda value: value),
    (float, _float_to_json),
    (bytes, bytes.hex),
    (Raw, lambda value: value.data.hex()),
    (BytesWritable, lambda value: value.value.hex()),
    (NullWritable, lambda value: None),
    (Mapping, _mapping_to_json),
    ((list, tuple), lambda value: [to_json(item) for item in value]),
)
