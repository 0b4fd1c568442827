"""Answers http and https from archives, as if they were the web: pages, redirects, robots.txt.

`archive.files` names the archives (WARC, ARC, WACZ, CDXJ, folders of them). Of several visits to a
URL the newest answers, or the newest up to `archive.until`. What is not there is 404. Nothing is
asked of the web.

The archives are read once, for an index of what is in them, which lies beside the other state of
the fetch and serves until they change. `import` uses this plugin too: for what an archived answer
means.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path
from tempfile import gettempdir
from threading import Lock
from typing import Final

import httpx

from minutch.conf import Configuration
from minutch.errors import ConfigError, FormatError, StoreError, UrlError
from minutch.hadoop.formats.writables import IntWritable, Text
from minutch.plugin.points import ProtocolOutput
from minutch.records import protocol as codes
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import (
    CONTENT_FETCH_TIME_KEY,
    REQUEST_KEY,
    RESPONSE_HEADERS_KEY,
    RESPONSE_TIME_KEY,
)
from minutch.records.protocol import ProtocolStatus
from minutch.urls.parts import Url, parse
from minutch.warc.reading.visitindex import ArchiveIndex, open_index
from minutch.warc.reading.visits import Visit, VisitKind, warc_time

from ..lib_http.base import HttpBase
from ..lib_http.exchange import Answer, Reply, SpellCheckedMetadata

FILES_PROPERTY: Final = "archive.files"
UNTIL_PROPERTY: Final = "archive.until"
STATE_PROPERTY: Final = "minutch.fetch.state"
_RESPONSE_TIME: Final = Text(RESPONSE_TIME_KEY)
_NOT_ARCHIVED: Final = [b"HTTP/1.1 404 Not in the archive"]
_HEAD_ROOM: Final = 1 << 20
"""Bytes of a record beside the content."""
_MOST: Final = 0x7FFF_FFFF
_EVER: Final = 0x7FFF_FFFF_FFFF_FFFF


class NoWeb(httpx.AsyncBaseTransport):
    """The transport that refuses every request."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Refuses the request."""
        raise httpx.ConnectError("protocol-archive asks nothing of the web")


class Archive(HttpBase):
    """protocol-archive."""

    def __init__(self, conf: Configuration, parameters: Mapping[str, str]) -> None:
        super().__init__(conf, parameters, NoWeb())
        self._files = [Path(name) for name in conf.get_trimmed_strings(FILES_PROPERTY)]
        if not self._files:
            raise ConfigError(f"protocol-archive: no archives to answer from: set {FILES_PROPERTY}")
        self._until = _until(conf)
        self._index: ArchiveIndex | None = None
        self._lock = Lock()

    async def fetch(
        self, url: Url, datum: CrawlDatum, content_limit: int | None = None, method: str = "GET"
    ) -> Answer:
        """Returns the newest visit's answer; 404 where there is none. StoreError, FormatError if
        archives can't be read.
        """
        limit = self.settings.content_limit if content_limit is None else content_limit
        visit = await asyncio.to_thread(self._newest, str(url))
        if visit is None:
            return self.read_reply(Reply(404, _NOT_ARCHIVED, b""), SpellCheckedMetadata(), limit)
        return self._answer_of(visit, limit)

    def _newest(self, url: str) -> Visit | None:
        with self._lock:
            if self._index is None:
                self._index = self._open()
            return self._index.newest(url, self._until)

    def _open(self) -> ArchiveIndex:
        limit = self.settings.content_limit
        # A checker has no crawl whose folder could keep the index.
        folder = Path(self.conf.get(STATE_PROPERTY) or gettempdir())
        try:
            return open_index(
                self._files, folder, _MOST if limit < 0 else min(_MOST, limit + _HEAD_ROOM)
            )
        except FormatError as exc:
            # FormatError is a page's failure to a fetch: all pages would fail, one by one.
            raise StoreError(str(exc)) from exc

    def replayed(self, url: str, datum: CrawlDatum, visit: Visit) -> ProtocolOutput:
        """Converts a visit to `url` to its output, as if it were made now."""
        try:
            # A revisit record with the profile server-not-modified (ISO 28500, 6.7.3).
            if visit.kind is VisitKind.SAME:
                return ProtocolOutput(None, ProtocolStatus(codes.NOTMODIFIED, [url]))
            parsed = parse(url)
            if visit.took is not None and self.settings.store_response_time:
                datum.metadata[_RESPONSE_TIME] = IntWritable(visit.took)
            return self.output_of(
                self._answer_of(visit, self.settings.content_limit), parsed, url, datum
            )
        except (httpx.TransportError, UrlError) as exc:
            return ProtocolOutput(None, ProtocolStatus(codes.EXCEPTION, [str(exc)]))

    def _answer_of(self, visit: Visit, limit: int) -> Answer:
        metadata = SpellCheckedMetadata()
        metadata.add(CONTENT_FETCH_TIME_KEY, str(visit.time - (visit.took or 0)))
        if self.settings.store_request and visit.request:
            metadata.add(REQUEST_KEY, visit.request.decode("latin-1"))
        body, truncated = visit.body, visit.truncated or None
        if 0 <= limit < len(body):
            body, truncated = body[:limit], "length"
        head = [] if visit.answer is None else visit.answer.head
        reply = Reply(visit.status, head, body, truncated=truncated)
        reply.decoded = visit.answer is None or visit.answer.is_decoded
        reply.address = (visit.address, 0) if visit.address else None
        # ARC and resource records have no head of HTTP, but a type.
        if not head and visit.media_type:
            metadata.set("Content-Type", visit.media_type)
        answer = self.read_reply(reply, metadata, limit)
        if visit.answer is None or visit.answer.is_made:
            # No server has sent it.
            metadata.pop(RESPONSE_HEADERS_KEY, None)
        return answer

    async def close(self) -> None:
        """Closes the archives."""
        await super().close()
        if self._index is not None:
            self._index.close()


def _until(conf: Configuration) -> int:
    text = conf.get_trimmed(UNTIL_PROPERTY)
    time = warc_time(text) if text else _EVER
    if not time:
        raise ConfigError(
            f"{UNTIL_PROPERTY}: expected a time such as 2026-01-31T12:00:00Z, found {text!r}"
        )
    return time
