"""Reckons what comes next under a configuration: the next fetch list, how long it and all that is
due take, requests a day. On columns.

Which pages are listed is generate's own decision (`fetchlist.selector`), intervals are those of the
schedule (`crawldb.schedule`). A queue's pages take

    ceil(requests / threads) * (pause + answer) - pause

as `fetch.frontier.queues` lets them go: it rests after each answer, and has `threads` requests in
flight at most. A tdmrep.json is a request more, where fetcher.tdmrep asks for it. The pause is
robots.txt's where that is kept, for the queues that take longest; the answer is the mean of the
last rounds. A fetch takes as long as its longest queue, and no less than all its answers one after
the other in each of its places.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from minutch.conf import Configuration
from minutch.cycle.crawl.steps import CrawlOptions
from minutch.cycle.crawldb.partitions import EntryFilter
from minutch.cycle.crawldb.schedule import updated
from minutch.cycle.fetch.frontier.queueitems import QueueNames
from minutch.cycle.fetch.settings import BY_HOST, BY_IP, FetchSettings
from minutch.cycle.fetchlist import due, select
from minutch.cycle.fetchlist.selector import GenerateOptions, Selector
from minutch.cycle.segment.store import CRAWL_FETCH, Segment
from minutch.inspect.explain.access import FetchProspects
from minutch.inspect.explain.overview import ROUNDS
from minutch.inspect.explain.settings import CrawlStores, ExplainSettings
from minutch.inspect.query.pages import PagesTable
from minutch.inspect.whatif.prospects import Outlook, QueueOutlook
from minutch.job import Counters, JobContext
from minutch.plugin.chains import URLFilters
from minutch.records.crawldatum import STATUS_DB_GONE, STATUS_DB_PARSE_FAILED
from minutch.urls.hostcolumns import hosts_of, map_distinct
from minutch.work.engine import engine_of
from minutch.work.tables.frame import decode_keys

_DAY: Final = 86_400
_SHOWN: Final = 10
"""Queues that are named."""
_LOOKED_UP: Final = 30
"""Queues whose robots.txt is looked up."""
_COMPACT: Final = 500_000
_SUMS: Final = ("due", "least", "most")


@dataclass(frozen=True)
class PastFetches:
    """What the last rounds tell: `answers` has the mean time of each `host` (s), and the number of
    answers; `mean` is that of all, `page_bytes` what a fetched page took on disk.
    """

    answers: pl.DataFrame
    mean: float
    page_bytes: int

    @classmethod
    def of(cls, segments: Sequence[Segment]) -> PastFetches:
        """Reads the last fetched segments. Raises FormatError."""
        fetched = [segment for segment in segments if segment.has(CRAWL_FETCH)][-ROUNDS:]
        pages = PagesTable(fetched).scan().select("host", "response_ms", "status")
        found = pages.group_by("host").agg(
            answer=pl.col("response_ms").mean() / 1000,
            count=pl.col("response_ms").count(),
            pages=(pl.col("status").cast(pl.String) == "fetch_success").sum(),
        )
        table = found.collect(engine="streaming")
        answers = table.filter(pl.col("count") > 0)
        total = int(answers["count"].sum())
        spent = float((answers["answer"] * answers["count"]).sum())
        size = sum(size_of(segment) for segment in fetched)
        count = int(table["pages"].sum())
        return cls(answers, spent / total if total else 0.0, size // count if count else 0)


def size_of(segment: Segment) -> int:
    """Returns the bytes of a segment's files."""
    return sum(path.stat().st_size for path in segment.path.rglob("*") if path.is_file())


