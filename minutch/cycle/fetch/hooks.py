"""The hooks of a fetch loop: functions that others want called while it runs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from minutch.cycle.fetch.fetchlog import Frame
from minutch.cycle.fetch.queueitems import FetchItem
from minutch.cycle.fetch.recorder import ParsedPage
from minutch.cycle.fetch.redirectchain import RedirectChain
from minutch.cycle.fetch.snapshot import Snapshot


async def _nothing() -> None:
    return


@dataclass(slots=True)
class Hooks:
    """Functions that the loop calls; each may be left out."""

    tick: Callable[[Snapshot], None] = lambda snapshot: None
    publish: Callable[[str, str, dict[str, object]], None] = lambda kind, url, data: None
    parsed: Callable[[RedirectChain, ParsedPage], list[FetchItem]] = lambda chain, page: []
    is_new: Callable[[str], bool] = lambda url: True
    """Asked for each link that another process follows to a host of this one."""
    hand_over: Callable[[FetchItem], bool] = lambda item: False
    busy_until: Callable[[str, int], None] = lambda queue_id, time: None
    rested: Callable[[list[tuple[str, int]]], None] = lambda rests: None
    """Called before requests are sent and when they have ended: queues, and until when each rests
    (ms).
    """
    settled: Callable[[Frame], None] = lambda frame: None
    nothing_to_do: Callable[[], bool] = lambda: True
    """Asked when everything is done: False if more items may come from other processes."""
    begun: Callable[[], Awaitable[None]] = _nothing
    """Awaited before the first page."""
    watched: bool = False
    """Whether snapshots need details."""
    ended: Callable[[], None] = lambda: None
    """Called in a thread when the loop has ended."""
