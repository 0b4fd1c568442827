"""export warc: records of a crawl of several rounds, in files that warcio and fastwarc find
whole.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from minutch import jobs
from minutch.archives.web import webarchive
from minutch.conf import Configuration
from minutch.cycle.segment.store import CONTENT, CRAWL_FETCH, Segment, part_writer
from minutch.errors import ConfigError, MinutchError, StoreError, UsageError
from minutch.job import Counters
from minutch.records.crawldatum import (
    STATUS_FETCH_NOTMODIFIED,
    STATUS_FETCH_REDIR_PERM,
    STATUS_FETCH_SUCCESS,
    CrawlDatum,
)
from minutch.records.metadata import Metadata
from minutch.records.protocol import Content
from minutch.warc.pagewriter import MADE_HEAD, rebuilt_head
from tests.support.archived import CHANGED, MODIFIED, Record, archived_crawl, checked

URL = "http://a.example/"
DAY = 86_400_000


def export(*words: object, form: str = "warc") -> Counters:
    return jobs.export(form, *words, conf=Configuration.load([]))


def records_of(folder: Path) -> list[Record]:
    return [record for path in sorted(folder.glob("*.warc.gz")) for record in checked(path)]


def of_kind(records: list[Record], kind: str, target: str | None = None) -> list[Record]:
    return [record for record in records if record[0] == kind and target in (None, record[1])]


def make_segment(
    path: Path, url: str, datum: CrawlDatum | None, content: Content | None
) -> Segment:
    with (
        part_writer(path, CONTENT, 0) as page,
        part_writer(path, CRAWL_FETCH, 0) as fetch,
    ):
        if content is not None:
            page(url, content)
        if datum is not None:
            fetch(url, datum)
    return Segment(path)


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    out = tmp_path_factory.mktemp("export") / "out"
    export(archived_crawl().folder, out)
    return records_of(out)


def test_pages_come_back_as_they_were(exported: list[Record]) -> None:
    crawl = archived_crawl()
    for url, body in crawl.answers.items():
        responses = of_kind(exported, "response", url)
        if url.endswith("/closed.html"):
            assert not responses  # a segment keeps nothing of it
            continue
        head, _, found = responses[-1][4].partition(b"\r\n\r\n")
        assert head.startswith((b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 302 Found\r\n"))
        expected = gzip.decompress(body) if b"X-Crawler-Content-Encoding: gzip" in head else body
        assert found == expected, url
        assert responses[-1][3]["WARC-IP-Address"] == "127.0.0.1"


def test_what_belongs_together_refers_to_each_other(exported: list[Record]) -> None:
    page = ""
    for kind, target, date, fields, block in exported[1:]:
        if kind in ("response", "revisit"):
            page, page_target, page_date = fields["WARC-Record-ID"], target, date
        else:
            assert fields["WARC-Concurrent-To" if kind == "request" else "WARC-Refers-To"] == page
        assert (target, date) == (page_target, page_date)
        if kind == "request":
            assert block.startswith(b"GET /") and block.endswith(b"\r\n\r\n")


def test_a_page_that_was_not_modified_is_a_revisit(exported: list[Record]) -> None:
    url = archived_crawl().site + MODIFIED
    (page,), (revisit,) = of_kind(exported, "response", url), of_kind(exported, "revisit", url)
    fields = revisit[3]
    assert fields["WARC-Profile"] == "http://netpreserve.org/warc/1.1/revisit/server-not-modified"
    assert fields["WARC-Refers-To"] == page[3]["WARC-Record-ID"]
    assert fields["WARC-Refers-To-Target-URI"] == url
    assert fields["WARC-Refers-To-Date"] == page[2] < revisit[2]
    assert fields["WARC-Payload-Digest"] == page[3]["WARC-Payload-Digest"]
    assert revisit[4] == b""


def test_the_same_content_is_a_revisit_and_changed_content_is_not(exported: list[Record]) -> None:
    site = archived_crawl().site
    (page,), (revisit,) = (
        of_kind(exported, "response", f"{site}/fr.html"),
        of_kind(exported, "revisit", f"{site}/fr.html"),
    )
    fields = revisit[3]
    assert (
        fields["WARC-Profile"] == "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest"
    )
    assert fields["WARC-Refers-To-Date"] == page[2]
    assert fields["WARC-Payload-Digest"] == page[3]["WARC-Payload-Digest"]
    assert revisit[4].startswith(b"HTTP/1.1 200 OK\r\n") and revisit[4].endswith(b"\r\n\r\n")
    assert len(of_kind(exported, "response", site + CHANGED)) == 2
    assert not of_kind(exported, "revisit", site + CHANGED)
    assert len(of_kind(exported, "response", f"{site}/news")) == 2  # no content to be the same


def test_fields_and_text(exported: list[Record]) -> None:
    first = of_kind(exported, "metadata", f"{archived_crawl().site}/")[0]
    assert first[3]["Content-Type"] == "application/warc-fields"
    fields = [line.split(": ", 1) for line in first[4].decode().splitlines()]
    assert [name for name, _ in fields[:3]] == ["fetchTimeMs", "hopsFromSeed", "charset-detected"]
    assert fields[1][1] == ""
    assert ["outlink", f"{archived_crawl().site}/about.html"] in fields
    text = of_kind(exported, "conversion", f"{archived_crawl().site}/")[0]
    assert text[4].startswith(b"Tidewater Library")
    linked = of_kind(
        exported,
        "metadata",
        f"{archived_crawl().site.replace('127.0.0.1', 'localhost')}/articles/cat.html",
    )
    assert b"hopsFromSeed: L\r\n" in linked[0][4]


def test_the_same_twice_and_an_index_that_leads_to_the_records(tmp_path: Path) -> None:
    crawl = archived_crawl().folder
    export(crawl, tmp_path / "one", "-cdxj", "-size", 4000, "-prefix", "x")
    export("-dir", crawl / "segments", tmp_path / "two", "-size", 4000, "-prefix", "x")
    export(
        *sorted((crawl / "segments").iterdir()),
        tmp_path / "index",
        "-size",
        4000,
        "-prefix",
        "x",
        form="cdxj",
    )
    names = sorted(path.name for path in (tmp_path / "two").iterdir())
    assert names[:2] == ["x-00000.warc.gz", "x-00001.warc.gz"] and len(names) > 3
    assert all(
        (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()
        for name in names
    )
    lines = (tmp_path / "one/index.cdxj").read_bytes().splitlines()
    assert (tmp_path / "index").read_bytes().splitlines() == lines == sorted(lines)
    for line in lines:
        entry = json.loads(line.split(b" ", 2)[2])
        data = (tmp_path / "one" / entry["filename"]).read_bytes()
        member = data[int(entry["offset"]) : int(entry["offset"]) + int(entry["length"])]
        assert f"WARC-Target-URI: {entry['url']}\r\n".encode() in gzip.decompress(member)
    found = records_of(tmp_path / "one")
    assert len(lines) == len(of_kind(found, "response")) + len(of_kind(found, "revisit"))


def test_smaller_files(tmp_path: Path) -> None:
    sizes = []
    for level in ("0", "2"):
        conf = Configuration.load([]).with_values({"warc.output.level": level})
        jobs.export("warc", archived_crawl().folder, tmp_path / level, "-prefix", "x", conf=conf)
        (path,) = (tmp_path / level).iterdir()
        sizes.append(path.stat().st_size)
    assert sizes[1] < sizes[0]
    wrong = Configuration.load([]).with_values({"warc.output.level": "9"})
    with pytest.raises(ConfigError, match="0 to 3"):
        jobs.export("warc", archived_crawl().folder, tmp_path / "x", conf=wrong)


def test_sha256(tmp_path: Path) -> None:
    export(archived_crawl().segments[0], tmp_path / "out", "-digest", "sha256")
    found = records_of(tmp_path / "out")
    assert all(fields["WARC-Block-Digest"].startswith("sha256:") for _, _, _, fields, _ in found)


def test_a_head_that_was_not_kept_is_made_and_says_so(tmp_path: Path) -> None:
    metadata = Metadata.of(
        {
            "Content-Type": "text/html",
            "Set-Cookie": ["a=1", "b=2"],
            "Content-Length": "99",
            "Location": "http://b.example/\r\nX-Evil: 1",
            "_fst_": "36",
            "nutch.segment.name": "x",
            "not a name": "x",
        }
    )
    datum = CrawlDatum(STATUS_FETCH_REDIR_PERM, fetch_time=DAY)
    segment = make_segment(
        tmp_path / "20260101000000", URL, datum, Content(content=b"moved", metadata=metadata)
    )
    export(segment.path, tmp_path / "out")
    (response,) = of_kind(records_of(tmp_path / "out"), "response")
    head, _, body = response[4].decode().partition("\r\n\r\n")
    lines = head.split("\r\n")
    assert lines[0] == "HTTP/1.1 301 Moved Permanently"
    assert lines[-1] == MADE_HEAD
    assert sorted(lines[1:-1]) == [
        "Content-Length: 5",
        "Content-Type: text/html",
        "Location: http://b.example/ X-Evil: 1",
        "Set-Cookie: a=1",
        "Set-Cookie: b=2",
        "X-Crawler-Content-Length: 99",
    ]
    assert body == "moved"
    assert rebuilt_head(299, Metadata(), 0).startswith("HTTP/1.1 299 \r\n")


def test_what_is_no_web_page_is_a_resource(tmp_path: Path) -> None:
    datum = CrawlDatum(STATUS_FETCH_SUCCESS, fetch_time=DAY)
    page = Content(content=b"x", content_type="text/plain")
    segment = make_segment(tmp_path / "20260101000000", "ftp://a.example/x", datum, page)
    export(segment.path, tmp_path / "out")
    (record,) = of_kind(records_of(tmp_path / "out"), "resource")
    assert record[3]["Content-Type"] == "text/plain" and record[4] == b"x"
    later = CrawlDatum(STATUS_FETCH_NOTMODIFIED, fetch_time=2 * DAY)
    unchanged = make_segment(tmp_path / "20260102000000", "ftp://a.example/x", later, None)
    export(segment.path, unchanged.path, tmp_path / "both")
    (revisit,) = of_kind(records_of(tmp_path / "both"), "revisit")
    assert (
        revisit[3]["WARC-Refers-To"] == record[3]["WARC-Record-ID"]
        and "Content-Type" not in revisit[3]
    )


def test_what_is_cut_off_says_why(tmp_path: Path) -> None:
    for reason, said in (
        ("length", "length"),
        ("disconnect", "disconnect"),
        ("whim", "unspecified"),
    ):
        metadata = Metadata.of(
            {"http.content.truncated": "true", "http.content.truncated.reason": reason}
        )
        page = Content(content=b"x", metadata=metadata)
        segment = make_segment(
            tmp_path / reason, URL, CrawlDatum(STATUS_FETCH_SUCCESS, fetch_time=DAY), page
        )
        export(segment.path, tmp_path / f"{reason}-out")
        assert (
            of_kind(records_of(tmp_path / f"{reason}-out"), "response")[0][3]["WARC-Truncated"]
            == said
        )


def test_http_2(tmp_path: Path) -> None:
    head = "HTTP/2 200 \r\nContent-Type: text/html\r\n\r\n"
    versions = {"_protocol_versions_": "h2,TLSv1.3", "_cipher_suites_": "TLS_AES_128_GCM_SHA256"}
    page = Content(content=b"x", metadata=Metadata.of({"_response.headers_": head, **versions}))
    segment = make_segment(
        tmp_path / "20260101000000", URL, CrawlDatum(STATUS_FETCH_SUCCESS, fetch_time=DAY), page
    )
    export(segment.path, tmp_path / "out", "-cdxj")
    (path,) = (tmp_path / "out").glob("*.warc.gz")
    assert checked(path)
    text = gzip.decompress(path.read_bytes())
    assert (
        b"WARC-Protocol: h2\r\nWARC-Protocol: tls/1.3\r\nWARC-Cipher-Suite:"
        b" TLS_AES_128_GCM_SHA256\r\n" in text
    )
    assert b'"status": "200"' in (tmp_path / "out/index.cdxj").read_bytes()


def test_each_capture_once_and_revisits_of_what_was_before(tmp_path: Path) -> None:
    """A merged segment beside what it was made of; segments whose names are not in the order of
    their fetches.
    """
    page = Content(
        content=b"page", metadata=Metadata.of({"_response.headers_": "HTTP/1.1 200 OK\r\n\r\n"})
    )
    for name, day in (
        ("20260103000000", 3),
        ("20260101000000", 3),
        ("20260102000000", 2),
        ("20260104000000", 4),
    ):
        make_segment(
            tmp_path / "segments" / name,
            URL,
            CrawlDatum(STATUS_FETCH_SUCCESS, fetch_time=day * DAY),
            page,
        )
    unchanged = CrawlDatum(STATUS_FETCH_NOTMODIFIED, fetch_time=5 * DAY)
    make_segment(tmp_path / "segments" / "20260105000000", URL, unchanged, None)
    counters = export(tmp_path / "segments", tmp_path / "out")
    found = records_of(tmp_path / "out")
    assert [(kind, date[8:10]) for kind, _, date, _, _ in found[1:]] == [
        ("response", "04"),
        ("response", "03"),
        ("revisit", "05"),
        ("revisit", "06"),
    ]
    names = (webarchive.PAGES, webarchive.TWICE, webarchive.SAME, webarchive.UNCHANGED)
    assert [counters[name] for name in names] == [2, 1, 1, 1]
    assert all(fields["WARC-Refers-To-Date"] == found[2][2] for _, _, _, fields, _ in found[3:])


def test_unmodified_since_nobody_knows_when(tmp_path: Path) -> None:
    datum = CrawlDatum(STATUS_FETCH_NOTMODIFIED, fetch_time=DAY)
    segment = make_segment(tmp_path / "20260101000000", URL, datum, None)
    assert export(segment.path, tmp_path / "out")[webarchive.UNCHANGED] == 1
    (revisit,) = of_kind(records_of(tmp_path / "out"), "revisit")
    assert not [name for name in revisit[3] if "Refers" in name or "Payload" in name]


def test_every_url_is_counted_once(tmp_path: Path) -> None:
    robots = Content(content=b"User-agent: *", metadata=Metadata.of({"nutch.fetch.time": str(DAY)}))
    path = tmp_path / "20260101000000"
    with (
        part_writer(path, CONTENT, 0) as page,
        part_writer(path, CRAWL_FETCH, 0) as fetch,
    ):
        page("http://a.example/robots.txt", robots)
        page("http://a.example/undated", Content(content=b"x"))
        page("no uri", Content(content=b"x"))
        fetch("http://a.example/gone", CrawlDatum(fetch_time=DAY))
        fetch("no uri", CrawlDatum(STATUS_FETCH_SUCCESS, fetch_time=DAY))
    counters = export(path, tmp_path / "out")
    expected = {
        webarchive.PAGES: 1,
        webarchive.NO_CONTENT: 2,
        webarchive.NO_URI: 1,
        webarchive.RECORDS: 2,
    }
    assert {name: count for name, count in counters.items() if count} == expected
    assert of_kind(records_of(tmp_path / "out"), "response")[0][1] == "http://a.example/robots.txt"


def test_bad_input_leaves_nothing(tmp_path: Path) -> None:
    segment = archived_crawl().segments[0]
    for words, message in (
        ([], "warc <segment>"),
        ([tmp_path / "out"], "no <out>"),
        ([segment, tmp_path / "out", "-size", 0], "expected a positive number"),
        ([segment, tmp_path / "out", "-prefix", "../x"], "beginning of a file"),
        ([segment, tmp_path / "out", "-digest", "md5"], "sha256"),
    ):
        with pytest.raises(UsageError) as caught:
            export(*words)
        assert message in f"{caught.value} {caught.value.usage}"
    (tmp_path / "empty").mkdir()
    for source in ("nowhere", "empty"):
        with pytest.raises(StoreError):
            export(tmp_path / source, tmp_path / "out")
    (tmp_path / "there").mkdir()
    for form in ("warc", "wacz", "cdxj", "wet"):
        with pytest.raises(MinutchError, match="already exists"):
            export(segment, tmp_path / "there", form=form)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "there"]
