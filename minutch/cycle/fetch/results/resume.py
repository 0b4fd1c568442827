"""Reads what an earlier run of the same fetch has left: the URLs that it settled, and those that it
was still to follow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from minutch.cycle.fetch.frontier.queueitems import FOLLOWED_ELSEWHERE, FetchItem, unpack_follow
from minutch.cycle.fetch.frontier.queuekey import QueueNames
from minutch.cycle.fetch.ledger import Ledger
from minutch.cycle.fetch.neighbours import Share
from minutch.cycle.fetch.results.fetchlog import Part, frames, log_codec, positions
from minutch.cycle.segment.store import FETCHING
from minutch.hadoop.formats.javaio import decode_text


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
