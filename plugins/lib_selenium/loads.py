"""Decides what a page in the browser may load. Pure: no I/O.

GET, http or https                       robots.txt is asked, then lib-http fetches it
other methods, other schemes             refused: a crawler only reads
pictures, sound, pings, ...              refused as configured: they add nothing to the text
the page's own document                  answered with the document that was fetched
the main frame, to another URL           refused, and noted as a redirect for the fetcher
the main frame, to the same URL again    fetched again, at most twice
more than the page's bounds              refused
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
    """The decision about a request."""

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
        """Returns the verdict on a request that the browser holds (Fetch.requestPaused)."""
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
        is_web = request["method"] == "GET" and url.lower().startswith(("http://", "https://"))
        has_budget = self.requests_left > 0 and self.bytes_left > 0
        if not is_web or not has_budget or self._is_unwanted(kind, url):
            return Verdict.REFUSE
        self.requests_left -= 1
        return Verdict.FETCH

    def _is_unwanted(self, kind: str, url: str) -> bool:
        is_icon = kind == "Other" and url.endswith(_ICON)
        return kind in NEVER or kind in self.not_loaded or is_icon
