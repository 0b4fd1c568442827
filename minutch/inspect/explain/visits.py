"""Looks up what a crawl holds of a URL: its records in each segment, by the indexes of its
MapFiles; its entry; the pages that lead to it.

A fetch list is no MapFile: it is looked into only while the segment has no answers yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final

import polars as pl

from minutch.cycle.fetch.decisions import answered, http_code, reason
from minutch.cycle.linkdb.store import LinkDb
from minutch.cycle.segment.store import (
    CONTENT,
    CRAWL_FETCH,
    CRAWL_GENERATE,
    CRAWL_PARSE,
    PARSE_DATA,
    Segment,
)
from minutch.errors import UrlError
from minutch.hadoop.formats.javahash import float32
from minutch.hadoop.formats.javaio import decode_text, encode_text
from minutch.hadoop.formats.writables import IntWritable, Text
from minutch.inspect.explain.facts import (
    EntryFacts,
    LeftOut,
    RedirectHop,
    Referrers,
    ReferringLink,
    ReferringSegment,
    Score,
    SegmentVisit,
)
from minutch.inspect.query.parses import ParsesTable
from minutch.records import crawldatum as status
from minutch.records import crawldatum_columns, parsedata, protocol
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import PROTO_STATUS_KEY, RESPONSE_TIME_KEY, ROBOTS_KEY, SIGNATURE_KEY
from minutch.records.parsedata import ParseData
from minutch.records.protocol import Content, ProtocolStatus
from minutch.terminal import counted
from minutch.urls.hostcolumns import host_names
from minutch.work.tables.frame import decode_keys
from minutch.work.tables.recordfiles import scan, scan_outlinks

LISTED: Final = "listed"
FETCHED: Final = "fetched"
SKIPPED: Final = "skipped"
LINKED: Final = "linked"

HEADERS: Final = (
    "Location",
    "Retry-After",
    "Last-Modified",
    "ETag",
    "Cache-Control",
    "Expires",
    "Content-Type",
    "Content-Length",
    "Content-Encoding",
    "X-Robots-Tag",
    "WWW-Authenticate",
)
"""Headers that decide what becomes of a page."""
_MOST_HOPS: Final = 20
_PROTO_STATUS: Final = Text(PROTO_STATUS_KEY)
_RESPONSE_TIME: Final = Text(RESPONSE_TIME_KEY)


Change = Callable[[str], str | None]
MEANINGS: Final = {
    status.STATUS_DB_UNFETCHED: "known, and to be fetched",
    status.STATUS_DB_FETCHED: "fetched, and fetched again when it is due",
    status.STATUS_DB_GONE: "given up for now: it is tried again, at longer and longer intervals",
    status.STATUS_DB_REDIR_TEMP: "redirects to another page for now; asked again when it is due",
    status.STATUS_DB_REDIR_PERM: "has moved to another page; asked again when it is due",
    status.STATUS_DB_NOTMODIFIED: "fetched again and found to be the same",
    status.STATUS_DB_DUPLICATE: (
        "fetched, but its content is that of another page, which stands for both in the index"
    ),
    status.STATUS_DB_ORPHAN: (
        "no page has linked to it for long (scoring-orphan); not fetched again"
    ),
    status.STATUS_DB_PARSE_FAILED: (
        "fetched, but nothing could parse it (parser.delete.failed.parse)"
    ),
}

_FETCHED: Final = (
    status.STATUS_DB_FETCHED,
    status.STATUS_DB_NOTMODIFIED,
    status.STATUS_DB_DUPLICATE,
)
_MOVED: Final = (status.STATUS_DB_REDIR_TEMP, status.STATUS_DB_REDIR_PERM)
MOST_SHOWN: Final = 20
"""Links that are shown of a page, and pages that redirect to one."""
LINK: Final = "link"
REDIRECT: Final = "redirect"
_REDIRECTS: Final = (status.STATUS_FETCH_REDIR_TEMP, status.STATUS_FETCH_REDIR_PERM)


def visits(
    segments: Iterable[Segment], url: str, normalize: Change, proxy: str = ""
) -> Iterator[SegmentVisit]:
    """Yields the segments' records of a URL in order; `normalize` is the fetcher's. FormatError."""
    for segment in segments:
        if segment.has(CRAWL_FETCH):
            for datum in _data(segment, CRAWL_FETCH, url):
                yield _visit(segment, url, datum, normalize, proxy)
        elif segment.has(CRAWL_GENERATE):
            for _ in _data(segment, CRAWL_GENERATE, url):
                yield SegmentVisit(segment.name, LISTED)


def _data(segment: Segment, folder: str, url: str) -> list[CrawlDatum]:
    return [datum for datum in segment.get(folder, url) if isinstance(datum, CrawlDatum)]


def protocol_status(datum: CrawlDatum) -> ProtocolStatus | None:
    """Returns the protocol status in the entry's metadata; None if there is none."""
    found = datum.metadata.get(_PROTO_STATUS)
    return found if isinstance(found, ProtocolStatus) else None


