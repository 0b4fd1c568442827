"""Defines what a fetch tells others while it runs, and passes it on."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from minutch.cycle.fetch.frontier.hostmemory import HostMemory
from minutch.cycle.fetch.frontier.restlog import Rest
from minutch.cycle.fetch.publishers import Publishers
from minutch.cycle.fetch.snapshot import Snapshot


class FetchListener(Protocol):
    """Hears what happens in a process of a fetch. Called on the event loop."""

    wants_details: bool
    """Whether snapshots are to tell of single hosts."""

    def tick(self, snapshot: Snapshot) -> None:
        """The state of the fetch, once a second."""

    def publish(self, kind: str, url: str, data: dict[str, object]) -> None:
        """An event of a page (fetcher.publisher): START, END or REPORT."""

    def busy_until(self, host: str, time: int) -> None:
        """A host asked not to be called before then (ms)."""

    def rested(self, rests: list[Rest]) -> None:
        """Queues rest until then: before they are asked, and when they have answered."""

    async def close(self) -> None:
        """The fetch has ended."""


@dataclass(slots=True)
class ProcessListener:
    """Passes what a process tells on to a display, to the publishers and to the memory of hosts."""

    show: Callable[[Snapshot], None]
    memory: HostMemory
    publishers: Publishers | None
    """None where nothing is published."""
    wants_details: bool

    def tick(self, snapshot: Snapshot) -> None:
        self.show(snapshot)

    def publish(self, kind: str, url: str, data: dict[str, object]) -> None:
        if self.publishers is not None:
            self.publishers.publish(kind, url, data)

    def busy_until(self, host: str, time: int) -> None:
        self.memory.busy_until(host, time)

    def rested(self, rests: list[Rest]) -> None:
        self.memory.rested(rests)

    async def close(self) -> None:
        self.memory.close()
        if self.publishers is not None:
            await asyncio.to_thread(self.publishers.close)
