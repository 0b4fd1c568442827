"""The table `parses`: one row for each parsed page of each segment.

    parse_data     url, status, and the reason where a page was not parsed, or not all of it; title,
                   the media type and charset that were found, the type that the server declared,
                   language, number of links, and of those left out (parser.outlinks.count); where a
                   refresh leads that was taken for a redirect; description (parse-metatags), h1 and
                   how many (headings), canonical (parse-canonical), robots; digest of the content
    parse_text     text; text_length, in characters, words, and garbled characters; own_text, that
                   of the page alone by the other pages of its site (`cycle.owntext`), own_words
    content        which of these the page has so itself
                   metadata, all that parsers and parse filters have left, as keys and values
    crawl_parse    parse_time: the time of the entry with the page's signature

Source: org.apache.nutch.parse.ParseData, ParseOutputFormat; CharEncodingForConversion and
`language` are metadata that parse-html and language-identifier leave.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import ClassVar, Final

import numpy as np
import polars as pl
from numpy.typing import NDArray

from minutch.charsets import lookup
from minutch.cycle.owntext.frames import SiteFrames
from minutch.cycle.owntext.texts import frames_beside, own_of
from minutch.cycle.segment.store import CONTENT, CRAWL_PARSE, PARSE_DATA, PARSE_TEXT, Segment
from minutch.hadoop.formats.batch import Batch, keys_of
from minutch.hadoop.formats.javaio import DataInput, java_string
from minutch.inspect.query.columns import METADATA, TIME, enum_of, times
from minutch.inspect.query.pages import texts
from minutch.inspect.query.skipping import RANGE_SIZE, PieceGroup, each, piece_groups
from minutch.inspect.query.table import Request, SqlColumn, Table, once
from minutch.records import crawldatum_columns, parsedata_columns
from minutch.records.crawldatum import STATUS_SIGNATURE
from minutch.records.metadata import (
    CANONICAL_KEY,
    CHAR_ENCODING_FOR_CONVERSION_KEY,
    CONTENT_TYPE_KEY,
    LINKS_CUT_KEY,
    LINKS_EXTERNAL_KEY,
    ORIGINAL_CHAR_ENCODING_KEY,
    ROBOTS_KEY,
    SIGNATURE_KEY,
    TRUNCATED_KEY,
    TRUNCATED_REASON_KEY,
)
from minutch.records.parsedata import MAJOR_NAMES, SUCCESS_REDIRECT, ParseStatus
from minutch.records.parsedata_columns import ParseTable
from minutch.records.protocol import Content
from minutch.records.textblocks import BLOCKS_KEY
from minutch.work.tables.frame import decode_keys, empty
from minutch.work.tables.recordfiles import CRAWL_DATUM
from minutch.work.tables.spans import Numbers, scan_numbered

LANGUAGE_KEY: Final = "language"
DESCRIPTION_KEY: Final = "metatag.description"
HEADING_KEY: Final = "h1"
UNKNOWN: Final = "unknown"
OWN: Final = frozenset(("own_text", "own_words"))
"""Columns that are made with the site's other pages."""
PARSE_STATUS: Final = pl.Enum([*MAJOR_NAMES, UNKNOWN])


