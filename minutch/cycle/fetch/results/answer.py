"""Holds what came of a URL: all that its records are made of."""

from __future__ import annotations

from dataclasses import dataclass

from minutch.records.crawldatum import CrawlDatum
from minutch.records.protocol import Content, ProtocolStatus


@dataclass(slots=True)
class Answer:
    """The answer to a request, or why there is none."""

    url: str
    datum: CrawlDatum
    fetch_status: int
    """The status that `datum` gets (CrawlDatum.STATUS_FETCH_*, STATUS_LINKED)."""
    time: int
    """When it came (ms)."""
    status: ProtocolStatus | None = None
    content: Content | None = None