class OutlookBuilder:
    """Makes the outlook of one configuration, by a walk through the CrawlDb (`add`)."""

    def __init__(
        self,
        crawl: CrawlStores,
        conf: Configuration,
        options: GenerateOptions,
        past: PastFetches,
        context: JobContext,
    ) -> None:
        self._crawl, self._conf, self._past, self._context = crawl, conf, past, context
        self._now = context.clock.now()
        self._selector = Selector.from_conf(conf, options, self._now)
        self._entries = EntryFilter.from_conf(conf)
        self._fetch = FetchSettings.of(conf, self._now)
        mode = self._fetch.queues.mode
        self.guesses_queues, self.uses_hostdb = mode == BY_IP, options.hostdb is not None
        # No host is asked, not even a name server: each host counts as an address.
        self._names = QueueNames(BY_HOST if mode == BY_IP else mode)
        self._tables: list[pl.DataFrame] = []
        self._settings = ExplainSettings.from_conf(conf, fetch=self._fetch)
        self._prospects = FetchProspects(self._settings, crawl.state, None, self._now)
        self.without_robots: set[str] = set()
        """Queues that were looked up, and of whose robots.txt nothing is kept."""

    def prepare(self) -> None:
        """Counts what has to be known of all entries before any of them is judged."""
        self._selector.survey(self._crawl.crawldb)

    def add(self, frame: pl.DataFrame) -> None:
        """Adds a table of the CrawlDb: what updatedb leaves of it, what of that is due."""
        kept = self._entries.apply(frame, Counters())
        if kept.is_empty():
            return
        least, most = self._a_day(kept)
        is_due = kept["key"].is_in(self._selector.due_in(kept).entries["key"].implode())
        urls = decode_keys(kept["key"])
        rows = pl.DataFrame({"queue": self._queues(urls), "url": urls, "due": is_due})
        rows = rows.with_columns(least=least, most=most).drop_nulls("queue")
        self._tables.append(_sums(rows.with_columns(pl.col("due").cast(pl.Int64))))
        if sum(map(len, self._tables)) > _COMPACT:
            self._tables = [_sums(pl.concat(self._tables))]

    def _queues(self, urls: pl.Series) -> pl.Series:
        return map_distinct(hosts_of(urls), self._names.of_host, pl.String())

    def _a_day(self, frame: pl.DataFrame) -> tuple[pl.Series, pl.Series]:
        """Returns how often a day each entry is asked for once it was fetched and found unchanged,
        and if it was found changed; the lower number first.
        """
        schedule, most = self._selector.schedule, self._fetch_interval_max
        time = pl.Series([self._now], dtype=pl.Int64).new_from_index(0, len(frame))
        previous = frame["fetch_time"], frame["modified_time"], time
        # A page that is gone is asked for by a rule of its own.
        gone = schedule.set_page_gone_schedule_columns(frame, *previous)["fetch_interval"]
        is_gone = frame["status"].is_in([STATUS_DB_GONE, STATUS_DB_PARSE_FAILED])
        found = []
        for changed in (False, True):
            mask = np.full(len(frame), changed)
            after = updated(schedule, frame, mask, self._now, most)["fetch_interval"]
            found.append(_DAY / gone.zip_with(is_gone, after).clip(1))
        low, high = found
        # An adaptive interval grows where nothing changes; another schedule may do the opposite.
        return low.zip_with(low <= high, high), high.zip_with(low <= high, low)

    @property
    def _fetch_interval_max(self) -> int:
        return self._settings.update.max_interval

    # -- the end of the walk -----------------------------------------------------------------------

    def outlook(self) -> Outlook:
        """Returns the outlook, when the whole CrawlDb was added; it is gone through once more for
        the next list. Raises FormatError.
        """
        queues = _sums(pl.concat([_NONE, *self._tables]))
        listed, counters, not_asked = self._next_list()
        now = self._timed(listed)
        waiting = self._timed(
            queues.select("queue", "url", pages="due").filter(pl.col("pages") > 0)
        )
        daily = self._timed(queues.select("queue", "url", pages="most"))
        limit = CrawlOptions().time_limit * 60
        beyond = _beyond(now, limit)
        all_due, most_due = int(queues["due"].sum()), _first(waiting)
        seconds, due_seconds = self._lasts(now), self._lasts(waiting)
        places = self._selector.options.top_n * self._selector.options.max_segments
        per_host = self._selector.limits.max_count
        longest = max(queues["due"], default=0)
        rounds = max(
            math.ceil(all_due / places) if places > 0 else 0,
            math.ceil(longest / per_host) if per_host > 0 else 0,
            math.ceil(due_seconds / limit),
            min(all_due, 1),
        )
        left = {name: counters[name] for name in due.REASONS | select.REASONS if counters.get(name)}
        page_bytes = self._past.page_bytes
        return Outlook(
            listed=int(now["pages"].sum()),
            left_out=left,
            not_asked=not_asked,
            queues=tuple(_rows(now, _SHOWN)),
            queue_count=len(now),
            seconds=min(seconds, limit),
            beyond=beyond,
            due_pages=all_due,
            rounds=rounds,
            due_queue=most_due,
            due_seconds=due_seconds,
            requests_a_day=(float(queues["least"].sum()), float(queues["most"].sum())),
            busiest=_first(daily),
            bytes_for_due=all_due * page_bytes,
            bytes_a_day=int(float(queues["most"].sum()) * page_bytes),
        )

    def _next_list(self) -> tuple[pl.DataFrame, Counters, int]:
        """Returns the pages of the next list by queue, generate's counters, and how many of them
        the fetcher's filters leave out.
        """
        counters, tables, not_asked = Counters(), [], 0
        filters = URLFilters(self._conf) if self._fetch.filter_urls else None
        with self._context.progress("whatif", self._crawl.crawldb.estimate) as progress:
            engine = engine_of(self._conf)
            chosen, _ = self._selector.choose(self._crawl.crawldb, engine, counters, progress)
            for table in chosen:
                urls = decode_keys(table["key"])
                if filters is not None:
                    passed = filters.filter_column(urls, distinct=True).is_not_null()
                    not_asked += len(urls) - int(passed.sum())
                    urls = urls.filter(passed)
                rows = pl.DataFrame({"queue": self._queues(urls), "url": urls})
                tables.append(
                    rows.drop_nulls("queue").group_by("queue").agg(_FIRST, pages=pl.len())
                )
        none = _NONE.select("queue", "url", pages=pl.col("due").cast(pl.UInt32))
        listed = pl.concat([none, *tables]).group_by("queue").agg(_FIRST, pl.col("pages").sum())
        return listed, counters, not_asked

    def _timed(self, queues: pl.DataFrame) -> pl.DataFrame:
        """Adds to queues (`queue`, a `url` of it, `pages`) what they take; the longest first."""
        settings = self._fetch.queues
        # FetchItemQueue: fetcher.server.min.delay counts with several threads in a queue.
        pause = settings.min_delay if settings.max_threads > 1 else settings.crawl_delay
        known = self._past.answers.with_columns(
            queue=map_distinct(self._past.answers["host"], self._names.of_host, pl.String())
        )
        weighted = (pl.col("answer") * pl.col("count")).sum() / pl.col("count").sum()
        known = known.drop_nulls("queue").group_by("queue").agg(answer=weighted)
        table = queues.join(known, on="queue", how="left").with_columns(
            pl.col("answer").fill_null(self._past.mean), pause=pl.lit(pause / 1000), more=pl.lit(0)
        )
        table = self._with_seconds(table)
        # Only the longest queues decide how long a fetch takes.
        top = table.head(_LOOKED_UP)
        found = [self._pause(queue, url) for queue, url in top.select("queue", "url").iter_rows()]
        pauses = pl.DataFrame(found, {"pause": pl.Float64, "more": pl.Int32}, orient="row")
        top = top.with_columns(*pauses)
        return self._with_seconds(pl.concat([top, table.tail(-_LOOKED_UP)]))

    def _with_seconds(self, table: pl.DataFrame) -> pl.DataFrame:
        each = pl.col("pause") + pl.col("answer")
        turns = ((pl.col("pages") + pl.col("more")) / self._fetch.queues.max_threads).ceil()
        seconds = turns * each - pl.col("pause")
        table = table.with_columns(
            seconds=seconds.clip(0), threads=pl.lit(self._fetch.queues.max_threads)
        )
        return table.sort("seconds", "pages", "queue", descending=[True, True, False])

    def _pause(self, queue: str, url: str) -> tuple[float, int]:
        """Returns the pause (s) of the queue of a URL, by what is kept of its robots.txt, and how
        many requests with a pause come before those for pages.
        """
        robots, host, _ = self._prospects.to(url)
        is_asked = robots.verdict is None or (robots.expires or self._now) < self._now
        if robots.verdict is None:
            self.without_robots.add(queue)
        return host.delay / 1000, int(is_asked and self._fetch.asks_for_tdmrep)

    def _lasts(self, queues: pl.DataFrame) -> float:
        """Returns the seconds that a fetch of these queues takes."""
        if queues.is_empty():
            return 0.0
        work = float((queues["pages"] * queues["answer"]).sum())
        # Sorted: the first is the longest.
        return max(float(queues["seconds"][0]), work / max(1, self._fetch.places))


