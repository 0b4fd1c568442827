"""Writes what a fetch finds, each URL once: into the log, the WARC files and the ledger."""

from __future__ import annotations

from dataclasses import dataclass

from minutch.cycle.fetch.frontier.queueitems import (
    FOLLOWED_ELSEWHERE,
    Dropped,
    FetchItem,
    pack_follow,
)
from minutch.cycle.fetch.frontier.queues import ROBOTS_DEFER
from minutch.cycle.fetch.ledger import Ledger, Outcome
from minutch.cycle.fetch.results.fetchlog import FetchLog, Frame, Part
from minutch.cycle.fetch.results.pagearchive import PageArchive
from minutch.cycle.fetch.results.recorder import Recorder
from minutch.cycle.fetch.stats import FetchStats
from minutch.errors import StoreError


@dataclass(slots=True)
class FetchResults:
    """The results of one process of a fetch."""

    recorder: Recorder
    log: FetchLog
    ledger: Ledger
    stats: FetchStats
    archive: PageArchive | None = None
    """Where answers are archived (fetcher.warc)."""

    def write(self, frame: Frame) -> None:
        """Writes the records of a URL, which is settled by that. Raises StoreError."""
        if self.archive is not None:
            self.archive.keep(frame)
        self.log.append(frame)
        if frame.listed:
            self.ledger.settle(frame.outcome, len(frame.listed))
        elif frame.outcome is Outcome.FOLLOWED:
            self.ledger.settle(Outcome.FOLLOWED)

    def skip(self, dropped: Dropped, now: int) -> None:
        """Writes that a URL is not asked for, and why. Raises StoreError."""
        item, outcome, reason = dropped.item, dropped.outcome, dropped.reason
        if item.listed is None:
            goes_on = outcome is Outcome.SKIPPED_TAIL  # and counts in the list that follows it
            url, frame = item.url, Frame(Outcome.REDIRECTED if goes_on else Outcome.FOLLOWED)
            frame.add(Part.FOLLOW, url, FOLLOWED_ELSEWHERE)
        else:
            url, frame = item.listed, Frame(outcome, [item.listed])
        if item.frame is not None:
            frame.entries += item.frame.entries
        self.recorder.skipped(frame, url, item.datum, reason, now, is_known=item.listed is not None)
        event = "robots_defer_visits_dropped_total" if reason == ROBOTS_DEFER else outcome.event
        if event:
            self.stats.events[event] += 1
        self.write(frame)

    def follow(self, item: FetchItem) -> None:
        """Writes that an item of no list is to be followed, by this run or the next one. Raises
        StoreError.
        """
        frame = Frame(Outcome.REDIRECTED)
        frame.add(Part.FOLLOW, item.url, pack_follow(item))
        self.log.append(frame)

    def sync(self) -> None:
        """Brings what was written onto the medium. For another thread. Raises StoreError."""
        try:
            if self.archive is not None:
                self.archive.sync()
            self.log.sync()
        except OSError as exc:
            raise StoreError(f"{self.log.path}: can't sync the fetch log: {exc.strerror}") from exc

    def close(self) -> None:
        """Gives up what is being parsed, and closes the files. For another thread."""
        if self.archive is not None:
            self.archive.close()
        self.log.close()
