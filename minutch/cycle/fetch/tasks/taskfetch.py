"""Starts a task for each fetch list of a segment, and puts together what they bring; each fetches
one list, on whichever machine it runs.
"""

from __future__ import annotations

import json
import logging
import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, NamedTuple

from minutch import strictjson
from minutch.clock import SteadyClock, SystemClock
from minutch.conf import Configuration
from minutch.cycle.fetch.components import FetchComponents
from minutch.cycle.fetch.fetch import Fetch, Watcher, signals
from minutch.cycle.fetch.frontier.hostmemory import state_folder
from minutch.cycle.fetch.frontier.listindex import generate_files
from minutch.cycle.fetch.ledger import OUTCOMES, STOPPED, Interrupted, Ledger
from minutch.cycle.fetch.listfetch import ListFetch
from minutch.cycle.fetch.results.closing import copy_folder, folder_of, own_folder, write_list
from minutch.cycle.fetch.results.fetchresults import logs_in
from minutch.cycle.fetch.settings import FetchOptions, FetchSettings
from minutch.cycle.fetch.stats import FetchStats, Snapshot
from minutch.cycle.fetch.tasks.taskchannel import ChannelAddress, ChannelServer, TaskChannel
from minutch.cycle.fetch.watch import Display
from minutch.cycle.fetch.worker import HoldFetch, WorkerOrder
from minutch.cycle.segment.store import (
    BEGUN,
    CONTENT,
    CRAWL_FETCH,
    CRAWL_PARSE,
    PARSE_DATA,
    PARSE_TEXT,
    WARC,
    Segment,
)
from minutch.errors import LockedError, MinutchError, StoreError
from minutch.job import Counters
from minutch.paths import as_path
from minutch.work.engine import Engine, Task
from minutch.work.tables.database import part_name
from minutch.work.tables.install import NEW, remove, sync_path, sync_tree, work_folder
from minutch.work.tables.lock import lock

log = logging.getLogger(__name__)

_FOLDERS: Final = (CONTENT, PARSE_TEXT, PARSE_DATA, CRAWL_PARSE, CRAWL_FETCH)
"""In the order in which they come into the segment."""
_SPECULATION: Final = "spark.speculation"
_STEP: Final = 0.2
"""Seconds between two looks for a signal."""
LEDGER: Final = "ledger"
_NAME: Final = "segment"
"""The file that says which segment a folder of a machine is for."""
_WAIT: Final = 60
"""Seconds that an attempt waits for another one on the same machine, which Spark holds for lost, to
end.
"""