class ParseRows:
    """The parses in a group of pieces."""

    def __init__(
        self,
        group: PieceGroup,
        frame: pl.DataFrame,
        parsed: pl.DataFrame | None,
        sites: SiteFrames | None = None,
    ) -> None:
        self._group, self._frame, self._parsed, self._sites = group, frame, parsed, sites

    @classmethod
    def read(
        cls,
        table: ParsesTable,
        group: PieceGroup,
        columns: Collection[str],
        parsed: pl.DataFrame | None,
        sites: SiteFrames | None = None,
    ) -> ParseRows:
        """Reads all of them, with those of `columns` that are in parse_data. Raises FormatError."""
        columns = {*columns, "charset"} if "garbled" in columns else columns
        columns = {*columns, "marks", "title"} if OWN & {*columns} else columns
        wanted = {name: make for name, make in table.of_data.items() if name in columns}

        def decode(batch: Batch) -> pl.DataFrame:
            if not wanted:
                return pl.DataFrame([keys_of(batch)])
            data = parsedata_columns.decode(batch)
            found = pl.DataFrame([make(data).alias(name) for name, make in wanted.items()])
            # in memory of their own: a title would hold the links of all pages that were inflated
            return found.with_columns(pl.col(pl.String) + "")

        frame = group.read(PARSE_DATA, decode)
        if frame is None:
            schema = pl.Schema({"key": pl.Binary(), "of": pl.UInt32(), "nth": pl.UInt32()})
            frame = empty(
                pl.Schema(schema | {name: table.schema.get(name, pl.Binary()) for name in wanted})
            )
        return cls(group, frame, parsed, sites)

    def filter(self, mask: pl.Series) -> ParseRows:
        """Returns the parses where `mask` is true."""
        return ParseRows(self._group, self._frame.filter(mask), self._parsed, self._sites)

    def __len__(self) -> int:
        return len(self._frame)

    def field(self, name: str) -> pl.Series:
        """Returns a column that is made of parse_data alone."""
        return self._frame[name]

    @property
    def segment(self) -> pl.Series:
        """The name of the segment."""
        return self._group.names.gather(self._frame["of"])

    @once
    def url(self) -> pl.Series:
        """The URLs."""
        return decode_keys(self._frame["key"])

    @property
    def text_length(self) -> pl.Series:
        """Characters of each text; null if it is not stored."""
        return self.text.str.len_chars()

    @property
    def words(self) -> pl.Series:
        """Words of each text, between blanks; null if it is not stored."""
        return self.text.str.count_matches(r"\S+")

    @property
    def garbled(self) -> pl.Series:
        """How often U+FFFD is in each text, where bytes are not of the charset: less than that if
        the stored page has fewer such bytes, as where U+FFFD is written there.
        """
        counts = self.text.str.count_matches("\ufffd", literal=True)
        rows = (counts > 0).arg_true()
        charsets = self.field("charset")
        labels = dict(zip(self._frame["key"].gather(rows), charsets.gather(rows), strict=True))

        def decode(batch: Batch) -> pl.DataFrame:
            return pl.DataFrame(
                {"value": [_malformed(batch, row, labels) for row in range(batch.size)]},
                schema={"value": pl.UInt32},
            )

        table = self._group.read(CONTENT, decode) if labels else None
        if table is None:
            return counts
        table = table.drop_nulls("value").unique(["of", "key"], keep="last")
        mine = self._frame.select("of", "key").with_columns(counts.alias("counts"))
        mine = mine.join(table, on=["of", "key"], how="left", maintain_order="left")
        return mine.select(pl.min_horizontal("counts", "value")).to_series()

    @once
    def text(self) -> pl.Series:
        """The texts; null if they are not stored."""
        table = self._group.read(PARSE_TEXT, texts)
        if table is None:
            return pl.Series([None], dtype=pl.String).new_from_index(0, len(self))
        mine = self._frame.select("of", "key", "nth")
        return mine.join(table, on=["of", "key", "nth"], how="left", maintain_order="left")["value"]

    @once
    def own_text(self) -> pl.Series:
        """The texts without what belongs to the site; null if they are not stored."""
        if self._sites is None or not len(self):
            return self.text
        columns = [
            self.url.alias("url"),
            self.field("title").alias("title"),
            self.text.alias("text"),
        ]
        pages = pl.DataFrame([*columns, self._frame["marks"]])
        return own_of(self._sites, pages)["text"]

    @property
    def own_words(self) -> pl.Series:
        """Words of each of them."""
        return self.own_text.str.count_matches(r"\S+")

    @property
    def parse_time(self) -> pl.Series:
        """The time at which each page was parsed."""
        if self._parsed is None:
            return pl.Series([None], dtype=TIME).new_from_index(0, len(self))
        found = self._frame.select("of", "key").join(
            self._parsed, on=["of", "key"], how="left", maintain_order="left"
        )
        return times(found["fetch_time"])


