"""The search page over HTTP: what it shows, whom it answers, and how stored pages are kept from
doing harm.
"""

from __future__ import annotations

import re
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import pytest
from starlette.exceptions import HTTPException
from starlette.testclient import TestClient

from minutch.errors import StoreError
from minutch.hadoop.formats.writables import IntWritable, LongWritable, Text
from minutch.inspect.report.facts import Facts
from minutch.inspect.report.reportfile import POLICY, to_html
from minutch.inspect.search import crawlfiles
from minutch.inspect.search.app import MOST_KEPT, MOST_WAITING, Costly, make
from minutch.inspect.search.crawlfiles import CrawlFiles, _event, still
from minutch.inspect.search.pages import About, history
from minutch.inspect.search.searcher import Searcher
from minutch.records import crawldatum as status
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import (
    GENERATE_TIME_KEY,
    PROTO_STATUS_KEY,
    RESPONSE_CODE_KEY,
    RESPONSE_TIME_KEY,
)
from minutch.records.parsedata import NOTPARSED, SUCCESS, SUCCESS_REDIRECT, ParseStatus
from minutch.records.protocol import NOTFOUND, ProtocolStatus
from minutch.web import cells
from minutch.web.access import LOCAL, Access
from tests.inspect.search.conftest import HOSTILE, HOSTILE_CONTENT, JAPANESE
from tests.support.indexedcrawl import IndexedCrawl, Page

ACCESS = Access(None, LOCAL, any_address=True)


def client_of(folder: Path) -> TestClient:
    app = make(Searcher(folder / "index"), CrawlFiles(folder), ACCESS)
    return TestClient(app, base_url="http://localhost:8080", raise_server_exceptions=True)


@pytest.fixture(scope="module")
def client(harbours: IndexedCrawl) -> TestClient:
    return client_of(harbours.folder)


def about(view: str, url: str) -> str:
    return f"/{view}?url={quote(url, safe='')}"


def test_the_start_page_has_a_search_box(client: TestClient) -> None:
    assert 'type="search"' in client.get("/").text


def test_fields_that_the_index_lacks_are_said(client: TestClient) -> None:
    assert "no document has a field site; they have anchor, " in client.get("/?q=site:x").text
    found = client.get("/?q=running:dogs").text
    assert "<mark>dogs</mark>" in found
    assert "running is no field of these documents: running: was read as words" in found


def test_the_home_page_says_what_the_crawl_is(client: TestClient) -> None:
    """Its name as heading and title; how many documents, hosts, segments; its newest pages."""
    text = client.get("/").text
    assert "<title>crawl</title>" in text and "<h1><bdi>crawl</bdi></h1>" in text
    figures = dict(re.findall("<dt>([^<]*)</dt><dd>([^<]*)</dd>", text))
    assert figures == {"documents": "34", "hosts": "3", "segments": "2"}
    assert "newest page (UTC)" in text and text.count("<h3><a") == 10
    assert 'href="./?q=%2A&amp;host=a.example.org"' in text
    assert 'href="report"' not in text  # this server makes none


def test_the_report_is_that_of_the_crawl(harbours: IndexedCrawl) -> None:
    """What people open from the home page is the report itself, under the report's policy."""
    facts = Facts("<b>", 0, {})
    app = make(
        Searcher(harbours.index_folder),
        CrawlFiles(harbours.folder),
        ACCESS,
        lambda: to_html(facts),
    )
    client = TestClient(app, base_url="http://localhost:8080")
    assert 'href="report"' in client.get("/").text
    answer = client.get("/report")
    assert "Crawl report: <bdi>&lt;b&gt;</bdi>" in answer.text
    assert answer.headers["content-security-policy"] == f"{POLICY}; frame-ancestors 'none'"


def test_hits_have_a_date_and_a_type(client: TestClient) -> None:
    text = client.get("/?q=harbour&host=b.example.org").text
    assert re.search(r'fetched <time datetime="2023-11-14T22:13:20Z">2023-11-14 22:13<', text)
    assert "<span>text/html</span>" in text


def test_nothing_found_says_what_to_do(client: TestClient) -> None:
    """The nearest spelling, the query with fewer words, how many documents there are."""
    text = client.get("/?q=harbuor").text
    assert "None of the 34 documents has all of this" in text
    assert '<a href="./?q=harbour"><bdi>harbour</bdi>26 pages</a>' in text
    text = client.get("/", params={"q": "+dogs +running +boats"}).text
    assert "?q=%2Bdogs+%2Brunning" in text and "?q=%2Bdogs+%2Bboats" not in text
    text = client.get("/?q=dogs&host=a.example.org").text
    assert '<a href="./?q=dogs">The same on all hosts</a>' in text


@pytest.mark.parametrize("view", ["cached", "anchors", "history"])
def test_the_heading_is_the_pages_title(client: TestClient, view: str) -> None:
    text = client.get(about(view, "http://b.example.org/")).text
    assert "<h1><bdi>Another harbour</bdi></h1>" in text
    assert "<title>Another harbour</title>" in text
    assert f'aria-current="page">{view.capitalize()}</a>' in text
    assert "<h1><bdi>http://x.org/</bdi></h1>" in client.get(about(view, "http://x.org/")).text


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
        assert "<a" not in cells.address(url, "x")
    assert 'href="https://e.org/?a=&quot;"' in cells.address('https://e.org/?a="', "x")


