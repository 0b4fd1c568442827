"""Reads the records of a segment's files, and finds those of one URL.

Keys are Text, or UTF8 in segments of very old Nutch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import minutch.records  # noqa: F401 - its classes are what `lookup` finds
from minutch.errors import FormatError
from minutch.hadoop.formats.javaio import DataInput, decode_text, encode_text, encode_vlong
from minutch.hadoop.formats.mapfile import DATA, MapFileReader
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.hadoop.formats.sequencewriter import RECORD, TEXT
from minutch.hadoop.formats.writables import UTF8, Writable

_STRETCH = 1 << 20
"""Bytes of a flat file that are read or skipped together when a URL is looked up."""

RawRecord = tuple[bytes, bytes]
"""A URL in UTF-8 and a serialized value."""


def text_key(url: bytes) -> bytes:
    """Serializes a URL as Text."""
    return encode_vlong(len(url)) + url


def decode(
    value_type: type[Writable], value: bytes, path: str | Path, at: int | None, url: bytes
) -> Writable:
    """Decodes a value. Raises FormatError, which names the file, the offset and the URL."""
    try:
        return value_type.from_bytes(value)
    except FormatError as exc:
        exc.what = f"bad {value_type.__name__} of {decode_text(url)}: {exc.what}"
        exc.path, exc.offset = str(path), at
        raise


def _text_url(key: bytes) -> bytes:
    return DataInput(key).read_text_bytes()


def _utf8_url(key: bytes) -> bytes:
    return encode_text(UTF8.from_bytes(key).value)


_URL_DECODERS: dict[str, Callable[[bytes], bytes]] = {
    TEXT: _text_url,
    UTF8.class_name: _utf8_url,
    "UTF8": _utf8_url,
}


def url_decoder(reader: SequenceFileReader) -> Callable[[bytes], bytes]:
    """Returns a function that decodes the keys of `reader` to URLs. Raises FormatError, which names
    its file, for a key that is none.
    """
    try:
        decode_key = _URL_DECODERS[reader.key_class]
    except KeyError:
        raise FormatError(
            "wrong key class", path=reader.name, expected=TEXT, found=reader.key_class
        ) from None

    def url_of(key: bytes) -> bytes:
        try:
            return decode_key(key)
        except FormatError as exc:
            exc.what, exc.path, exc.offset = f"bad key: {exc.what}", reader.name, reader.position
            raise

    return url_of


def raw_records(path: Path, *, stored: bool = False) -> Iterator[RawRecord]:
    """Reads the records of a file in their order; with `stored` values stay compressed."""
    with SequenceFileReader(path) as reader:
        url_of = url_decoder(reader)
        for key, value in reader.stored() if stored else reader:
            yield url_of(key), value


def value_codec(path: Path) -> str | None:
    """Returns the codec of a file whose values are compressed one by one, else None."""
    with SequenceFileReader(path) as reader:
        return reader.codec if reader.compression == RECORD else None


def values_of(part: Path, url: bytes) -> Iterator[Writable]:
    """Reads the values of a URL in one part."""
    if part.is_dir():
        with MapFileReader(part) as map_file:
            # The index of a MapFile with UTF8 keys is in another order.
            if map_file.key_class == TEXT:
                yield from _matching(
                    map_file.data, map_file.scan(text_key(url)), url, in_order=True
                )
                return
    path = part / DATA if part.is_dir() else part
    with SequenceFileReader(path) as reader:
        if reader.key_class != TEXT:
            yield from _matching(reader, reader, url, in_order=False)
        else:
            yield from _found(path, reader, url)


def _found(path: Path, reader: SequenceFileReader, url: bytes) -> Iterator[Writable]:
    """Reads the values of a URL in a flat file; stretches without its bytes are skipped."""
    from minutch.work.tables.spannedfile import SpannedFile

    file = SpannedFile(path, span_size=_STRETCH, stored=reader.compression == RECORD)
    for span in file.spans_with(url):
        for value in file.values_of(url, span):
            yield decode(reader.value_type, value, path, None, url)


def _matching(
    reader: SequenceFileReader, records: Iterable[RawRecord], url: bytes, *, in_order: bool
) -> Iterator[Writable]:
    url_of, value_type = url_decoder(reader), reader.value_type
    for key, value in records:
        if url_of(key) == url:
            yield decode(value_type, value, reader.name, None, url)
        # Sorted: behind the first other key nothing more can come.
        elif in_order:
            return
