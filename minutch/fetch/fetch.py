"""`fetch <segment> [-threads n] [-metrics port]`: fetch the pages of a segment's fetch list.

Reads crawl_generate, writes content and crawl_fetch (and with fetcher.parse=true the parts of a parse). While it runs,
finished pages lie in `<segment>/_fetch/log-N`; run again on the same segment it goes on where it was stopped, by
whatever. SIGINT and SIGTERM finish what is in flight and close the segment, the URLs left are marked as not fetched;
a second signal stops at once, to be resumed. Matches org.apache.nutch.fetcher.Fetcher.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import shutil
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, TextIO

from minutch.arguments import Flag, parse
from minutch.clock import Clock
from minutch.conf import Configuration
from minutch.errors import ConfigError, LockedError, MinutchError, StoreError
from minutch.fetch.closing import close_segment
from minutch.fetch.display import Display, host_table, result_table
from minutch.fetch.feeder import fetch_list, generate_files
from minutch.fetch.ledger import Ledger
from minutch.fetch.log import Part
from minutch.fetch.loop import FetchLoop, Hooks
from minutch.fetch.publish import Publishers
from minutch.fetch.session import Resumed, open_session, resume
from minutch.fetch.settings import FetchSettings
from minutch.fetch.state import FetchState, state_folder
from minutch.fetch.stats import FetchStats
from minutch.job import Counters, JobContext
from minutch.segment.store import CRAWL_FETCH, Segment

log = logging.getLogger(__name__)

USAGE = "Fetcher <segment> [-threads n] [-metrics port]"
FLAGS = (Flag("-threads", value="n", convert=int), Flag("-metrics", value="port", convert=int))
WORK: Final = "_fetch"
INTERRUPTED: Final = "interrupted"
"""Counted once if a signal ended the fetch before its time; bin/crawl stops then."""
STATE_PROPERTY: Final = "minutch.fetch.state"


class Interrupted(MinutchError):
    """A second signal: the fetch stopped at once; the log is kept."""

    exit_code = 130


def run(args: list[str], context: JobContext) -> int:
    """The command. Exit code 0; every failure is 255 as in Nutch."""
    given = parse(args, FLAGS, usage=USAGE, least=1)
    context.reports["Fetcher"] = fetch(
        Path(given.positional[0]),
        context.conf,
        clock=context.clock,
        err=context.err,
        threads=given["-threads"],
        metrics_port=given["-metrics"],
    )
    return 0


def fetch(
    path: Path,
    conf: Configuration,
    *,
    clock: Clock,
    err: TextIO,
    threads: int | None = None,
    metrics_port: int | None = None,
) -> Counters:
    """Fetch the segment at `path` and close it; returns the ledger's counts, and INTERRUPTED if a signal came.

    Raises ConfigError without http.agent.name, StoreError for a segment that is fetched already, that has no fetch
    list or that can't be written (what was fetched until then is kept in the log).
    """
    _check_agent(conf)
    segment = Segment(path)
    files = generate_files(path)
    work = path / WORK
    if segment.has(CRAWL_FETCH) and not _logs(work):
        raise StoreError(f"{path} is fetched already: it has {CRAWL_FETCH}")
    conf = _with_state(conf, path)
    settings = FetchSettings.from_conf(conf, clock.now(), threads)
    log.info("Fetcher: segment %s, %d threads, queue mode %s", path, settings.threads, settings.queues.mode)
    if settings.follow.depth > 0:
        log.info("Fetcher: following outlinks to depth %d, at most %d", settings.follow.depth, settings.follow.most)
    with _locked(work):
        resumed = resume(_logs(work))
        if resumed.ledger.settled:
            log.info("Fetcher: going on with an unfinished fetch, %d URLs are done", resumed.ledger.settled)
        ledger, stats = _fetch_all(segment, files, work, conf, settings, clock, err, resumed, metrics_port)
        ledger.merge({int(k): v for k, v in resumed.ledger.outcomes.items()})
        ledger.check(str(path))
        close_segment(segment, _logs(work), _parts(settings), conf)
    shutil.rmtree(work)
    _report(ledger, stats)
    counters = ledger.counters()
    if stats.events[INTERRUPTED]:
        counters.add(INTERRUPTED)
    return counters


def _fetch_all(
    segment: Segment,
    files: list[Path],
    work: Path,
    conf: Configuration,
    settings: FetchSettings,
    clock: Clock,
    err: TextIO,
    resumed: Resumed,
    metrics_port: int | None,
) -> tuple[Ledger, FetchStats]:
    total = sum(1 for _ in fetch_list(files))
    display = Display(err)
    with ExitStack() as stack:
        state = stack.enter_context(FetchState(Path(conf.get(STATE_PROPERTY, ""))))
        stack.callback(display.clear)
        hooks = Hooks(tick=display.tick, busy_until=state.remember_busy)
        if settings.publish:
            hooks.publish = Publishers(conf, clock).publish
        session = open_session(
            segment,
            files,
            work / "log-0",
            conf,
            settings,
            clock,
            state=state,
            resumed=resumed,
            hooks=hooks,
            total=total - resumed.ledger.settled,
        )
        asyncio.run(_run_with_signals(session.loop, session.run()))
    ledger = session.loop.ledger
    ledger.generated = total
    return ledger, session.loop.stats


async def _run_with_signals(loop: FetchLoop, run: object) -> None:
    """Run; the first signal ends the fetch in order, the second at once."""
    main = asyncio.ensure_future(run)  # type: ignore[call-overload]
    running = asyncio.get_running_loop()
    seen = 0

    def on_signal() -> None:
        nonlocal seen
        seen += 1
        if seen == 1:
            loop.stats.events[INTERRUPTED] += 1
            log.warning("interrupted: finishing what is in flight (once more to stop at once)")
            loop.stop()
        else:
            main.cancel()

    caught = []
    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            running.add_signal_handler(number, on_signal)
            caught.append(number)
        except (ValueError, RuntimeError):
            break  # not in the main thread: signals are somebody else's
    try:
        await main
    except asyncio.CancelledError:
        if seen > 1:
            raise Interrupted("stopped at once; run fetch on the same segment again to go on") from None
        raise
    finally:
        for number in caught:
            running.remove_signal_handler(number)


def _check_agent(conf: Configuration) -> None:
    if not (conf.get("http.agent.name") or "").strip():
        raise ConfigError("nothing is fetched without a name: set http.agent.name in conf/nutch-site.xml")


def _with_state(conf: Configuration, segment: Path) -> Configuration:
    if conf.get(STATE_PROPERTY):
        return conf
    return conf.with_values({STATE_PROPERTY: str(state_folder(segment))})


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
def _locked(work: Path) -> Iterator[None]:
    """Keep a second fetch off the same segment; the system frees the lock with the process."""
    work.mkdir(exist_ok=True)
    with (work / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as exc:
            raise LockedError(f"{work.parent} is being fetched by another process") from exc
        yield


def _report(ledger: Ledger, stats: FetchStats) -> None:
    for line in (*result_table(ledger), *host_table(stats)):
        log.info("Fetcher: %s", line)
    for name, count in sorted(stats.events.items()):
        if count:
            log.info("Fetcher: %s=%d", name, count)
