"""What a page in the browser may load. The one home of that decision. No I/O.

GET, http or https                            asked of robots.txt, then fetched by lib-http other
methods, other schemes                  refused: a crawler reads pictures, sound, pings, ...
refused as configured: they add nothing to a page's text the page's own document
the answer that is there already the main frame on its way to another URL      refused, and noted as
a redirect, which the fetcher follows or not the main frame at the same URL again          fetched
again, twice at most more than the page's bounds                   refused
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

RELOADS: Final = 2
NEVER: Final = frozenset(
    {"Media", "TextTrack", "Prefetch", "Ping", "CSPViolationReport", "Manifest", "EventSource"}
)
"""Kinds of resources (Network.ResourceType) that no text comes from, or that have no end."""


_ICON: Final = "/favicon.ico"
"""Asked for by the browser, not by the page."""


class Verdict(Enum):
    """What is done with a request."""

    FETCH = "fetch"
    OWN = "own"
    """Answer with the document that is there."""
    LEAVE = "leave"
    """The page leads elsewhere."""
    REFUSE = "refuse"


@dataclass(slots=True)
class Loads:
    """The budget and state of one page."""

    url: str
    frame: str
    """The main frame."""
    not_loaded: frozenset[str]
    requests_left: int
    bytes_left: int
    follows: bool = False
    """While handlers work: they may go where they like, as far as robots.txt goes."""
    opened: bool = False
    reloads: int = 0

    def judge(self, event: dict[str, Any]) -> Verdict:
        """The verdict on a request that the browser holds (Fetch.requestPaused)."""
        request, kind = event["request"], event.get("resourceType", "Other")
        url = request["url"].partition("#")[0]
        if kind == "Document" and event.get("frameId") == self.frame:
            if not self.opened:
                self.opened = True
                return Verdict.OWN
            if not self.follows and url != self.url and request["method"] == "GET":
                return Verdict.LEAVE
            self.reloads += 1
            if self.reloads > RELOADS and not self.follows:
                return Verdict.REFUSE
        if request["method"] != "GET" or not url.lower().startswith(("http://", "https://")):
            return Verdict.REFUSE
        if kind in NEVER or kind in self.not_loaded or (kind == "Other" and url.endswith(_ICON)):
            return Verdict.REFUSE
        if self.requests_left <= 0 or self.bytes_left <= 0:
            return Verdict.REFUSE
        self.requests_left -= 1
        return Verdict.FETCH
