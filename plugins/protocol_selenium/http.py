"""protocol-selenium: fetches pages as a browser shows them."""

from __future__ import annotations

from ..lib_selenium.base import BrowserHttp


class Http(BrowserHttp):
    """org.apache.nutch.protocol.selenium.Http."""
