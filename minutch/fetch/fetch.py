"""`fetch <segment> [-threads n] [-metrics port]`: fetch the pages of a segment's fetch list.

Reads crawl_generate, writes content and crawl_fetch (and with fetcher.parse=true the parts of a parse). While it runs,
finished pages lie in `<segment>/_fetch/log-N`; run again on the same segment it goes on where it was stopped, by
whatever. SIGINT, SIGTERM and SIGHUP finish what is in flight, a second one stops at once; either way the URLs left are
fetched by the next run. Source: org.apache.nutch.fetcher.Fetcher.
"""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Final, TextIO

from minutch.arguments import Flag, parse
from minutch.clock import Clock, SteadyClock
from minutch.conf import Configuration
from minutch.errors import ConfigError, LockedError, MinutchError, StoreError
from minutch.fetch.closing import close_segment
from minutch.fetch.display import Display, host_table, result_table
from minutch.fetch.farsegment import fetched_here
from minutch.fetch.feeder import count_entries, generate_files
from minutch.fetch.ledger import Ledger, Outcome
from minutch.fetch.log import Part
from minutch.fetch.loop import Hooks
from minutch.fetch.processes import FetchProcesses
from minutch.fetch.session import FetchSession, Resumed, Share, open_session, resume
from minutch.fetch.settings import FetchSettings, share_of
from minutch.fetch.snapshot import Snapshot
from minutch.fetch.state import FetchState, state_folder
from minutch.fetch.stats import FetchStats
from minutch.fetch.telemetry import Publishers
from minutch.fetch.visits import archiving
from minutch.fetch.warc import finish, recover
from minutch.job import Counters, JobContext
from minutch.live.server import LiveServer
from minutch.live.watch import Watch
from minutch.segment.store import CRAWL_FETCH, Segment
from minutch.stores import as_path
from minutch.tables.lock import lock
from minutch.tables.success import mark_success
from minutch.tables.workfolders import remove

log = logging.getLogger(__name__)

USAGE = """Fetcher <segment> [-threads n] [-metrics port]
\tsegment\tthe segment whose fetch list is fetched
\t-threads n\tpages fetched at the same time (fetcher.threads.fetch)
\t-metrics port\tserve a live page and figures for Prometheus (/metrics) at this port, 0: any"""
FLAGS = (Flag("-threads", value="n", convert=int), Flag("-metrics", value="port", convert=int))
FINISHING: Final = "interrupted: finishing what is in flight (once more to stop at once)"
STOPPED: Final = "stopped at once; run fetch on the same segment again to go on"
LEFT: Final = "interrupted: {} of {} URLs are left, which the next fetch of this segment goes on with"
SIGNALS: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
WORK: Final = "_fetch"
DONE: Final = "_fetch-done"
"""What the folder of the logs is called while it is being removed."""
INTERRUPTED: Final = "interrupted"
"""Counted once if a signal came when all was fetched; bin/crawl stops then."""
Tick = Callable[[Snapshot], None]
STATE_PROPERTY: Final = "minutch.fetch.state"


class Interrupted(MinutchError):
    """A signal ended the fetch before its time: the log is kept, and the next run goes on from it."""

    exit_code = 130


def run(args: list[str], context: JobContext) -> int:
    """The command. Exit code 0; every failure is 255 as in Nutch."""
    given = parse(args, FLAGS, usage=USAGE, least=1)
    segment, watch = as_path(given.positional[0]), context.watch
    with ExitStack() as stack:
        server: LiveServer | None = None
        if given["-metrics"] is not None and watch is None:
            watch = Watch(f"fetch {segment}", context.clock)
            server = stack.enter_context(closing(LiveServer(watch, context.conf, given["-metrics"], "-metrics")))
            context.print(server.says)
            context.out.flush()
        context.reports["Fetcher"] = fetch(
            stack.enter_context(fetched_here(segment)),
            context.conf,
            clock=context.clock,
            err=context.err,
            label=context.label,
            threads=given["-threads"],
            watch=watch,
            server=server,
        )
    return 0


