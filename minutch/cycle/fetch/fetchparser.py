"""Parses pages while they are fetched (fetcher.parse=true), in a process of its own.

A page goes to the parse worker as soon as that is free; what is fetched while it is busy goes
together afterwards, so batches are as large as the load. A page alone costs three times what it
costs among others: where the fetch does not look at what comes of a parse (for the parse step),
pages are gathered for a while. Meanwhile a page takes no place among the threads, unless a whole
batch waits; then one more worker begins, up to parser.workers, so cores go to what is waited for.

A page that the worker can't bring to an end (parser.timeout, parser.worker.memory, a crash) ends as
a failed parse with the reason; a fresh worker takes the others. A worker that does not get on does
not count among those at work.

    item = [fetch time (ms), URL, base URL, type, metadata, content]      what a worker is given
           [fetch time (ms), Content as it is stored]                     with texts not in UTF-8

Items are MessagePack, read in a seventh of the time that a stored Content takes.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Final

import msgspec

from minutch.cycle.fetch.settings import FetchSettings
from minutch.cycle.parse.pageparser import EventValue, PageParser, ParsedPage, ParseTask, ReadPage
from minutch.cycle.parse.workerpool import POLL, PoolSettings, Running, WorkerPool
from minutch.errors import ParseError
from minutch.processes import may_fork
from minutch.records.metadata import Metadata
from minutch.records.parsedata import ParseData
from minutch.records.protocol import Content
from minutch.work.tables.parallel import workers

log = logging.getLogger(__name__)

BATCH: Final = 256
"""Pages that go to a worker together at most."""
BATCH_BYTES: Final = 3 << 20
"""No further page goes along beyond this."""
FEW: Final = 16
"""Pages that are enough for a batch: alone, one cost 0.9 ms of CPU, of sixteen or more 0.27."""
GATHERING: Final = 1.0
"""Seconds that fewer wait for more at most: in a polite crawl every page went to a worker alone."""
STARTED: Final = 2
"""Workers that are there from the beginning where they are forks, which cost next to nothing."""
MOST_LATE: Final = 3
"""Workers that do not get on, beside which others are at work."""
LATE: Final = 2.0
"""Seconds after which a batch counts as not getting on."""

_Waiting = tuple[bytes, asyncio.Future[ParsedPage]]


class FetchParser:
    """Parses pages as they are fetched."""

    def __init__(
        self, make_parser: Callable[[], PageParser], pool: PoolSettings, settings: FetchSettings
    ) -> None:
        """Starts workers at once: before this process has threads or an event loop."""
        task: Callable[[], StepParseTask] = (
            partial(StepParseTask, make_parser)
            if settings.for_step
            else partial(
                FetchParseTask,
                make_parser,
                links=settings.follow.depth > 0,
                events=settings.publish,
            )
        )
        cores = workers() // max(1, settings.processes)
        limits = replace(pool, workers=pool.workers or max(1, cores))
        if limits.timeout <= 0:
            # Without parser.timeout a hung parse would hold the fetch for ever.
            limits = replace(limits, timeout=settings.hung_after / 1000)
        self._pool: WorkerPool[ParsedPage] = WorkerPool(task, limits)
        # Once the event loop has threads, a worker can't be a fork any more.
        self._pool.warm_up(min(limits.workers, STARTED if may_fork() else 1))
        self._most = limits.workers
        self._gathers = settings.for_step
        self._gathered: asyncio.TimerHandle | None = None
        self._is_due = not self._gathers
        """What waits is to be parsed, however little it is."""
        self._waiting: deque[_Waiting] = deque()
        self._waiting_bytes = 0
        self._running: dict[int, _Batch] = {}
        self._pages = 0
        self._handing_out = False

    @property
    def pages(self) -> int:
        """Number of pages that wait or are with a worker and occupy no fetch slot; 0 while a whole
        batch waits.
        """
        # Pages count as in flight then: parsing sets the pace, and memory is bounded.
        return 0 if self._is_full else self._pages

    @property
    def _is_full(self) -> bool:
        return len(self._waiting) >= BATCH or self._waiting_bytes >= BATCH_BYTES

    async def parse(self, content: Content, fetch_time: int) -> ParsedPage:
        """Returns the records of a page that was fetched at `fetch_time`. Raises ParseError if no
        worker can be had.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[ParsedPage] = loop.create_future()
        item = pack_page(content, fetch_time)
        self._waiting.append((item, future))
        self._waiting_bytes += len(item)
        self._pages += 1
        if self._gathers and self._gathered is None:
            self._gathered = loop.call_later(GATHERING, self.hurry)
        if not self._handing_out:  # what has come by then goes along
            self._handing_out = True
            # At the end of this turn of the loop: pages that came in it share a batch.
            loop.call_soon(self._hand_out)
        try:
            return await future
        finally:
            self._pages -= 1

    def hurry(self) -> None:
        """Has the pages that wait parsed now: no more are expected soon."""
        if self._waiting:
            self._is_due = True
            self._hand_out()

    def close(self) -> None:
        """Ends the workers, whatever they are at."""
        if self._gathered is not None:
            self._gathered.cancel()
        for batch in self._running.values():
            batch.forget()
        self._running.clear()
        self._pool.close()

    def _hand_out(self) -> None:
        """Gives workers what waits."""
        self._handing_out = False
        while self._waiting and self._may_begin():
            self._begin()

    def _may_begin(self) -> bool:
        late = sum(batch.late for batch in self._running.values())
        at_work = len(self._running) - late
        if not at_work:
            # Beyond that the pages themselves are what hangs: more workers would hang, too.
            return late <= MOST_LATE and (self._is_due or len(self._waiting) >= FEW)
        return at_work < self._most and self._is_full

    def _begin(self) -> None:
        """Gives a worker a batch."""
        taken: list[_Waiting] = []
        size = 0
        while self._waiting and len(taken) < BATCH and size < BATCH_BYTES:
            taken.append(self._waiting.popleft())
            size += len(taken[-1][0])
        self._waiting_bytes -= size
        if self._gathered is not None and not self._waiting:
            self._gathered.cancel()
            self._gathered = None
            self._is_due = False
        try:
            batch = _Batch(self, self._pool, taken)
        except Exception as exc:  # noqa: BLE001 - kept for the fetch to raise
            _fail((future for _, future in taken), exc)
            return
        self._running[id(batch)] = batch

    def done(self, batch: _Batch) -> None:
        """Called when a batch has its results, or makes no progress: sees what else can be done."""
        if batch.finished:
            self._running.pop(id(batch), None)
        self._hand_out()