@dataclass
class TaskFetch:
    """A fetch by tasks: what `Fetch` and `ListFetch` are here. `work` is the segment's `_fetch`."""

    engine: Engine
    segment: Segment
    lists: int
    work: Path
    settings: FetchSettings
    components: FetchComponents
    state_folder: Path | None = None
    """The folder in which hosts are remembered; None: one of each task's machine."""
    watched: bool = False
    is_stopping: Callable[[], bool] = bool
    """As that of `FetchOptions`."""
    interrupted: bool = False

    def run(
        self, display: Display, watcher: Watcher, serving: AbstractContextManager[None]
    ) -> tuple[Ledger, FetchStats]:
        """Fetches, or goes on. The ledger is that of all lists and runs; after a signal some URLs
        may be left.
        """
        if self.settings.processes > 1:
            log.warning(
                "Fetcher: minutch.fetch.processes is for one machine: here each list has one"
                " (-numFetchers)"
            )
        settings = self._as_begun(replace(self.settings, processes=1))
        killed = False

        def show(snapshot: Snapshot) -> None:
            display.tick(snapshot)
            watcher.show(snapshot)
            if self.is_stopping():
                board.tell(WorkerOrder.LEAVE_RESTING)

        def stop() -> None:
            self.interrupted = True
            board.tell(WorkerOrder.STOP)

        def kill() -> None:
            nonlocal killed
            killed = True
            self.engine.cancel()

        left = sum(not place.exists() for place in self._places)
        log.info("Fetcher: lists that are left, a task for each: %d", left)
        board = ChannelServer(self.engine.host or "", left, show)
        with ExitStack() as stack:
            fresh = stack.enter_context(work_folder(self.work, NEW))
            stack.callback(display.clear)
            number = stack.enter_context(board.open())
            stack.enter_context(serving)
            stack.enter_context(watcher.obeying(lambda wanted: board.tell(HoldFetch(wanted))))
            stack.enter_context(signals(stop, kill))
            task = ListTask(
                self.segment.path,
                self.work,
                settings,
                self.components,
                number,
                self.state_folder,
                self.watched,
            )
            try:
                results = self._written(task, fresh)
            except MinutchError as exc:
                if killed:
                    raise Interrupted(STOPPED) from exc
                raise
        ledger, stats = Ledger(), FetchStats()
        for fetched in results:
            ledger.generated += fetched.ledger.generated
            ledger.merge(fetched.ledger.outcomes)
            if fetched.stats is not None:
                stats.merge(fetched.stats)
        watcher.fetched(stats, ledger.settled)
        return ledger, stats

    def _written(self, task: ListTask, fresh: Path) -> list[Fetched]:
        """Returns the results of all tasks, waited for in short steps: so signals are heard,
        whichever thread has them.
        """
        with ThreadPoolExecutor(1) as thread:
            writing = thread.submit(self.engine.write, task, self.lists, fresh, Counters(), None)
            try:
                while not writing.done():
                    wait([writing], _STEP)
            except BaseException:
                self.engine.cancel()
                raise
            return writing.result()

    def checked(self, ledger: Ledger) -> int:
        """Returns the number of listed URLs; each task has checked its own. Raises StoreError."""
        ledger.check(str(self.segment))
        return ledger.generated

    def close(self, listed: int) -> Counters:
        """Moves the parts of all lists into the segment. Done again after a kill, it goes on. What
        parses gave is not counted.
        """
        for folder in (*_FOLDERS, WARC):
            self._gather(folder)
        if (self.work / WARC).is_dir():
            place = self.segment.path / WARC
            place.mkdir(exist_ok=True)
            for path in (self.work / WARC).iterdir():
                path.rename(place / path.name)
            (self.work / WARC).rmdir()
        sync_tree(self.work)
        self.segment.place(self.work, _FOLDERS)
        return Counters()

    def _gather(self, folder: str) -> None:
        """Brings what the lists have of a folder together, in the folder of that name in `work`."""
        for place in self._places:
            own = place / folder
            if own.is_dir():
                (self.work / folder).mkdir(exist_ok=True)
                for path in own.iterdir():
                    # Renames: after a kill the next run moves what is still in its place.
                    path.rename(self.work / folder / path.name)
                own.rmdir()

    @property
    def _places(self) -> list[Path]:
        """The folders of the lists once they are done."""
        return [self.work / part_name(part) for part in range(self.lists)]

    def _as_begun(self, settings: FetchSettings) -> FetchSettings:
        """Settings for the rest of a fetch: all lists are parsed, and their content is kept, or
        none's.
        """
        if logs_in(self.work):
            raise StoreError(
                f"{self.segment.path}: its fetch was begun without minutch.engine=spark: "
                f"finish it so, or remove {self.work} and fetch all of it again"
            )
        path = self.work / BEGUN
        if not path.exists():
            fresh = path.with_name(f".{BEGUN}")
            fresh.write_text(
                json.dumps({"parse": settings.parse, "content": settings.store_content}), "utf-8"
            )
            fresh.replace(path)
            sync_path(self.work)
            return settings
        try:
            begun = strictjson.loads(path.read_text("utf-8"))
            begun = {name: bool(begun[name]) for name in ("parse", "content")}
        except (ValueError, LookupError, TypeError) as exc:
            raise StoreError(
                f"{path}: expected JSON with parse and content, found something else ({exc}):"
                f" remove {self.work} to fetch the segment from the start"
            ) from exc
        log.info("Fetcher: going on with an unfinished fetch")
        if (begun["parse"], begun["content"]) != (settings.parse, settings.store_content):
            log.warning(
                "Fetcher: begun with fetcher.parse=%s and fetcher.store.content=%s, so it ends",
                *(str(begun[name]).lower() for name in ("parse", "content")),
            )
        return replace(settings, parse=begun["parse"], store_content=begun["content"])


def one_attempt(conf: Configuration) -> Configuration:
    """Returns the configuration under which no list is fetched twice at a time: Spark's speculation
    would be impolite.
    """
    return (
        conf.with_values({_SPECULATION: "false"}).freeze()
        if conf.get_boolean(_SPECULATION, False)
        else conf
    )


# -- at a task -------------------------------------------------------------------------------------


class Fetched(NamedTuple):
    """The result of a list. `stats` are those of this run, if it did anything."""

    ledger: Ledger
    stats: FetchStats | None = None


