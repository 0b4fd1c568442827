"""Defines the failure of a page in the browser."""

from __future__ import annotations

import httpx


class BrowserFailure(httpx.TransportError):
    """The browser ended, hung, or refused a command; only that page has failed."""