def fetch(
    path: Path,
    conf: Configuration,
    *,
    clock: Clock,
    err: TextIO,
    label: str = "",
    threads: int | None = None,
    watch: Watch | None = None,
    server: LiveServer | None = None,
) -> Counters:
    """Fetch the segment at `path` and close it; returns the ledger's counts.

    `watch` sees what happens, and may hold the fetch; `server` runs meanwhile.

    Raises ConfigError without http.agent.name, StoreError for a segment that is fetched already, that has no fetch
    list or that can't be written, and Interrupted after a signal (what was fetched until then is kept in the log).
    """
    _check_agent(conf)
    segment = Segment(path)
    segment.check()
    files = generate_files(path)
    conf = _with_state(conf, path)
    clock = SteadyClock(clock)
    settings = FetchSettings.from_conf(conf, clock.now(), threads)
    if settings.warc:
        conf = archiving(conf)
    log.info("Fetcher: segment %s, %d threads, queue mode %s", path, settings.threads, settings.queues.mode)
    if settings.follow.depth > 0:
        log.info("Fetcher: following outlinks to depth %d, at most %d", settings.follow.depth, settings.follow.most)
    with _working(segment) as work, _cycles_seldom_sought():
        recover(segment, work, _logs(work))
        resumed = resume(_logs(work))
        if resumed.ledger.settled:
            log.info("Fetcher: going on with an unfinished fetch, %d URLs are done", resumed.ledger.settled)
            settings = _as_begun(settings, resumed)
        job = _Job(segment, files, work, conf, settings, clock, resumed, watched=watch is not None)
        ledger, stats = _fetch_all(job, err, label, watch or Watch(label, clock), server)
        ledger.merge({int(k): v for k, v in resumed.ledger.outcomes.items()})
        if job.interrupted and ledger.settled < ledger.generated:
            _report(ledger, stats)
            raise Interrupted(LEFT.format(ledger.generated - ledger.settled, ledger.generated))
        ledger.check(str(path))
        finish(segment, work)
        close_segment(segment, _logs(work), _parts(settings), conf, ledger.generated)
        mark_success(conf, path)
    _report(ledger, stats)
    counters = ledger.counters()
    if job.interrupted:
        counters.add(INTERRUPTED)
    return counters


@dataclass
class _Job:
    """What a fetch works with, however many processes it takes."""

    segment: Segment
    files: list[Path]
    work: Path
    conf: Configuration
    settings: FetchSettings
    clock: Clock
    resumed: Resumed
    interrupted: bool = False
    watched: bool = False

    def share_session(self, share: Share, hooks: Hooks) -> FetchSession:
        """One of several processes' share of the fetch."""
        return self.session(share, hooks, _state_of(self.conf), None)

    def session(self, share: Share, hooks: Hooks, state: FetchState, total: int | None) -> FetchSession:
        """One process's share of the fetch."""
        hooks.busy_until = state.remember_busy
        hooks.watched = self.watched
        if self.settings.publish:
            publishers = Publishers(self.conf, self.clock)
            hooks.publish, hooks.ended = publishers.publish, publishers.close
        return open_session(
            self.segment,
            self.files,
            self.work / f"log-{share.index}",
            self.conf,
            share_of(self.settings, share.index, share.count),
            self.clock,
            state=state,
            resumed=self.resumed,
            share=share,
            hooks=hooks,
            total=total,
        )


def _fetch_all(
    job: _Job, err: TextIO, label: str, watch: Watch, server: LiveServer | None
) -> tuple[Ledger, FetchStats]:
    total = count_entries(job.files)
    left = total - job.resumed.ledger.settled
    display = Display(err, label)

    def tick(snapshot: Snapshot) -> None:
        display.tick(snapshot)
        watch.show(snapshot)

    run = _run_alone if job.settings.processes == 1 else _run_together
    try:
        ledger, stats = run(job, tick, watch, nullcontext() if server is None else server.running(), left)
    finally:
        display.clear()
    watch.fetched(stats, ledger.settled)
    ledger.generated = total
    return ledger, stats


def _state_of(conf: Configuration) -> FetchState:
    return FetchState(Path(conf.get(STATE_PROPERTY, "")))


def _run_alone(
    job: _Job, tick: Tick, watch: Watch, serving: AbstractContextManager[None], left: int
) -> tuple[Ledger, FetchStats]:
    with _state_of(job.conf) as state:
        session = job.session(Share(), Hooks(tick=tick), state, left)
        with serving:  # a thread: after the parse worker, which is a fork
            asyncio.run(_run_with_signals(job, session, watch))
    return session.loop.ledger, session.loop.stats


def _run_together(
    job: _Job, tick: Tick, watch: Watch, serving: AbstractContextManager[None], left: int
) -> tuple[Ledger, FetchStats]:
    processes = FetchProcesses(job.settings.processes, job.share_session, tick, left)
    with _signals(job, processes.stop, processes.kill):
        processes.start()  # before anything runs in a thread: then the children can be forks
        with serving, watch.obeying(processes.hold):
            processes.run()
    return processes.ledger, processes.stats


