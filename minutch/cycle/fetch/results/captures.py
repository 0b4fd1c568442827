"""Decides how each answer is archived: as a whole page or as a revisit. Pure: no I/O.

Every answer is archived, errors too. What had not changed becomes a revisit, by what the CrawlDb
entry remembers:

    metadata `_warc_`     8 hex digits of the URL's hash, blank, time of the last whole capture
                          (ms), blank, its digest

updatedb carries it along, and so does Nutch's. It belongs to one URL: a redirect's target that
inherits it has another hash.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import Final

from minutch.clock import http_time
from minutch.conf import Configuration
from minutch.cycle.fetch.results.answer import Answer
from minutch.cycle.fetch.results.fetchlog import Capture
from minutch.hadoop.formats.writables import Text
from minutch.records import protocol
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import CAPTURE, Metadata
from minutch.records.protocol import Content
from minutch.warc.pagewriter import IDENTICAL, NOT_MODIFIED, Original, fetch_time
from minutch.warc.warcfile import sha1_digest

IMPLIED: Final = (
    "store.http.headers",
    "store.http.request",
    "store.ip.address",
    "store.protocol.versions",
)
"""Properties by which protocols hand over what belongs into an archive."""
KEY: Final = Text(CAPTURE)


def capture_of(answer: Answer) -> Capture | None:
    """Returns the capture of an answer, None if nothing came. Notes in its datum what a later
    revisit may refer to.
    """
    url, time, datum, content = answer.url, answer.time, answer.datum, answer.content
    if content is None:
        return None
    known = remembered(url, datum)
    if answer.status is not None and answer.status.code == protocol.NOTMODIFIED:
        original = known if _is_of(known, content.metadata) else None
        return Capture(url, time, datum, content, NOT_MODIFIED, original)
    digest = sha1_digest(content.content)
    if known is not None and known.digest == digest and content.content:
        return Capture(url, time, datum, content, IDENTICAL, known)
    datum.metadata[KEY] = Text(f"{_hash(url)} {time} {digest}")
    return Capture(url, time, datum, content, "", Original(time, digest))


def remembered(url: str, datum: CrawlDatum) -> Original | None:
    """Returns the last whole capture of a URL, as its entry has it."""
    words = str(datum.metadata.get(KEY, "")).split(" ")
    if len(words) != 3 or words[0] != _hash(url) or not (words[1].isascii() and words[1].isdigit()):
        return None
    return Original(int(words[1][:15]), words[2])


def _is_of(known: Original | None, answer: Metadata) -> bool:
    """Tells whether an unmodified answer is about the capture `known`: not if it was modified
    since.
    """
    modified = http_time(answer.field("Last-Modified") or "")
    return known is not None and (modified is None or modified <= known.time)


def _hash(url: str) -> str:
    return blake2b(url.encode("utf-8", "surrogateescape"), digest_size=4).hexdigest()


def robots_captures(contents: list[Content], now: int) -> Iterator[Capture]:
    """robots.txt files (fetcher.store.robotstxt)."""
    for content in contents:
        time = fetch_time(content)
        yield Capture(content.url, now if time is None else time, CrawlDatum(), content)


def archiving(conf: Configuration) -> Configuration:
    """Returns the configuration for a fetch: what an archive needs to know is kept."""
    return conf.with_values(dict.fromkeys(IMPLIED, "true"))
