"""Visits: what belongs together, and times and names as archives write them."""

from __future__ import annotations

import pytest

from minutch.warc.reading.recordheads import ARC
from minutch.warc.reading.recordreader import Record
from minutch.warc.reading.visitindex import url_key
from minutch.warc.reading.visits import (
    Visit,
    VisitKind,
    arc_time,
    arc_visits,
    warc_time,
    warc_visits,
)
from tests.support.examples import tabled
from tests.warc.reading.files import answer, arc_record, read


def record(kind: str, url: str = "http://h/", block: bytes = b"", **fields: str) -> bytes:
    lines = [f"WARC-Type: {kind}", f"WARC-Target-URI: {url}", "WARC-Date: 2026-01-02T03:04:05.678Z"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in fields.items()]
    head = "\r\n".join(("WARC/1.1", *lines, f"Content-Length: {len(block)}", "", ""))
    return head.encode() + block + b"\r\n\r\n"


def visits_of(*records: bytes) -> tuple[list[Visit], list[Record]]:
    found = list(warc_visits(read(b"".join(records))[0]))
    return [v for v in found if isinstance(v, Visit)], [r for r in found if isinstance(r, Record)]


@pytest.mark.parametrize("order", [("request", "response"), ("response", "request")])
def test_a_request_belongs_to_the_answer_beside_it(order: tuple[str, str]) -> None:
    blocks = {"request": b"GET / HTTP/1.1\r\n\r\n", "response": answer(b"x")}
    both = [record(kind, f"http://h/{n}", blocks[kind]) for n in range(3) for kind in order]
    visits, others = visits_of(*both)
    assert [(v.url, v.request) for v in visits] == [
        (f"http://h/{n}", blocks["request"]) for n in range(3)
    ]
    assert others == []


def test_a_request_of_another_url_is_no_part_of_a_visit() -> None:
    visits, others = visits_of(
        record("request", "http://a/", b"GET"), record("response", "http://b/", answer(b"x")),
        record("request", "http://c/", b"GET"), record("request", "http://d/", b"GET"),
    )  # fmt: skip
    assert [(v.url, v.request) for v in visits] == [("http://b/", b"")]
    assert len(others) == 3


def test_kinds() -> None:
    profile = "http://netpreserve.org/warc/1.0/revisit"
    same = {"WARC_Profile": f"{profile}/identical-payload-digest", "WARC_Payload_Digest": "SHA1:X"}
    visits, others = visits_of(
        record("response", "http://h/304", answer(b"", status="304 Not Modified")),
        record("revisit", "http://h/a", WARC_Profile=f"{profile}/server-not-modified"),
        record("revisit", "http://h/b", **same),
        record("response", "<http://h/c>", b"no head"),
        record("response", "ftp://h/d", b"data"),
        record("response", "dns:h", b"data"),
        record("continuation", "http://h/e", b"data"),
    )
    assert [(v.url, v.kind, v.status) for v in visits] == [
        ("http://h/304", VisitKind.NOT_MODIFIED, 304), ("http://h/a", VisitKind.NOT_MODIFIED, 304),
        ("http://h/b", VisitKind.SAME, 200),
        ("http://h/c", VisitKind.ANSWER, 200), ("ftp://h/d", VisitKind.ANSWER, 200),
    ]  # fmt: skip
    assert visits[2].refers_to == ["sha1:x"]
    assert visits[0].time == 1_767_323_045_678
    assert len(others) == 2


@tabled(
    ("text", "time"),
    [
        ("2026-01-02T03:04:05Z", 1_767_323_045_000),
        ("2026-01-02T03:04:05.123456789Z", 1_767_323_045_123),
        ("2026-01-02T04:04:05+01:00", 1_767_323_045_000),
        ("2026-01", 1_767_225_600_000),
        ("2026", 1_767_225_600_000),
        ("20260102030405", 1_767_323_045_000),
        ("1969-12-31T23:59:59Z", -1000),
        ("yesterday", 0),
        ("", 0),
        ("2026-13-01T00:00:00Z", 0),
    ],
)
def test_warc_dates(text: str, time: int) -> None:
    assert warc_time(text) == time


def test_arc_dates_may_be_short() -> None:
    texts = ("2012", "201201", "20120109", "20120109000001", "20121301", "x")
    assert [arc_time(text) for text in texts] == [
        1_325_376_000_000, 1_325_376_000_000, 1_326_067_200_000, 1_326_067_201_000, 0, 0,
    ]  # fmt: skip


def test_arc_visits() -> None:
    stored = [
        arc_record("filedesc://x.arc", b"1 0 x\n", "text/plain"),
        arc_record("http://h/", answer(b"x")),
        arc_record("http://h/bare", b"no head", "no-type"),
        arc_record("http://h/304", answer(b"", status="304 Not Modified")),
        arc_record("dns:h", b"1.2.3.4"),
    ]
    found = list(arc_visits(read(b"".join(stored), ARC)[0]))
    visits = [v for v in found if isinstance(v, Visit)]
    assert [(v.url, v.kind, v.body, v.media_type, v.address) for v in visits] == [
        ("http://h/", VisitKind.ANSWER, b"x", "text/html", "10.0.0.1"),
        ("http://h/bare", VisitKind.ANSWER, b"no head", "", "10.0.0.1"),
        ("http://h/304", VisitKind.NOT_MODIFIED, b"", "text/html", "10.0.0.1"),
    ]
    assert len(found) == 5


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("http://h.example", "http://H.example:80/", True),
        ("https://h/a?b#c", "https://h:443/a?b", True),
        ("http://h/ä b", "http://h/%C3%A4%20b", True),
        ("http://h/a", "http://h/A", False),
        ("http://h/", "https://h/", False),
        ("http://h:8080/", "http://h/", False),
    ],
)
def test_urls_of_one_page(one: str, other: str, same: bool) -> None:
    assert (url_key(one) == url_key(other)) is same
