"""Defines how protocols wait for their turn at another host than that of the URL being fetched."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass

from minutch.errors import MinutchError


@dataclass(slots=True)
class Visit:
    """A request to another host than that of the URL that is being fetched."""

    asked: bool = True
    """It was sent, so that the host needs a rest."""


class NoTurn(MinutchError):
    """Another host is not asked, now or at all; the message says why."""


Turn = Callable[[str, str], AbstractAsyncContextManager[Visit]]
"""URL that is being fetched, and one on another host: waits until that may be asked. Raises
NoTurn.
"""


@asynccontextmanager
async def at_once(origin: str, url: str) -> AsyncIterator[Visit]:
    """Waits for nothing: for those who have no queues."""
    yield Visit()