@dataclass(frozen=True)
class ListTask:
    """Fetches a list; the function of `Engine.write`. Its part files go another way: they stay if
    others fail.
    """

    path: Path
    """The segment."""
    work: Path
    settings: FetchSettings
    components: FetchComponents
    fetch: ChannelAddress
    state_folder: Path | None
    watched: bool

    def __call__(self, task: Task, parts: range) -> Fetched:
        part = parts.start
        place = self.work / part_name(part)
        try:
            # Spark may run a task again that another attempt has done.
            return _done(place) or self._fetched(task, part, place)
        except StoreError as exc:
            raise StoreError(f"fetch list {part} on {socket.gethostname()}: {exc}") from exc

    def _fetched(self, task: Task, part: int, place: Path) -> Fetched:
        _clear_own()
        with ExitStack() as stack:
            here = stack.enter_context(_working(self.path, part))
            _take_stopped(self._stopped(part), here)
            channel = TaskChannel(self.fetch, part)
            stack.callback(channel.close)
            job = self._job(here, part)
            options = FetchOptions(is_stopping=lambda: channel.leaves_resting)
            fetch = Fetch(job.clock, options, channel, channel.stopping)
            ledger, stats = fetch.run(job, Display(sys.stderr, f"list {part}"))
            result = Fetched(ledger, stats)
            if ledger.settled < ledger.generated:
                # its logs, and what belongs to them, wait in the segment
                fresh = task.folder / "stopped"
                copy_folder(here, fresh)
                sync_tree(fresh)
                remove(self._stopped(part))
                fresh.rename(self._stopped(part))
            else:
                listed = job.checked(ledger)
                fresh = task.folder / place.name
                fresh.mkdir()
                write_list(
                    Segment(self.path), fresh, part, job.logs, job.parts, self.settings.form, listed
                )
                if (here / WARC).is_dir():
                    copy_folder(here / WARC, fresh / WARC)
                result = self._commit(fresh, place, result)
        return result

    def _job(self, here: Path, part: int) -> ListFetch:
        state = self.state_folder or state_folder(own_folder() / "segments" / self.path.name)
        return ListFetch(
            Segment(here),
            [generate_files(self.path)[part]],
            here,
            self.settings,
            self.components.with_state(state),
            SteadyClock(SystemClock()),
            state,
            number=part,
            watched=self.watched,
            as_begun=True,
        )

    def _stopped(self, part: int) -> Path:
        return self.work / f"stopped-{part:05}"

    def _commit(self, fresh: Path, place: Path, result: Fetched) -> Fetched:
        """Lets a part count, unless another attempt's does."""
        ledger = result.ledger
        own = {"generated": ledger.generated, "outcomes": ledger.outcomes}
        (fresh / LEDGER).write_text(json.dumps(own), "utf-8")
        sync_tree(fresh)
        try:
            # Fails if the folder is there: only one attempt can be first.
            fresh.rename(place)
        except OSError:
            done = _done(place)
            if done is None:
                raise
            return done
        return result


def _done(place: Path) -> Fetched | None:
    """Returns the result of a list that is done; None if it is not."""
    try:
        found = strictjson.loads((place / LEDGER).read_text("utf-8"))
        ledger = Ledger()
        ledger.generated = int(found["generated"])
        for outcome, count in found["outcomes"].items():
            ledger.settle(OUTCOMES[int(outcome)], int(count))
        return Fetched(ledger)
    except FileNotFoundError:
        return None
    except (ValueError, LookupError, TypeError, AttributeError) as exc:
        raise StoreError(
            f"{place / LEDGER}: expected JSON with generated and outcomes, found something else"
            f" ({exc}): remove {place}, and its list is fetched again"
        ) from exc


@contextmanager
def _working(path: Path, part: int) -> Iterator[Path]:
    """Yields the folder on this machine in which a list is fetched, while no other attempt is at
    it.
    """
    folder = folder_of(path, f"-{part:05}")
    name, here = folder / _NAME, folder / path.name
    with _patient(lambda: lock(folder)):
        name.write_text(str(path), "utf-8")
        here.mkdir(exist_ok=True)
        yield here
        shutil.rmtree(here)
        name.unlink()
    with suppress(OSError):  # unless another attempt waits for it
        folder.rmdir()


@contextmanager
def _patient(locked: Callable[[], AbstractContextManager[Any]]) -> Iterator[None]:
    """Holds a lock; waits if another has it. Not a MinutchError if that takes too long: it may work
    at another try.
    """
    for attempt in range(_WAIT + 1):
        with ExitStack() as stack:
            try:
                stack.enter_context(locked())
            except (LockedError, FileNotFoundError) as exc:
                if attempt == _WAIT:
                    raise TimeoutError(f"another attempt does not end: {exc}") from exc
                time.sleep(1)
                continue
            yield
            return


def _take_stopped(stopped: Path, here: Path) -> None:
    """Brings the logs of a list that was stopped here, unless there are some that have more."""
    # Logs only grow: the longer one has all of the other.
    if stopped.is_dir() and _size(stopped) > _size(here):
        shutil.rmtree(here)
        copy_folder(stopped, here)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in logs_in(folder))


def _clear_own() -> None:
    """Removes what is left on this machine of lists whose segments are fetched by now."""
    for name in own_folder().glob(f"*/{_NAME}"):
        # Whoever starts a task must not fail by another one's left-overs.
        with suppress(OSError, MinutchError):
            segment = Segment(as_path(name.read_text("utf-8", "replace")))
            if segment.has(CRAWL_FETCH):
                shutil.rmtree(name.parent)
