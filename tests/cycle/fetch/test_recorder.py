"""What a ProtocolStatus leads to, which redirects are followed, and the records that a page
leaves.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from minutch.conf import Configuration
from minutch.cycle.fetch.decisions import REPR_KEY, RedirectRules, ending, redirect_datum
from minutch.cycle.fetch.ledger import Outcome
from minutch.cycle.fetch.results.fetchlog import Frame, Part
from minutch.cycle.fetch.results.recorder import FetchOutcome, LivePageParser, Recorder
from minutch.cycle.fetch.settings import FetchSettings, RedirectSettings
from minutch.cycle.parse.pageparser import ParsedPage
from minutch.errors import UrlError
from minutch.hadoop.formats.writables import Text
from minutch.records import crawldatum as status
from minutch.records import protocol as codes
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import Metadata
from minutch.records.parsedata import SUCCESS, SUCCESS_REDIRECT, ParseStatus
from minutch.records.protocol import Content, ProtocolStatus
from tests.cycle.fetch.test_loop import NoScoring
from tests.support.examples import tabled

SETTINGS = FetchSettings.of(Configuration(), now=0)
NOW = 1_800_000_000_000


@tabled(
    ("code", "fetch_status", "outcome", "content"),
    [
        (codes.SUCCESS, status.STATUS_FETCH_SUCCESS, Outcome.FETCHED, True),
        (codes.FAILED, status.STATUS_FETCH_RETRY, Outcome.RETRY, False),
        (codes.PROTO_NOT_FOUND, status.STATUS_FETCH_RETRY, Outcome.RETRY, False),
        (codes.GONE, status.STATUS_FETCH_GONE, Outcome.GONE, False),
        (codes.MOVED, status.STATUS_FETCH_REDIR_PERM, Outcome.REDIRECTED, True),
        (codes.TEMP_MOVED, status.STATUS_FETCH_REDIR_TEMP, Outcome.REDIRECTED, True),
        (codes.NOTFOUND, status.STATUS_FETCH_GONE, Outcome.GONE, False),
        (codes.RETRY, status.STATUS_FETCH_RETRY, Outcome.RETRY, False),
        (codes.EXCEPTION, status.STATUS_FETCH_RETRY, Outcome.RETRY, False),
        (codes.ACCESS_DENIED, status.STATUS_FETCH_GONE, Outcome.GONE, False),
        (codes.ROBOTS_DENIED, status.STATUS_FETCH_GONE, Outcome.DENIED, False),
        (codes.REDIR_EXCEEDED, status.STATUS_FETCH_RETRY, Outcome.RETRY, False),
        (codes.NOTFETCHING, status.STATUS_FETCH_RETRY, Outcome.RETRY, False),
        (codes.NOTMODIFIED, status.STATUS_FETCH_NOTMODIFIED, Outcome.NOTMODIFIED, False),
        (codes.WOULDBLOCK, status.STATUS_FETCH_RETRY, Outcome.RETRY, False),
        (codes.BLOCKED, status.STATUS_FETCH_RETRY, Outcome.RETRY, False),
        (99, status.STATUS_FETCH_RETRY, Outcome.RETRY, False),
    ],
)
def test_endings(code: int, fetch_status: int, outcome: Outcome, content: bool) -> None:
    end = ending(code)
    assert (end.fetch_status, end.outcome, end.keeps_content) == (fetch_status, outcome, content)
    assert end.failed is (code == codes.EXCEPTION)


def rules(settings: RedirectSettings = RedirectSettings()) -> RedirectRules:  # noqa: B008
    def normalize(url: str) -> str | None:
        if "malformed" in url:
            raise UrlError(url)
        return None if "dropped" in url else url.replace("/./", "/")

    return RedirectRules(settings, normalize, lambda url: None if "filtered" in url else url)


@pytest.mark.parametrize(
    ("location", "target"),
    [
        ("http://b.example/x", "http://b.example/x"),
        ("http://b.example/./x", "http://b.example/x"),
        ("http://b.example/filtered", None),
        ("http://b.example/dropped", None),
        ("http://b.example/malformed", None),
        ("http://a.example/", None),
        ("", None),
    ],
)
def test_redirect_targets(location: str, target: str | None) -> None:
    settings = RedirectSettings(ignore_internal=False)
    found = rules(settings).target("http://a.example/", location)
    assert (found or None) == target


@tabled(
    ("url", "target", "goes"),
    [
        ("http://a/", "http://a/x", True),
        ("http://a/", "http://A/x", True),
        ("http://a/", "https://a/x", True),
        ("https://a/", "https://a:8443/x", True),
        ("https://a/", "http://a/x", False),
        ("http://a/", "http://b/x", False),
        ("http://a/", "http://sub.a/x", False),
        ("http://a/", "http://a@b/x", False),
        ("http://a/", "no url", False),
    ],
)
def test_a_cookie_stays_with_its_host(url: str, target: str, goes: bool) -> None:
    origin = CrawlDatum(status.STATUS_DB_UNFETCHED, 100, 0.5)
    origin.metadata[Text("Cookie")] = Text("secret")
    found = redirect_datum(origin, status.STATUS_LINKED, None, url, target).metadata
    assert (Text("Cookie") in found) is goes
    assert Text("Cookie") in origin.metadata


def test_no_page_of_the_web_leads_to_a_file() -> None:
    settings = RedirectSettings(ignore_internal=False)
    for file in ("file:/etc/passwd", "FILE:///etc/passwd", "file://localhost/etc/passwd"):
        assert rules(settings).target("http://a.example/", file) is None
        assert rules(settings).target("file:/tmp/", file) == file


def test_long_redirects_end() -> None:
    settings = RedirectSettings(max_length=20)
    assert rules(settings).target("http://a/", "http://b/" + "x" * 12) is None
    assert rules(settings).target("http://a/", "http://b/" + "x" * 11) is not None


@tabled(
    ("settings", "target", "followed"),
    [
        (RedirectSettings(ignore_external=True), "http://www.a.com/2", True),
        (RedirectSettings(ignore_external=True), "http://WWW.a.com/2", True),
        (RedirectSettings(ignore_external=True), "http://x.a.com/2", False),
        (RedirectSettings(ignore_external=True, by_domain=True), "http://x.a.com/2", True),
        (RedirectSettings(ignore_external=True, by_domain=True), "http://b.com/2", False),
        (RedirectSettings(ignore_internal=True), "http://www.a.com/2", False),
        (RedirectSettings(ignore_internal=True), "http://b.com/2", True),
        (RedirectSettings(ignore_internal=True), "nosuch:thing", False),
    ],
)
def test_redirects_between_sites(settings: RedirectSettings, target: str, followed: bool) -> None:
    assert (rules(settings).target("http://www.a.com/", target) is not None) is followed


def test_redirect_datum_takes_over_what_the_origin_has() -> None:
    origin = CrawlDatum(status.STATUS_DB_UNFETCHED, 100, 0.5, retries=2, modified_time=7)
    origin.metadata[Text("k")] = Text("v")
    datum = redirect_datum(origin, status.STATUS_LINKED, "http://repr/", "http://a/", "http://b/")
    assert (datum.status, datum.fetch_interval, datum.score) == (status.STATUS_LINKED, 100, 0.5)
    assert (datum.retries, datum.modified_time) == (0, 0)
    assert str(datum.metadata[Text("k")]) == "v" and str(datum.metadata[REPR_KEY]) == "http://repr/"
    assert REPR_KEY not in origin.metadata


# -- records ---------------------------------------------------------------------------------------


class Scores(NoScoring):
    def pass_score_before_parsing(self, url: str, datum: CrawlDatum, content: Content) -> None:
        content.metadata.set("nutch.crawl.score", str(datum.score))

    def initial_score(self, url: str, datum: CrawlDatum) -> None:
        datum.score = 0.0


class Parser:
    pages = 0

    def __init__(self, page: ParsedPage) -> None:
        self.page = page

    async def parse(self, content: Content, fetch_time: int) -> ParsedPage:
        return self.page

    def hurry(self) -> None:
        pass

    def close(self) -> None:
        pass


def recorder(settings: FetchSettings = SETTINGS, parser: LivePageParser | None = None) -> Recorder:
    return Recorder(
        "20260101000000",
        settings,
        Scores(),
        content_type=lambda declared, url, data: declared or None,
        signature=lambda content: b"S" * 16,
        parser=parser,
    )


async def record(
    made: Recorder, content: Content | None, fetch_status: int = status.STATUS_FETCH_SUCCESS
) -> tuple[CrawlDatum, Content | None]:
    frame = Frame(Outcome.FETCHED)
    success = ProtocolStatus(codes.SUCCESS)
    await made.fetched(
        frame, FetchOutcome("http://a/", CrawlDatum(score=1.5), fetch_status, NOW, success, content)
    )
    values = {entry.part: entry.value for entry in frame.entries}
    stored = Content.from_bytes(values[Part.CONTENT]) if Part.CONTENT in values else None
    return CrawlDatum.from_bytes(values[Part.FETCH]), stored


def html() -> Content:
    return Content("http://a/", "http://a/", b"<p>", "text/html", Metadata())


async def test_a_page_leaves_datum_and_content() -> None:
    datum, content = await record(recorder(), html())
    assert (
        datum.status == status.STATUS_FETCH_SUCCESS
        and datum.fetch_time == NOW
        and datum.signature is None
    )
    assert {str(k): str(v) for k, v in datum.metadata.items()} == {
        "_pst_": "success(1), lastModified=0",
        "Content-Type": "text/html",
    }
    assert content is not None
    assert content.metadata == {
        "nutch.segment.name": ["20260101000000"],
        "nutch.crawl.score": ["1.5"],
        "_fst_": ["33"],
    }


async def test_content_is_left_out_if_not_wanted() -> None:
    datum, content = await record(recorder(replace(SETTINGS, store_content=False)), html())
    assert content is None
    assert datum.metadata.get_text("Content-Type") == "text/html"


async def test_an_unknown_type_stays_out_of_the_datum() -> None:
    page = html()
    page.content_type = ""
    datum, _ = await record(recorder(), page)
    assert datum.metadata.get_text("Content-Type") is None


async def test_signature_without_parsing() -> None:
    made = recorder(replace(SETTINGS, signature=True))
    assert (await record(made, html()))[0].signature == b"S" * 16
    assert (await record(made, html(), status.STATUS_FETCH_REDIR_TEMP))[0].signature is None


async def test_parsed_pages_have_their_own_records() -> None:
    page = ParsedPage(["success"], [], "", ParseStatus(SUCCESS))
    frame = Frame(Outcome.FETCHED)
    datum = CrawlDatum()
    found = await recorder(parser=Parser(page)).fetched(
        frame,
        FetchOutcome(
            "http://a/",
            datum,
            status.STATUS_FETCH_SUCCESS,
            NOW,
            ProtocolStatus(codes.SUCCESS),
            html(),
        ),
    )
    assert found is page and datum.signature is None
    assert Content.from_bytes(frame.entries[1].value).metadata["_fst_"] == [
        str(status.STATUS_FETCH_SUCCESS)
    ]
    assert [entry.part for entry in frame.entries] == [Part.FETCH, Part.CONTENT, Part.PARSE]
    assert frame.entries[2].value == page.to_bytes()


async def test_a_parse_for_the_parse_step_is_nothing_to_the_fetch() -> None:
    """No refresh is followed, and the page is signed as one that is not parsed."""
    page = ParsedPage(["success"], [], "", ParseStatus(SUCCESS, SUCCESS_REDIRECT))
    frame, datum = Frame(Outcome.FETCHED), CrawlDatum()
    settings = replace(SETTINGS, for_step=True, signature=True)
    answer = FetchOutcome("http://a/", datum, status.STATUS_FETCH_SUCCESS, NOW, content=html())
    assert await recorder(settings, parser=Parser(page)).fetched(frame, answer) is None
    assert datum.signature == b"S" * 16
    assert frame.entries[2].value == page.to_bytes()


async def test_failed_parse() -> None:
    datum, content = await record(
        recorder(parser=Parser(ParsedPage(signature=b"E" * 16, failed=True))), html()
    )
    assert datum.signature == b"E" * 16
    assert datum.status == status.STATUS_PARSE_FAILED
    assert content is not None and content.metadata["_fst_"] == [str(status.STATUS_PARSE_FAILED)]


def test_skipped_urls_get_a_record_that_changes_nothing() -> None:
    frame = Frame(Outcome.SKIPPED_TIMELIMIT)
    recorder().skipped(frame, "http://a/", CrawlDatum(score=2.0), "too late", NOW)
    (entry,) = frame.entries
    datum = CrawlDatum.from_bytes(entry.value)
    assert datum.status == status.STATUS_LINKED and datum.score == 0.0
    assert datum.metadata.get_text("_pst_") == "notfetching(20), lastModified=0: too late"
    frame = Frame(Outcome.SKIPPED_TIMELIMIT)
    recorder(replace(SETTINGS, record_skipped=False)).skipped(
        frame, "http://a/", CrawlDatum(), "too late", NOW
    )
    assert frame.entries == []


def test_linked_targets_are_scored_anew() -> None:
    frame = Frame(Outcome.REDIRECTED)
    recorder().linked(frame, "http://b/", CrawlDatum(score=2.0), NOW)
    datum = CrawlDatum.from_bytes(frame.entries[0].value)
    assert (datum.status, datum.score, datum.fetch_time) == (status.STATUS_LINKED, 0.0, NOW)


def test_robots_txt_is_stored_as_content() -> None:
    frame = Frame(Outcome.FETCHED)
    recorder().host_files(
        frame, [Content("http://a/robots.txt", "http://a/robots.txt", b"x", "text/plain")], 0
    )
    assert [(e.part, e.key) for e in frame.entries] == [(Part.CONTENT, b"http://a/robots.txt")]
