"""The table `pages`: one row for each fetch of each segment, with its result.

    crawl_fetch    url, status, fetch_time, score; of its metadata: `_pst_`, `nutch.protocol.code`,
                   `_rs_`, Content-Type
    content        size
    parse_data     digest (nutch.content.digest)
    parse_text     text

The metadata of a fetch begins as that of the page's entry in the CrawlDb, which may keep the code
and media type of an earlier round. So they count only where the protocol status says that the
server has answered this time. An entry with the status `linked` is a redirect's target that was not
fetched, and begins as that of the page that was redirected: its protocol status counts only where
it says that the page was not fetched. Source: org.apache.nutch.fetcher.FetcherThread.output,
org.apache.nutch.protocol.http.api.HttpBase.getProtocolOutput.

What came of asking for a page, as people see it, is decided in `outcome` alone. Pure.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import ClassVar, Final

import numpy as np
import polars as pl

from minutch.cycle.fetch.decisions import ANSWER, ANSWERED
from minutch.cycle.segment.store import CONTENT, CRAWL_FETCH, PARSE_DATA, PARSE_TEXT, Segment
from minutch.errors import FormatError, TruncatedError
from minutch.hadoop.formats.batch import Batch
from minutch.hadoop.formats.javaio import DataInput
from minutch.inspect.query.columns import STATUS, TIME, enum_of, in_rows, statuses, times
from minutch.inspect.query.skipping import PieceGroup, each, occurrences, piece_groups
from minutch.inspect.query.table import Request, SqlColumn, Table, once
from minutch.records import crawldatum_columns, parsedata_columns
from minutch.records import protocol as codes
from minutch.records.crawldatum import STATUS_LINKED
from minutch.records.crawldatum_columns import CRAWLDB_SCHEMA
from minutch.records.metadata import (
    CONTENT_TYPE_KEY,
    PROTO_STATUS_KEY,
    RESPONSE_CODE_KEY,
    RESPONSE_TIME_KEY,
    SIGNATURE_KEY,
)
from minutch.records.metadata_columns import STATUS as STATUS_KIND
from minutch.records.metadata_columns import entries, text_values
from minutch.records.protocol import CODE_NAMES, Content
from minutch.urls.hostcolumns import host_names
from minutch.work.tables.frame import decode_keys, empty

UNKNOWN: Final = "unknown"
PROTOCOL_STATUS: Final = pl.Enum([*CODE_NAMES.values(), UNKNOWN])

_HEAD: Final = 1024
"""Bytes of a Content in which the page's size is, unless its URL is longer."""
_REDIRECTS: Final = (codes.MOVED, codes.TEMP_MOVED)
OUTCOMES: Final = ("fetched", "unchanged", "redirected", "gone", "denied", "failed")
"""What came of asking for a page: its content, the word that it has not changed (304), another
address, the word that it is not there, robots.txt's no, none of these (it is tried again)."""
NOT_ASKED: Final = CODE_NAMES[codes.NOTFETCHING]
_DENIED: Final = CODE_NAMES[codes.ROBOTS_DENIED]
_EXCEPTION: Final = CODE_NAMES[codes.EXCEPTION]
_FETCH_STATUSES: Final = {
    "fetch_success": "fetched",
    "fetch_notmodified": "unchanged",
    "fetch_redir_temp": "redirected",
    "fetch_redir_perm": "redirected",
    "fetch_gone": "gone",
}
_STATUS, _PROTOCOL = (pl.col(name).cast(pl.String) for name in ("status", "protocol_status"))


