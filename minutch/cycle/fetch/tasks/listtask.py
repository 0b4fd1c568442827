"""Fetches one list of a segment as a task, on whichever machine it runs."""

from __future__ import annotations

import json
import logging
import shutil
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from minutch import strictjson
from minutch.clock import SteadyClock, SystemClock
from minutch.cycle.fetch.components import FetchComponents
from minutch.cycle.fetch.frontier.hoststate import state_folder
from minutch.cycle.fetch.frontier.listindex import generate_files
from minutch.cycle.fetch.ledger import OUTCOMES, Ledger
from minutch.cycle.fetch.listfetch import (
    ListFetch,
)
from minutch.cycle.fetch.remotesegment import copy_folder, folder_of, own_folder
from minutch.cycle.fetch.results.closing import write_list
from minutch.cycle.fetch.results.resume import logs_in
from minutch.cycle.fetch.settings import FetchSettings
from minutch.cycle.fetch.stats import FetchStats
from minutch.cycle.fetch.tasks.taskchannel import ChannelAddress, TaskChannel
from minutch.cycle.segment.store import (
    CRAWL_FETCH,
    WARC,
    Segment,
)
from minutch.errors import LockedError, MinutchError, StoreError
from minutch.hadoop.stores import as_path
from minutch.work.engine import Task
from minutch.work.tables.database import part_name
from minutch.work.tables.install import sync_tree
from minutch.work.tables.lock import lock
from minutch.work.tables.workfolders import remove

log = logging.getLogger(__name__)

LEDGER: Final = "ledger"
_NAME: Final = "segment"
"""The file that says which segment a folder of a machine is for."""
_WAIT: Final = 60
"""Seconds that an attempt waits for another one on the same machine, which Spark holds for lost, to
end.
"""


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
            job = self._job(here, part, channel)
            ledger, stats = job.run(sys.stderr, f"list {part}", channel)
            result = Fetched(ledger, stats)
            if ledger.settled < ledger.generated:
                self._bring(here, task.folder / "stopped", self._stopped(part))
            else:
                listed = job.checked(ledger)
                fresh = task.folder / place.name
                fresh.mkdir()
                write_list(
                    Segment(self.path),
                    fresh,
                    part,
                    job.logs,
                    job.parts,
                    self.settings.form,
                    listed,
                )
                if (here / WARC).is_dir():
                    copy_folder(here / WARC, fresh / WARC)
                result = self._commit(fresh, place, result)
        return result

    def _job(self, here: Path, part: int, channel: TaskChannel) -> ListFetch:
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
            is_stopping=lambda: channel.leaves_resting,
            stops=channel.stopping,
            as_begun=True,
        )

    def _stopped(self, part: int) -> Path:
        return self.work / f"stopped-{part:05}"

    def _bring(self, here: Path, fresh: Path, place: Path) -> None:
        """Copies the logs of a list that was stopped, and what belongs to them, into the
        segment.
        """
        copy_folder(here, fresh)
        sync_tree(fresh)
        remove(place)
        fresh.rename(place)

    def _commit(self, fresh: Path, place: Path, result: Fetched) -> Fetched:
        """Lets a part count, unless another attempt's does."""
        ledger = result.ledger
        own = {"generated": ledger.generated, "outcomes": ledger.outcomes}
        (fresh / LEDGER).write_text(json.dumps(own), "utf-8")
        sync_tree(fresh)
        try:
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
    if stopped.is_dir() and _size(stopped) > _size(here):
        shutil.rmtree(here)
        copy_folder(stopped, here)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in logs_in(folder))


def _clear_own() -> None:
    """Removes what is left on this machine of lists whose segments are fetched by now."""
    for name in own_folder().glob(f"*/{_NAME}"):
        with suppress(OSError, MinutchError):
            segment = Segment(as_path(name.read_text("utf-8", "replace")))
            if segment.has(CRAWL_FETCH):
                shutil.rmtree(name.parent)
