"""Opens the databases and segments of a crawl that `explain` looks URLs up in."""

from __future__ import annotations

from pathlib import Path

from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.fetch.frontier.hostmemory import state_folder
from minutch.cycle.hostdb.store import HostDb
from minutch.cycle.linkdb.store import LinkDb
from minutch.cycle.segment.store import Segment
from minutch.inspect.query.crawl import CRAWLDB, HOSTDB, LINKDB, open_crawl
from minutch.inspect.query.segments import SEGMENTS


class CrawlStores:
    """The databases and segments of a crawl. Raises StoreError if there is no crawl, or one without
    a CrawlDb.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.segments: list[Segment] = [*open_crawl(folder).segments]
        self.crawldb, self.linkdb = CrawlDb(folder / CRAWLDB), LinkDb(folder / LINKDB)
        self.hostdb = HostDb(folder / HOSTDB)
        self.crawldb.require_parts()

    @property
    def state(self) -> Path:
        """The folder in which fetches keep what they remember of hosts."""
        return state_folder(self.folder / SEGMENTS / "any")
