"""What can go wrong with a browser."""

from __future__ import annotations

import httpx


class BrowserFailure(httpx.TransportError):
    """The browser ended, hung, or would not do what it was told. That page has failed, no other."""
