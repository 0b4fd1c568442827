"""webgraph: make the graph of links that linkrank works on, or add segments to it.

Three databases come of it (see `store`): the links of each page's newest version, as `rules` lets
them count; the same links by the page that they lead to; and a node for each page at either end,
with its numbers of links and score 0.

A page is as old as its fetch: the time that stands in its parse (fetcher.parse=true leaves one),
else that of the job. With link.delete.gone, pages that were gone or redirected are taken out,
unless a later segment has links of them. The three databases are all written before the first takes
its place.

Source: org.apache.nutch.scoring.webgraph.WebGraph.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import polars as pl

from minutch.conf import Configuration
from minutch.cycle.linkdb.rules import READ, UrlChain
from minutch.cycle.segment.store import CRAWL_FETCH, LAYOUTS, PARSE_DATA, Segment
from minutch.cycle.webgraph.rules import CANDIDATES, LinkRules
from minutch.cycle.webgraph.store import Links, WebGraph
from minutch.errors import StoreError
from minutch.job import Counters, JobContext, Progress
from minutch.plugin.chains import SCOPE_DEFAULT
from minutch.records import crawldatum as status
from minutch.records.webgraph import INLINK, OUTLINK
from minutch.records.webgraph.table import GRAPH_LINKS_SCHEMA, NODES_SCHEMA
from minutch.work.tables import crawldata
from minutch.work.tables.compression import output_compression
from minutch.work.tables.merge import aligned, pieces
from minutch.work.tables.parallel import for_each, memory_budget, number_of_parts
from minutch.work.tables.shuffle import Shuffle
from minutch.work.tables.webgraphfiles import scan_dated_outlinks, scan_link_data

log = logging.getLogger(__name__)
DELETE_GONE_PROPERTY: Final = "link.delete.gone"
NEWS: Final = "pages that are gone"
WRITTEN: Final = "outlinks written"
PAGES: Final = "nodes written"
_GONE: Final = (
    status.STATUS_FETCH_REDIR_TEMP,
    status.STATUS_FETCH_REDIR_PERM,
    status.STATUS_FETCH_GONE,
)
_ROWS_AT_A_TIME: Final = 1 << 18
_SORTED: Final = pl.Schema({name: GRAPH_LINKS_SCHEMA[name] for name in ("key", "url", "anchor")})


def webgraph(
    graph: WebGraph,
    segments: Sequence[Path],
    context: JobContext,
    *,
    normalize: bool = False,
    filtering: bool = False,
) -> Counters:
    """Add the links of `segments` to `graph`, which is made if there is none.

    Segments that are not parsed are passed over. Returns what became of the links. Raises
    LockedError, StoreError (no segment, none that is parsed), FormatError (damage); the graph is
    then as before.
    """
    parsed = [segment for segment in segments if _is_parsed(Segment(segment))]
    if not parsed:
        raise StoreError("no segments to take links from")
    if graph.is_another():
        raise StoreError(f"{graph.path} is a database of another kind")
    log.info("WebGraphDb: starting")
    log.info("WebGraphDb: webgraphdb: %s", graph.path)
    log.info("WebGraphDb: URL normalize: %s", str(normalize).lower())
    log.info("WebGraphDb: URL filter: %s", str(filtering).lower())
    conf = context.conf
    chain = UrlChain.from_conf(conf, normalize=normalize, filtering=filtering, scope=SCOPE_DEFAULT)
    now, counters = context.clock.now(), Counters()
    with graph.lock(), context.progress("webgraph", unit="links") as progress, ExitStack() as stack:
        outlinks, inlinks, nodes = (
            stack.enter_context(
                database.replacement(keep_old=keep_old)
            )  # outlinks take their place last
            for database, keep_old in (
                (graph.outlinks, conf.get_boolean("db.preserve.backup", True)),
                (graph.inlinks, False),
                (graph.nodes, False),
            )
        )
        candidates = _Candidates(graph, segments, conf, chain, now)
        _write_outlinks(
            graph, outlinks, candidates.tables(counters, progress), conf, counters, progress
        )
        log.info("OutlinkDb: finished")
        _write_inlinks(graph, inlinks, Links.at(outlinks), now, conf, progress)
        log.info("InlinkDb: finished")
        _write_nodes(graph, nodes, Links.at(outlinks), Links.at(inlinks), conf, counters)
        log.info("NodeDb: finished")
    log.info("WebGraphDb: finished")
    return counters


def _is_parsed(segment: Segment) -> bool:
    """Whether there are links to take; says in the log if not. Raises StoreError for what is no
    segment.
    """
    segment.check()
    if not any(map(segment.has, LAYOUTS)):
        raise StoreError(f"{segment.path} is no segment")
    if not segment.has(PARSE_DATA):
        log.warning("%s is not parsed: its links are not there yet", segment.path)
    return segment.has(PARSE_DATA)


class _Candidates:
    """The links that are there and those of segments."""

    def __init__(
        self,
        graph: WebGraph,
        segments: Sequence[Path],
        conf: Configuration,
        chain: UrlChain,
        now: int,
    ) -> None:
        self._graph, self._segments, self._chain, self._now = graph, segments, chain, now
        self._delete_gone = conf.get_boolean(DELETE_GONE_PROPERTY, False)
        if self._delete_gone:
            log.info("OutlinkDb: deleting gone links")

    def tables(self, counters: Counters, progress: Progress) -> Iterator[pl.DataFrame]:
        """Tables of CANDIDATES, with normalized URLs that pass the filters."""
        counters.add(READ, 0)
        for links in self._read():
            counters.add(READ, len(links))
            progress.advance(len(links))
            yield self._chain.apply(links, counters, page="key", target="url")
        if self._delete_gone:
            for pages in self._gone():
                counters.add(NEWS, len(pages))
                yield self._named(pages)

    def _read(self) -> Iterator[pl.DataFrame]:
        for part in self._graph.outlinks.parts():
            for links in scan_link_data(part):
                yield links.select("key", "url", "anchor", "timestamp", source=pl.lit(0, pl.UInt32))
        for number, segment in enumerate(self._segments, 1):
            for part in _parts(Segment(segment), PARSE_DATA):
                log.info("OutlinkDb: adding input: %s", part)
                for links in scan_dated_outlinks(part):
                    timestamp = pl.col("timestamp").fill_null(self._now)
                    source = pl.lit(number, pl.UInt32)
                    yield links.select(
                        "key", timestamp, url="to_url", anchor="anchor", source=source
                    ).select(CANDIDATES.names())

    def _gone(self) -> Iterator[pl.DataFrame]:
        """The pages that segments say are gone."""
        for number, segment in enumerate(map(Segment, self._segments), 1):
            for part in _parts(segment, CRAWL_FETCH):
                log.info("OutlinkDb: adding input: %s", part)
                for pages in crawldata.scan(part):
                    gone = pages.filter(pl.col("status").is_in(_GONE))
                    yield gone.select(
                        "key",
                        url=pl.lit(None, pl.Binary),
                        anchor=pl.lit(None, pl.Binary),
                        timestamp="fetch_time",
                        source=pl.lit(number, pl.UInt32),
                    )

    def _named(self, pages: pl.DataFrame) -> pl.DataFrame:
        """Pages that are gone, under the names that their links have."""
        aside = pages.select("key", url="key")
        named = self._chain.apply(aside.with_row_index(), Counters(), page="key", target="url")
        return pages[named["index"]].with_columns(key=named["key"])


def _parts(segment: Segment, folder: str) -> list[Path]:
    return segment.parts(folder) if segment.has(folder) else []


def _write_outlinks(
    graph: WebGraph,
    directory: Path,
    candidates: Iterator[pl.DataFrame],
    conf: Configuration,
    counters: Counters,
    progress: Progress,
) -> None:
    rules, parts, compression = LinkRules(conf), number_of_parts(conf), output_compression(conf)
    with Shuffle(parts, CANDIDATES, budget=memory_budget(conf) // 2, spill=graph.path) as shuffle:
        for table in candidates:
            shuffle.add(table)
        progress.expect(lambda: 2 * shuffle.rows)
        log.info("OutlinkDb: running")

        def write_part(part: int) -> Counters:
            counted = Counters()
            with graph.outlinks.writer(directory, part, compression) as writer:
                for frame in shuffle.sorted(part):
                    for links in pieces(frame, _ROWS_AT_A_TIME):
                        kept = rules.apply(links, counted)
                        writer.write(_link_data(kept, OUTLINK, kept["timestamp"]))
                        counted.add(WRITTEN, len(kept))
                        progress.advance(len(links))
            return counted

        for counted in for_each(write_part, range(parts)):
            counters.merge(counted)


def _write_inlinks(
    graph: WebGraph,
    directory: Path,
    outlinks: Links,
    now: int,
    conf: Configuration,
    progress: Progress,
) -> None:
    """The same links the other way round, those to one page in the order of the pages that they
    come from.
    """
    log.info("InlinkDb: running")
    parts, compression = number_of_parts(conf), output_compression(conf)
    with Shuffle(parts, _SORTED, budget=memory_budget(conf) // 2, spill=graph.path) as shuffle:
        for links in outlinks.in_order():
            shuffle.add(links.select(key="url", url="key", anchor="anchor"))

        def write_part(part: int) -> None:
            with graph.inlinks.writer(directory, part, compression) as writer:
                for links in shuffle.sorted(part):
                    writer.write(_link_data(links, INLINK, pl.lit(now, pl.Int64)))
                    progress.advance(len(links))

        for_each(write_part, range(parts))


def _link_data(links: pl.DataFrame, kind: int, timestamp: pl.Series | pl.Expr) -> pl.DataFrame:
    score, link_type = pl.lit(0.0, pl.Float32), pl.lit(kind, pl.Int8)
    return links.select(
        "key", "url", "anchor", score=score, timestamp=timestamp, link_type=link_type
    )


def _write_nodes(
    graph: WebGraph,
    directory: Path,
    outlinks: Links,
    inlinks: Links,
    conf: Configuration,
    counters: Counters,
) -> None:
    """A node for each page at either end of a link."""
    log.info("NodeDb: running")
    compression = output_compression(conf)

    def write_part(part: int) -> int:
        with graph.nodes.writer(directory, part, compression) as writer:
            for links in aligned(
                scan_link_data(outlinks.parts()[part]), scan_link_data(inlinks.parts()[part])
            ):
                counts = [
                    _counts(frame, name)
                    for frame, name in zip(links, ("num_outlinks", "num_inlinks"), strict=True)
                ]
                nodes = counts[0].join(counts[1], on="key", how="full", coalesce=True).sort("key")
                score, metadata = pl.lit(0.0, pl.Float32), pl.lit(None, pl.Binary)
                nodes = nodes.with_columns(inlink_score=score, metadata=metadata).select(
                    NODES_SCHEMA.names()
                )
                writer.write(nodes.with_columns(pl.col("num_inlinks", "num_outlinks").fill_null(0)))
            return writer.rows

    counters.add(PAGES, sum(for_each(write_part, range(number_of_parts(conf)))))


def _counts(links: pl.DataFrame, name: str) -> pl.DataFrame:
    """How many links there are of each key, of sorted links."""
    return links.group_by("key").agg(pl.len().cast(pl.Int32).alias(name))
