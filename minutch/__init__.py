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
Python, each job is a function of databases, segments and options, which returns its counters:

    import minutch
    from minutch import Configuration, GenerateOptions, JobContext

    context = JobContext(Configuration.load([Path("conf")]))
    crawldb, segments = Path("crawl/crawldb"), Path("crawl/segments")
    minutch.inject(crawldb, Path("seeds"), context=context)
    made = minutch.generate(crawldb, segments, GenerateOptions(top_n=100), context=context)
    for segment in made.segments:
        minutch.fetch(segment, context=context)
        minutch.parse(segment, context=context)
        minutch.updatedb(crawldb, [segment], context=context)
    db = minutch.CrawlDb(crawldb)
    fetched = [url for url, datum in db.items() if datum.status_name == "db_fetched"]

`minutch.open` opens a whole crawl: its tables for Polars, Arrow and pandas, its jobs as methods
(`minutch.api`). `minutch.jobs` runs a command by the words of its command line.
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
    from minutch.cycle.crawl.crawler import crawl as crawl
    from minutch.cycle.crawl.options import CrawlOptions as CrawlOptions
    from minutch.cycle.crawldb.dedup import DedupOptions as DedupOptions
    from minutch.cycle.crawldb.dedup import dedup as dedup
    from minutch.cycle.crawldb.inject import InjectOptions as InjectOptions
    from minutch.cycle.crawldb.inject import inject as inject
    from minutch.cycle.crawldb.store import CrawlDb as CrawlDb
    from minutch.cycle.crawldb.updatedb import UpdateOptions as UpdateOptions
    from minutch.cycle.crawldb.updatedb import updatedb as updatedb
    from minutch.cycle.fetch.fetcher import FetchOptions as FetchOptions
    from minutch.cycle.fetch.fetcher import fetch as fetch
    from minutch.cycle.fetchlist.freegen import FreegenOptions as FreegenOptions
    from minutch.cycle.fetchlist.freegen import freegen as freegen
    from minutch.cycle.fetchlist.generate import generate as generate
    from minutch.cycle.fetchlist.selector import GenerateOptions as GenerateOptions
    from minutch.cycle.hostdb.store import HostDb as HostDb
    from minutch.cycle.hostdb.update import UpdateHostDbOptions as UpdateHostDbOptions
    from minutch.cycle.hostdb.update import updatehostdb as updatehostdb
    from minutch.cycle.index.clean import CleanOptions as CleanOptions
    from minutch.cycle.index.clean import clean as clean
    from minutch.cycle.index.indexing import IndexOptions as IndexOptions
    from minutch.cycle.index.indexing import index as index
    from minutch.cycle.linkdb.invertlinks import InvertOptions as InvertOptions
    from minutch.cycle.linkdb.invertlinks import invertlinks as invertlinks
    from minutch.cycle.linkdb.store import LinkDb as LinkDb
    from minutch.cycle.parse.parsesegment import ParseOptions as ParseOptions
    from minutch.cycle.parse.parsesegment import parse as parse
    from minutch.cycle.segment.mergesegs import MergesegsOptions as MergesegsOptions
    from minutch.cycle.segment.mergesegs import mergesegs as mergesegs
    from minutch.cycle.segment.store import Segment as Segment
    from minutch.cycle.sitemap.processor import SitemapOptions as SitemapOptions
    from minutch.cycle.sitemap.processor import sitemap as sitemap
    from minutch.errors import MinutchError as MinutchError
    from minutch.job import Counters as Counters
    from minutch.job import JobContext as JobContext
    from minutch.records.crawldatum import CrawlDatum as CrawlDatum
    from minutch.version import __version__ as __version__

_WHERE = {
    "__version__": "minutch.version",
    "Configuration": "minutch.conf",
    "Counters": "minutch.job",
    "Crawl": "minutch.api",
    "CrawlDatum": "minutch.records.crawldatum",
    "CrawlDb": "minutch.cycle.crawldb.store",
    "FakeClock": "minutch.clock",
    "HostDb": "minutch.cycle.hostdb.store",
    "JobContext": "minutch.job",
    "LinkDb": "minutch.cycle.linkdb.store",
    "MinutchError": "minutch.errors",
    "Segment": "minutch.cycle.segment.store",
    "SystemClock": "minutch.clock",
    "inject": "minutch.cycle.crawldb.inject",
    "InjectOptions": "minutch.cycle.crawldb.inject",
    "generate": "minutch.cycle.fetchlist.generate",
    "GenerateOptions": "minutch.cycle.fetchlist.selector",
    "freegen": "minutch.cycle.fetchlist.freegen",
    "FreegenOptions": "minutch.cycle.fetchlist.freegen",
    "fetch": "minutch.cycle.fetch.fetcher",
    "FetchOptions": "minutch.cycle.fetch.fetcher",
    "parse": "minutch.cycle.parse.parsesegment",
    "ParseOptions": "minutch.cycle.parse.parsesegment",
    "updatedb": "minutch.cycle.crawldb.updatedb",
    "UpdateOptions": "minutch.cycle.crawldb.updatedb",
    "invertlinks": "minutch.cycle.linkdb.invertlinks",
    "InvertOptions": "minutch.cycle.linkdb.invertlinks",
    "dedup": "minutch.cycle.crawldb.dedup",
    "DedupOptions": "minutch.cycle.crawldb.dedup",
    "updatehostdb": "minutch.cycle.hostdb.update",
    "UpdateHostDbOptions": "minutch.cycle.hostdb.update",
    "sitemap": "minutch.cycle.sitemap.processor",
    "SitemapOptions": "minutch.cycle.sitemap.processor",
    "index": "minutch.cycle.index.indexing",
    "IndexOptions": "minutch.cycle.index.indexing",
    "clean": "minutch.cycle.index.clean",
    "CleanOptions": "minutch.cycle.index.clean",
    "mergesegs": "minutch.cycle.segment.mergesegs",
    "MergesegsOptions": "minutch.cycle.segment.mergesegs",
    "crawl": "minutch.cycle.crawl.crawler",
    "CrawlOptions": "minutch.cycle.crawl.options",
}
"""Public name → its module; the imports above say the same to type checkers (tests/test_api.py).
"""

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
