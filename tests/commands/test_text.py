"""`minutch text` of pages: of a file, of a host, of a crawl. Files of Hadoop's are in
tests/hadoop/formats/test_text.py.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from minutch.clock import FakeClock
from minutch.cycle.parse.pagecheck import CheckFailed
from minutch.cycle.segment.store import part_writer
from minutch.errors import StoreError, UsageError
from minutch.job import JobContext
from tests.cycle.owntext.test_texts import NOTE, html, write
from tests.support.commands import text as command
from tests.support.indexedcrawl import IndexedCrawl, Page
from tests.support.pages import configuration, content
from tests.support.siteserver import Site, SiteServer

PAGE = """<title>A page</title><nav><a href=/>Home</a> <a href=/shop>Shop</a></nav><article>
<h1 id=tides>Why there are tides</h1><p>The Moon pulls the water of the oceans towards it, and so
there are two bulges that run around the Earth, <a href=more>once a day</a>, more or less.</p>
<h2 id=sun>The Sun</h2><p>It does the same, though with less force, as it is so much farther away
than the Moon is, and both together make what are called spring tides.</p></article>
<footer>Copyright by us. All rights reserved.</footer>"""


def run(*words: object, **properties: str) -> tuple[int, str]:
    """Exit code and output."""
    values = {"http.agent.name": "me", "fetcher.server.delay": "0"} | properties
    values["http.filter.ipaddress.include"] = "loopback"
    conf = configuration("protocol-http|parse-(html|tika)", **values).freeze()
    context = JobContext(conf, FakeClock(0), io.StringIO(), io.StringIO(), io.StringIO())
    code = command.run([str(word) for word in words], context)
    assert isinstance(context.out, io.StringIO)
    return code, context.out.getvalue()


@pytest.fixture
def page(tmp_path: Path) -> Path:
    path = tmp_path / "page.html"
    path.write_text(PAGE)
    return path


@pytest.fixture(scope="module")
def site() -> Iterator[Site]:
    with SiteServer() as server:
        yield server.site


def test_a_file(page: Path) -> None:
    code, out = run(page)
    lines = out.splitlines()
    assert code == 0
    assert [line[:12] for line in lines] == [
        "Why there ar",
        "The Moon pul",
        "The Sun",
        "It does the ",
    ]
    assert run(page, parser_html_text="page")[1].startswith("A page")


def test_its_markdown(page: Path) -> None:
    assert run(f"file:{page}", "--markdown")[1].startswith(
        "# Why there are tides\n\nThe Moon pulls the water"
    )
    assert f"[once a day](file:{page.parent}/more)" in run(page, "--markdown")[1]


def test_its_chunks(page: Path) -> None:
    found = [json.loads(line) for line in run(page, "--chunks")[1].splitlines()]
    assert [(chunk["url"], chunk["path"]) for chunk in found] == [
        (f"{page.as_uri()}#tides", ["Why there are tides"]),
        (f"{page.as_uri()}#sun", ["Why there are tides", "The Sun"]),
    ]
    smaller = run(page, "--chunks", "--tokens", "16", "--overlap", "0")[1].splitlines()
    assert len(smaller) > 4
    assert max(json.loads(line)["tokens"] for line in smaller) <= 16


def test_what_is_left_out_is_shown(page: Path) -> None:
    lines = run(page, "--show-frame")[1].splitlines()
    assert lines[:4] == ["-- not main text:", "-  Home Shop", "   Why there are tides", lines[3]]
    assert lines[-3:] == ["-  Copyright by us. All rights reserved.", "", lines[-1]]
    assert lines[-1] == "4 of 6 lines kept; 2 left out, not main text"


def test_other_types_have_their_text_and_text_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "a.rtf").write_bytes(rb"{\rtf1 Some \b bold\b0  words.}")
    (tmp_path / "a.txt").write_text("two  blanks\n")
    (tmp_path / "a.html").write_text("<p>two  blanks")
    assert run(tmp_path / "a.rtf")[1] == "Some bold words.\n"
    assert run(tmp_path / "a.txt")[1] == "two  blanks\n"
    assert run(tmp_path / "a.html", "-json")[1].startswith("{")
    assert run(tmp_path / "a.html", tmp_path / "a.txt")[1] == "two blanks\ntwo  blanks\n"


def test_what_cant_be_parsed(tmp_path: Path, page: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n")
    with pytest.raises(CheckFailed, match=r"a\.png: not parsed: .* image/png"):
        run(tmp_path / "a.png")
    with pytest.raises(FileNotFoundError):
        run(tmp_path / "none.html")
    code, out = run(tmp_path / "none.html", page)
    assert (code, out) == (1, run(page)[1])
    assert "none.html" in caplog.text
    with pytest.raises(UsageError, match="one of"):
        run(page, "--markdown", "--chunks")


def test_a_live_page(site: Site) -> None:
    assert run(site.url("one", "/books/tides.html"))[1] == "The moon does the work.\n"
    with pytest.raises(CheckFailed, match="Denied by robots"):
        run(site.url("one", "/private/members.html"))
    with pytest.raises(CheckFailed, match="notfound"):
        run(site.url("one", "/nothing"))
    with pytest.raises(CheckFailed, match="Denied by robots") as caught:
        run("http://127.0.0.1:1/")
    assert "refused" in caught.value.hint


def test_a_page_that_forbids_it_has_no_text(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    assert run(site.url("one", "/unindexed.html"), "--markdown") == (0, "")
    assert "unindexed.html has no text" in caplog.text


def test_a_page_of_a_crawl(tmp_path: Path) -> None:
    url = "http://example.org/a"
    crawl = IndexedCrawl(tmp_path / "crawl")
    crawl.segment("20240101000000", [Page(url, content=b"<p>old")])
    crawl.segment("20240102000000", [Page(url, content=PAGE.encode())])
    code, out = run(crawl.folder, url, "--markdown")
    assert code == 0
    assert "[once a day](http://example.org/more)" in out
    with pytest.raises(StoreError, match="has the content of http") as caught:
        run(crawl.folder, "http://example.org/b")
    assert "explain http://example.org/b" in caught.value.hint
    with pytest.raises(StoreError, match="is no crawl"):
        run(tmp_path, url)


def test_a_page_of_a_crawl_is_read_without_the_frame_of_its_site(tmp_path: Path) -> None:
    pages = {f"http://example.org/{number}": html(number) for number in range(12)}
    segment = write(tmp_path, "20240101000000", pages)
    with part_writer(segment.path, "content", 0) as put:
        for url, markup in sorted(pages.items()):
            put(url, content(markup, url=url))
    url = "http://example.org/3"
    out = run(tmp_path, url, "--show-frame")[1]
    assert f"-- frame of the site:\n-  {NOTE[3:20]}" in out
    text = run(tmp_path, url)[1]
    markdown = run(tmp_path, url, "--markdown")[1]
    assert text.splitlines()[0] == "Page 3"
    assert len(text.splitlines()) == 4
    assert markdown.startswith("# Page 3\n\n")
    assert markdown.replace("# ", "").replace("\n\n", "\n") == text
