"""ParseData and ParseText as columns: from a batch to where the parts of each record lie, and to
values of metadata.

A `ParseTable` holds serialized ParseData in one buffer and the offsets of their parts. Most of a
record (links, header fields) is never looked at; what a job asks for by name (`first_values`,
`all_values`) is found in the bytes by kernels. A whole record is made an object by `record`, for
code that thinks about one page. `with_content_meta` replaces one value of the content metadata, and
leaves the rest of each record as it is.

Source: org.apache.nutch.parse.ParseData, ParseText, org.apache.nutch.metadata.Metadata.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import polars as pl

from minutch.errors import FormatError
from minutch.hadoop.formats.batch import Batch, Lengths, Offsets, string_column
from minutch.hadoop.formats.javaio import DataInput, encode_text, encode_vlong
from minutch.kernels import links, parsedata, sequencefile
from minutch.kernels import parsedata as kernels
from minutch.kernels.arrow import Bytes
from minutch.kernels.native import Slices
from minutch.kernels.sequencefile import strip_lengths
from minutch.records.links import Outlink
from minutch.records.metadata import Metadata
from minutch.records.parsedata import SUCCESS, VERSION, ParseData, ParseStatus, ParseText

_PLACES: Final = {
    "at": np.int64, "length": np.int32, "major": np.uint8, "title_at": np.int64,
    "title_len": np.int32, "links_at": np.int64, "content_at": np.int64, "parse_at": np.int64,
}  # fmt: skip
_OFFSETS: Final = [name for name in _PLACES if name == "at" or name.endswith("_at")]
_TEXT_VERSION: Final = 2  # version 1 has gzip'd text
_CONTENT: Final = "content"
"""The metadata whose names are header fields: their case does not count (RFC 9110, 5.1)."""


@dataclass(frozen=True, slots=True)
class ParseTable:
    """Serialized ParseData: `places` has a row per record, with offsets into `buffer`."""

    buffer: Bytes
    places: pl.DataFrame

    def __len__(self) -> int:
        return len(self.places)

    def take(self, rows: pl.Series | npt.NDArray[np.integer]) -> ParseTable:
        """Returns the records with these numbers."""
        return ParseTable(self.buffer, self.places[rows])

    def filter(self, mask: pl.Series) -> ParseTable:
        """Returns the records where `mask` is true."""
        return ParseTable(self.buffer, self.places.filter(mask))

    @property
    def is_success(self) -> pl.Series:
        """Column that is true for the pages that could be parsed."""
        return self.places["major"] == SUCCESS

    def titles(self) -> pl.Series:
        """Returns the titles (Binary)."""
        at, length = (
            np.ascontiguousarray(self.places[name].to_numpy()) for name in ("title_at", "title_len")
        )
        return string_column("title", self.buffer, at, length)

    def first_values(self, name: str, of: str) -> pl.Series:
        """Returns the first value of `name` in the metadata `of` the "content" (as Metadata.field)
        or of the "parse" (as Metadata.first), Binary; null for none.
        """
        at, length = np.empty(len(self), np.int64), np.empty(len(self), np.int32)
        start, wanted, folds = self._starts(of), _bytes(name), of == _CONTENT
        kernels.first_values(self.buffer, start, len(self.buffer), wanted, folds, at, length)
        return string_column(name, self.buffer, at, length, least=0)

    def all_values(self, name: str, of: str) -> pl.DataFrame:
        """Returns all values of `name` in the metadata `of` the "content" (as
        Metadata.field_values) or the "parse": `row`, `value` (Binary), in order.
        """
        start, end, wanted, folds = self._starts(of), len(self.buffer), _bytes(name), of == _CONTENT
        first, count = np.empty(len(self), np.int64), np.empty(len(self), np.int64)
        total = kernels.count_values(self.buffer, start, end, wanted, folds, first, count)
        row, at, length = (
            np.empty(total, np.int64),
            np.empty(total, np.int64),
            np.empty(total, np.int32),
        )
        kernels.place_values(self.buffer, end, wanted, folds, first, count, row, at, length)
        return pl.DataFrame(
            [pl.Series("row", row), string_column("value", self.buffer, at, length)]
        )

    def _starts(self, of: str) -> npt.NDArray[np.int64]:
        return np.ascontiguousarray(self.places[f"{of}_at"].to_numpy())

    def outlink_counts(self) -> npt.NDArray[np.int32]:
        """Returns how many links each page has."""
        at = self.places["links_at"].to_numpy()
        if not len(at):
            return np.zeros(0, np.int32)
        # The count is a big-endian int.
        words = np.lib.stride_tricks.sliding_window_view(self.buffer, 4)[at]
        return np.ascontiguousarray(words).view(">i4").reshape(-1).astype(np.int32)

    def outlinks(self) -> pl.DataFrame:
        """Returns the links out of the pages: `row`, `to_url`, `anchor` (Binary). FormatError."""
        at, length = (
            np.ascontiguousarray(self.places[name].to_numpy()) for name in ("at", "length")
        )
        first, count = np.empty(len(self), np.int64), np.empty(len(self), np.int64)
        total = links.count_links(self.buffer, at, length, True, True, first, count)
        if total < 0:  # metadata that kernels don't know
            found = [
                (row, encode_text(link.to_url), encode_text(link.anchor))
                for row in range(len(self))
                for link in self.record(row).outlinks
            ]
            schema = {"row": pl.Int64, "to_url": pl.Binary, "anchor": pl.Binary}
            return pl.DataFrame(found, schema=schema, orient="row")
        places = links.new_link_places(total)
        links.read_links(self.buffer, first, count, True, False, places)
        to_url = string_column("to_url", self.buffer, places.url_at, places.url_len)
        anchor = string_column("anchor", self.buffer, places.anchor_at, places.anchor_len)
        return pl.DataFrame([pl.Series("row", places.record), to_url, anchor])

    def record(self, row: int) -> ParseData:
        """One record as an object. Raises FormatError."""
        at, length = self.places["at"][row], self.places["length"][row]
        return ParseData.from_bytes(self.buffer[at : at + length].tobytes())

    @classmethod
    def concat(cls, tables: Sequence[ParseTable]) -> ParseTable:
        """Returns the records of all tables, in order."""
        if len(tables) == 1:
            return tables[0]
        if not tables:
            return cls(
                np.empty(0, np.uint8),
                pl.DataFrame({name: np.empty(0, kind) for name, kind in _PLACES.items()}),
            )
        # Offsets move by the buffers before.
        bases = np.cumsum([0, *(len(table.buffer) for table in tables)])
        places = [
            table.places.with_columns(pl.col(_OFFSETS) + int(base))
            for table, base in zip(tables, bases, strict=False)
        ]
        return cls(np.concatenate([table.buffer for table in tables]), pl.concat(places))


def decode(batch: Batch) -> ParseTable:
    """Returns the records of a batch whose keys the caller has. FormatError names the key."""
    columns: dict[str, npt.NDArray[Any]] = {
        name: np.empty(batch.size, kind) for name, kind in _PLACES.items()
    }
    columns["at"], columns["length"] = batch.value_at, batch.value_len
    at, length, *parts = (columns[name] for name in _PLACES)
    if not kernels.split(Slices(batch.values, at, length), *parts):
        _split_by_record(batch, columns)
    return ParseTable(batch.values, pl.DataFrame({name: columns[name] for name in _PLACES}))


def _split_by_record(batch: Batch, columns: dict[str, npt.NDArray[Any]]) -> None:
    """Splits like the kernel, one by one, for links with unusual metadata and to name an error."""
    for row in range(batch.size):
        base, data = int(batch.value_at[row]), DataInput(batch.value(row))
        try:
            places = _places(data)
        except FormatError as exc:
            raise exc.at(f"record of {batch.key(row)!r}") from exc
        for name, value in places.items():
            columns[name][row] = value + base if name.endswith("_at") else value


def _places(data: DataInput) -> dict[str, int]:
    version = data.read_byte()
    if version != VERSION:
        raise FormatError("unknown version of ParseData", offset=0, expected=VERSION, found=version)
    places = {"major": ParseStatus.read(data).major}
    places["title_len"] = data.read_vint()
    places["title_at"] = data.pos
    data.skip(places["title_len"])
    places["links_at"] = start = data.pos
    count = data.read_int()
    if not 0 <= count <= data.remaining:
        raise FormatError("impossible number of outlinks", offset=start, found=count)
    for _ in range(count):
        Outlink.read(data)
    for name in ("content_at", "parse_at"):
        places[name] = data.pos
        Metadata.read(data)
    if data.remaining:
        raise FormatError(
            "bytes left over after ParseData", offset=data.pos, expected=data.pos, found=data.end
        )
    return places


def decode_texts(batch: Batch) -> pl.Series:
    """Returns the texts of a batch of ParseText (Binary). Raises FormatError with the key."""
    at, length = batch.value_at + 1, batch.value_len - 1  # behind the version
    versions = batch.values[batch.value_at[batch.value_len > 0]]
    if (
        len(versions) == batch.size
        and (versions == _TEXT_VERSION).all()
        and strip_lengths(batch.values, at, length)
    ):
        return string_column("text", batch.values, at, length)
    texts = []
    for row in range(batch.size):
        try:
            texts.append(ParseText.from_bytes(batch.value(row)).text)
        except FormatError as exc:
            raise exc.at(f"record of {batch.key(row)!r}") from exc
    return pl.Series("text", texts, dtype=pl.String).cast(pl.Binary)


def _bytes(name: str) -> Bytes:
    return np.frombuffer(name.encode(), np.uint8)


def with_content_meta(batch: Batch, name: str, value: str) -> Batch:
    """Returns the records with `value` as the only value of `name` in the metadata of the content.

    Metadata in which there is not exactly one are taken apart. Raises FormatError, which names the
    key.
    """
    place, size = np.empty(batch.size, np.int64), np.empty(batch.size, np.int32)
    single = np.empty(batch.size, np.uint8)
    records = Slices(batch.values, batch.value_at, batch.value_len)
    parsedata.find_value(records, np.frombuffer(encode_text(name), np.uint8), place, size, single)
    text = encode_text(value)
    texts = [encode_vlong(len(text)) + text]
    number = np.zeros(batch.size, np.int64)
    # None or several: the whole Metadata is made anew, in Java's order.
    for row in np.flatnonzero((single == 0) | (size < 0)).tolist():
        if size[row] < 0:
            new = _checked(batch, row, place, size, name, value)
        else:
            new = _changed(batch.values[place[row] : place[row] + size[row]].tobytes(), name, value)
        number[row] = len(texts)
        texts.append(new)
    # `texts[0]` is the usual value; each other record has its own.
    each_len = np.fromiter(map(len, texts), np.int32, len(texts))
    each_at = np.empty(len(texts), np.int64)
    sequencefile.running_sum(each_len, each_at)
    out_len, out_at = batch.value_len - size + each_len[number], np.empty(batch.size, np.int64)
    out = np.empty(int(sequencefile.running_sum(out_len, out_at)), np.uint8)
    joined = np.frombuffer(b"".join(texts), np.uint8)
    chosen = Slices(joined, each_at[number], each_len[number])
    parsedata.replace(records, place, size, chosen, out, out_at)
    return batch._replace(values=out, value_at=out_at, value_len=out_len)


@lru_cache(maxsize=64)
def _changed(metadata: bytes, name: str, value: str) -> bytes:
    """Metadata with the value, in Java's order; many pages have the same."""
    found = Metadata.from_bytes(metadata)
    found.set(name, value)
    return found.to_bytes()


def _checked(batch: Batch, row: int, place: Offsets, size: Lengths, name: str, value: str) -> bytes:
    """Returns the whole new record, for one that kernels can't walk: FormatError, or links with
    metadata of other classes.
    """
    try:
        record = ParseData.from_bytes(batch.value(row))
    except FormatError as exc:
        raise exc.at(f"ParseData of {batch.key(row)!r}") from exc
    record.content_meta.set(name, value)
    # All of the record is replaced.
    place[row], size[row] = batch.value_at[row], batch.value_len[row]
    return record.to_bytes()
