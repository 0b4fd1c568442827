"""What is written of a redirect that is not followed."""

from __future__ import annotations

from pathlib import Path

import pytest

from minutch.cycle.segment.store import CRAWL_FETCH
from tests.support.misbehaving import MisbehavingServer
from tests.support.segments import conf_for, fetch_segment, make_segment


@pytest.mark.parametrize("most", ["0", "1"])
def test_it_is_the_normalized_target(tmp_path: Path, most: str) -> None:
    """As of every URL that gets into a CrawlDb, with http.redirect.max exceeded, too, where Nutch
    writes the raw Location.
    """
    with MisbehavingServer() as server:
        last = server.url("x/../2").encode()
        for path, location in (("/0", b"/1" if most == "1" else last), ("/1", last)):
            server.pages[path] = (
                b"HTTP/1.1 301 Moved\r\nLocation: " + location + b"\r\nContent-Length: 0\r\n\r\n"
            )
        segment = make_segment(tmp_path, [server.url("0")])
        values = {
            "http__redirect__max": most,
            "plugin__includes": "protocol-http|urlnormalizer-basic|scoring-opic",
        }
        fetch_segment(segment, conf_for(**values))
        found = {url for url, _ in segment.records(CRAWL_FETCH)}
        assert server.url("2") in found
        assert server.url("x/../2") not in found