def _malformed(batch: Batch, row: int, labels: Mapping[bytes, str | None]) -> int | None:
    """Returns how many bytes of a Content its label's charset lacks; None without a label."""
    charset = lookup(labels.get(batch.key(row)) or "")
    if charset is None:
        return None
    content = Content.from_bytes(batch.value(row)).content
    try:
        written = content.count(charset.encode("\ufffd"))
    except UnicodeError:
        written = 0
    return max(charset.decode(content).count("\ufffd") - written, 0)


def _first(table: ParseTable, *places: tuple[str, str]) -> pl.Series:
    """Returns the first value that one of the names has in the metadata; null if none has one."""
    found = [decode_keys(table.first_values(name, of)).alias(f"{of} {name}") for of, name in places]
    return pl.DataFrame(found).select(pl.coalesce(pl.all())).to_series()


def _media_types(table: ParseTable, *places: str) -> pl.Series:
    """Returns the media types alone, in lower case."""
    values = _first(table, *((place, CONTENT_TYPE_KEY) for place in places))
    named = values.drop_nulls().unique()  # a few, whatever the number of pages
    types = named.str.split(";").list.first().str.strip_chars().str.to_lowercase()
    return values.replace_strict(named, types.replace("", None), default=None)


def _truncations(table: ParseTable) -> pl.Series:
    """Returns why content was cut off (length, time, disconnect); null where it was not."""
    is_cut = _first(table, ("content", TRUNCATED_KEY)).eq_missing(pl.Series(["true"]))
    reasons = _first(table, ("content", TRUNCATED_REASON_KEY)).fill_null("")
    return reasons.zip_with(is_cut, pl.Series([None], dtype=pl.String))


def _metadata(table: ParseTable) -> pl.Series:
    """Returns keys and values of the parse metadata, page by page: few statements ask for it."""
    pages = [table.record(row).parse_meta for row in range(len(table))]
    lists = [
        [{"key": key, "value": value} for key, values in page.items() for value in values]
        for page in pages
    ]
    return pl.Series(lists, dtype=METADATA)


def _number(table: ParseTable, name: str) -> pl.Series:
    """Returns a count in the parse metadata; null where there is none."""
    return _first(table, ("parse", name)).cast(pl.Int32, strict=False)


def _statuses(table: ParseTable) -> pl.Series:
    return enum_of(table.places["major"], dict(enumerate(MAJOR_NAMES)), PARSE_STATUS)


def _refreshes(table: ParseTable) -> pl.Series:
    """Returns where refreshes lead that the parser took for redirects; null where there is none."""
    at = table.places["at"].to_numpy()
    minor = table.buffer[at + 3].astype(np.int32) << 8 | table.buffer[at + 4]
    return _messages(table, table.is_success.to_numpy() & (minor == SUCCESS_REDIRECT))


def _reasons(table: ParseTable) -> pl.Series:
    """Returns why pages were not parsed, or not all of them; null where nothing is said."""
    at = table.places["at"].to_numpy()
    minor = table.buffer[at + 3].astype(np.int32) << 8 | table.buffer[at + 4]
    has_some = table.buffer[at + 5] < 0x80  # -1 arguments are none
    return _messages(table, has_some & (minor != SUCCESS_REDIRECT)).replace("", None)


def _messages(table: ParseTable, wanted: NDArray[np.bool_]) -> pl.Series:
    """Returns the first arguments of the statuses of the rows of a mask; null elsewhere."""
    at, rows = table.places["at"].to_numpy(), np.flatnonzero(wanted)
    found = [ParseStatus.read(DataInput(table.buffer[at[row] + 1 :].data)).message for row in rows]
    empty = pl.Series([None], dtype=pl.String).new_from_index(0, len(table))
    return empty.scatter(
        rows, pl.Series([java_string(text or "") for text in found], dtype=pl.String)
    )


