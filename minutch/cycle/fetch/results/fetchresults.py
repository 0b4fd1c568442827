"""Writes what a fetch finds, each URL once: into the log, the WARC files and the ledger. Reads what
an earlier run of the same fetch has left: the URLs that it settled, and those that it was still to
follow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from minutch.cycle.fetch.frontier.queueitems import (
    FOLLOWED_ELSEWHERE,
    Dropped,
    FetchItem,
    QueueNames,
    Share,
    pack_follow,
    unpack_follow,
)
from minutch.cycle.fetch.frontier.queues import ROBOTS_DEFER
from minutch.cycle.fetch.ledger import Ledger, Outcome
from minutch.cycle.fetch.results.fetchlog import FetchLog, Frame, Part, frames, log_codec, positions
from minutch.cycle.fetch.results.pagearchive import PageArchive
from minutch.cycle.fetch.results.recorder import Recorder
from minutch.cycle.fetch.stats import FetchStats
from minutch.cycle.segment.store import FETCHING
from minutch.errors import StoreError
from minutch.hadoop.formats.javaio import decode_text


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
            # First: the frame says where the records lie.
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
            # Its robots.txt, say, which was fetched.
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
                # Before the log, which refers to it.
                self.archive.sync()
            self.log.sync()
        except OSError as exc:
            raise StoreError(f"{self.log.path}: can't sync the fetch log: {exc.strerror}") from exc

    def close(self) -> None:
        """Gives up what is being parsed, and closes the files. For another thread."""
        if self.archive is not None:
            self.archive.close()
        self.log.close()


# -- what an earlier run has left ------------------------------------------------------------------


@dataclass(slots=True)
class Resumed:
    """The contents of the logs of an earlier run of the same fetch."""

    settled: Counter[str] = field(default_factory=Counter)
    ledger: Ledger = field(default_factory=Ledger)
    follow: dict[str, bytes] = field(default_factory=dict)
    """URLs that were to be followed and are not done, with their FOLLOW entries."""
    parsed: bool = False
    """Whether pages were parsed."""
    codec: str | None = None
    """What the values in the logs are compressed by; None: nothing is in them."""

    def let_go(self) -> None:
        """Forgets the URLs, all of which are taken up: a fetch may last as long as its crawl."""
        self.settled.clear()
        self.follow.clear()

    def followed(self, names: QueueNames, share: Share) -> Iterator[FetchItem]:
        """Yields the items still to be followed whose queues a process has."""
        for url, value in self.follow.items():
            queue_id = names.of(url)
            if queue_id is not None and share.owns(queue_id):
                yield unpack_follow(url, value, queue_id)


def logs_in(work: Path) -> list[Path]:
    """Returns the logs of a fetch that works in a folder."""
    return sorted(work.glob("log-*"))


def logs_after(segment: Path) -> list[Path]:
    """Returns the logs of the later segments beside one that are being fetched: a list may have
    been turned over to theirs.
    """
    folders = segment.parent.glob(f"*/{FETCHING}")
    later = (work for work in folders if work.parent.name > segment.name)
    return [path for work in later for path in logs_in(work)]


def resume(logs: Iterable[Path], later: Iterable[Path] = ()) -> Resumed:
    """Reads the logs of a broken fetch; nothing if there are none. What `later` logs have is not to
    be followed: a process that had turned to the next list took it from one that had not, whose log
    can't say so, and after a kill both asked for it.
    """
    result = Resumed()
    done = {decode_text(key) for key in followed(later)}
    for path in logs:
        for frame in frames(path):
            if result.codec is None:
                result.codec = log_codec(path)
            result.settled.update(frame.listed)
            if frame.listed:
                result.ledger.settle(frame.outcome, len(frame.listed))
            for entry in frame.entries:
                url = decode_text(entry.key)
                if entry.part is Part.FOLLOW and entry.value != FOLLOWED_ELSEWHERE:
                    result.follow[url] = entry.value
                elif entry.part is Part.FOLLOW:
                    done.add(url)
                elif entry.part is Part.PARSE:
                    result.parsed = True
                elif entry.part is Part.FETCH and not frame.listed:
                    done.add(url)
    # At the end: a URL may be done in another log than the one that has it to be followed.
    result.follow = {url: value for url, value in result.follow.items() if url not in done}
    return result


def followed(logs: Iterable[Path]) -> Iterator[bytes]:
    """Yields the URLs (UTF-8) of no list that a fetch has followed or is to follow, some twice. It
    may be running. Raises FormatError.
    """
    return (
        entry.key
        for path in logs
        for _, entries, _ in positions(path)
        for entry in entries
        if entry.part is Part.FOLLOW
    )