class FetchRows:
    """The fetches in a group of pieces."""

    def __init__(self, group: PieceGroup, frame: pl.DataFrame) -> None:
        self._group, self.frame = group, frame

    @classmethod
    def read(cls, group: PieceGroup) -> FetchRows:
        """Reads all of them. Raises FormatError."""
        frame = group.read(CRAWL_FETCH, crawldatum_columns.decode)
        if frame is None:
            frame = empty(CRAWLDB_SCHEMA).with_columns(of=pl.lit(0, pl.UInt32))
        return cls(group, frame)

    def filter(self, mask: pl.Series) -> FetchRows:
        """Returns the fetches where `mask` is true."""
        return FetchRows(self._group, self.frame.filter(mask))

    def __len__(self) -> int:
        return len(self.frame)

    @property
    def segment(self) -> pl.Series:
        """The name of the segment."""
        return self._group.names.gather(self.frame["of"])

    @once
    def url(self) -> pl.Series:
        """The URLs."""
        return decode_keys(self.frame["key"])

    @once
    def protocol(self) -> pl.DataFrame:
        """Code and message of each protocol status; null where there is none."""
        found = entries(self.frame["metadata"], self.frame["key"], [PROTO_STATUS_KEY])
        found = found.filter(pl.col("kind") == STATUS_KIND).select(
            "row", *_parts_of_status(pl.col("value"))
        )
        linked = (self.frame["status"] == STATUS_LINKED).gather(found["row"])
        # Of a redirect's target: it began with the status of the page that was redirected.
        found = found.filter(~linked | (found["code"] == codes.NOTFETCHING))
        code, message = (
            in_rows(found["row"], found[name], len(self)) for name in ("code", "message")
        )
        return pl.DataFrame([code.alias("code"), decode_keys(message).alias("message")])

    @once
    def answered(self) -> pl.Series:
        """True where the server answered."""
        by_code = pl.col("code").is_in(ANSWERED)
        by_message = (pl.col("code") == codes.EXCEPTION) & pl.col("message").str.starts_with(ANSWER)
        return self.protocol.select((by_code | by_message).fill_null(False)).to_series()

    def of_answer(self, name: str) -> pl.Series:
        """Returns a value of the metadata (String) where the server has answered."""
        values = decode_keys(text_values(self.frame["metadata"], self.frame["key"], name))
        return values.zip_with(self.answered, pl.Series([None], dtype=pl.String))

    @property
    def protocol_status(self) -> pl.Series:
        """Nutch's names of the protocol statuses."""
        return enum_of(self.protocol["code"], CODE_NAMES, PROTOCOL_STATUS)

    def message(self, *, of_redirects: bool) -> pl.Series:
        """Returns the messages of the protocol statuses of redirects (their targets), or of all
        others.
        """
        mine = pl.col("code").is_in(_REDIRECTS) == of_redirects
        return self.protocol.select(pl.when(mine).then("message")).to_series()

    @property
    def size(self) -> pl.Series:
        """Bytes of the stored page."""
        return self._beside(self._group.read(CONTENT, _sizes, _sizes_of_streams), pl.Int64())

    @property
    def digest(self) -> pl.Series:
        """The page's signature, in hexadecimal."""
        return self._beside(self._group.read(PARSE_DATA, _digests), pl.String())

    @property
    def text(self) -> pl.Series:
        """The text of the page, as its parser found it."""
        return self._beside(self._group.read(PARSE_TEXT, texts), pl.String())

    def _beside(self, table: pl.DataFrame | None, dtype: pl.DataType) -> pl.Series:
        """Returns the column `value` of another folder; a URL's n-th answer has the n-th value."""
        if table is None:
            return pl.Series([None], dtype=dtype).new_from_index(0, len(self))
        # Only an answer has a content: the n-th of a URL in a segment is the n-th there.
        rows = self.answered.arg_true()
        mine = self.frame.select("of", "key")[rows]
        mine = mine.with_columns(nth=occurrences(mine["key"], mine["of"]))
        found = mine.join(table, on=["of", "key", "nth"], how="left", maintain_order="left")
        return in_rows(rows, found["value"], len(self))


def _parts_of_status(value: pl.Expr) -> list[pl.Expr]:
    """Returns code and message (Binary) of serialized ProtocolStatuses; see
    `records.protocol` for the layout.
    """

    def number(at: int) -> pl.Expr:
        return value.bin.slice(at, 4).bin.reinterpret(dtype=pl.Int32(), endianness="big")

    code = value.bin.slice(1, 1).bin.reinterpret(dtype=pl.UInt8())
    size = pl.when(number(10) > 0).then(number(14))
    return [code.alias("code"), pl.when(size >= 0).then(value.bin.slice(18, size)).alias("message")]


def _sizes(batch: Batch) -> pl.DataFrame:
    """Returns the sizes of the pages of a batch of Contents."""
    return _table(batch, lambda row: _size(batch.value(row)))


def _sizes_of_streams(batch: Batch) -> pl.DataFrame:
    """Returns the same of Contents that are zlib streams, inflated as far as is needed."""

    def size(row: int) -> int:
        value = batch.value(row)
        try:
            # A page of a megabyte is not inflated for one number in its first kilobyte.
            with suppress(TruncatedError):  # a URL that is longer
                return _size(zlib.decompressobj().decompress(value, _HEAD))
            return _size(zlib.decompress(value))
        except zlib.error as exc:
            raise FormatError(f"damaged zlib stream: {exc}") from exc

    return _table(batch, size)


def _table(batch: Batch, size: Callable[[int], int]) -> pl.DataFrame:
    sizes = np.empty(batch.size, np.int64)
    for row in range(batch.size):
        try:
            sizes[row] = size(row)
        except FormatError as exc:
            raise exc.at(f"record of {batch.key(row)!r}") from exc
    return pl.DataFrame({"value": sizes})


