"""Opens a crawl: databases, segments one by one with their folders, and all as tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Final, overload

import polars as pl

from minutch.conf import Configuration
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.hostdb.store import HostDb
from minutch.cycle.linkdb.store import LinkDb
from minutch.cycle.parse.robotsdirectives import agents_of
from minutch.cycle.segment.store import (
    CRAWL_FETCH,
    CRAWL_GENERATE,
    CRAWL_PARSE,
    PARSE_DATA,
    Segment,
    segments_in,
)
from minutch.cycle.sitemap.processor import LISTINGS, SitemapListing
from minutch.errors import StoreError
from minutch.inspect.query.changes import ChangesTable
from minutch.inspect.query.crawldb import (
    CountedHostsTable,
    CrawlDbTable,
    DuplicatesTable,
    EntriesTable,
    HostDbTable,
    NearDuplicatesTable,
)
from minutch.inspect.query.links import (
    CHECKS,
    Checks,
    ChecksTable,
    LinkDbTable,
    LinksTable,
    SitemapsTable,
)
from minutch.inspect.query.pages import PagesTable
from minutch.inspect.query.parses import ParsesTable
from minutch.inspect.query.rights import RightsTable
from minutch.inspect.query.site import SiteTable, WrongLinksTable
from minutch.inspect.query.table import Table

CRAWLDB, LINKDB, HOSTDB, SEGMENTS = "crawldb", "linkdb", "hostdb", "segments"
_FOLDERS: Final = (CRAWLDB, LINKDB, SEGMENTS, HOSTDB)


class CrawlFolder:
    """A crawl in a folder: those of `crawldb`, `linkdb`, `segments` and `hostdb` that exist."""

    agents: Collection[str] = ()
    """The names of the crawler, in lower case: `rights` has what is said to them."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __repr__(self) -> str:
        return f"minutch.open({str(self.path)!r})"

    @property
    def segments(self) -> Segments:
        """The segments that exist now, oldest first."""
        return Segments(self.path / SEGMENTS)

    @property
    def crawldb(self) -> CrawlDbTable:
        """The CrawlDb."""
        return CrawlDbTable(CrawlDb(self.path / CRAWLDB))

    @property
    def linkdb(self) -> LinkDbTable:
        """The LinkDb."""
        return LinkDbTable(LinkDb(self.path / LINKDB))

    @property
    def links(self) -> LinksTable:
        """The links, one by one."""
        return LinksTable(LinkDb(self.path / LINKDB), self.segments)

    @property
    def hostdb(self) -> HostDbTable:
        """The HostDb."""
        return HostDbTable(HostDb(self.path / HOSTDB))

    @property
    def tables(self) -> Mapping[str, Table]:
        """Every table by its name in SQL."""
        segments, links = self.segments, self.links
        tables: list[Table] = [
            self.crawldb,
            self.linkdb,
            links,
            segments.pages,
            segments.parses,
            # `hosts` is there for every crawl; a HostDb is made by those who want one.
            self.hostdb if HostDb(self.path / HOSTDB).exists() else CountedHostsTable(self.crawldb),
            DuplicatesTable(self.crawldb),
            NearDuplicatesTable(CrawlDb(self.path / CRAWLDB)),
            SitemapsTable(SitemapListing(self.path / LISTINGS)),
            ChecksTable(Checks(self.path / CHECKS)),
            RightsTable(segments, self.agents),
            ChangesTable(self.path, segments),
        ]
        found = {table.name: table for table in tables}
        site = SiteTable(found, links, segments, has_entries=CrawlDb(self.path / CRAWLDB).exists())
        wrong = WrongLinksTable(site)
        return found | {site.name: site, wrong.name: wrong}


def open_crawl(path: str | PathLike[str], conf: Configuration | None = None) -> CrawlFolder:
    """Opens the crawl in a folder. `conf` has the names of the crawler. Raises StoreError if there
    is none.
    """
    folder = Path(path)
    if not folder.is_dir():
        raise StoreError(f"there is no folder {folder}")
    databases = CrawlDb(folder / CRAWLDB), LinkDb(folder / LINKDB), HostDb(folder / HOSTDB)
    if not any(db.exists() for db in databases) and not (folder / SEGMENTS).is_dir():
        raise StoreError(
            f"{folder} is no crawl: it has none of {', '.join(_FOLDERS)}", hint=_hint(folder)
        )
    crawl = CrawlFolder(folder)
    crawl.agents = agents_of(conf) if conf is not None else ()
    return crawl


def _hint(folder: Path) -> str:
    """Names the folder that may have been meant."""
    above = folder.resolve().parent
    # People name what they see in listings: crawl/crawldb, crawl/segments/2026...
    is_part = (
        folder.resolve().name in _FOLDERS or (folder / "current").is_dir() or above.name == SEGMENTS
    )
    if not is_part:
        return ""
    return f"name the folder of the crawl: {above.parent if above.name == SEGMENTS else above}"


class CrawlSegment(Segment):
    """A segment with its tables."""

    @property
    def pages(self) -> PagesTable:
        """The results of its fetch."""
        return PagesTable([self])

    @property
    def parses(self) -> ParsesTable:
        """Its parsed pages."""
        return ParsesTable([self])

    @property
    def folders(self) -> Mapping[str, Table]:
        """The folders that exist, by name: those of CrawlDatums with the columns of `crawldb`, and
        parse_data.
        """
        found: dict[str, Table] = {
            name: EntriesTable(name, partial(self.parts, name))
            for name in (CRAWL_GENERATE, CRAWL_FETCH, CRAWL_PARSE)
            if self.has(name)
        }
        return found | ({PARSE_DATA: self.parses} if self.has(PARSE_DATA) else {})


class Segments(Sequence[CrawlSegment]):
    """The segments in a folder, oldest first, by number or name. None without the folder."""

    def __init__(self, path: Path) -> None:
        self.path = path
        found = segments_in(path) if path.is_dir() else []
        # The hold goes along: a compaction takes nothing away while this is there.
        self._segments = tuple(CrawlSegment(segment.path, segment.hold) for segment in found)

    def __repr__(self) -> str:
        return f"Segments({[segment.name for segment in self]})"

    def __len__(self) -> int:
        return len(self._segments)

    @overload
    def __getitem__(self, index: int | str) -> CrawlSegment: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[CrawlSegment]: ...
    def __getitem__(self, index: int | str | slice) -> CrawlSegment | Sequence[CrawlSegment]:
        if not isinstance(index, str):
            return self._segments[index]
        for segment in self._segments:
            if segment.name == index:
                return segment
        raise KeyError(index)

    @property
    def pages(self) -> PagesTable:
        """The fetches of all of them."""
        return PagesTable(self._segments)

    @property
    def parses(self) -> ParsesTable:
        """The parsed pages of all of them."""
        return ParsesTable(self._segments)

    def scan(self) -> pl.LazyFrame:
        """Returns the table of pages as a Polars LazyFrame."""
        return self.pages.scan()
