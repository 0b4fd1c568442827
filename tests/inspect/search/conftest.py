"""A crawl with an index, made once for all tests of search: harbours, languages, and a page that
means harm.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from minutch.records import crawldatum as status
from tests.support.indexedcrawl import IndexedCrawl, Page

HOSTILE = "http://evil.example.org/?a='\"><script>document.title='owned'</script>"
HOSTILE_CONTENT = b"""<html><head><title>x</title>
<meta http-equiv="refresh" content="0;url=http://127.0.0.1:1/stolen-by-refresh">\
<base href="http://127.0.0.1:1/">
<link rel="stylesheet" href="http://127.0.0.1:1/style.css"></head>\
<body onload="document.body.id='ran'">
<script>document.documentElement.id='ran'; top.location='http://127.0.0.1:1/stolen'</script>
<script>parent.document.title='owned'</script>
<img src="http://127.0.0.1:1/picture.png" onerror="document.documentElement.id='ran'">
<form action="http://127.0.0.1:1/form" target="_top"><button id="b">go</button></form>
<a id="out" href="http://127.0.0.1:1/out" target="_top">out</a>\
<iframe src="http://127.0.0.1:1/frame"></iframe>
</body></html>"""
JAPANESE = "潮の図書館には本と地図と潮見表があります"


def pages() -> list[Page]:
    """The pages of the crawl."""
    links = [
        ("http://a.example.org/00", "the first harbour"),
        ("http://b.example.org/", "<b>another</b> host"),
    ]
    harbours = [
        Page(
            f"http://a.example.org/{n:02}",
            f"Harbour {n}",
            f"A harbour with {n} boats",
            links=links if n else (),
        )
        for n in range(25)
    ]
    return [
        *harbours,
        Page(
            "http://b.example.org/",
            "Another harbour",
            "boats of the other host",
            meta={"keywords": "x"},
        ),
        Page("http://b.example.org/en", "Running dogs", "The dogs were running quickly", lang="en"),
        Page("http://b.example.org/de", "Häuser am Meer", "Die Häuser standen am Meer", lang="de"),
        Page(
            "http://b.example.org/ja",
            "潮の図書館",
            f"{JAPANESE}。Linuxの本も。",
            f"<p>{JAPANESE}".encode("shift_jis"),
            charset="Shift_JIS",
            lang="ja",
        ),
        Page("http://b.example.org/ko", "한국어 문서", "한국어로 쓴 문서입니다", lang="ko"),
        Page(
            "http://b.example.org/pdf",
            "A paper",
            "the text of a paper",
            b"%PDF-1.4 \x00\xff",
            "application/pdf",
        ),
        Page("http://b.example.org/pic", "", "", b"\x89PNG\r\n\x1a\n", "image/png"),
        Page(
            "http://b.example.org/svg", "Drawing", "", b"<svg onload='alert(1)'/>", "image/svg+xml"
        ),
        Page(
            HOSTILE,
            "</title><script>document.title='owned'</script>\u202egnp.exe\x1b[31m",
            "harmful </p><script>document.documentElement.id='ran'</script><img src=x"
            " onerror=alert(1)> words",
            HOSTILE_CONTENT,
            links=[("http://a.example.org/00", "<script>document.title='owned'</script>")],
        ),
    ]


@pytest.fixture(scope="session")
def harbours(tmp_path_factory: pytest.TempPathFactory) -> IndexedCrawl:
    """The crawl. Tests only read it."""
    crawl = IndexedCrawl(Path(tmp_path_factory.mktemp("search")) / "crawl")
    found = pages()
    crawl.segment("20240101000000", [Page("http://a.example.org/00", "Old harbour", "an old text")])
    crawl.segment("20240102000000", found)
    crawl.crawldb({page.url: status.STATUS_DB_FETCHED for page in found})
    crawl.invert()
    crawl.index(str(crawl.folder / "crawldb"), *crawl.all_segments)
    return crawl
