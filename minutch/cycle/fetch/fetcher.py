"""The job `fetch`: fetches the pages of a segment's fetch list, in this process or by tasks.

Reads crawl_generate, writes content and crawl_fetch, and with fetcher.parse=true the parts of a
parse. While it runs, finished pages lie in `<segment>/_fetch/log-N`; a fetch that was interrupted
resumes from there when it is run again on the same segment. The first SIGINT, SIGTERM or SIGHUP
lets requests in flight finish, the second one stops at once; in both cases the next run fetches the
URLs that are left. Source: org.apache.nutch.fetcher.Fetcher.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from minutch.clock import Clock, SteadyClock
from minutch.conf import Configuration
from minutch.cycle.fetch.components import STATE_PROPERTY, FetchComponents
from minutch.cycle.fetch.fetchprocesses import number_of
from minutch.cycle.fetch.frontier.hostmemory import state_folder
from minutch.cycle.fetch.frontier.listindex import generate_files
from minutch.cycle.fetch.ledger import Ledger
from minutch.cycle.fetch.listfetch import Interrupted, ListFetch
from minutch.cycle.fetch.remotesegment import fetched_here
from minutch.cycle.fetch.results.recorder import archiving
from minutch.cycle.fetch.settings import FetchSettings
from minutch.cycle.fetch.stats import FetchStats
from minutch.cycle.fetch.watch import Watch, host_table, result_table
from minutch.cycle.segment.store import (
    BEGUN,
    CRAWL_FETCH,
    FETCHING,
    Segment,
)
from minutch.errors import ConfigError, LockedError, StoreError
from minutch.job import Counters, JobContext
from minutch.work.engine import engine_of, runs_here
from minutch.work.tables.install import mark_success, remove
from minutch.work.tables.lock import lock
from minutch.work.tables.parallel import workers

if TYPE_CHECKING:
    from minutch.cycle.fetch.tasks.taskfetch import TaskFetch


log = logging.getLogger(__name__)
LEFT: Final = (
    "interrupted: {} of {} URLs are left, which the next fetch of this segment goes on with"
)
DONE: Final = "_fetch-done"
"""What the folder of the logs is called while it is being removed."""
INTERRUPTED: Final = "interrupted"
"""Counted once if a signal came when all was fetched; bin/crawl stops then."""


PARSED: Final = "ParseSegment"
"""Title of the counters of a parse."""


@dataclass(frozen=True, slots=True)
class FetchOptions:
    """Options of fetch."""

    threads: int | None = None
    """Pages fetched at the same time at most; None: fetcher.threads.fetch."""
    parse: bool = False
    """Whether the work of the parse step is done on the way, where one machine fetches; if
    fetcher.parse is true, pages are parsed in Nutch's way instead.
    """
    is_stopping: Callable[[], bool] = field(default=bool, compare=False)
    """Asked once a second: once it is True, hosts that rest or fail are left to a later fetch."""


def fetch(
    segment: Path,
    options: FetchOptions = FetchOptions(),
    *,
    context: JobContext,
    watch: Watch | None = None,
    serving: Callable[[], AbstractContextManager[None]] | None = None,
) -> Counters:
    """Fetches the pages of a segment and closes it; returns the number of URLs by outcome.

    `watch` sees what happens and may hold the fetch; without one, that of the context does.
    `serving` is entered while requests are made.

    Raises ConfigError without http.agent.name, StoreError for a segment that is already fetched,
    has no fetch list or can't be written, and Interrupted after a signal (the log keeps what was
    fetched until then).
    """
    conf = context.conf
    if watch is None and isinstance(context.watch, Watch):
        watch = context.watch
    check_agent(conf)
    Segment(segment).finish()
    Segment(segment).check()
    clock = SteadyClock(context.clock)
    settings = settings_of(conf, options, clock)
    if settings.warc is not None:
        conf = archiving(conf)
    log.info(
        "Fetcher: segment %s, at most %d requests at a time, queue mode %s",
        segment,
        settings.places,
        settings.queues.mode,
    )
    if settings.follow.depth > 0:
        log.info(
            "Fetcher: following outlinks to depth %d, at most %d",
            settings.follow.depth,
            settings.follow.most,
        )
    with ExitStack() as stack:
        job = stack.enter_context(_job(segment, conf, settings, clock, watched=watch is not None))
        job.is_stopping = options.is_stopping
        server = None if serving is None else serving()
        watcher = watch or Watch(context.label, clock)
        ledger, stats = job.run(context.err, context.label, watcher, server)
        if job.interrupted and ledger.settled < ledger.generated:
            _report(ledger, stats)
            raise Interrupted(LEFT.format(ledger.generated - ledger.settled, ledger.generated))
        parsed = job.close(job.checked(ledger))
        mark_success(conf, job.segment.path)
    _report(ledger, stats)
    if parsed:
        context.report(PARSED, parsed)
    counters = ledger.counters()
    if job.interrupted:
        counters.add(INTERRUPTED)
    return counters


def settings_of(conf: Configuration, options: FetchOptions, clock: Clock) -> FetchSettings:
    """Returns the settings of a fetch that begins now. Raises ConfigError."""
    settings = FetchSettings.from_conf(conf, clock.now(), options.threads)
    if options.parse and not settings.parse and runs_here(conf):
        return replace(settings, parse=True, for_step=True)
    return settings


@contextmanager
def _job(
    path: Path, conf: Configuration, settings: FetchSettings, clock: SteadyClock, *, watched: bool
) -> Iterator[ListFetch | TaskFetch]:
    """Yields the fetch, by this process or by tasks, under a lock. At a good end its logs are
    removed.
    """
    if runs_here(conf):
        with fetched_here(path) as here, working(Segment(here)) as work:
            if (work / BEGUN).exists():
                raise StoreError(
                    f"{path}: its fetch was begun with minutch.engine=spark: finish it so, "
                    f"or remove {work} and fetch all of it again"
                )
            state = Path(conf.get(STATE_PROPERTY) or state_folder(here))
            files = generate_files(here)
            count = number_of(settings, files, workers())
            yield ListFetch(
                Segment(here),
                files,
                work,
                replace(settings, processes=count),
                FetchComponents(conf).with_state(state),
                clock,
                state,
                watched=watched,
            )
        return
    from minutch.cycle.fetch.tasks.taskfetch import TaskFetch, one_attempt

    segment, files = Segment(path.absolute()), generate_files(path)
    with working(segment) as work:
        engine = engine_of(one_attempt(conf))
        named = conf.get(STATE_PROPERTY)
        yield TaskFetch(
            engine,
            segment,
            len(files),
            work,
            settings,
            FetchComponents(conf),
            state_folder=Path(named) if named else None,
            watched=watched,
        )


def check_agent(conf: Configuration) -> None:
    """Raises ConfigError without http.agent.name."""
    if not conf.get_text("http.agent.name").strip():
        raise ConfigError(
            "nothing is fetched without a name: set http.agent.name in conf/nutch-site.xml"
        )


@contextmanager
def working(segment: Segment) -> Iterator[Path]:
    """Yields the folder of the logs, under a lock that keeps a second fetch off the segment;
    removed at a good end.

    It is renamed first: a fetch that is killed while it removes the logs leaves a finished segment,
    not half a log.
    """
    work, done = segment.path / FETCHING, segment.path / DONE
    try:
        with ExitStack() as stack:
            try:
                stack.enter_context(lock(work))
            except LockedError as exc:  # this one: steps that run meanwhile have locks, too
                raise LockedError(f"{segment.path} is being fetched: {exc}") from exc
            remove(done)
            link = next((path for path in (work, *work.rglob("*")) if path.is_symlink()), None)
            if link is not None:
                raise StoreError(f"{link}: expected a file, found a link, which no fetch makes")
            if segment.has(CRAWL_FETCH) and not segment.is_half_fetched():
                raise StoreError(f"{segment.path} is fetched already: it has {CRAWL_FETCH}")
            yield work
            work.rename(done)
            remove(done)
    finally:
        with suppress(OSError):
            work.rmdir()  # unless there is a log in it


def _report(ledger: Ledger, stats: FetchStats) -> None:
    for line in (*result_table(ledger), *host_table(stats)):
        log.info("Fetcher: %s", line)
    for name, count in sorted(stats.events.items()):
        if count:
            log.info("Fetcher: %s=%d", name, count)
