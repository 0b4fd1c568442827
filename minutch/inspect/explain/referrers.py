"""Finds the pages that lead to a URL: in the LinkDb by its index, in segments by stretches of their
flat files that contain its bytes.

The LinkDb has no links within a host unless linkdb.ignore.internal.links is false; then the first
segment with a link tells which of its pages have it, and with which words.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import polars as pl

from minutch.cycle.linkdb.store import LinkDb
from minutch.cycle.segment.store import CRAWL_FETCH, CRAWL_PARSE, PARSE_DATA, Segment
from minutch.hadoop.formats.javahash import float32
from minutch.hadoop.formats.javaio import decode_text, encode_text
from minutch.inspect.explain.facts import LeftOut, Referrers, ReferringLink, ReferringSegment
from minutch.inspect.explain.visits import protocol_status, was_skipped
from minutch.inspect.query.parses import ParsesTable
from minutch.records import crawldatum as status
from minutch.records import crawldatum_columns
from minutch.records.crawldatum import CrawlDatum
from minutch.records.parsedata import ParseData
from minutch.urls.hostcolumns import host_names
from minutch.work.tables.frame import decode_keys
from minutch.work.tables.recordfiles import scan, scan_outlinks

MOST_SHOWN: Final = 20
"""Links that are shown of a page, and pages that redirect to one."""
LINK: Final = "link"
REDIRECT: Final = "redirect"
_REDIRECTS: Final = (status.STATUS_FETCH_REDIR_TEMP, status.STATUS_FETCH_REDIR_PERM)


def referrers_of(
    url: str, linkdb: LinkDb, segments: Sequence[Segment], *, quick: bool
) -> Referrers:
    """Finds the pages that lead to a URL; if `quick`, in the LinkDb alone. Raises FormatError
    (damage).
    """
    inlinks = linkdb.get(url) if linkdb.exists() else None
    total = 0 if inlinks is None else len(inlinks)
    known = [] if inlinks is None else list(inlinks)[:MOST_SHOWN]
    links = tuple(
        ReferringLink(link.from_url, link.anchor, _first(segments, link.from_url, url))
        for link in known
    )
    if quick:
        return Referrers(total, links, looked=False)
    found = tuple(_found(url, segments))
    by_link = {place.segment for place in found if place.seen_as == LINK}
    if not links and by_link:
        first = next(segment for segment in segments if segment.name in by_link)
        links = tuple(_on_pages(first, url))
    redirects = () if links else tuple(_redirects(url, segments))
    left_out = LeftOut() if links or found or redirects else _left_out(url, segments)
    return Referrers(total, links, found, redirects, left_out=left_out)


def _left_out(url: str, segments: Sequence[Segment]) -> LeftOut:
    """Counts pages that had more links than segments have (parser.outlinks.count)."""
    cut = pl.col("outlinks_cut").is_not_null()
    host = host_names(decode_keys(pl.Series([encode_text(url)], dtype=pl.Binary)))[0]
    is_elsewhere = pl.col("url").map_batches(host_names, pl.String) != pl.lit(host, pl.String)
    counts = ParsesTable(segments).scan()
    return LeftOut(
        *counts.select(
            cut=cut.sum(),
            kept=pl.col("outlinks").filter(cut).max().fill_null(0),
            external=(pl.col("outlinks_external").is_not_null() & is_elsewhere).sum(),
        )
        .collect(engine="streaming")
        .row(0)
    )


def _first(segments: Iterable[Segment], from_url: str, url: str) -> str:
    """Returns the first segment in which a page has a link; empty if none has it."""
    for segment in segments:
        if segment.has(PARSE_DATA):
            for parsed in segment.get(PARSE_DATA, from_url):
                if isinstance(parsed, ParseData) and any(
                    link.to_url == url for link in parsed.outlinks
                ):
                    return segment.name
    return ""


def _found(url: str, segments: Iterable[Segment]) -> Iterator[ReferringSegment]:
    """Yields the segments whose links or redirects updatedb merges."""
    for segment in segments:
        for folder, seen_as in ((CRAWL_PARSE, LINK), (CRAWL_FETCH, REDIRECT)):
            linked = list(_linked(segment, folder, url))
            if linked:
                score = 0.0
                for datum in linked:
                    score = float32(score + datum.score)
                yield ReferringSegment(segment.name, len(linked), score, seen_as)


def _linked(segment: Segment, folder: str, url: str) -> Iterator[CrawlDatum]:
    """Yields records of the status `linked`, without those of URLs that were not fetched."""
    for datum in segment.get(folder, url) if segment.has(folder) else ():
        if (
            isinstance(datum, CrawlDatum)
            and datum.status == status.STATUS_LINKED
            and not was_skipped(datum)
        ):
            yield datum


def _on_pages(segment: Segment, url: str) -> Iterator[ReferringLink]:
    """Yields the links of a segment's pages to a URL, on columns."""
    left = MOST_SHOWN
    wanted = encode_text(url)
    for part in segment.parts(PARSE_DATA) if segment.has(PARSE_DATA) else ():
        for table in scan_outlinks(part):
            for key, anchor in (
                table.filter(pl.col("to_url") == wanted)
                .select("key", "anchor")
                .head(left)
                .iter_rows()
            ):
                left -= 1
                yield ReferringLink(decode_text(key), decode_text(anchor), segment.name)
            if not left:
                return


def _redirects(url: str, segments: Iterable[Segment]) -> Iterator[ReferringLink]:
    """Yields pages that redirect to a URL, on columns."""
    left = MOST_SHOWN
    wanted = encode_text(url)
    for segment in segments:
        for part in segment.parts(CRAWL_FETCH) if segment.has(CRAWL_FETCH) else ():
            for table in scan(part):
                near = pl.col("status").is_in(_REDIRECTS) & pl.col("metadata").bin.contains(wanted)
                for from_url, datum in crawldatum_columns.records(table.filter(near)):
                    ended = protocol_status(datum)
                    if ended is not None and ended.message == url and left:
                        left -= 1
                        yield ReferringLink(from_url, "", segment.name)