def why(datum: CrawlDatum, proxy: str = "") -> str:
    """Returns why the fetch failed, in words; empty if no failure is known."""
    ended = protocol_status(datum)
    if ended is None or ended.code in (protocol.SUCCESS, protocol.NOTMODIFIED) or ended.is_redirect:
        return ""
    return reason(ended, http_code(datum), proxy)


def was_skipped(datum: CrawlDatum) -> bool:
    """Returns True for the record of a URL that was listed and not fetched."""
    ended = protocol_status(datum)
    return (
        datum.status == status.STATUS_LINKED
        and ended is not None
        and ended.code == protocol.NOTFETCHING
    )


def _visit(
    segment: Segment, url: str, datum: CrawlDatum, normalize: Change, proxy: str
) -> SegmentVisit:
    if _state(datum) == LINKED:  # its metadata are those of the page that redirects to it
        return SegmentVisit(segment.name, LINKED, datum.fetch_time, datum.status_name)
    ended = protocol_status(datum)
    content, parsed = segment.newest(CONTENT, url), segment.newest(PARSE_DATA, url)
    page = content if isinstance(content, Content) else None
    data = parsed if isinstance(parsed, ParseData) else None
    milliseconds = datum.metadata.get(_RESPONSE_TIME)
    code = http_code(datum)
    return SegmentVisit(
        segment=segment.name,
        state=_state(datum),
        time=datum.fetch_time,
        status=datum.status_name,
        protocol="" if ended is None else ended.name or str(ended.code),
        reason=why(datum, proxy),
        code=int(code[:18]) if code.isdecimal() else None,
        size=None if page is None else len(page.content),
        content_type="" if page is None else page.content_type,
        digest=_digest(datum, data),
        response_ms=milliseconds.value
        if isinstance(milliseconds, IntWritable) and answered(ended)
        else None,
        redirects=tuple(_chain(segment, url, datum, data, normalize)),
        headers={} if page is None else _headers(page),
        parse="" if data is None else str(data.status),
        title="" if data is None else data.title,
        robots="" if data is None else ", ".join(data.parse_meta.get_values(ROBOTS_KEY)),
        outlinks=None if data is None else len(data.outlinks),
    )


def _state(datum: CrawlDatum) -> str:
    if datum.status != status.STATUS_LINKED:
        return FETCHED
    return SKIPPED if was_skipped(datum) else LINKED


def _digest(datum: CrawlDatum, data: ParseData | None) -> str:
    parsed = None if data is None else data.content_meta.get(SIGNATURE_KEY)
    return parsed or (datum.signature.hex() if datum.signature else "")


def _headers(page: Content) -> dict[str, str]:
    found = {name: page.metadata.field(name) for name in HEADERS}
    return {name: value for name, value in found.items() if value}


def target_of(datum: CrawlDatum, data: ParseData | None) -> str | None:
    """Returns the target of a page's redirect, by its status or its meta refresh."""
    ended = protocol_status(datum)
    if ended is not None and ended.is_redirect:
        return ended.message
    if (
        data is not None
        and data.status.is_success
        and data.status.minor == parsedata.SUCCESS_REDIRECT
    ):
        return data.status.message
    return None


