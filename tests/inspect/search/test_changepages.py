"""What changed between visits, as a page and as a feed."""

from __future__ import annotations

import io
import json
import re
import xml.etree.ElementTree as etree
from datetime import UTC, datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from starlette.testclient import TestClient

from minutch.clock import FakeClock
from minutch.conf import Configuration
from minutch.errors import MinutchError
from minutch.inspect.query.changes import EVENTS
from minutch.inspect.search.app import make
from minutch.inspect.search.changepages import MOST, changes, feed
from minutch.inspect.search.crawlfiles import CrawlFiles
from minutch.inspect.search.searcher import Searcher
from minutch.job import JobContext
from minutch.web.access import LOCAL, Access
from tests.inspect.search.conftest import HOSTILE
from tests.support.commands import command
from tests.support.crawldbs import NOW
from tests.support.indexedcrawl import IndexedCrawl

ATOM = "{http://www.w3.org/2005/Atom}"
TIME = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
HARM = "</p><script>alert(1)</script>\x00\x1b[31m\ufffe]]>"


def event(url: str = "http://a.org/", **more: Any) -> dict[str, Any]:
    block = {
        "removed": "",
        "added": "words",
        "muted": "",
        "pieces": [{"op": "+", "words": "words"}],
    }
    found = {
        "url": url, "host": "a.org", "segment": "20260302093000", "time": TIME, "kind": "changed",
        "before": "20260301093000", "to": None, "words_added": 1, "words_removed": 0, "muted": 0,
        "blocks": [block],
    }  # fmt: skip
    return found | more


def events(*found: dict[str, Any]) -> pl.DataFrame:
    return pl.DataFrame(list(found), schema=EVENTS)


def texts(entry: etree.Element, name: str) -> list[str]:
    return [child.text or "" for child in entry.findall(ATOM + name)]