def _counts(table: ParseTable, name: str) -> pl.Series:
    """Returns how many values a name has in the parse metadata; null where there is none."""
    rows = table.all_values(name, "parse")["row"].to_numpy()
    counts = pl.Series(np.bincount(rows, minlength=len(table)).astype(np.int32))
    return counts.replace(0, None)


def _all(table: ParseTable, name: str) -> pl.Series:
    """Returns the values of a name in the parse metadata, with commas; null where there is none."""
    found = table.all_values(name, "parse")
    found = found.with_columns(decode_keys(found["value"]))
    texts = found.group_by("row", maintain_order=True).agg(pl.col("value").str.join(", "))
    return (
        pl.Series([None], dtype=pl.String)
        .new_from_index(0, len(table))
        .scatter(texts["row"], texts["value"])
    )


_FROM_DATA: Final[dict[str, Callable[[ParseTable], pl.Series]]] = {
    "status": _statuses,
    "title": lambda table: decode_keys(table.titles()),
    "reason": _reasons,
    "content_type": lambda table: _media_types(table, "parse", "content"),
    "declared_type": lambda table: _media_types(table, "content"),
    "charset": lambda table: _first(
        table, ("parse", CHAR_ENCODING_FOR_CONVERSION_KEY), ("parse", ORIGINAL_CHAR_ENCODING_KEY)
    ),
    "lang": lambda table: _first(table, ("parse", LANGUAGE_KEY)),
    "description": lambda table: _first(table, ("parse", DESCRIPTION_KEY)),
    "h1": lambda table: _first(table, ("parse", HEADING_KEY)),
    "h1s": lambda table: _counts(table, HEADING_KEY),
    "canonical": lambda table: _first(table, ("parse", CANONICAL_KEY)),
    "robots": lambda table: _all(table, ROBOTS_KEY),
    "refresh_to": _refreshes,
    "truncated": _truncations,
    "marks": lambda table: table.first_values(BLOCKS_KEY, "parse"),
    "digest": lambda table: _first(table, ("content", SIGNATURE_KEY)),
    "metadata": _metadata,
    "outlinks": lambda table: pl.Series(table.outlink_counts()),
    "outlinks_cut": lambda table: _number(table, LINKS_CUT_KEY),
    "outlinks_external": lambda table: _number(table, LINKS_EXTERNAL_KEY),
}
"""Columns that are made of parse_data alone."""


def _parse_times(segments: Sequence[Segment]) -> pl.DataFrame | None:
    """Returns the time at which each page of segments was parsed: `of` the number of the segment,
    `key`, `fetch_time`, the first entry of each; None if none has a crawl_parse.
    """
    paths = [
        (number, path)
        for number, segment in enumerate(segments)
        if segment.has(CRAWL_PARSE)
        for path in segment.parts(CRAWL_PARSE)
    ]
    if not paths:
        return None
    number_of = np.array([number for number, _ in paths], np.uint32)

    def decode(batch: Batch, of: Numbers) -> pl.DataFrame:
        table = crawldatum_columns.decode(batch).with_columns(of=pl.Series(number_of[of]))
        signature = pl.col("status") == STATUS_SIGNATURE
        return table.filter(signature).select("of", "key", "fetch_time")

    found = scan_numbered([path for _, path in paths], CRAWL_DATUM, decode)
    return pl.concat(found).unique(["of", "key"], keep="first", maintain_order=True)


