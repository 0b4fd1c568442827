"""The search page over HTTP: what it shows, whom it answers, and how stored pages are kept from
doing harm.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from urllib.parse import quote

import pytest
from starlette.testclient import TestClient

from minutch.inspect.search import pages
from minutch.inspect.search.app import is_ours, make
from minutch.inspect.search.crawlfiles import CrawlFiles
from minutch.inspect.search.results import Searcher
from tests.inspect.search.conftest import HOSTILE, HOSTILE_CONTENT, JAPANESE
from tests.support.indexedcrawl import IndexedCrawl, Page

HOSTS = frozenset(("localhost", "127.0.0.1", "[::1]"))


def client_of(folder: Path) -> TestClient:
    app = make(Searcher(folder / "index"), CrawlFiles(folder), HOSTS)
    return TestClient(app, base_url="http://localhost:8080", raise_server_exceptions=True)


@pytest.fixture(scope="module")
def client(harbours: IndexedCrawl) -> TestClient:
    return client_of(harbours.folder)


def about(view: str, url: str) -> str:
    return f"/{view}?url={quote(url, safe='')}"


def test_the_start_page_has_a_search_box(client: TestClient) -> None:
    text = client.get("/").text
    assert 'type="search"' in text
    assert "34 documents" in text


def test_ten_results_a_page(client: TestClient) -> None:
    first, third = client.get("/?q=harbour").text, client.get("/?q=harbour&page=3").text
    assert first.count("<h2><a") == 10
    assert "1 to 10 of 26 pages" in first
    assert "21 to 26 of 26 pages" in third
    assert 'rel="next"' in first and 'rel="next"' not in third
    assert 'href="./?q=harbour&amp;host=a.example.org"' in first
    assert "1 to 1 of 1 page," in client.get("/?q=harbour&host=b.example.org").text


@pytest.mark.parametrize("page", ["0", "-1", "x", "99999999999999999999", "1e3", "٣", ""])
def test_any_number_of_a_page_is_answered(client: TestClient, page: str) -> None:
    assert client.get("/", params={"q": "harbour", "page": page}).status_code == 200


@pytest.mark.parametrize(
    "query", ['"', "(((", "title:", "\x00", "a" * 5000, "\ud83d", "<script>alert(1)</script>"]
)
def test_any_query_is_answered(client: TestClient, query: str) -> None:
    answer = client.get("/?q=" + quote(query, errors="surrogatepass"))
    assert answer.status_code == 200
    assert "<script" not in answer.text


def test_what_a_page_holds_is_text(client: TestClient) -> None:
    text = client.get("/?q=harmful").text
    assert "<script" not in text and "onerror=alert" not in text.replace(
        "&lt;img src=x onerror=alert", ""
    )
    assert "\x1b" not in text
    assert "&lt;/title&gt;&lt;script&gt;" in text
    for view in ("cached", "anchors", "history"):
        assert "<script" not in client.get(about(view, HOSTILE)).text


def test_only_addresses_of_the_web_become_links() -> None:
    for url in (
        "javascript:alert(1)",
        "data:text/html,x",
        "file:///etc/passwd",
        "http://[",
        " javascript:x",
        "vbscript:x",
    ):
        assert "<a" not in pages._link(url, "x")
    assert 'href="https://e.org/?a=&quot;"' in pages._link('https://e.org/?a="', "x")


def test_a_stored_page_is_in_its_charset_and_in_a_sandbox(client: TestClient) -> None:
    frame = client.get(about("cached", "http://b.example.org/ja")).text
    assert '<iframe src="raw?url=http%3A%2F%2Fb.example.org%2Fja" sandbox=""' in frame
    raw = client.get(about("raw", "http://b.example.org/ja"))
    assert raw.headers["content-type"] == "text/html; charset=utf-8"
    assert JAPANESE in raw.text
    assert raw.headers["content-security-policy"].startswith("sandbox; default-src 'none';")
    assert "script" not in raw.headers["content-security-policy"]
    assert client.get(about("raw", HOSTILE)).content == HOSTILE_CONTENT


@pytest.mark.parametrize(
    ("name", "kind", "start"),
    [
        ("pdf", "text/plain; charset=utf-8", b"the text of"),
        ("pic", "image/png", b"\x89PNG"),
        ("svg", "text/plain; charset=utf-8", b"<svg"),
    ],
)
def test_only_html_text_and_pictures_are_given_out(
    client: TestClient, name: str, kind: str, start: bytes
) -> None:
    answer = client.get(about("raw", f"http://b.example.org/{name}"))
    assert answer.headers["content-type"] == kind
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.content.startswith(start)


def test_cached_is_what_was_stored_last(client: TestClient) -> None:
    assert "segment 20240102000000" in client.get(about("cached", "http://a.example.org/00")).text


def test_anchors_are_the_links_of_the_linkdb(client: TestClient) -> None:
    text = client.get(about("anchors", "http://a.example.org/00")).text
    assert "25 links to this page" in text
    assert text.count("the first harbour") == 24
    assert (
        "&lt;b&gt;another&lt;/b&gt; host"
        in client.get(about("anchors", "http://b.example.org/")).text
    )
    assert "no link to this page" in client.get(about("anchors", "http://b.example.org/ko")).text


def test_history_has_every_record(client: TestClient) -> None:
    text = client.get(about("history", "http://a.example.org/00")).text
    order = [
        text.index(word)
        for word in ("segment 20240101000000", "segment 20240102000000", ">crawldb<")
    ]
    assert order == sorted(order)
    assert text.count("fetch_success") == 2 and "db_fetched" in text
    assert 'datetime="2023-11-14T22:13:20Z"' in text and ">1.5<" in text and "success" in text


@pytest.mark.parametrize(
    ("path", "code"),
    [
        ("/cached", 400),
        ("/raw?url=", 400),
        ("/nosuch", 404),
        ("/cached?url=http://x.org/", 404),
        ("/raw?url=x", 404),
        ("/anchors?url=x", 200),
        ("/history?url=%00%ff", 200),
        ("/../../etc/passwd", 404),
        ("/style.css", 200),
        ("/robots.txt", 200),
    ],
)
def test_every_answer_has_its_code_and_the_headers(
    client: TestClient, path: str, code: int
) -> None:
    answer = client.get(path)
    assert answer.status_code == code
    assert "default-src 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["referrer-policy"] == "no-referrer"


def test_nothing_but_reading(client: TestClient) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        assert client.request(method, "/").status_code == 405
    assert client.head("/").status_code == 200


@pytest.mark.parametrize(
    "host",
    ["evil.example", "localhost.evil.example", "", "localhost@evil", "[::1", "127.0.0.1.nip.io"],
)
def test_other_hosts_are_refused(client: TestClient, host: str) -> None:
    assert client.get("/?q=harbour", headers={"Host": host}).status_code == 421


@pytest.mark.parametrize(
    "host", ["localhost", "LOCALHOST:1", "127.0.0.1:80", "[::1]:80", "192.168.0.7:8080"]
)
def test_own_names_and_addresses_are_answered(host: str) -> None:
    assert is_ours(host, HOSTS)


def test_a_commit_shows_at_once(tmp_path: Path) -> None:
    crawl = IndexedCrawl(tmp_path)
    crawl.segment("20240101000000", [Page("http://a.org/1", "one", "words")])
    crawl.index()
    client = client_of(tmp_path)
    assert "1 to 1 of 1" in client.get("/?q=words").text
    crawl.segment("20240102000000", [Page("http://a.org/2", "two", "words")])
    crawl.index()
    assert "1 to 2 of 2" in client.get("/?q=words").text
    crawl.index(minutch__index__local__rebuild="true")
    assert "1 to 2 of 2" in client.get("/?q=words").text


def test_damage_is_a_page_that_says_so(harbours: IndexedCrawl, tmp_path: Path) -> None:
    shutil.copytree(harbours.folder, tmp_path / "crawl")
    client = client_of(tmp_path / "crawl")
    data = next((tmp_path / "crawl/linkdb/current").glob("part-r-*/data"))
    data.write_bytes(b"no sequence file")
    answer = client.get(about("anchors", "http://a.example.org/00"))
    assert answer.status_code == 500
    assert "can&#x27;t be read" in answer.text and "data" in answer.text
    shutil.rmtree(tmp_path / "crawl/index")
    assert client.get("/?q=x").status_code == 500
