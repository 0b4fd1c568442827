"""Starts a task for each fetch list of a segment, and puts together what they bring."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, TextIO

from minutch import strictjson
from minutch.conf import Configuration
from minutch.cycle.fetch.components import FetchComponents
from minutch.cycle.fetch.display import Display
from minutch.cycle.fetch.ledger import Ledger
from minutch.cycle.fetch.listfetch import (
    STOPPED,
    Interrupted,
    Watcher,
    signals,
)
from minutch.cycle.fetch.results.resume import logs_in
from minutch.cycle.fetch.settings import FetchSettings
from minutch.cycle.fetch.snapshot import Snapshot
from minutch.cycle.fetch.stats import FetchStats
from minutch.cycle.fetch.tasks.listtask import Fetched, ListTask
from minutch.cycle.fetch.tasks.taskchannel import ChannelServer
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
from minutch.errors import MinutchError, StoreError
from minutch.job import Counters
from minutch.work.engine import Engine
from minutch.work.tables.database import part_name
from minutch.work.tables.install import NEW, sync_path, sync_tree
from minutch.work.tables.workfolders import work_folder

log = logging.getLogger(__name__)

_FOLDERS: Final = (CONTENT, PARSE_TEXT, PARSE_DATA, CRAWL_PARSE, CRAWL_FETCH)
"""In the order in which they come into the segment."""
_SPECULATION: Final = "spark.speculation"
_STEP: Final = 0.2
"""Seconds between two looks for a signal."""


@dataclass
class TaskFetch:
    """A fetch by tasks; the counterpart of `ListFetch`. `work` is the segment's `_fetch`."""

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
    """As that of `ListFetch`."""
    interrupted: bool = False

    def run(
        self,
        err: TextIO,
        label: str,
        watcher: Watcher,
        serving: AbstractContextManager[None] | None = None,
    ) -> tuple[Ledger, FetchStats]:
        """Fetches, or goes on. The ledger is that of all lists and runs; after a signal some URLs
        may be left.
        """
        self._check()
        if self.settings.processes > 1:
            log.warning(
                "Fetcher: minutch.fetch.processes is for one machine: here each list has one"
                " (-numFetchers)"
            )
        settings = self._as_begun(replace(self.settings, processes=1))
        display = Display(err, label)
        killed = False

        def show(snapshot: Snapshot) -> None:
            display.tick(snapshot)
            watcher.show(snapshot)
            if self.is_stopping():
                board.leave_resting()

        def stop() -> None:
            self.interrupted = True
            board.stop()

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
            stack.enter_context(serving or nullcontext())
            stack.enter_context(watcher.obeying(board.hold))
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
        ledger, stats = _together(results)
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
            self._place_warc()
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
                    path.rename(self.work / folder / path.name)
                own.rmdir()

    def _place_warc(self) -> None:
        place = self.segment.path / WARC
        place.mkdir(exist_ok=True)
        for path in (self.work / WARC).iterdir():
            path.rename(place / path.name)
        (self.work / WARC).rmdir()

    @property
    def _places(self) -> list[Path]:
        """The folders of the lists once they are done."""
        return [self.work / part_name(part) for part in range(self.lists)]

    def _check(self) -> None:
        if logs_in(self.work):
            raise StoreError(
                f"{self.segment.path}: its fetch was begun without minutch.engine=spark: "
                f"finish it so, or remove {self.work} and fetch all of it again"
            )

    def _as_begun(self, settings: FetchSettings) -> FetchSettings:
        """Settings for the rest of a fetch: all lists are parsed, and their content is kept, or
        none's.
        """
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


def _together(results: list[Fetched]) -> tuple[Ledger, FetchStats]:
    ledger, stats = Ledger(), FetchStats()
    for fetched in results:
        ledger.generated += fetched.ledger.generated
        ledger.merge(fetched.ledger.outcomes)
        if fetched.stats is not None:
            stats.merge(fetched.stats)
    return ledger, stats


def one_attempt(conf: Configuration) -> Configuration:
    """Returns the configuration under which no list is fetched twice at a time: Spark's speculation
    would be impolite.
    """
    return (
        conf.with_values({_SPECULATION: "false"}).freeze()
        if conf.get_boolean(_SPECULATION, False)
        else conf
    )