class ParsesTable(Table):
    """A table of the parsed pages of segments, segment by segment, sorted by URL in each."""

    name = "parses"
    cheapest = "segment"
    piece_size: ClassVar = RANGE_SIZE
    """Bytes of the folders that are read at a time."""
    columns: ClassVar = {
        "segment": SqlColumn(pl.String(), lambda rows: rows.segment),
        "url": SqlColumn(pl.String(), lambda rows: rows.url),
        "status": SqlColumn(PARSE_STATUS, lambda rows: rows.field("status")),
        "reason": SqlColumn(pl.String(), lambda rows: rows.field("reason")),
        "title": SqlColumn(pl.String(), lambda rows: rows.field("title")),
        "content_type": SqlColumn(pl.String(), lambda rows: rows.field("content_type")),
        "declared_type": SqlColumn(pl.String(), lambda rows: rows.field("declared_type")),
        "charset": SqlColumn(pl.String(), lambda rows: rows.field("charset")),
        "lang": SqlColumn(pl.String(), lambda rows: rows.field("lang")),
        "description": SqlColumn(pl.String(), lambda rows: rows.field("description")),
        "h1": SqlColumn(pl.String(), lambda rows: rows.field("h1")),
        "h1s": SqlColumn(pl.Int32(), lambda rows: rows.field("h1s")),
        "canonical": SqlColumn(pl.String(), lambda rows: rows.field("canonical")),
        "robots": SqlColumn(pl.String(), lambda rows: rows.field("robots")),
        "refresh_to": SqlColumn(pl.String(), lambda rows: rows.field("refresh_to")),
        "truncated": SqlColumn(pl.String(), lambda rows: rows.field("truncated")),
        "outlinks": SqlColumn(pl.Int32(), lambda rows: rows.field("outlinks")),
        "outlinks_cut": SqlColumn(pl.Int32(), lambda rows: rows.field("outlinks_cut")),
        "outlinks_external": SqlColumn(pl.Int32(), lambda rows: rows.field("outlinks_external")),
        "digest": SqlColumn(pl.String(), lambda rows: rows.field("digest")),
        "text_length": SqlColumn(pl.UInt32(), lambda rows: rows.text_length),
        "words": SqlColumn(pl.UInt32(), lambda rows: rows.words),
        "garbled": SqlColumn(pl.UInt32(), lambda rows: rows.garbled),
        "parse_time": SqlColumn(TIME, lambda rows: rows.parse_time),
        "text": SqlColumn(pl.String(), lambda rows: rows.text),
        "own_text": SqlColumn(pl.String(), lambda rows: rows.own_text),
        "own_words": SqlColumn(pl.UInt32(), lambda rows: rows.own_words),
        "metadata": SqlColumn(METADATA, lambda rows: rows.field("metadata")),
    }

    def __init__(self, segments: Sequence[Segment], sites: SiteFrames | None = None) -> None:
        """`sites` is what the hosts of the segments' crawl have in common, if that is known."""
        self._segments = [segment for segment in segments if segment.has(PARSE_DATA)]
        self._sites = sites

    @property
    def of_data(self) -> Mapping[str, Callable[[ParseTable], pl.Series]]:
        """Makes the columns that are made of parse_data alone."""
        return _FROM_DATA

    def partitions(self) -> Mapping[str, Table]:
        return {segment.name: ParsesTable([segment], self._sites) for segment in self._segments}

    def frames(self, request: Request) -> Iterator[pl.DataFrame]:
        of_text = {"text", "text_length", "words", "garbled", *OWN} & request.needed
        sites = self._sites
        if sites is None and OWN & request.needed:
            sites = frames_beside(self._segments)
        folders = [PARSE_DATA, *([PARSE_TEXT] if of_text else [])]
        folders += [CONTENT] if "garbled" in request.needed else []
        found = piece_groups(self._segments, folders, request.pruning, size=self.piece_size)
        if "parse_time" not in request.needed:
            return each(partial(self._read_group, request, None, sites), found)

        def timed() -> Iterator[pl.DataFrame]:
            for segments, mine in groupby(
                found, lambda group: [piece.segment for piece in group.pieces]
            ):
                read = partial(self._read_group, request, _parse_times(segments), sites)
                yield from each(read, mine)

        return timed()

    def _read_group(
        self,
        request: Request,
        parsed: pl.DataFrame | None,
        sites: SiteFrames | None,
        group: PieceGroup,
    ) -> pl.DataFrame:
        return self.make(ParseRows.read(self, group, request.needed, parsed, sites), request)
