"""Parsing while fetching (fetcher.parse=true): the page's records for the log, and the links to follow at once.

The parse itself is minutch.parse's. Matches the parsing half of org.apache.nutch.fetcher.FetcherThread.output, which
follows links by fetcher.follow.outlinks.*: the first few of a page (in the order of Java's HashSet), each once a host.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final

from minutch.conf import Configuration
from minutch.errors import MinutchError
from minutch.fetch.chain import Chain
from minutch.fetch.closing import stored_codec
from minutch.fetch.hosts import QueueKey
from minutch.fetch.log import Part, compressor, pack_records
from minutch.fetch.queues import FetchItem, FetchQueues
from minutch.fetch.recorder import ParsedPage
from minutch.fetch.settings import FollowSettings
from minutch.fetch.stats import FetchStats
from minutch.formats.javahash import hash_map_order, string_hash
from minutch.parse.output import PageOutput
from minutch.parse.page import PageParser
from minutch.plugin.points import ParseResult
from minutch.records.content import Content
from minutch.records.crawldatum import STATUS_LINKED, CrawlDatum
from minutch.records.metadata import FETCH_STATUS_KEY
from minutch.records.parsetext import ParseText
from minutch.urls.parts import host_of

BATCH: Final = 48
"""Pages parsed together at most."""
BATCH_SECONDS: Final = 0.02
"""How long a page waits for others."""
_REMEMBERED: Final = 4096


class FetchParser:
    """Parses pages as they are fetched, a few at a time: their links are normalized and filtered together."""

    def __init__(self, conf: Configuration, segment_name: str) -> None:
        self._parser = PageParser(conf, segment_name)
        self._compress = compressor(stored_codec(conf)) or bytes
        self._waiting: list[tuple[Content, CrawlDatum, asyncio.Future[ParsedPage]]] = []
        self._timer: asyncio.TimerHandle | None = None
        self._packed: dict[tuple[float, ...], bytes] = {}

    async def parse(self, url: str, content: Content, datum: CrawlDatum) -> ParsedPage:
        """The records of a page that was fetched at `datum.fetch_time`."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[ParsedPage] = loop.create_future()
        self._waiting.append((content, datum, future))
        if len(self._waiting) >= BATCH:
            self._run()
        elif self._timer is None:
            self._timer = loop.call_later(BATCH_SECONDS, self._run)
        return await future

    def _run(self) -> None:
        """Parse what waits."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        waiting, self._waiting = self._waiting, []
        results = [self._read(content, future) for content, _, future in waiting]
        self._parser.prepare_fetched(results)
        for (content, datum, future), result in zip(waiting, results, strict=True):
            if not future.done():
                try:
                    future.set_result(self._page(content, datum, result))
                except MinutchError as exc:
                    future.set_exception(exc)

    def _read(self, content: Content, future: asyncio.Future[ParsedPage]) -> ParseResult | None:
        try:
            return self._parser.read_fetched(content)
        except MinutchError as exc:
            if not future.done():
                future.set_exception(exc)
            return None

    def _page(self, content: Content, datum: CrawlDatum, read: ParseResult | None) -> ParsedPage:
        stored = None
        if read is not None:  # the parsed page's metadata is the content's: what is added below is the parse's alone
            content.metadata.add(FETCH_STATUS_KEY, str(datum.status))
            stored = content.to_bytes()
        result = self._parser.fetched_records(content, read, datum.fetch_time)
        page = ParsedPage(stored=stored, failed=result.failed and not result.outputs)
        if read is None:
            page.signature = result.signature
        for output in result.outputs:
            page.entries += self._entries(output)
            page.outlinks.append((output.url, [link.to_url for link in output.data.outlinks]))
            page.events.append((output.url, _event(output, datum)))
            if output.url == content.url:
                page.status = output.data.status
        return page

    def _entries(self, output: PageOutput) -> list[tuple[Part, str, bytes]]:
        crawl = pack_records((url, self._pack(datum)) for url, datum in output.crawl)
        entries = [(Part.CRAWL_PARSE, output.url, crawl), (Part.PARSE_DATA, output.url, output.data.to_bytes())]
        if output.text is not None:
            entries.append((Part.PARSE_TEXT, output.url, ParseText(output.text).to_bytes()))
        return entries

    def _pack(self, datum: CrawlDatum) -> bytes:
        """A datum's value as the log keeps it; most links of a page have equal ones, which are made once."""
        if datum.metadata or datum.signature:
            return self._compress(datum.to_bytes())
        fields = (datum.status, datum.fetch_interval, datum.score, datum.fetch_time, datum.modified_time, datum.retries)
        packed = self._packed.get(fields)
        if packed is None:
            if len(self._packed) >= _REMEMBERED:
                self._packed.clear()
            packed = self._packed[fields] = self._compress(datum.to_bytes())
        return packed


def _event(output: PageOutput, datum: CrawlDatum) -> dict[str, object]:
    """What a REPORT event tells (org.apache.nutch.fetcher.FetcherThreadEvent)."""
    data = output.data
    return {
        "outlinks": [{"url": link.to_url, "anchor": link.anchor} for link in data.outlinks],
        "title": data.title,
        "content-type": data.content_meta.first("content-type"),
        "score": datum.score,
        "fetchTime": datum.fetch_time,
        "content-language": data.content_meta.first("content-language"),
    }


class LinkFollower:
    """Picks the links of a parsed page that are fetched in the same run."""

    def __init__(self, settings: FollowSettings, queues: FetchQueues, key: QueueKey, stats: FetchStats) -> None:
        self._settings = settings
        self._queues = queues
        self._key = key
        self._stats = stats

    def follow(self, chain: Chain, page: ParsedPage, now: int) -> list[FetchItem]:
        """Items for the links to fetch; empty if the page lies too deep or time is up."""
        depth = chain.item.depth
        if depth >= self._settings.depth or self._queues.time_limit_exceeded(now):
            return []
        return [item for url, links in page.outlinks for item in self._of(url, links, depth + 1, now)]

    def _of(self, url: str, links: Sequence[str], depth: int, now: int) -> list[FetchItem]:
        queue_id = self._key(url)
        if queue_id is None:
            return []
        seen = self._queues.queue(queue_id, now).seen
        if seen is None:
            return []
        seen.add(string_hash(url))
        distinct = list(dict.fromkeys(links))
        self._stats.events["outlinks_detected_total"] += len(distinct)
        host = host_of(url)
        items: list[FetchItem] = []
        for link in _java_order(distinct, len(links)):
            if len(items) >= self._settings.per_page:
                break
            code = string_hash(link)
            if (self._settings.ignore_external and host_of(link) != host) or code in seen:
                continue
            seen.add(code)
            target = self._key(link)
            if target is not None:
                items.append(FetchItem(link, CrawlDatum(STATUS_LINKED, self._settings.interval), target, None, depth))
        self._stats.events["outlinks_following_total"] += len(items)
        return items


def _java_order(urls: list[str], capacity: int) -> list[str]:
    """The order in which a java.util.HashSet made for `capacity` entries gives them."""
    size = 1
    while size < max(capacity, 1):
        size *= 2
    return [urls[i] for i in hash_map_order([string_hash(url) for url in urls], size)]
