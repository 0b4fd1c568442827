"""Reads what an earlier run of the same fetch has left: the URLs that it settled, and those that it
was still to follow.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from minutch.cycle.fetch.frontier.queueitems import FetchItem, unpack_follow
from minutch.cycle.fetch.frontier.queuekey import QueueNames
from minutch.cycle.fetch.ledger import Ledger
from minutch.cycle.fetch.neighbours import Share
from minutch.cycle.fetch.results.fetchlog import Part, frames


@dataclass(slots=True)
class Resumed:
    """The contents of the logs of an earlier run of the same fetch."""

    settled: Counter[str] = field(default_factory=Counter)
    ledger: Ledger = field(default_factory=Ledger)
    follow: dict[str, bytes] = field(default_factory=dict)
    """URLs that were to be followed and are not done, with their FOLLOW entries."""
    parsed: bool = False
    """Whether pages were parsed."""

    def followed(self, names: QueueNames, share: Share) -> Iterator[FetchItem]:
        """Yields the items still to be followed whose queues a process has."""
        for url, value in self.follow.items():
            queue_id = names.of(url)
            if queue_id is not None and share.owns(queue_id):
                yield unpack_follow(url, value, queue_id)


def resume(logs: Iterable[Path]) -> Resumed:
    """Reads the logs of a broken fetch; nothing if there are none."""
    result = Resumed()
    done: set[str] = set()
    for path in logs:
        for frame in frames(path):
            result.settled.update(frame.listed)
            if frame.listed:
                result.ledger.settle(frame.outcome, len(frame.listed))
            for entry in frame.entries:
                url = entry.key.decode("utf-8", "surrogateescape")
                if entry.part is Part.FOLLOW:
                    result.follow[url] = entry.value
                elif entry.part is Part.PARSE:
                    result.parsed = True
                elif entry.part is Part.FETCH and not frame.listed:
                    done.add(url)
    result.follow = {url: value for url, value in result.follow.items() if url not in done}
    return result
