"""minutch: a web crawler for one machine that speaks Apache Nutch 1.x.

The life of a URL, in the order of the cycle:

    inject       a line of a seed list becomes a record of the CrawlDb     cycle/crawldb/inject.py
    generate     of what is due, the best go into a new segment
                 cycle/fetchlist/generate.py
    fetch        the page is fetched, politely                             cycle/fetch/fetcher.py
    parse        its text, metadata and links are found
                 cycle/parse/parsesegment.py
    updatedb     the record learns what became of it, links become URLs    cycle/crawldb/updatedb.py
    invertlinks  the LinkDb learns who links to the page
                 cycle/linkdb/invertlinks.py
    dedup        of equal pages all but one are marked as duplicates       cycle/crawldb/dedup.py

`minutch/DESIGN.md` says how the rest is laid out, `minutch.commands.flow` lists all commands. From
Python:

    from minutch import Configuration, CrawlDb, jobs

    conf = Configuration.load([Path("conf")])
    jobs.inject("crawl/crawldb", "seeds/", conf=conf)
    db = CrawlDb(Path("crawl/crawldb"))
    print(len(db), db["https://www.example.org/"])
    fetched = [url for url, datum in db.items() if datum.status_name == "db_fetched"]

`minutch.open` opens a whole crawl: its tables for Polars, Arrow and pandas, its jobs as methods
(`minutch.api`).
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minutch import jobs as jobs
    from minutch.api import Crawl as Crawl
    from minutch.api import open_crawl as open  # noqa: F401 - see __getattr__
    from minutch.clock import FakeClock as FakeClock
    from minutch.clock import SystemClock as SystemClock
    from minutch.conf import Configuration as Configuration
    from minutch.cycle.crawldb.store import CrawlDb as CrawlDb
    from minutch.cycle.hostdb.store import HostDb as HostDb
    from minutch.cycle.linkdb.store import LinkDb as LinkDb
    from minutch.cycle.segment.store import Segment as Segment
    from minutch.errors import MinutchError as MinutchError
    from minutch.job import Counters as Counters
    from minutch.job import JobContext as JobContext
    from minutch.records.crawldatum import CrawlDatum as CrawlDatum
    from minutch.version import __version__ as __version__

_WHERE = {
    "Configuration": "minutch.conf",
    "Crawl": "minutch.api",
    "Counters": "minutch.job",
    "CrawlDatum": "minutch.records.crawldatum",
    "CrawlDb": "minutch.cycle.crawldb.store",
    "FakeClock": "minutch.clock",
    "HostDb": "minutch.cycle.hostdb.store",
    "JobContext": "minutch.job",
    "LinkDb": "minutch.cycle.linkdb.store",
    "MinutchError": "minutch.errors",
    "Segment": "minutch.cycle.segment.store",
    "SystemClock": "minutch.clock",
    "__version__": "minutch.version",
}

__all__ = ["jobs", *_WHERE]  # noqa: PLE0604 - the table's keys are strings


def __getattr__(name: str) -> Any:
    """Import what is asked for, when it is asked for: `import minutch` alone costs nothing."""
    if name in _WHERE:
        return getattr(import_module(_WHERE[name]), name)
    if name == "jobs":
        return import_module("minutch.jobs")
    if name == "open":  # not in __all__: `from minutch import *` leaves Python's own alone
        return import_module("minutch.api").open_crawl
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
