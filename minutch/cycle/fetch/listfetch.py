"""A fetch list that is being fetched: its files, its lock, its end.

    crawl_generate, logs of an earlier run ──> logs of this run ──> part files, once all is settled

It goes on where an earlier run was stopped, by whatever.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from minutch.clock import SteadyClock
from minutch.conf import Configuration
from minutch.cycle.fetch.components import FetchComponents
from minutch.cycle.fetch.frontier.hostmemory import STATE_PROPERTY, HostMemory, state_folder
from minutch.cycle.fetch.frontier.listindex import generate_files, listed_urls
from minutch.cycle.fetch.frontier.queueitems import Share
from minutch.cycle.fetch.ledger import Ledger, Outcome
from minutch.cycle.fetch.results.closing import close_segment, stored_codec
from minutch.cycle.fetch.results.fetchlog import Part
from minutch.cycle.fetch.results.fetchresults import Resumed, logs_after, logs_in, resume
from minutch.cycle.fetch.results.pagearchive import finish, reconcile
from minutch.cycle.fetch.results.recorder import archiving
from minutch.cycle.fetch.settings import FetchOptions, FetchSettings, places_here, share_of
from minutch.cycle.fetch.worker import FetchWorker, WorkerFiles, open_worker
from minutch.cycle.fetch.workers import number_of
from minutch.cycle.segment.store import BEGUN, CRAWL_FETCH, FETCHING, Segment
from minutch.errors import ConfigError, LockedError, StoreError
from minutch.hadoop.formats.sequencewriter import NONE, RECORD
from minutch.job import Counters
from minutch.processwide import command_line
from minutch.work.engine import runs_here
from minutch.work.tables.install import remove
from minutch.work.tables.lock import lock
from minutch.work.tables.parallel import workers

log = logging.getLogger(__name__)

DONE: Final = "_fetch-done"
"""What the folder of the logs is called while it is being removed."""
NAMED: Final = 5
"""URLs that an error names."""


def prepared(
    path: Path, conf: Configuration, options: FetchOptions, now: int
) -> tuple[Configuration, FetchSettings]:
    """Returns the configuration and the settings of the fetch of a segment that begins now. Raises
    ConfigError, as without http.agent.name, and StoreError for what is no segment to be fetched.
    """
    if not conf.get_text("http.agent.name").strip():
        raise ConfigError(
            "nothing is fetched without a name: set http.agent.name in conf/nutch-site.xml"
        )
    Segment(path).finish()
    Segment(path).check()
    settings = FetchSettings.of(conf, now, options.threads)
    if options.parse and not settings.parse and runs_here(conf):
        settings = replace(settings, parse=True, for_step=True)
    return conf if settings.warc is None else archiving(conf), settings


@contextmanager
def opened(
    path: Path,
    conf: Configuration,
    settings: FetchSettings,
    clock: SteadyClock | None = None,
    *,
    watched: bool,
    least: int = 1,
) -> Iterator[ListFetch]:
    """Yields the list of a segment, under a lock, with the number of its processes, of which there
    are to be `least` at least; without a `clock` it has one of its own. At a good end its logs are
    removed. Raises StoreError.
    """
    segment = Segment(path)
    with working(segment) as work:
        # Logs and done lists of two kinds of fetch would not add up.
        if (work / BEGUN).exists():
            raise StoreError(
                f"{path}: its fetch was begun with minutch.engine=spark: finish it so, "
                f"or remove {work} and fetch all of it again"
            )
        state = Path(conf.get(STATE_PROPERTY) or state_folder(path))
        components = FetchComponents(conf).with_state(state)
        clock = clock or SteadyClock(components.clock)
        one = ListFetch(
            segment, generate_files(path), work, settings, components, clock, state, watched=watched
        )
        one.wanted = settings.processes
        one.settings = replace(settings, processes=max(least, one.worth()))
        yield one


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
            # A crawl's folder may be somebody else's: a link would have a log elsewhere cut off.
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


@dataclass
class ListFetch:
    """A list that is being fetched. Its logs lie in `work`, numbered from `number`."""

    segment: Segment
    files: list[Path]
    work: Path
    settings: FetchSettings
    components: FetchComponents
    clock: SteadyClock
    state_folder: Path
    """The folder in which hosts are remembered."""
    number: int = 0
    watched: bool = False
    as_begun: bool = False
    """Whether it is known that the settings are those of an earlier run."""
    resumed: Resumed = field(default_factory=Resumed)
    wanted: int = 0
    """Processes that the configuration wants; 0: as many as the list is worth."""

    @property
    def logs(self) -> list[Path]:
        """The logs of this run and of those before."""
        return logs_in(self.work)

    def worth(self) -> int:
        """Returns the number of processes for all parts of the list, which may have grown."""
        settings = replace(self.settings, processes=self.wanted)
        return number_of(settings, generate_files(self.segment.path), workers())

    def take_up(self) -> None:
        """Reads what an earlier run has left. Raises StoreError, FormatError."""
        # First: it may cut a log back behind records that the WARC files have lost.
        reconcile(self.segment, self.work, self.logs)
        self.resumed = resume(self.logs, logs_after(self.segment.path))
        if self.resumed.ledger.settled:
            log.info(
                "Fetcher: going on with an unfinished fetch, %d URLs are done",
                self.resumed.ledger.settled,
            )
        if not self.as_begun:
            self.settings = _as_begun(self.settings, self.resumed)

    def checked(self, ledger: Ledger, files: Sequence[Path] = ()) -> int:
        """Returns the number of URLs in the list (`files`, if it has grown), all of which have an
        outcome: by the ledger, or by the logs if that does not add up. Raises StoreError with those
        that have none, which the next run fetches. Those that have two are only told of.
        """
        if ledger.settled == ledger.generated:
            return ledger.generated
        listed = Counter(listed_urls(files or self.files))
        # Once more, from the logs: what they hold is what counts.
        settled = resume(self.logs).settled
        missing, again = listed - settled, settled - listed
        if missing:
            raise StoreError(
                f"{self.segment}: {missing.total()} of {listed.total()} URLs of the fetch list have"
                f" no outcome ({_some(missing)}); run fetch on the same segment again to fetch them"
            )
        log.error(
            "%s: the ledger does not add up: %d URLs in the fetch list, %d outcomes in the logs;"
            " more than one has %s",
            self.segment,
            listed.total(),
            settled.total(),
            _some(again) or "none",
        )
        return listed.total()

    def close(self, listed: int) -> Counters:
        """Puts what was fetched into the segment; `listed` URLs are settled. Returns the counters
        of the parse, if pages were parsed. Raises StoreError, FormatError.
        """
        # WARC files first: without crawl_fetch the next run goes on from here.
        finish(self.segment, self.work)
        return close_segment(self.segment, self.logs, self.parts, self.settings.form, listed)

    @property
    def parts(self) -> list[Part]:
        """The parts that the fetch writes."""
        parts = [Part.FETCH]
        if self.settings.store_content:
            parts.append(Part.CONTENT)
        if self.settings.parse:
            parts.append(Part.PARSE)
        return parts

    def worker(self, send: Callable[[object], None], share: Share) -> FetchWorker:
        """Returns a worker, which has a share of the fetch."""
        settings = share_of(self.settings, share.index, share.count)
        memory = HostMemory(self.state_folder, share.index, self.clock)
        worker = open_worker(
            WorkerFiles(self.segment, self.files, self.work / f"log-{self.number + share.index}"),
            self.components,
            replace(settings, places=places_here(settings.places)),
            self.clock,
            memory,
            self.resumed,
            send,
            share,
        )
        worker.loop.reporter.wants_details = self.watched
        # Before the first request: hosts that were asked a moment ago by another run.
        memory.let_rest(worker.frontier.queues, share.owns)
        return worker


def _some(urls: Counter[str]) -> str:
    """Names the first of some URLs."""
    first = sorted(urls)[:NAMED]
    return ", ".join(first) + (", …" if len(urls) > NAMED else "")


def _as_begun(settings: FetchSettings, resumed: Resumed) -> FetchSettings:
    """Settings for the rest of a fetch: a segment is parsed as a whole, or pages would count as
    parsed that are not; and it is compressed as a whole, since the logs' values go into it as they
    are.
    """
    form = settings.form
    if resumed.codec not in (None, stored_codec(form.compression)):
        begun = RECORD if resumed.codec else NONE
        log.warning(
            "Fetcher: begun with another compression of its output, so it ends with that: %s", begun
        )
        settings = replace(settings, form=replace(form, compression=begun))
    if not settings.parse or not settings.store_content:
        return settings
    if resumed.parsed or not resumed.ledger.outcomes.get(Outcome.FETCHED, 0):
        return settings
    log.warning(
        "Fetcher: begun without fetcher.parse, so it ends without: `%s` takes all pages",
        command_line("parse"),
    )
    return replace(settings, parse=False)
