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
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Final

from minutch.conf import Configuration
from minutch.cycle.fetch.components import FetchComponents
from minutch.cycle.fetch.fetch import INTERRUPTED, PARSED, Fetch
from minutch.cycle.fetch.frontier.hostmemory import STATE_PROPERTY
from minutch.cycle.fetch.frontier.listindex import generate_files
from minutch.cycle.fetch.ledger import Interrupted
from minutch.cycle.fetch.listfetch import ListFetch, opened, prepared, working
from minutch.cycle.fetch.results.closing import fetched_here
from minutch.cycle.fetch.settings import FetchOptions, FetchSettings
from minutch.cycle.fetch.watch import Display, host_table, result_table, watch_of
from minutch.cycle.segment.store import Segment
from minutch.job import Counters, JobContext
from minutch.work.engine import engine_of, runs_here
from minutch.work.tables.install import mark_success

if TYPE_CHECKING:
    from minutch.cycle.fetch.tasks.taskfetch import TaskFetch

log = logging.getLogger(__name__)

_DEFAULTS: Final = FetchOptions()


def fetch(
    segment: Path,
    options: FetchOptions = _DEFAULTS,
    *,
    context: JobContext,
    serving: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Counters:
    """Fetches the pages of a segment and closes it; returns the number of URLs by outcome.

    A `Watch` of the context's sees what happens and may hold the fetch. `serving` is entered while
    requests are made.

    Raises ConfigError without http.agent.name, StoreError for a segment that is already fetched,
    has no fetch list or can't be written, and Interrupted after a signal (the log keeps what was
    fetched until then).
    """
    conf, settings = prepared(segment, context.conf, options, context.clock.now())
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
    watch, watched = watch_of(context), context.watch is not None
    display = Display(context.err, context.label)
    with ExitStack() as stack:
        job: ListFetch | TaskFetch
        run: Fetch | TaskFetch
        if runs_here(conf):
            here = stack.enter_context(fetched_here(segment))
            job = stack.enter_context(opened(here, conf, settings, watched=watched))
            run = Fetch(job.clock, options, watch, serving=serving)
            ledger, stats = run.run(job, display)
        else:
            run = job = stack.enter_context(_by_tasks(segment, conf, settings, options, watched))
            ledger, stats = run.run(display, watch, serving())
        for line in (*result_table(ledger), *host_table(stats)):
            log.info("Fetcher: %s", line)
        for name, count in sorted(stats.events.items()):
            if count:
                log.info("Fetcher: %s=%d", name, count)
        if run.interrupted and ledger.settled < ledger.generated:
            raise Interrupted.leaving(ledger.generated - ledger.settled, ledger.generated)
        parsed = job.close(job.checked(ledger))
        mark_success(conf, job.segment.path)
    if parsed:
        context.report(PARSED, parsed)
    counters = ledger.counters()
    if run.interrupted:
        counters.add(INTERRUPTED)
    return counters


@contextmanager
def _by_tasks(
    path: Path, conf: Configuration, settings: FetchSettings, options: FetchOptions, watched: bool
) -> Iterator[TaskFetch]:
    """Yields the fetch by tasks, under a lock. At a good end its logs are removed."""
    from minutch.cycle.fetch.tasks.taskfetch import TaskFetch, one_attempt

    segment, files = Segment(path.absolute()), generate_files(path)
    with working(segment) as work:
        named = conf.get(STATE_PROPERTY)
        yield TaskFetch(
            engine_of(one_attempt(conf)),
            segment,
            len(files),
            work,
            settings,
            FetchComponents(conf),
            state_folder=Path(named) if named else None,
            watched=watched,
            is_stopping=options.is_stopping,
        )