_NONE: Final = pl.DataFrame(
    schema={
        "queue": pl.String,
        "url": pl.String,
        "due": pl.Int64,
        "least": pl.Float64,
        "most": pl.Float64,
    }
)
_FIRST: Final = pl.col("url").first()


def _sums(rows: pl.DataFrame) -> pl.DataFrame:
    return rows.group_by("queue").agg(_FIRST, pl.col(_SUMS).sum())


def _rows(queues: pl.DataFrame, most: int) -> list[QueueOutlook]:
    columns = "queue", "pages", "pause", "answer", "threads", "seconds"
    return [
        QueueOutlook(queue, round(pages), pause, answer, threads, seconds)
        for queue, pages, pause, answer, threads, seconds in queues.select(columns)
        .head(most)
        .iter_rows()
    ]


def _first(queues: pl.DataFrame) -> QueueOutlook | None:
    return next(iter(_rows(queues, 1)), None)


def _beyond(queues: pl.DataFrame, limit: float) -> int:
    """Returns the pages of queues for which a time (s) is too short."""
    late = queues.filter(pl.col("seconds") > limit)
    each = (late["pause"] + late["answer"]) / late["threads"]
    done = ((limit + late["pause"]) / each).floor()
    return int((late["pages"] - done).clip(0).sum())
