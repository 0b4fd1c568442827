"""Reads the times that a page and its headers carry. Pure: no I/O."""

from __future__ import annotations

from datetime import UTC
from email.utils import parsedate_to_datetime

from minutch.records.content import Content
from minutch.records.metadata import CONTENT_FETCH_TIME_KEY


def fetch_time(content: Content) -> int | None:
    """Returns the time (ms) of a page's fetch; None where its metadata has none."""
    text = content.metadata.first(CONTENT_FETCH_TIME_KEY) or ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else None


def http_time(text: str) -> int | None:
    """Returns a date of an HTTP header in ms since 1970; None if it is none. Without a zone it is
    in UTC.
    """
    try:
        found = parsedate_to_datetime(text)
        return int((found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()) * 1000
    except (ValueError, TypeError, OverflowError, OSError, IndexError):
        return None
