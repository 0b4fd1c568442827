"""The validators (RFC 9110, section 8.8) of the copy of a page that a CrawlDb entry stands for.

    metadata `_validators_`    seal, blank, since, blank, entity tag or "-", blank, Last-Modified
    seal     CRC-32 of signature and URL, 8 hex digits; the fetch time of the entry that has it, 16
    since    when the copy was parsed, in seconds since the epoch, 10 digits

A page's validators come from the parse of its content, with a seal that has dashes for the fetch
time: they are the version's with that signature. The update that makes its entry seals them to that
entry, status and fetch time included, and seals them again with each "not modified" that confirmed
them. A copy that is older than db.fetch.interval.max is not confirmed any more: its segment may
have been deleted, and a server that compares dates may have gone back to an older version unseen.
Whatever else changes the entry breaks the seal: an error, a redirect, a fetch or an update of
Nutch's, which carries the metadata along and looks at none of it, another CrawlDb merged in, a page
that inherits the metadata. Validators without a valid seal are never sent, so an entry without one
(all of Nutch's) costs one whole request. The seal notices what others did unknowingly, and is no
defence against forgery; its width is fixed, so that an update writes it where it stands.
modifiedTime is none: it may be the time of our fetch, or a sitemap's word. Nor is the lastModified
of `_pst_`: in Nutch all fetches share one status object, so that a page's record may have the date
of another page.

Of dates only those are kept that can tell versions apart: a page that changed within the second
before it was fetched may have changed again in that second (RFC 9110, 8.8.2.2).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Final
from zlib import crc32

from minutch.clock import http_time
from minutch.hadoop.formats.writables import Text
from minutch.records import rawmap
from minutch.records.crawldatum import (
    STATUS_DB_FETCHED,
    STATUS_DB_NOTMODIFIED,
    STATUS_DB_UNFETCHED,
    CrawlDatum,
)
from minutch.records.metadata import CONTENT_FETCH_TIME_KEY, DAMAGED_KEY, TRUNCATED_KEY, Metadata

PROPERTY: Final = "http.store.etag"
VALIDATORS_KEY: Final = Text("_validators_")
RAW_KEY: Final = rawmap.text_key(str(VALIDATORS_KEY))
LONGEST: Final = 512
"""Characters; a longer tag is not kept."""
HELD: Final = (STATUS_DB_FETCHED, STATUS_DB_NOTMODIFIED, STATUS_DB_UNFETCHED)
"""The statuses of entries whose last success is the last that is known of the page; db_unfetched
after a failure that is tried again. A duplicate is not in the index, and its twin may change.
"""

_TAG: Final = re.compile(r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*"')
_CODING: Final = re.compile(r'(?:--?|;)(?:gzip|br|deflate|zstd)(?="$)')
"""What servers that compress put behind a page's tag, not always in both answers."""
NONE: Final = "-"
NO_TIME: Final = "-" * 16
SEAL: Final = 8 + len(NO_TIME)
DIGITS: Final = 10
"""Of `since`."""


@dataclass(frozen=True, slots=True)
class Validators:
    """A copy's own validators, as its server sent them; empty where it sent none."""

    etag: str
    last_modified: str
    since: int
    """When the copy was parsed, s."""

    def confirmed_by(self, answer: Metadata) -> bool:
        """Tells whether an answer "not modified" speaks of this copy: what it says of the version
        is not something else (RFC 9111, 4.3.4).
        """
        tag = entity_tag(answer)
        if tag and self.etag:
            # A tag is stronger than a date (RFC 9110, 13.2.2).
            return _opaque(tag) == _opaque(self.etag)
        dates = answer.field_values("Last-Modified")
        return not (dates and self.last_modified) or _seconds(dates[0]) in (
            None,
            _seconds(self.last_modified),
        )

    def stored(self, url: str, signature: bytes) -> Text:
        """Returns the metadata's value for the version of a page with this signature."""
        copy = f"{self.since:0{DIGITS}} {self.etag or NONE} {self.last_modified}"
        return Text(f"{seal(url, signature)} {copy}")


def of_page(metadata: Metadata, now: int) -> Validators | None:
    """Returns the validators that came with the content of a page that is parsed `now` (ms); None
    if there are none, or the content is not whole, which another request may mend.
    """
    # A 304 would keep the torn copy for ever.
    if "true" in (metadata.get(TRUNCATED_KEY), metadata.get(DAMAGED_KEY)):
        return None
    etag, modified = entity_tag(metadata), _last_modified(metadata)
    return Validators(etag, modified, now // 1000) if etag or modified else None


def entity_tag(metadata: Metadata) -> str:
    """Returns the entity tag of an answer; empty if there is none, or not one that is valid."""
    tags = {value.strip() for value in metadata.field_values("ETag")}
    tag = tags.pop() if len(tags) == 1 else ""  # two that differ tell nothing
    return tag if len(tag) <= LONGEST and _TAG.fullmatch(tag) else ""


def _last_modified(metadata: Metadata) -> str:
    """Returns the Last-Modified of a page, if it is a date before that of its answer."""
    dates = {value.strip() for value in metadata.field_values("Last-Modified")}
    if len(dates) != 1:  # two that differ tell nothing
        return ""
    date = dates.pop()
    said, received = metadata.field_values("Date"), metadata.get(CONTENT_FETCH_TIME_KEY) or ""
    answered = _seconds(said[0]) if said else None
    if answered is None and received.isascii() and received.isdigit():
        answered = int(received) // 1000  # RFC 9110, 6.6.1
    modified = _seconds(date)
    return date if modified is not None and (answered is None or modified < answered) else ""


@lru_cache(maxsize=1024)  # the answers of a second have one Date
def _seconds(date: str) -> int | None:
    """Returns an HTTP date in seconds since the epoch; None for anything else."""
    # Hostile, or no date of HTTP.
    if len(date) > LONGEST or not date.isascii() or not date.isprintable():
        return None
    found = http_time(date)
    return None if found is None else found // 1000  # HTTP dates have whole seconds


def _opaque(tag: str) -> str:
    """Returns what weak comparison looks at (RFC 9110, 8.8.3.2)."""
    return _CODING.sub("", tag.removeprefix("W/"))


def held(url: str, datum: CrawlDatum) -> Validators | None:
    """Returns the validators of the copy that an entry stands for; None if it stands for none."""
    stored = datum.metadata.get(VALIDATORS_KEY)
    if stored is None or datum.status not in HELD or not datum.signature:
        return None
    found, _, words = str(stored).partition(" ")
    # Something else has changed the entry since.
    if found != seal(url, datum.signature, datum.fetch_time):
        return None
    since, _, words = words.partition(" ")
    etag, _, modified = words.partition(" ")
    return Validators("" if etag == NONE else etag, modified, int(since))


def seal(url: str, signature: bytes, fetch_time: int | None = None) -> str:
    """Returns the seal for an entry; without a fetch time (ms) that of a parse."""
    code = crc32(url.encode("utf-8", "surrogateescape"), crc32(signature))
    time = NO_TIME if fetch_time is None else f"{fetch_time & 0xFFFF_FFFF_FFFF_FFFF:016x}"
    return f"{code:08x}{time}"
