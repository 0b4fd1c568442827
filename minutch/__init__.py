"""minutch: a web crawler for one machine that speaks Apache Nutch 1.x.

The life of a URL, in the order of the cycle:

    inject       adds the URLs of a seed list to the CrawlDb         cycle/crawldb/inject.py
    generate     selects the best of the due pages for a segment     cycle/fetchlist/generate.py
    fetch        fetches them politely                               cycle/fetch/fetcher.py
    parse        extracts text, metadata and links                   cycle/parse/parsesegment.py
    updatedb     updates the CrawlDb with the results and links      cycle/crawldb/updatedb.py
    invertlinks  records in the LinkDb which pages link to a page    cycle/linkdb/invertlinks.py
    dedup        marks all but one of equal pages as duplicates      cycle/crawldb/dedup.py

`minutch/DESIGN.md` describes the layout of the code, `minutch.commands.flow` lists all commands. In
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

`minutch.open` opens a crawl: its tables for Polars, Arrow and pandas, its jobs as methods
(`minutch.api`). `minutch.jobs` runs a command with the arguments of its command line.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from minutch import jobs as jobs
    from minutch.annexes.dataset.datasetexport import DatasetOptions as DatasetOptions
    from minutch.annexes.dataset.datasetexport import export_commoncrawl as export_commoncrawl
    from minutch.annexes.legacy.legacyjobs import LegacyExportOptions as LegacyExportOptions
    from minutch.annexes.legacy.legacyjobs import LegacyImportOptions as LegacyImportOptions
    from minutch.annexes.legacy.legacyjobs import export_legacy as export_legacy
    from minutch.annexes.legacy.legacyjobs import import_legacy as import_legacy
    from minutch.api import Crawl as Crawl
    from minutch.api import open_crawl
    from minutch.archives.commoncrawldumper import CommonCrawlDumpOptions as CommonCrawlDumpOptions
    from minutch.archives.commoncrawldumper import commoncrawldump as commoncrawldump
    from minutch.archives.exporters import ArcExportOptions as ArcExportOptions
    from minutch.archives.exporters import NutchWarcOptions as NutchWarcOptions
    from minutch.archives.exporters import export_arc as export_arc
    from minutch.archives.exporters import export_nutch_warc as export_nutch_warc
    from minutch.archives.filedumper import FileDumpOptions as FileDumpOptions
    from minutch.archives.filedumper import dump as dump
    from minutch.archives.replay.archiveimport import arc2segment as arc2segment
    from minutch.archives.replay.archiveimport import import_archives as import_archives
    from minutch.archives.replay.replayer import ImportOptions as ImportOptions
    from minutch.archives.replay.replayer import VisitFilter as VisitFilter
    from minutch.archives.web.webarchivejobs import WebArchiveOptions as WebArchiveOptions
    from minutch.archives.web.webarchivejobs import export_cdxj as export_cdxj
    from minutch.archives.web.webarchivejobs import export_wacz as export_wacz
    from minutch.archives.web.webarchivejobs import export_warc as export_warc
    from minutch.archives.web.webarchivejobs import export_wat as export_wat
    from minutch.archives.web.webarchivejobs import export_wet as export_wet
    from minutch.clock import FakeClock as FakeClock
    from minutch.clock import SystemClock as SystemClock
    from minutch.conf import Configuration as Configuration
    from minutch.cycle.crawl.crawler import crawl as crawl
    from minutch.cycle.crawl.steps import CrawlOptions as CrawlOptions
    from minutch.cycle.crawldb.dedup import DedupOptions as DedupOptions
    from minutch.cycle.crawldb.dedup import dedup as dedup
    from minutch.cycle.crawldb.dump import ReaddbDumpOptions as ReaddbDumpOptions
    from minutch.cycle.crawldb.dump import TopOptions as TopOptions
    from minutch.cycle.crawldb.dump import readdb_dump as readdb_dump
    from minutch.cycle.crawldb.dump import readdb_top as readdb_top
    from minutch.cycle.crawldb.groupcounts import CountOptions as CountOptions
    from minutch.cycle.crawldb.groupcounts import PageCountOptions as PageCountOptions
    from minutch.cycle.crawldb.groupcounts import crawlcomplete as crawlcomplete
    from minutch.cycle.crawldb.groupcounts import domainstats as domainstats
    from minutch.cycle.crawldb.groupcounts import protocolstats as protocolstats
    from minutch.cycle.crawldb.inject import InjectOptions as InjectOptions
    from minutch.cycle.crawldb.inject import inject as inject
    from minutch.cycle.crawldb.mergedb import MergeOptions as MergeOptions
    from minutch.cycle.crawldb.mergedb import mergedb as mergedb
    from minutch.cycle.crawldb.stats import StatsOptions as StatsOptions
    from minutch.cycle.crawldb.stats import readdb_stats as readdb_stats
    from minutch.cycle.crawldb.store import CrawlDb as CrawlDb
    from minutch.cycle.crawldb.updatedb import UpdateOptions as UpdateOptions
    from minutch.cycle.crawldb.updatedb import updatedb as updatedb
    from minutch.cycle.fetch.fetcher import fetch as fetch
    from minutch.cycle.fetch.settings import FetchOptions as FetchOptions
    from minutch.cycle.fetchlist.generate import FreegenOptions as FreegenOptions
    from minutch.cycle.fetchlist.generate import freegen as freegen
    from minutch.cycle.fetchlist.generate import generate as generate
    from minutch.cycle.fetchlist.selector import GenerateOptions as GenerateOptions
    from minutch.cycle.hostdb.dump import ReadHostDbOptions as ReadHostDbOptions
    from minutch.cycle.hostdb.dump import readhostdb as readhostdb
    from minutch.cycle.hostdb.store import HostDb as HostDb
    from minutch.cycle.hostdb.update import UpdateHostDbOptions as UpdateHostDbOptions
    from minutch.cycle.hostdb.update import updatehostdb as updatehostdb
    from minutch.cycle.index.indexing import CleanOptions as CleanOptions
    from minutch.cycle.index.indexing import IndexOptions as IndexOptions
    from minutch.cycle.index.indexing import clean as clean
    from minutch.cycle.index.indexing import index as index
    from minutch.cycle.linkdb.dump import LinkDumpOptions as LinkDumpOptions
    from minutch.cycle.linkdb.dump import readlinkdb_dump as readlinkdb_dump
    from minutch.cycle.linkdb.invertlinks import InvertOptions as InvertOptions
    from minutch.cycle.linkdb.invertlinks import invertlinks as invertlinks
    from minutch.cycle.linkdb.invertlinks import mergelinkdb as mergelinkdb
    from minutch.cycle.linkdb.store import LinkDb as LinkDb
    from minutch.cycle.parse.parsesegment import ParseOptions as ParseOptions
    from minutch.cycle.parse.parsesegment import parse as parse
    from minutch.cycle.segment.mergesegs import MergesegsOptions as MergesegsOptions
    from minutch.cycle.segment.mergesegs import mergesegs as mergesegs
    from minutch.cycle.segment.readseg import ReadsegOptions as ReadsegOptions
    from minutch.cycle.segment.readseg import readseg_dump as readseg_dump
    from minutch.cycle.segment.readseg import readseg_get as readseg_get
    from minutch.cycle.segment.readseg import readseg_list as readseg_list
    from minutch.cycle.segment.store import Segment as Segment
    from minutch.cycle.sitemap.processor import SitemapOptions as SitemapOptions
    from minutch.cycle.sitemap.processor import sitemap as sitemap
    from minutch.cycle.webgraph.build import WebGraphOptions as WebGraphOptions
    from minutch.cycle.webgraph.build import webgraph as webgraph
    from minutch.cycle.webgraph.dumpers import NodeDumperOptions as NodeDumperOptions
    from minutch.cycle.webgraph.dumpers import nodedumper as nodedumper
    from minutch.cycle.webgraph.linkrank import linkrank as linkrank
    from minutch.cycle.webgraph.linkrank import scoreupdater as scoreupdater
    from minutch.cycle.webgraph.store import WebGraph as WebGraph
    from minutch.errors import MinutchError as MinutchError
    from minutch.inspect.corpus.export import CorpusOptions as CorpusOptions
    from minutch.inspect.corpus.export import export_corpus as export_corpus
    from minutch.inspect.explain.explainer import explain as explain
    from minutch.inspect.explain.explainer import overview as overview
    from minutch.inspect.explain.settings import ExplainOptions as ExplainOptions
    from minutch.inspect.fsck.crawlcheck import FsckOptions as FsckOptions
    from minutch.inspect.fsck.crawlcheck import fsck as fsck
    from minutch.inspect.query.exports import GraphOptions as GraphOptions
    from minutch.inspect.query.exports import ParquetOptions as ParquetOptions
    from minutch.inspect.query.exports import export_edges as export_edges
    from minutch.inspect.query.exports import export_graphml as export_graphml
    from minutch.inspect.query.exports import export_parquet as export_parquet
    from minutch.inspect.query.session import sql as sql
    from minutch.inspect.report.reportfile import ReportOptions as ReportOptions
    from minutch.inspect.report.reportfile import report as report
    from minutch.inspect.search.results import SearchOptions as SearchOptions
    from minutch.inspect.search.searcher import search as search
    from minutch.inspect.whatif.forecast import whatif as whatif
    from minutch.job import Counters as Counters
    from minutch.job import JobContext as JobContext
    from minutch.records.crawldatum import CrawlDatum as CrawlDatum
    from minutch.version import __version__ as __version__

    open = open_crawl  # see __getattr__


@cache
def _where() -> dict[str, str]:
    """Returns public name → module, as the imports above say: what type checkers read is read."""
    import ast

    assert __spec__ is not None and __spec__.loader is not None
    tree = ast.parse(__spec__.loader.get_source(__name__))  # type: ignore[attr-defined]
    block = next(node for node in tree.body if isinstance(node, ast.If))
    imports = [node for node in block.body if isinstance(node, ast.ImportFrom)]
    return {
        name.asname: node.module or "" for node in imports for name in node.names if name.asname
    }


def __getattr__(name: str) -> Any:
    """Imports a name when it is first used, so that `import minutch` alone is fast."""
    if name == "__all__":
        return sorted(_where())
    if name == "open":  # not in __all__: `from minutch import *` leaves Python's own alone
        return import_module("minutch.api").open_crawl
    if name == "jobs":
        return import_module("minutch.jobs")
    if (module := _where().get(name)) is not None:
        return getattr(import_module(module), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(_where())
