"""Finds the redirects that were followed within a segment. The metadata of 2012 merge them into the
record of their target.

    A → B, B fetched     one record, that of B, with redirect_from A
    A → B, B not fetched a record of A: RedirectFailed

If several redirects lead to a page, its record has the first one by URL. Redirects are sorted by
target and by source on disk, so memory does not grow with the segment.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from operator import itemgetter

from minutch.archives.dataset.metadatadoc import answer_of, redirect_of
from minutch.cycle.segment.store import CRAWL_FETCH, Segment
from minutch.cycle.segment.storedrecords import RawRecord, decode
from minutch.hadoop.formats.javaio import decode_text, encode_text
from minutch.hadoop.formats.mapfile import merge_records, sort_records
from minutch.hadoop.formats.writables import Text
from minutch.records.crawldatum import STATUS_FETCH_REDIR_PERM, STATUS_FETCH_REDIR_TEMP, CrawlDatum
from minutch.records.metadata import PROTO_STATUS_KEY
from minutch.records.protocol import ProtocolStatus

_REDIRECTS = (STATUS_FETCH_REDIR_TEMP, STATUS_FETCH_REDIR_PERM)


class Redirects:
    """A reader of the redirects of a segment, in the order of URLs. Raises FormatError (damage)."""

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self.any = any(True for _ in self._redirects())

    def by_target(self) -> Iterator[RawRecord]:
        """Yields each fetched page that a redirect led to, and its redirect_from (JSON)."""
        return self._followed()

    def by_source(self) -> Iterator[RawRecord]:
        """Yields the URLs of redirects that were followed, with empty values."""
        sources = (
            (encode_text(json.loads(value)["source_url"]), b"") for _, value in self._followed()
        )
        return sort_records(sources)

    def _followed(self) -> Iterator[RawRecord]:
        if not self.any:
            return
        fetched = ((url, b"") for url, datum in self._fetches() if datum.status not in _REDIRECTS)
        both = merge_records([fetched, sort_records(self._redirects())])
        for target, rows in groupby(both, key=itemgetter(0)):
            values = [value for _, value in rows]
            if not values[0] and len(values) > 1:
                yield target, values[1]

    def _redirects(self) -> Iterator[RawRecord]:
        """Yields target and redirect_from (JSON) of each redirect."""
        for url, datum in self._fetches():
            protocol_status = (
                datum.metadata.get(Text(PROTO_STATUS_KEY)) if datum.status in _REDIRECTS else None
            )
            if not isinstance(protocol_status, ProtocolStatus) or not protocol_status.args:
                continue
            target = protocol_status.args[0]
            if target:
                redirect = redirect_of(decode_text(url), answer_of(datum, None))
                yield encode_text(target), json.dumps(redirect).encode()

    def _fetches(self) -> Iterator[tuple[bytes, CrawlDatum]]:
        """Yields the last fetch of each URL."""
        rows = (row for row in self.segment.raw_sorted(CRAWL_FETCH) if is_fetch_record(row[1]))
        for url, group in groupby(rows, key=itemgetter(0)):
            *_, (_, value) = group
            datum = decode(CrawlDatum, value, self.segment.path / CRAWL_FETCH, None, url)
            if isinstance(datum, CrawlDatum):
                yield url, datum


def is_fetch_record(value: bytes) -> bool:
    """Returns whether a serialized CrawlDatum is that of a fetch; its second byte is the status."""
    return len(value) > 1 and CrawlDatum(value[1]).has_fetch_status()
