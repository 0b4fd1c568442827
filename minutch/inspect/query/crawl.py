"""Opens a crawl: its databases, its segments, and all of them as tables."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Final

from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.hostdb.store import HostDb
from minutch.cycle.linkdb.store import LinkDb
from minutch.cycle.sitemap.processor import LISTINGS, SitemapListing
from minutch.errors import StoreError
from minutch.inspect.query.checks import CHECKS, Checks, ChecksTable
from minutch.inspect.query.crawldb import CrawlDbTable
from minutch.inspect.query.duplicates import DuplicatesTable
from minutch.inspect.query.hosts import CountedHostsTable, HostDbTable
from minutch.inspect.query.links import LinkDbTable, LinksTable
from minutch.inspect.query.segments import SEGMENTS, Segments
from minutch.inspect.query.site import SiteTable
from minutch.inspect.query.sitemaps import SitemapsTable
from minutch.inspect.query.table import Table

CRAWLDB, LINKDB, HOSTDB = "crawldb", "linkdb", "hostdb"
_FOLDERS: Final = (CRAWLDB, LINKDB, SEGMENTS, HOSTDB)


class Crawl:
    """A crawl in a folder: those of `crawldb`, `linkdb`, `segments` and `hostdb` that exist."""

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
    def hostdb(self) -> HostDbTable:
        """The HostDb."""
        return HostDbTable(HostDb(self.path / HOSTDB))

    @property
    def tables(self) -> Mapping[str, Table]:
        """Every table by its name in SQL."""
        segments = self.segments
        tables: list[Table] = [
            self.crawldb,
            self.linkdb,
            LinksTable(LinkDb(self.path / LINKDB), segments),
            segments.pages,
            segments.parses,
            self.hostdb if HostDb(self.path / HOSTDB).exists() else CountedHostsTable(self.crawldb),
            DuplicatesTable(self.crawldb),
            SitemapsTable(SitemapListing(self.path / LISTINGS)),
            ChecksTable(Checks(self.path / CHECKS)),
        ]
        found = {table.name: table for table in tables}
        site = SiteTable(found, has_entries=CrawlDb(self.path / CRAWLDB).exists())
        return found | {site.name: site}


def open_crawl(path: str | PathLike[str]) -> Crawl:
    """Opens the crawl in a folder. Raises StoreError if there is none."""
    folder = Path(path)
    if not folder.is_dir():
        raise StoreError(f"there is no folder {folder}")
    databases = CrawlDb(folder / CRAWLDB), LinkDb(folder / LINKDB), HostDb(folder / HOSTDB)
    if not any(db.exists() for db in databases) and not (folder / SEGMENTS).is_dir():
        raise StoreError(
            f"{folder} is no crawl: it has none of {', '.join(_FOLDERS)}", hint=_hint(folder)
        )
    return Crawl(folder)


def _hint(folder: Path) -> str:
    """Names the folder that may have been meant."""
    above = folder.resolve().parent
    is_part = (
        folder.resolve().name in _FOLDERS or (folder / "current").is_dir() or above.name == SEGMENTS
    )
    if not is_part:
        return ""
    return f"name the folder of the crawl: {above.parent if above.name == SEGMENTS else above}"
