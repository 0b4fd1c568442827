"""protocol-htmlunit: HtmlUnit is a browser in Java, for scripts and without pictures; Chromium does
its work here.
"""

from __future__ import annotations

from ..lib_selenium.base import BrowserHttp


class Http(BrowserHttp):
    """org.apache.nutch.protocol.htmlunit.Http."""

    html_unit = True
