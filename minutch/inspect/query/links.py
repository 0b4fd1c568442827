"""The tables `linkdb` and `links`: the links to each page, with their anchor texts; and what lies
beside the CrawlDb as Parquet files: `checks`, what `check` has found out about links that are no
pages of the crawl and those with a fragment; `sitemaps`, what the sitemaps list that `sitemap`
has read.

A LinkDb has no links within a host unless linkdb.ignore.internal.links is false. Where it has none,
or does not exist, the links are those of the newest parse of each page in the segments, as `report`
counts them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import ClassVar, Final

import numpy as np
import polars as pl

from minutch.cycle.linkdb.store import LinkDb
from minutch.cycle.segment.store import PARSE_DATA, Segment
from minutch.cycle.sitemap.processor import LISTING_SCHEMA, SitemapListing
from minutch.errors import StoreError
from minutch.hadoop.formats.batch import Batch, keys_of
from minutch.inspect.query.columns import TIME, Ids, Places, SortedIds
from minutch.inspect.query.pages import OUTCOMES
from minutch.inspect.query.parses import ParsesTable
from minutch.inspect.query.skipping import piecewise
from minutch.inspect.query.table import Request, SqlColumn, Table, once, part_file
from minutch.records.links import Inlinks
from minutch.records.links_columns import decode_inlinks, decode_outlinks
from minutch.records.parsedata import ParseData
from minutch.urls.hostcolumns import host_names
from minutch.work.tables.database import Database
from minutch.work.tables.frame import decode_keys
from minutch.work.tables.recordfiles import LINKS_SPAN, scan_inlinks
from minutch.work.tables.spans import Numbers, batchwise, scan_numbered

CHECKS: Final = "checks"
"""The folder beside the CrawlDb."""
_TYPES: Final = {
    "url": pl.String(),
    "fragment": pl.String(),
    "from_url": pl.String(),
    "anchor": pl.String(),
    "external": pl.Boolean(),
    "outcome": pl.Enum(OUTCOMES),
    "code": pl.Int32(),
    "reason": pl.String(),
    "asked": TIME,
    "has_fragment": pl.Boolean(),
}
LINK: Final = pl.Struct({"from_url": pl.String(), "anchor": pl.String()})
_IDS: Final = (pl.col("url").hash().alias("id"), pl.col("from_url").hash().alias("from"))


class _LinkTable(Table):
    def __init__(self, db: LinkDb, part: Path | None = None) -> None:
        self._db, self._part = db, part

    def partitions(self) -> Mapping[str, Table]:
        parts = self._db.require_parts()
        return {
            part_file(number): type(self)(self._db, part=part) for number, part in enumerate(parts)
        }

    def frames(self, request: Request) -> Iterator[pl.DataFrame]:
        parts = self._db.require_parts() if self._part is None else [self._part]
        layout = self._db.layout

        def decode(batch: Batch) -> pl.DataFrame:
            return self.make(self._rows(decode_inlinks(batch, layout)), request)

        return piecewise(parts, Inlinks.class_name, batchwise(decode), request)

    @staticmethod
    def _rows(links: pl.DataFrame) -> pl.DataFrame:
        """Returns the rows of the table from one of INLINKS_SCHEMA."""
        raise NotImplementedError


class LinksTable(_LinkTable):
    """A table with one row per link. A URL without links has none."""

    name = "links"
    columns: ClassVar = {
        "url": SqlColumn(pl.String(), lambda rows: decode_keys(rows["key"])),
        "from_url": SqlColumn(pl.String(), lambda rows: decode_keys(rows["from_url"])),
        "anchor": SqlColumn(pl.String(), lambda rows: decode_keys(rows["anchor"])),
    }

    def __init__(
        self, db: LinkDb, segments: Sequence[Segment] = (), part: Path | None = None
    ) -> None:
        super().__init__(db, part)
        self._parsed = [segment for segment in segments if segment.has(PARSE_DATA)]

    def partitions(self) -> Mapping[str, Table]:
        if self.are_in_segments:
            return {part_file(0): self}
        return super().partitions()

    def frames(self, request: Request) -> Iterator[pl.DataFrame]:
        if self.are_in_segments:
            return (self.make(rows, request) for rows in newest_links(self._parsed))
        return super().frames(request)

    def every(self, segments: Sequence[Segment]) -> Iterator[pl.DataFrame]:
        """Yields every link that was ever found: `id` and `from`, the hashes of `url` and
        `from_url`, `anchor` (Binary), the `number` of its segment among `segments` (null: of the
        LinkDb), and if it `is_newest`, a link of this table.
        """
        number_of = {segment.name: number for number, segment in enumerate(segments)}
        numbers = pl.Series([number_of[one.name] for one in self._parsed], dtype=pl.Int32)
        for frame in newest_links(self._parsed, with_older=True):
            number = numbers.gather(frame["of"] // 2).alias("number")
            is_newest = (pl.col("of") % 2 == 1) & self.are_in_segments
            found = frame.rename({"key": "url"})
            yield found.with_columns(number, *_IDS, is_newest=is_newest)
        if not self.are_in_segments:
            yield from self.inverted()

    def inverted(self) -> Iterator[pl.DataFrame]:
        """Yields the links of the LinkDb as `every` does. Raises StoreError if there is none."""
        for frame in super().frames(Request(("url", "from_url", "anchor"))):
            found = frame.with_columns(pl.all().cast(pl.Binary), number=pl.lit(None, pl.Int32))
            yield found.with_columns(*_IDS, is_newest=pl.lit(value=True))

    @once
    def are_in_segments(self) -> bool:
        """Whether the links are those of the newest parses, since the LinkDb has not all."""
        # Most sites have a link within themselves in the first table: nothing else is read of it.
        return bool(self._parsed) and not (self._db.exists() and _has_internal(self._db))

    @staticmethod
    def _rows(links: pl.DataFrame) -> pl.DataFrame:
        return links.filter(pl.col("from_url").is_not_null())


def _has_internal(db: LinkDb) -> bool:
    """Returns whether one of the links of a LinkDb is within a host."""
    within = _host_of("key") == _host_of("from_url")
    return any(
        table.select(within.any()).item()
        for part in db.require_parts()
        for table in scan_inlinks(part, db.layout)
    )


def _host_of(column: str) -> pl.Expr:
    return pl.col(column).map_batches(lambda keys: host_names(decode_keys(keys)), pl.String)


def newest_links(
    segments: Sequence[Segment], *, with_older: bool = False
) -> Iterator[pl.DataFrame]:
    """Yields the links of the newest successful parse of each page, newest segment first: `key`
    (the target), `from_url`, `anchor` (Binary). Raises FormatError.

    With those of older parses, `of` has twice the number of the segment, and one more if the link
    is of the newest.
    """
    number_of = {segment.name: number for number, segment in enumerate(segments)}

    def read(some: Sequence[Segment], ids: Ids, newest: Places) -> Iterator[pl.DataFrame]:
        """Yields the links of some segments; of each page the number of its `newest` parse."""
        parsed_last = SortedIds(ids)
        parts = [
            (number_of[segment.name], part)
            for segment in reversed(some)
            for part in segment.parts(PARSE_DATA)
        ]
        mine = np.array([number for number, _ in parts], np.int64)

        def decode(batch: Batch, of: Numbers) -> pl.DataFrame:
            at, is_old = parsed_last.places_of(keys_of(batch).hash().to_numpy())
            # By numbers of 8 bytes: a join by URL would hold those of all pages.
            is_old[is_old] = newest[at[is_old]] > mine[of[is_old]]
            if with_older:
                links = decode_outlinks(batch, (2 * mine[of] + ~is_old).astype(np.uint32))
            else:
                links = decode_outlinks(batch.filter(~is_old))
            return links.rename({"key": "from_url", "to_url": "key"})

        paths = [part for _, part in parts]
        return scan_numbered(paths, ParseData.class_name, decode, span_size=LINKS_SPAN)

    # nothing is newer than the last segment: who asks for the first link waits for no other
    yield from read(segments[-1:], np.empty(0, np.uint64), np.empty(0, np.int64))
    if len(segments) > 1:
        parsed = ParsesTable(segments[1:]).scan().filter(pl.col("status") == "success")
        numbers = pl.col("segment").replace_strict(number_of, return_dtype=pl.Int64)
        found = parsed.select(id=pl.col("url").cast(pl.Binary).hash(), newest=numbers)
        good = found.group_by("id").agg(pl.max("newest")).collect(engine="streaming").sort("id")
        yield from read(segments[:-1], good["id"].to_numpy(), good["newest"].to_numpy())


class LinkDbTable(_LinkTable):
    """A table with one row per URL of the LinkDb, with the list of links to it."""

    name = "linkdb"
    key = "url"
    columns: ClassVar = {
        "url": SqlColumn(pl.String(), lambda rows: decode_keys(rows["key"])),
        "inlinks": SqlColumn(pl.List(LINK), lambda rows: rows["inlinks"]),
    }

    @staticmethod
    def _rows(links: pl.DataFrame) -> pl.DataFrame:
        link = pl.struct(
            from_url=decode_keys(links["from_url"]), anchor=decode_keys(links["anchor"])
        )
        pairs = links.select("key", link.alias("link"), there=pl.col("from_url").is_not_null())
        return pairs.group_by("key", maintain_order=True).agg(
            inlinks=pl.col("link").filter("there")
        )


def _columns(types: Mapping[str, pl.DataType]) -> Mapping[str, SqlColumn]:
    return {
        name: SqlColumn(dtype, lambda rows, name=name, dtype=dtype: rows[name].cast(dtype))  # type: ignore[misc]
        for name, dtype in types.items()
    }


class Checks(Database):
    """What a check has found out, in a folder."""

    def parts(self) -> list[Path]:
        return sorted(self.current.glob("*.parquet"))


class _FilesTable(Table):
    def __init__(self, files: Checks | SitemapListing) -> None:
        self._files = files

    def partitions(self) -> Mapping[str, Table]:
        if not self._files.exists():
            raise StoreError(f"Input path does not exist: {self._files.path}")
        return super().partitions()

    def frames(self, request: Request) -> Iterator[pl.DataFrame]:
        for part in self._files.parts():
            yield self.make(pl.read_parquet(part), request)


class ChecksTable(_FilesTable):
    """A table with one row per link that was checked."""

    name = CHECKS
    columns: ClassVar = _columns(_TYPES)


class SitemapsTable(_FilesTable):
    """A table with one row per URL in a sitemap."""

    name = "sitemaps"
    columns: ClassVar = _columns(LISTING_SCHEMA)