@contextmanager
def _signals(job: _Job, stop: Callable[[], None], kill: Callable[[], None]) -> Iterator[None]:
    """The first of SIGNALS calls `stop`, the second `kill` and raises Interrupted."""
    seen = 0

    def on_signal(number: int, frame: FrameType | None) -> None:
        nonlocal seen
        seen += 1
        if seen == 1:
            job.interrupted = True
            stop()
            log.warning(FINISHING)  # who reads this may count on it
        else:
            kill()
            raise Interrupted(STOPPED)

    if threading.current_thread() is not threading.main_thread():
        yield  # signals are somebody else's
        return
    before = [signal.signal(number, on_signal) for number in SIGNALS]
    try:
        yield
    finally:
        for number, handler in zip(SIGNALS, before, strict=True):
            signal.signal(number, handler)


async def _run_with_signals(job: _Job, session: FetchSession, watch: Watch) -> None:
    """Run; after the first signal what is in flight is finished, a second one ends it at once."""
    main = asyncio.ensure_future(session.run())
    running = asyncio.get_running_loop()
    seen = 0

    def on_signal() -> None:
        nonlocal seen
        seen += 1
        if seen == 1:
            job.interrupted = True
            log.warning(FINISHING)
            session.loop.leave()
        else:
            main.cancel()

    caught = []
    for number in SIGNALS:
        try:
            running.add_signal_handler(number, on_signal)
            caught.append(number)
        except (ValueError, RuntimeError):
            break  # not in the main thread: signals are somebody else's
    try:
        with watch.obeying(lambda wanted: _from_outside(running, session, wanted)):
            await main
    except asyncio.CancelledError:
        if seen > 1:
            raise Interrupted(STOPPED) from None
        raise
    finally:
        for number in caught:
            running.remove_signal_handler(number)


def _from_outside(running: asyncio.AbstractEventLoop, session: FetchSession, wanted: bool) -> None:
    running.call_soon_threadsafe(session.loop.hold, wanted)


def _check_agent(conf: Configuration) -> None:
    if not (conf.get("http.agent.name") or "").strip():
        raise ConfigError("nothing is fetched without a name: set http.agent.name in conf/nutch-site.xml")


def _with_state(conf: Configuration, segment: Path) -> Configuration:
    if conf.get(STATE_PROPERTY):
        return conf
    return conf.with_values({STATE_PROPERTY: str(state_folder(segment))})


def _as_begun(settings: FetchSettings, resumed: Resumed) -> FetchSettings:
    """Settings for the rest of a fetch: a segment is parsed as a whole, or pages would count as parsed that are not."""
    if not settings.parse or not settings.store_content:
        return settings
    if resumed.parsed or not resumed.ledger.outcomes.get(Outcome.FETCHED, 0):
        return settings
    log.warning("Fetcher: begun without fetcher.parse, so it ends without: minutch parse takes all pages")
    return replace(settings, parse=False)


def _logs(work: Path) -> list[Path]:
    return sorted(work.glob("log-*"))


def _parts(settings: FetchSettings) -> list[Part]:
    parts = [Part.FETCH]
    if settings.store_content:
        parts.append(Part.CONTENT)
    if settings.parse:
        parts += [Part.PARSE_TEXT, Part.PARSE_DATA, Part.CRAWL_PARSE]
    return parts


@contextmanager
def _working(segment: Segment) -> Iterator[Path]:
    """The folder of the logs, under a lock that keeps a second fetch off the segment; removed at a good end.

    It is renamed first: a fetch that is killed while it removes the logs leaves a finished segment, not half a log.
    """
    work, done = segment.path / WORK, segment.path / DONE
    try:
        with lock(work):
            remove(done)
            if segment.has(CRAWL_FETCH) and not _logs(work):
                raise StoreError(f"{segment.path} is fetched already: it has {CRAWL_FETCH}")
            yield work
            work.rename(done)
            remove(done)
    except LockedError as exc:
        raise LockedError(f"{segment.path} is being fetched: {exc}") from exc
    finally:
        with suppress(OSError):
            work.rmdir()  # unless there is a log in it


@contextmanager
def _cycles_seldom_sought() -> Iterator[None]:
    """Python looks for cycles every 20,000 objects, not every 700, and no more at what is there already.

    A fetch makes hardly any: by default the looking takes a tenth of its time.
    """
    before = gc.get_threshold()
    gc.freeze()
    gc.set_threshold(20_000, 50, before[2])
    try:
        yield
    finally:
        gc.set_threshold(*before)
        gc.unfreeze()


def _report(ledger: Ledger, stats: FetchStats) -> None:
    for line in (*result_table(ledger), *host_table(stats)):
        log.info("Fetcher: %s", line)
    for name, count in sorted(stats.events.items()):
        if count:
            log.info("Fetcher: %s=%d", name, count)