def _chain(
    segment: Segment, url: str, datum: CrawlDatum, data: ParseData | None, normalize: Change
) -> Iterator[RedirectHop]:
    """Yields the pages that follow by redirects, each once."""
    seen = {url}
    location = target_of(datum, data)
    while location and len(seen) <= _MOST_HOPS:
        target = _normal(location, normalize)
        found = _data(segment, CRAWL_FETCH, target) if target not in seen else []
        yield RedirectHop(target, found[-1].status_name if found else "")
        if not found or found[-1].status == status.STATUS_LINKED:
            return
        seen.add(target)
        parsed = segment.newest(PARSE_DATA, target)
        location = target_of(found[-1], parsed if isinstance(parsed, ParseData) else None)


def _normal(location: str, normalize: Change) -> str:
    """Returns the normal form of a redirect's target, or the target itself if it is no URL."""
    try:
        return normalize(location) or location
    except UrlError:
        return location


# Describes an entry of the CrawlDb in words: its status, the reason for it, its score. Pure: no
# I/O


def entry_of(datum: CrawlDatum, max_retries: int, proxy: str = "") -> EntryFacts:
    """Describes an entry; `max_retries` is db.fetch.retry.max."""
    return EntryFacts(
        status=datum.status_name,
        meaning=MEANINGS.get(datum.status, "a status that Nutch does not know"),
        why=_why(datum, max_retries, proxy),
        fetch_time=datum.fetch_time,
        modified_time=datum.modified_time or None,
        fetch_interval=datum.fetch_interval,
        retries=datum.retries,
        max_retries=max_retries,
        score=datum.score,
        signature=datum.signature.hex() if datum.signature else None,
        metadata={str(key): str(value) for key, value in datum.metadata.items()},
    )


def _why(datum: CrawlDatum, max_retries: int, proxy: str) -> str:
    ended = protocol_status(datum)
    failure = why(datum, proxy)
    if datum.status in _MOVED:
        return (
            f"it redirects to {ended.message}"
            if ended is not None and ended.message
            else "it redirects"
        )
    if datum.status in _FETCHED:
        code = http_code(datum)
        return f"HTTP {code}" if code else ""
    if datum.status == status.STATUS_DB_GONE and datum.retries >= max_retries:
        return (
            f"{datum.retries} failures in a row (db.fetch.retry.max={max_retries}), the last:"
            f" {failure or 'unknown'}"
        )
    if datum.status == status.STATUS_DB_UNFETCHED:
        return _unfetched(datum, ended, failure)
    return (
        f"refused by {failure}"
        if ended is not None and ended.code == protocol.ROBOTS_DENIED
        else failure
    )


def _unfetched(datum: CrawlDatum, ended: protocol.ProtocolStatus | None, failure: str) -> str:
    if failure and ended is not None and ended.code == protocol.NOTFETCHING:
        return f"not asked for in the last round: {failure}"
    if datum.retries:
        times = (
            "failed once"
            if datum.retries == 1
            else f"failed {datum.retries} times in a row, the last time"
        )
        return f"{times}: {failure or 'unknown'}"
    if ended is not None and ended.is_success:
        return "fetched, but its interval is beyond db.fetch.interval.max: it counts as new"
    return failure or "never fetched"


def score_of(
    datum: CrawlDatum, found: Iterable[ReferringSegment], filters: Iterable[object]
) -> Score:
    """Returns the score, and what is known of its sources."""
    gained = 0.0
    for place in found:
        gained = float32(gained + place.score)
    names = tuple(type(each).__name__ for each in filters)
    return Score(datum.score, gained, float32(datum.score - gained), names)


def left_out_words(left_out: LeftOut) -> Iterator[str]:
    """Yields in words which links are not known."""
    if left_out.pages_cut:
        yield (
            f"{counted(left_out.pages_cut, 'pages')} had more links than the"
            f" {left_out.kept:,} that were kept (db.max.outlinks.per.page)"
        )
    if left_out.pages_external:
        yield (
            f"{counted(left_out.pages_external, 'pages')} had links to other hosts, which were left"
            " out (db.ignore.external.links)"
        )


# Finds the pages that lead to a URL: in the LinkDb by its index, in segments by stretches of their
# flat files that contain its bytes.
#
# The LinkDb has no links within a host unless linkdb.ignore.internal.links is false; then the
# first segment with a link tells which of its pages have it, and with which words.


def referrers_of(
    url: str, linkdb: LinkDb, segments: Sequence[Segment], *, quick: bool
) -> Referrers:
    """Finds the pages that lead to a URL; if `quick`, in the LinkDb alone. Raises FormatError."""
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
