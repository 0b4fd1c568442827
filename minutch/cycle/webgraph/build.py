"""The webgraph job: makes the graph of links that linkrank works on, or adds segments to it.

It writes three databases (see `store`): the links of each page's newest version that `rules` keeps;
the same links by the page that they lead to; and a node for each page at either end of a link, with
its numbers of links and score 0.

The version of a page is the time of its fetch, which its parse holds (with fetcher.parse=true), or
else the time of the job. With link.delete.gone, pages that were gone or redirected are removed,
unless a later segment has links of them. The databases are installed once all three are written.

Source: org.apache.nutch.scoring.webgraph.WebGraph.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import polars as pl

from minutch.cycle.linkdb.rules import READ, UrlChain
from minutch.cycle.segment.store import CRAWL_FETCH, LAYOUTS, PARSE_DATA, Segment, segments_at
from minutch.cycle.webgraph.rules import CANDIDATES, GraphLinkRules
from minutch.cycle.webgraph.store import GraphSettings, OutlinkDb, WebGraph
from minutch.errors import StoreError
from minutch.job import Counters, JobContext, Progress
from minutch.plugin.chains import SCOPE_DEFAULT
from minutch.records import crawldatum as status
from minutch.records.webgraph import GRAPH_LINKS_SCHEMA, INLINK, NODES_SCHEMA, OUTLINK
from minutch.work.tables import recordfiles
from minutch.work.tables.frame import aligned, pieces
from minutch.work.tables.parallel import for_each
from minutch.work.tables.recordfiles import scan_dated_outlinks, scan_link_data
from minutch.work.tables.shuffle import Shuffle

log = logging.getLogger(__name__)
DELETE_GONE_PROPERTY: Final = "link.delete.gone"
GONE_PAGES: Final = "pages that are gone"
WRITTEN: Final = "outlinks written"
PAGES: Final = "nodes written"
_GONE: Final = (
    status.STATUS_FETCH_REDIR_TEMP,
    status.STATUS_FETCH_REDIR_PERM,
    status.STATUS_FETCH_GONE,
)
_ROWS_AT_A_TIME: Final = 1 << 18
_SORTED: Final = pl.Schema({name: GRAPH_LINKS_SCHEMA[name] for name in ("key", "url", "anchor")})


@dataclass(frozen=True, slots=True)
class WebGraphOptions:
    """Options of the webgraph job."""

    normalize: bool = False
    """Whether the URLs of links are normalized, existing ones too."""
    filtering: bool = False
    """Whether the URLs of links must pass the URL filters, existing ones too."""


def webgraph(
    webgraphdb: Path,
    segments: Sequence[Path],
    options: WebGraphOptions = WebGraphOptions(),
    *,
    context: JobContext,
) -> Counters:
    """Adds the links of `segments` to the graph at `webgraphdb`, which need not exist, and counts
    what became of them.

    Skips segments that are not parsed. Raises LockedError, StoreError (no segment is parsed),
    FormatError (damage); the graph is unchanged then.
    """
    graph = WebGraph(webgraphdb)
    held = segments_at(segments)
    parsed = [segment.path for segment in held if _is_parsed(segment)]
    if not parsed:
        raise StoreError("no segments to take links from")
    if graph.is_another():
        raise StoreError(f"{graph.path} is a database of another kind")
    log.info("WebGraphDb: starting")
    log.info("WebGraphDb: webgraphdb: %s", graph.path)
    log.info("WebGraphDb: URL normalize: %s", str(options.normalize).lower())
    log.info("WebGraphDb: URL filter: %s", str(options.filtering).lower())
    conf = context.conf
    settings, rules = GraphSettings.from_conf(conf), GraphLinkRules.from_conf(conf)
    chain = UrlChain.from_conf(
        conf, normalize=options.normalize, filtering=options.filtering, scope=SCOPE_DEFAULT
    )
    delete_gone = conf.get_boolean(DELETE_GONE_PROPERTY)
    now, counters = context.clock.now(), Counters()
    with graph.lock(), context.progress("webgraph", unit="links") as progress, ExitStack() as stack:
        outlinks, inlinks, nodes = (
            stack.enter_context(
                database.replacement(keep_old=keep_old)
            )  # outlinks are installed last
            for database, keep_old in (
                (graph.outlinks, conf.get_boolean("db.preserve.backup")),
                (graph.inlinks, False),
                (graph.nodes, False),
            )
        )
        # Also segments that are not parsed: they know which pages are gone.
        candidates = _Candidates(graph, segments, chain, now, delete_gone=delete_gone)
        writing = _Writing(graph, settings, counters, progress)
        writing.outlinks(outlinks, candidates.tables(counters, progress), rules)
        log.info("OutlinkDb: finished")
        writing.inlinks(inlinks, OutlinkDb.at(outlinks), now)
        log.info("InlinkDb: finished")
        writing.nodes(nodes, OutlinkDb.at(outlinks), OutlinkDb.at(inlinks))
        log.info("NodeDb: finished")
    log.info("WebGraphDb: finished")
    return counters


def _is_parsed(segment: Segment) -> bool:
    """Returns whether a segment is parsed, or warns. Raises StoreError if it is no segment."""
    segment.check()
    if not any(map(segment.has, LAYOUTS)):
        raise StoreError(f"{segment.path} is no segment")
    if not segment.has(PARSE_DATA):
        log.warning("%s is not parsed: it has no links yet", segment.path)
    return segment.has(PARSE_DATA)


class _Candidates:
    """The existing links of a graph, and those of segments."""

    def __init__(
        self,
        graph: WebGraph,
        segments: Sequence[Path],
        chain: UrlChain,
        now: int,
        *,
        delete_gone: bool,
    ) -> None:
        self._graph, self._segments, self._chain, self._now = graph, segments, chain, now
        self._delete_gone = delete_gone
        if delete_gone:
            log.info("OutlinkDb: deleting gone links")

    def tables(self, counters: Counters, progress: Progress) -> Iterator[pl.DataFrame]:
        """Reads tables of CANDIDATES, with normalized URLs that pass the filters."""
        counters.add(READ, 0)
        for links in self._read():
            counters.add(READ, len(links))
            progress.advance(len(links))
            # Stored links, too, as OutlinkDbMapper: filters may have changed since.
            yield self._chain.apply(links, counters, page="key", target="url")
        if self._delete_gone:
            for pages in self._gone():
                counters.add(GONE_PAGES, len(pages))
                # The URLs of gone pages are normalized and filtered as those of links.
                urls = pages.select("key", url="key").with_row_index()
                renamed = self._chain.apply(urls, Counters(), page="key", target="url")
                yield pages[renamed["index"]].with_columns(key=renamed["key"])

    def _read(self) -> Iterator[pl.DataFrame]:
        for part in self._graph.outlinks.parts():
            for links in scan_link_data(part):
                yield links.select("key", "url", "anchor", "timestamp", source=pl.lit(0, pl.UInt32))
        for number, segment in enumerate(self._segments, 1):
            for part in _parts(Segment(segment), PARSE_DATA):
                log.info("OutlinkDb: adding input: %s", part)
                for links in scan_dated_outlinks(part):
                    # WebGraph.getFetchTime: of pages parsed after their fetch the parse does not
                    # know it.
                    timestamp = pl.col("timestamp").fill_null(self._now)
                    source = pl.lit(number, pl.UInt32)
                    yield links.select(
                        "key", timestamp, url="to_url", anchor="anchor", source=source
                    ).select(CANDIDATES.names())

    def _gone(self) -> Iterator[pl.DataFrame]:
        """Reads which pages are gone according to the segments."""
        for number, segment in enumerate(map(Segment, self._segments), 1):
            for part in _parts(segment, CRAWL_FETCH):
                log.info("OutlinkDb: adding input: %s", part)
                for pages in recordfiles.scan(part):
                    gone = pages.filter(pl.col("status").is_in(_GONE))
                    # A row without a target, which sorts to the links of its page.
                    yield gone.select(
                        "key",
                        url=pl.lit(None, pl.Binary),
                        anchor=pl.lit(None, pl.Binary),
                        timestamp="fetch_time",
                        source=pl.lit(number, pl.UInt32),
                    )


def _parts(segment: Segment, folder: str) -> list[Path]:
    return segment.parts(folder) if segment.has(folder) else []


@dataclass(frozen=True, slots=True)
class _Writing:
    """The writing of the three databases of a graph."""

    graph: WebGraph
    settings: GraphSettings
    counters: Counters
    progress: Progress

    def outlinks(
        self, directory: Path, candidates: Iterator[pl.DataFrame], rules: GraphLinkRules
    ) -> None:
        """Writes the candidates that `rules` keeps, sorted by page."""
        settings, progress = self.settings, self.progress
        with self._shuffle(CANDIDATES) as shuffle:
            for table in candidates:
                shuffle.add(table)
            # Once for outlinks, once for inlinks; how many are kept nobody knows yet.
            progress.expect(lambda: 2 * shuffle.rows)
            log.info("OutlinkDb: running")

            def write_part(part: int) -> Counters:
                counted = Counters()
                with self.graph.outlinks.writer(directory, part, settings.compression) as writer:
                    for frame in shuffle.sorted(part):
                        # At pages' borders: the rules look at all versions of a page.
                        for links in pieces(frame, _ROWS_AT_A_TIME):
                            kept = rules.apply(links, counted)
                            writer.write(_link_data(kept, OUTLINK, kept["timestamp"]))
                            counted.add(WRITTEN, len(kept))
                            progress.advance(len(links))
                return counted

            for counted in for_each(write_part, range(settings.parts)):
                self.counters.merge(counted)

    def inlinks(self, directory: Path, outlinks: OutlinkDb, now: int) -> None:
        """Writes the same links by target, then in the order of the pages that they come from."""
        log.info("InlinkDb: running")
        with self._shuffle(_SORTED) as shuffle:
            for links in outlinks.in_order():
                # Read in the order of pages: a shuffle keeps the order of rows of one key.
                shuffle.add(links.select(key="url", url="key", anchor="anchor"))

            def write_part(part: int) -> None:
                compression = self.settings.compression
                with self.graph.inlinks.writer(directory, part, compression) as writer:
                    for links in shuffle.sorted(part):
                        writer.write(_link_data(links, INLINK, pl.lit(now, pl.Int64)))
                        self.progress.advance(len(links))

            for_each(write_part, range(self.settings.parts))

    def nodes(self, directory: Path, outlinks: OutlinkDb, inlinks: OutlinkDb) -> None:
        """Writes a node for each page at either end of a link."""
        log.info("NodeDb: running")

        def write_part(part: int) -> int:
            compression = self.settings.compression
            with self.graph.nodes.writer(directory, part, compression) as writer:
                for links in aligned(
                    # The same number of partitions, by the same hash: a page's links are in the
                    # same one.
                    scan_link_data(outlinks.parts()[part]),
                    scan_link_data(inlinks.parts()[part]),
                ):
                    writer.write(_nodes(*links))
                return writer.rows

        self.counters.add(PAGES, sum(for_each(write_part, range(self.settings.parts))))

    def _shuffle(self, schema: pl.Schema) -> Shuffle:
        settings = self.settings
        return Shuffle(settings.parts, schema, budget=settings.memory, spill=self.graph.path)


def _link_data(links: pl.DataFrame, kind: int, timestamp: pl.Series | pl.Expr) -> pl.DataFrame:
    score, link_type = pl.lit(0.0, pl.Float32), pl.lit(kind, pl.Int8)
    return links.select(
        "key", "url", "anchor", score=score, timestamp=timestamp, link_type=link_type
    )


def _nodes(outlinks: pl.DataFrame, inlinks: pl.DataFrame) -> pl.DataFrame:
    """Returns the nodes of a range of keys, as NODES_SCHEMA."""
    counts = _counts(outlinks, "num_outlinks"), _counts(inlinks, "num_inlinks")
    nodes = counts[0].join(counts[1], on="key", how="full", coalesce=True).sort("key")
    score, metadata = pl.lit(0.0, pl.Float32), pl.lit(None, pl.Binary)
    nodes = nodes.with_columns(inlink_score=score, metadata=metadata).select(NODES_SCHEMA.names())
    return nodes.with_columns(pl.col("num_inlinks", "num_outlinks").fill_null(0))


def _counts(links: pl.DataFrame, name: str) -> pl.DataFrame:
    """Counts the links of each key."""
    return links.group_by("key").agg(pl.len().cast(pl.Int32).alias(name))