def test_a_stored_page_is_in_its_charset_and_in_a_sandbox(client: TestClient) -> None:
    frame = client.get(about("cached", "http://b.example.org/ja")).text
    assert '<iframe src="raw?url=http%3A%2F%2Fb.example.org%2Fja" sandbox=""' in frame
    raw = client.get(about("raw", "http://b.example.org/ja"))
    assert raw.headers["content-type"] == "text/html; charset=utf-8"
    assert JAPANESE in raw.text
    assert raw.headers["content-security-policy"].startswith("sandbox; default-src 'none';")
    assert "script" not in raw.headers["content-security-policy"]
    shown = client.get(about("raw", HOSTILE))
    assert shown.content == still(HOSTILE_CONTENT) and b"127.0.0.1:1/style" not in shown.content
    assert shown.headers["x-dns-prefetch-control"] == "off"


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
    assert text.count('<td data-label="What"><bdi>fetched</bdi></td>') == 3
    assert 'datetime="2023-11-14T22:13:20Z"' in text and "score 1.5<" in text and "parsed" in text


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (ParseStatus(SUCCESS), "parsed"),
        (ParseStatus(SUCCESS, 0, ["page 3 is missing"]), "parsed: page 3 is missing"),
        (ParseStatus(SUCCESS, SUCCESS_REDIRECT, ["http://e.org/", "5"]), "parsed"),
        (ParseStatus.failed(200, "why"), "not parsed: why"),
        (ParseStatus(NOTPARSED), "not parsed: notparsed(0,0)"),
    ],
)
def test_what_a_parse_lacks_is_told(status: ParseStatus, words: str) -> None:
    assert crawlfiles._parse_words(status) == words


def test_history_is_told_in_words(tmp_path: Path) -> None:
    """Nutch's names of metadata (`_ngt_`, `_pst_`, `_rs_`) are its own; people read what they
    mean.
    """
    datum = CrawlDatum(status.STATUS_FETCH_GONE, fetch_time=1_700_000_000_000)
    for key, value in {
        GENERATE_TIME_KEY: LongWritable(1_795_622_684_567),
        PROTO_STATUS_KEY: ProtocolStatus.of(NOTFOUND, "x"),
        RESPONSE_TIME_KEY: IntWritable(46),
        RESPONSE_CODE_KEY: Text("404"),
        "mine": Text("<script>"),
    }.items():
        datum.metadata[Text(key)] = value
    text = history(About("http://x.org/", "", ""), [_event("20240101000000", datum, None)])
    assert "<bdi>gone</bdi>: <bdi>HTTP 404</bdi> in 46 ms" in text
    assert 'on the fetch list <time datetime="2026-11-25T16:04:44Z">' in text
    assert "<bdi>mine: &lt;script&gt;</bdi>" in text
    assert not re.search("_ngt_|_pst_|_rs_|1795622684567|nutch.protocol", text)


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
        ("/report", 404),
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
    assert ACCESS.judge("/", {"host": host}) is None


@pytest.mark.parametrize(
    "headers",
    [
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"},
        {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"},
        {"Sec-Fetch-Site": "same-site"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
    ],
)
@pytest.mark.parametrize("path", ["/", "/?q=harbour", "/report", "/raw?url=x", "/robots.txt"])
def test_pages_of_other_sites_get_no_answer(
    client: TestClient, path: str, headers: dict[str, str]
) -> None:
    assert client.get(path, headers=headers).status_code == 403


def test_its_own_pages_and_addresses_that_are_typed_do(client: TestClient) -> None:
    for site in ("none", "same-origin"):
        assert client.get("/?q=harbour", headers={"Sec-Fetch-Site": site}).status_code == 200


def test_a_costly_page_is_made_once_until_the_crawl_changes(
    harbours: IndexedCrawl, tmp_path: Path
) -> None:
    shutil.copytree(harbours.folder, tmp_path / "crawl")
    files, made = CrawlFiles(tmp_path / "crawl"), []

    def report() -> str:
        made.append(1)
        return f"report {len(made)}"

    app = make(Searcher(tmp_path / "crawl/index"), files, ACCESS, report)
    client = TestClient(app, base_url="http://localhost:8080")
    assert [client.get("/report").text for _ in range(3)] == ["report 1"] * 3
    IndexedCrawl(tmp_path / "crawl").segment("20240103000000", [Page("http://a.org/1", "one", "")])
    assert client.get("/report").text == client.get("/report").text == "report 2"
    (tmp_path / "crawl/crawldb").rename(tmp_path / "crawl/crawldb-away")
    assert client.get("/report").text == "report 3"
    shutil.rmtree(tmp_path / "crawl/segments/20240103000000/parse_text")
    assert client.get("/report").text == "report 4"


def test_many_who_ask_for_a_costly_page_wait_for_one() -> None:
    """And not too many: the others are told to come later, and no thread waits for them."""
    started, may_end, made = threading.Event(), threading.Event(), []

    def make() -> str:
        made.append(1)
        started.set()
        assert may_end.wait(30)
        return "page"

    costly = Costly(lambda: None)
    with ThreadPoolExecutor(MOST_WAITING) as pool:
        answers = [pool.submit(costly.page, "report", make) for _ in range(MOST_WAITING)]
        assert started.wait(30)
        while costly._waiting < MOST_WAITING:
            threading.Event().wait(0.001)
        with pytest.raises(HTTPException) as refused:
            costly.page("report", make)
        assert refused.value.status_code == 503
        may_end.set()
        assert {answer.result(30) for answer in answers} == {"page"} and made == [1]


def test_costly_pages_that_fail_are_made_again_and_few_are_kept() -> None:
    def fails() -> str:
        raise StoreError("damaged")

    costly = Costly(lambda: None)
    for _ in range(2):
        with pytest.raises(StoreError):
            costly.page("report", fails)
    assert costly.page("report", lambda: "made") == "made"
    for number in range(100):
        assert costly.page(f"{number}", lambda number=number: str(number)) == str(number)  # type: ignore[misc]
    assert len(costly._made) <= MOST_KEPT and costly._waiting == 0
    assert costly.page("99", fails) == "99"


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