def _size(value: bytes) -> int:
    """Returns the size of the page in a Content, of which the beginning may do."""
    data = DataInput(value)
    # An older layout of Content is read as a whole.
    if data.read_int() != -1:
        return len(Content.from_bytes(value).content)
    data.skip(data.read_vint())
    data.skip(data.read_vint())
    return data.read_int()


def texts(batch: Batch) -> pl.DataFrame:
    """Returns the texts of a batch of ParseTexts."""
    return pl.DataFrame({"value": decode_keys(parsedata_columns.decode_texts(batch))})


def _digests(batch: Batch) -> pl.DataFrame:
    found = parsedata_columns.decode(batch).first_values(SIGNATURE_KEY, "content")
    return pl.DataFrame({"value": decode_keys(found)})


def _number(texts: pl.Series) -> pl.Series:
    return texts.cast(pl.Int32, strict=False)


class PagesTable(Table):
    """A table of the fetches of segments, segment by segment, sorted by URL in each."""

    name = "pages"
    cheapest = "score"
    columns: ClassVar = {
        "segment": SqlColumn(pl.String(), lambda rows: rows.segment),
        "url": SqlColumn(pl.String(), lambda rows: rows.url),
        "host": SqlColumn(pl.String(), lambda rows: host_names(rows.url)),
        "status": SqlColumn(STATUS, lambda rows: statuses(rows.frame["status"])),
        "fetch_time": SqlColumn(TIME, lambda rows: times(rows.frame["fetch_time"])),
        "code": SqlColumn(pl.Int32(), lambda rows: _number(rows.of_answer(RESPONSE_CODE_KEY))),
        "protocol_status": SqlColumn(PROTOCOL_STATUS, lambda rows: rows.protocol_status),
        "reason": SqlColumn(pl.String(), lambda rows: rows.message(of_redirects=False)),
        "response_ms": SqlColumn(
            pl.Int32(), lambda rows: _number(rows.of_answer(RESPONSE_TIME_KEY))
        ),
        "content_type": SqlColumn(pl.String(), lambda rows: rows.of_answer(CONTENT_TYPE_KEY)),
        "size": SqlColumn(pl.Int64(), lambda rows: rows.size),
        "redirect_to": SqlColumn(pl.String(), lambda rows: rows.message(of_redirects=True)),
        "digest": SqlColumn(pl.String(), lambda rows: rows.digest),
        "score": SqlColumn(pl.Float32(), lambda rows: rows.frame["score"]),
        "text": SqlColumn(pl.String(), lambda rows: rows.text),
    }
    folders: Final = {"size": CONTENT, "digest": PARSE_DATA, "text": PARSE_TEXT}
    """Column -> the folder that it needs beside crawl_fetch."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        self._segments = [segment for segment in segments if segment.has(CRAWL_FETCH)]

    def partitions(self) -> Mapping[str, Table]:
        return {segment.name: PagesTable([segment]) for segment in self._segments}

    def frames(self, request: Request) -> Iterator[pl.DataFrame]:
        folders = [
            CRAWL_FETCH,
            *(folder for name, folder in self.folders.items() if name in request.needed),
        ]
        pieces = piece_groups(self._segments, folders, request.pruning, stored=CONTENT)
        return each(lambda group: self.make(FetchRows.read(group), request), pieces)


def is_fetch() -> pl.Expr:
    """Returns whether a row of `pages` is a fetch, and no link that a redirect found."""
    return (_STATUS != "linked") | _PROTOCOL.eq_missing(NOT_ASKED)


def outcome() -> pl.Expr:
    """Returns the `outcome` of a fetch by its `status` and `protocol_status`."""
    found = _STATUS.replace_strict(_FETCH_STATUSES, default="failed", return_dtype=pl.String)
    denied = pl.when(_PROTOCOL.eq_missing(_DENIED)).then(pl.lit("denied")).otherwise(found)
    return denied.cast(pl.Enum(OUTCOMES)).alias("outcome")


def was_asked() -> pl.Expr:
    """Returns whether a fetch was made; else its list had ended before (a limit, a busy host)."""
    return _PROTOCOL.ne_missing(NOT_ASKED)


def was_answered() -> pl.Expr:
    """Returns whether the server has answered a fetch; see `FetchRows.answered`."""
    by_message = (_PROTOCOL == _EXCEPTION) & pl.col("reason").str.starts_with(ANSWER)
    found = _PROTOCOL.is_in([CODE_NAMES[code] for code in ANSWERED]) | by_message
    return found.fill_null(False)


def came_of() -> pl.Expr:
    """Returns what came of a URL: the `outcome` of the newest fetch that `was_asked`; where no
    segment has one, `gone` if the CrawlDb says so by its `status`. Links to what is gone or failed
    are broken.
    """
    gone = pl.when(_STATUS == "db_gone").then(pl.lit("gone", pl.Enum(OUTCOMES)))
    return pl.coalesce("outcome", gone).alias("outcome")
