"""What is archived of answers: whole pages, and revisits of what a CrawlDb entry remembers."""

from __future__ import annotations

from minutch.cycle.fetch.decisions import redirect_datum
from minutch.cycle.fetch.results.fetchlog import WarcCapture
from minutch.cycle.fetch.results.recorder import (
    CAPTURE_KEY,
    FetchOutcome,
    capture_of,
    file_captures,
    remembered,
)
from minutch.hadoop.formats.writables import Text
from minutch.records.crawldatum import STATUS_DB_UNFETCHED, STATUS_FETCH_SUCCESS, CrawlDatum
from minutch.records.metadata import Metadata
from minutch.records.protocol import GONE, NOTMODIFIED, SUCCESS, Content, ProtocolStatus
from minutch.warc.pagewriter import IDENTICAL, NOT_MODIFIED, Original
from minutch.warc.warcfile import sha1_digest

URL = "http://a.example/"
OK = ProtocolStatus(SUCCESS)
UNCHANGED = ProtocolStatus(NOTMODIFIED)


def page(body: bytes = b"page", **headers: str) -> Content:
    return Content(
        content=body,
        metadata=Metadata.of({name.replace("_", "-"): value for name, value in headers.items()}),
    )


def captured(
    datum: CrawlDatum, content: Content | None, status: ProtocolStatus, time: int
) -> WarcCapture | None:
    return capture_of(FetchOutcome(URL, datum, STATUS_FETCH_SUCCESS, time, status, content))


def test_a_page_is_remembered() -> None:
    datum = CrawlDatum()
    first = captured(datum, page(), OK, 1000)
    assert first is not None and not first.profile
    assert remembered(URL, datum) == first.original == Original(1000, sha1_digest(b"page"))
    again = captured(datum, page(), OK, 2000)
    assert again is not None and (again.profile, again.original) == (IDENTICAL, first.original)
    assert remembered(URL, datum) == first.original
    changed = captured(datum, page(b"other"), OK, 3000)
    assert changed is not None and not changed.profile
    assert remembered(URL, datum) == Original(3000, sha1_digest(b"other"))


def test_errors_are_archived_and_what_brought_no_answer_is_not() -> None:
    datum = CrawlDatum()
    gone = captured(datum, page(b"gone"), ProtocolStatus(GONE), 1000)
    assert gone is not None and not gone.profile
    assert captured(datum, None, ProtocolStatus(GONE), 1000) is None


def test_a_page_without_content_is_not_the_same_as_another() -> None:
    datum = CrawlDatum()
    for now in (1000, 2000):
        empty = captured(datum, page(b""), OK, now)
        assert empty is not None and not empty.profile


def test_not_modified() -> None:
    datum = CrawlDatum()
    unknown = captured(datum, page(b""), UNCHANGED, 1000)
    assert unknown is not None and (unknown.profile, unknown.original) == (NOT_MODIFIED, None)
    first = captured(datum, page(), OK, 1_700_000_000_000)
    assert first is not None
    same = captured(datum, page(b""), UNCHANGED, 1_700_000_100_000)
    assert same is not None and (same.profile, same.original) == (NOT_MODIFIED, first.original)
    newer = page(b"", Last_Modified="Thu, 16 Nov 2023 00:00:00 GMT")
    somebody_elses = captured(datum, newer, UNCHANGED, 1_700_200_000_000)
    assert somebody_elses is not None and somebody_elses.original is None


def test_another_pages_memory_is_none() -> None:
    datum = CrawlDatum(STATUS_DB_UNFETCHED)
    captured(datum, page(), OK, 1000)
    assert remembered("http://b.example/", datum) is None
    assert (
        CAPTURE_KEY
        not in redirect_datum(datum, STATUS_DB_UNFETCHED, None, URL, "http://a.example/x").metadata
    )
    for text in ("", "x", "1 2 3 4", f"{str(datum.metadata[CAPTURE_KEY])[:8]} x sha1:A"):
        datum.metadata[CAPTURE_KEY] = Text(text)
        assert remembered(URL, datum) is None


def test_robots_txt() -> None:
    dated = Content(URL, URL, b"x", metadata=Metadata.of({"nutch.fetch.time": "500"}))
    assert [
        (found.url, found.time) for found in file_captures([dated, Content(url="u")], 1000)
    ] == [
        (URL, 500),
        ("u", 1000),
    ]
