"""Looks up a URL's records in each segment of a crawl, by the indexes of its MapFiles.

A fetch list is no MapFile: it is looked into only while the segment has no answers yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final

from minutch.cycle.fetch.decisions import answered, http_code, reason
from minutch.cycle.segment.store import CONTENT, CRAWL_FETCH, CRAWL_GENERATE, PARSE_DATA, Segment
from minutch.errors import UrlError
from minutch.hadoop.formats.writables import IntWritable, Text
from minutch.inspect.explain.facts import RedirectHop, Visit
from minutch.records import crawldatum as status
from minutch.records import parsedata, protocol
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import (
    PROTO_STATUS_KEY,
    RESPONSE_TIME_KEY,
    ROBOTS_KEY,
    SIGNATURE_KEY,
)
from minutch.records.parsedata import ParseData
from minutch.records.protocol import Content, ProtocolStatus

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


def visits(
    segments: Iterable[Segment], url: str, normalize: Change, proxy: str = ""
) -> Iterator[Visit]:
    """Yields the segments' records of a URL, in their order; `normalize` is the fetcher's. Raises
    FormatError (damage).
    """
    for segment in segments:
        if segment.has(CRAWL_FETCH):
            for datum in _data(segment, CRAWL_FETCH, url):
                yield _visit(segment, url, datum, normalize, proxy)
        elif segment.has(CRAWL_GENERATE):
            for _ in _data(segment, CRAWL_GENERATE, url):
                yield Visit(segment.name, LISTED)


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


def _visit(segment: Segment, url: str, datum: CrawlDatum, normalize: Change, proxy: str) -> Visit:
    if _state(datum) == LINKED:  # its metadata are those of the page that redirects to it
        return Visit(segment.name, LINKED, datum.fetch_time, datum.status_name)
    ended = protocol_status(datum)
    content, parsed = _last(segment, CONTENT, url), _last(segment, PARSE_DATA, url)
    page = content if isinstance(content, Content) else None
    data = parsed if isinstance(parsed, ParseData) else None
    milliseconds = datum.metadata.get(_RESPONSE_TIME)
    code = http_code(datum)
    return Visit(
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
    parsed = None if data is None else data.content_meta.first(SIGNATURE_KEY)
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
        parsed = _last(segment, PARSE_DATA, target)
        location = target_of(found[-1], parsed if isinstance(parsed, ParseData) else None)


def _normal(location: str, normalize: Change) -> str:
    """Returns the normal form of a redirect's target, or the target itself if it is no URL."""
    try:
        return normalize(location) or location
    except UrlError:
        return location


def _last(segment: Segment, folder: str, url: str) -> object | None:
    found = segment.get(folder, url) if segment.has(folder) else []
    return found[-1] if found else None