def test_a_feed_has_what_rfc_4287_asks_for() -> None:
    """Sections 4.1.1 and 4.1.2: one id, title and updated each, an author, a link or content."""
    many = [
        event(f"http://a.org/{number}", kind="moved", to="http://b.org/") for number in range(3)
    ]
    root = etree.fromstring(feed("crawl & co", events(*many)))
    assert root.tag == f"{ATOM}feed"
    assert [child.tag for child in root[:5]] == [
        ATOM + name for name in ("id", "title", "updated", "author", "generator")
    ]
    assert texts(root, "title") == ["Changes: crawl & co"]
    assert root[3][0].text == "minutch"
    entries = root.findall(f"{ATOM}entry")
    ids = [texts(entry, "id")[0] for entry in entries]
    assert len(set(ids)) == 3 and all(re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", one) for one in ids)
    for entry in entries:
        assert texts(entry, "updated") == ["2026-03-02T09:30:00Z"]
        [content] = entry.findall(f"{ATOM}content")
        assert content.get("type") == "html" and "<ins>words</ins>" in (content.text or "")
        [link] = entry.findall(f"{ATOM}link")
        assert link.get("rel") == "alternate" and (link.get("href") or "").startswith("http://a")
        [category] = entry.findall(f"{ATOM}category")
        assert category.get("term") == "moved"


def test_ids_depend_on_the_url_and_the_time_of_the_visit_alone() -> None:
    """A compaction gives segments other names, and more visits teach more about blocks."""

    def ids(*found: dict[str, Any]) -> list[str]:
        root = etree.fromstring(feed("crawl", events(*found)))
        return [texts(entry, "id")[0] for entry in root.findall(f"{ATOM}entry")]

    [first] = ids(event())
    assert ids(event(segment="20270101000000", kind="moved"), event("http://b.org/"))[0] == first
    assert ids(event(time=TIME.replace(hour=10))) != [first]


def test_a_feed_without_entries_is_one_and_a_long_one_has_the_newest() -> None:
    root = etree.fromstring(feed("crawl", events()))
    assert texts(root, "updated") == ["1970-01-01T00:00:00Z"]
    many = [
        event(f"http://a.org/{n:04}", time=TIME.replace(year=2000 + n)) for n in range(MOST + 9)
    ]
    root = etree.fromstring(feed("crawl", events(*many)))
    entries = root.findall(f"{ATOM}entry")
    assert len(entries) == MOST
    assert texts(root, "updated") == texts(entries[0], "updated") == ["2208-03-02T09:30:00Z"]


def test_what_means_harm_is_text_in_pages_and_feeds() -> None:
    blocks = [{"removed": HARM, "added": "", "muted": "", "pieces": [{"op": "-", "words": HARM}]}]
    bad = [event(HOSTILE, blocks=blocks), event(HARM, to=HARM), event("javascript:alert(1)")]
    root = etree.fromstring(feed("x", events(*bad)).encode())
    hrefs = [link.get("href") for link in root.iter(f"{ATOM}link")]
    assert hrefs == []
    tags: set[str] = set()

    class Tags(HTMLParser):
        """Collects the elements."""

        def handle_starttag(self, tag: str, attrs: object) -> None:
            tags.add(tag)

    for content in root.iter(f"{ATOM}content"):
        Tags().feed(content.text or "")
    assert tags == {"p", "bdi", "del", "ins", "a"}
    assert "<script>alert" not in changes("x", events(*bad), 0)


def test_serve_shows_changes_and_the_feed(harbours: IndexedCrawl) -> None:
    app = make(Searcher(harbours.index_folder), CrawlFiles(harbours.folder), Access(None, LOCAL))
    client = TestClient(app, base_url="http://localhost:8080")
    assert 'href="changes"' in client.get("/").text
    text = client.get("/changes").text
    assert "<h1><bdi>Changes: crawl</bdi></h1>" in text
    assert "<del>an old text</del>" in text and "<ins>A harbour with 0 boats</ins>" in text
    assert "<script>document" not in text
    answer = client.get("/changes.atom")
    assert answer.headers["content-type"] == "application/atom+xml"
    assert len(etree.fromstring(answer.text).findall(f"{ATOM}entry")) > 10


def printed(folder: Path, *words: str, colour: bool = False) -> str:
    context = JobContext(
        Configuration.load([]).freeze(), FakeClock(NOW), io.StringIO(), io.StringIO()
    )
    context.colour = colour
    assert command("changes").run([str(folder), *words], context) == 0
    assert isinstance(context.out, io.StringIO)
    return context.out.getvalue()


def test_the_command_prints_them_in_each_form(harbours: IndexedCrawl) -> None:
    folder, url = harbours.folder, "http://a.example.org/00"
    text = printed(folder)
    assert f"  changed  {url} (+5 -3 words)\n    - an old text\n    + A harbour" in text
    assert f"  changed  {url} (+5 -3 words)\n    \x1b[31man old text\x1b[0m" in printed(
        folder, colour=True
    )
    assert "\x1b]" not in text and HOSTILE in text
    rows = [json.loads(line) for line in printed(folder, "--jsonl").splitlines()]
    [row] = [row for row in rows if row["url"] == url and row["kind"] == "changed"]
    assert row["time"] == "2023-11-14T22:13:20Z" and row["before"] == "20240101000000"
    assert [block.get("removed") for block in row["blocks"]] == ["an old text", None]
    assert row["blocks"][0]["diff"] == [["-", "an old text"]]
    assert etree.fromstring(printed(folder, "--atom")).tag == f"{ATOM}feed"
    assert printed(folder, "--since", "1d") == "Nothing has changed.\n"


@pytest.mark.parametrize(
    "since", ["20240102000000", "segments/20240102000000", "2023-11-14", "9999d"]
)
def test_since_is_a_segment_a_time_or_how_long_ago(harbours: IndexedCrawl, since: str) -> None:
    assert "  changed  http://a.example.org/00" in printed(harbours.folder, "--since", since)


@pytest.mark.parametrize("since", ["yesterday", "7", "2026-13-01", ""])
def test_since_says_what_it_expects(harbours: IndexedCrawl, since: str) -> None:
    with pytest.raises(MinutchError, match="expected a segment's name, a time"):
        printed(harbours.folder, "--since", since)
