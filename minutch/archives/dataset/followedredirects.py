"""Which redirects of a segment were followed within it: the metadata of 2012 tell them with the
page that they led to.

    A → B, B fetched     one record, B's, with redirect_from A
    A → B, B not there   a record of A: RedirectFailed

Of several redirects to one page the first by URL is told with it. Redirects are sorted by target
and source on disk, so memory does not grow with the segment.
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
from minutch.hadoop.formats.recordsort import merge_records, sort_records
from minutch.hadoop.formats.writables import Text
from minutch.records.crawldatum import STATUS_FETCH_REDIR_PERM, STATUS_FETCH_REDIR_TEMP, CrawlDatum
from minutch.records.metadata import PROTO_STATUS_KEY
from minutch.records.protocolstatus import ProtocolStatus

_REDIRECTS = (STATUS_FETCH_REDIR_TEMP, STATUS_FETCH_REDIR_PERM)


class Redirects:
    """The redirects of a segment, as streams in the order of URLs. Raises FormatError (damage)."""

    def __init__(self, segment: Segment) -> None:
        self.segment = segment
        self.any = any(True for _ in self._redirects())

    def by_target(self) -> Iterator[RawRecord]:
        """Fetched pages that a redirect led to → redirect_from, as JSON."""
        return ((target, value) for target, value in self._followed())

    def by_source(self) -> Iterator[RawRecord]:
        """Redirects that were followed → b""."""
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
        """Target → redirect_from, as JSON."""
        for url, datum in self._fetches():
            outcome = (
                datum.metadata.get(Text(PROTO_STATUS_KEY)) if datum.status in _REDIRECTS else None
            )
            if isinstance(outcome, ProtocolStatus) and outcome.args and outcome.args[0]:
                source = decode_text(url)
                yield (
                    encode_text(outcome.args[0]),
                    json.dumps(redirect_of(source, answer_of(datum, None))).encode(),
                )

    def _fetches(self) -> Iterator[tuple[bytes, CrawlDatum]]:
        """The fetches of the segment, of each URL the last."""
        rows = (row for row in self.segment.raw_sorted(CRAWL_FETCH) if is_fetch_record(row[1]))
        for url, group in groupby(rows, key=itemgetter(0)):
            *_, (_, value) = group
            datum = decode(CrawlDatum, value, self.segment.path / CRAWL_FETCH, None, url)
            if isinstance(datum, CrawlDatum):
                yield url, datum


def is_fetch_record(value: bytes) -> bool:
    """Whether a serialized CrawlDatum tells of a fetch, by its status: a byte behind that of the
    version.
    """
    return len(value) > 1 and CrawlDatum(value[1]).has_fetch_status()
