"""Reads the times that a page and its headers carry. Pure: no I/O."""

from __future__ import annotations

from minutch.records.content import Content
from minutch.records.metadata import CONTENT_FETCH_TIME_KEY


def fetch_time(content: Content) -> int | None:
    """Returns the time (ms) of a page's fetch; None where its metadata has none."""
    text = content.metadata.first(CONTENT_FETCH_TIME_KEY) or ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None