class _Batch:
    """A batch of pages at a worker, whose connection is watched, and polled from time to time."""

    def __init__(
        self, parser: FetchParser, pool: WorkerPool[ParsedPage], pages: list[_Waiting]
    ) -> None:
        self._parser = parser
        self._pool = pool
        self._futures = [future for _, future in pages]
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self.late = False
        self.finished = False
        self._running: Running[ParsedPage] = pool.begin([item for item, _ in pages])
        self._watch()

    def _watch(self) -> None:
        # Kept: after a worker is replaced the connection is another one.
        self._descriptor = self._running.connection.fileno()
        self._loop.add_reader(self._descriptor, self._look)
        # A worker that hangs writes nothing, so its connection never becomes readable.
        self._timer = self._loop.call_later(POLL, self._look)

    def forget(self) -> None:
        """Stops watching."""
        self._loop.remove_reader(self._descriptor)
        self._timer.cancel()

    def _look(self) -> None:
        self.forget()
        try:
            pages = self._pool.collect(self._running)
        except Exception as exc:  # noqa: BLE001 - kept for the fetch to raise
            self.finished = True
            _fail(self._futures, exc)
            self._parser.done(self)
            return
        if pages is None:
            self._watch()
            if not self.late and self._loop.time() - self._began > LATE:
                self.late = True
                self._parser.done(self)
            return
        self.finished = True
        for future, page in zip(self._futures, pages, strict=True):
            if not future.done():
                future.set_result(page)
        self._parser.done(self)


def _fail(futures: Iterable[asyncio.Future[ParsedPage]], error: Exception) -> None:
    """No worker could be had, or its answer not be read: whoever waits gets the error, and goes
    on.
    """
    log.error("no parse: %s: %s", type(error).__name__, error)
    for future in futures:
        if not future.done():
            future.set_exception(ParseError(f"no parse: {type(error).__name__}: {error}"))


def pack_page(content: Content, fetch_time: int) -> bytes:
    """Packs a page to be sent to a worker, which sees it as it will be read of the segment."""
    page = content.url, content.base, content.content_type, content.metadata.as_read()
    try:
        return msgspec.msgpack.encode((fetch_time, *page, content.content))
    except UnicodeEncodeError:
        return msgspec.msgpack.encode((fetch_time, content.to_bytes()))


class StepParseTask(ParseTask):
    """Does with successfully fetched pages what the parse job would do with them."""

    def __init__(self, make_parser: Callable[[], PageParser]) -> None:
        super().__init__(make_parser())

    def _page(self, item: bytes) -> ReadPage:
        """The page, which the fetch itself has just packed."""
        time, first, *others = msgspec.msgpack.decode(item)
        if not others:
            return ReadPage(Content.from_bytes(first), time)
        base, content_type, metadata, data = others
        return ReadPage(Content(first, base, data, content_type, Metadata(metadata)), time)


class FetchParseTask(StepParseTask):
    """Parses successfully fetched pages, for a fetch that takes what was found into account."""

    def __init__(self, make_parser: Callable[[], PageParser], *, links: bool, events: bool) -> None:
        """`links` and `events`: the fetcher wants to know the outlinks, and the data of REPORT
        events.
        """
        super().__init__(make_parser)
        self._links = links
        self._events = events

    def answer(self, page: ReadPage) -> ParsedPage:
        """Also says what the page's datum gets, and where to go on."""
        parsed, result = super().answer(page), page.result
        if isinstance(result, str):
            parsed.signature = self._parser.signature_of(page.content)
            parsed.failed = self._parser.deletes_failed
            return parsed
        for url, parse in result.items():
            data = parse.data
            if self._links:
                parsed.outlinks.append((url, [link.to_url for link in data.outlinks]))
            if self._events:
                parsed.events.append((url, _event(data, page.time)))
            if url == page.content.url:
                parsed.status = data.status
        return parsed


def _event(data: ParseData, fetch_time: int) -> dict[str, EventValue]:
    """Returns the data of a REPORT event (org.apache.nutch.fetcher.FetcherThreadEvent); the fetcher
    adds the score.
    """
    return {
        "outlinks": [{"url": link.to_url, "anchor": link.anchor} for link in data.outlinks],
        "title": data.title,
        "content-type": data.content_meta.field("content-type"),
        "fetchTime": fetch_time,
        "content-language": data.content_meta.field("content-language"),
    }
