"""warc: Nutch's records of the golden crawl, and files that warcio and fastwarc find whole."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from minutch.archives import exporters as warc
from minutch.conf import Configuration
from minutch.cycle.segment.store import CONTENT, CRAWL_FETCH, PARSE_TEXT, Segment, part_writer
from minutch.errors import ConfigError, FormatError, StoreError, UrlError, UsageError
from minutch.hadoop.formats.checksum import verify_file
from minutch.records.crawldatum import STATUS_FETCH_GONE, STATUS_FETCH_SUCCESS, CrawlDatum
from minutch.records.metadata import Metadata
from minutch.records.protocol import Content
from minutch.warc.pagewriter import fitted_head
from minutch.warc.warcfile import V1_1, target_uri, warc_date
from tests.support.archived import Record, checked, read_records
from tests.support.commands import warc as warc_command
from tests.support.golden import GOLDEN, needs_golden
from tests.support.nutchruns import NutchRun, context_for

SEGMENTS = GOLDEN / "crawl-small/run-rich-r2/crawl/segments"
FILE = "part-r-00000.seg-00000.attempt-00000.warc"


def run(*words: object, **conf: str) -> None:
    values = {name.replace("__", "."): value for name, value in conf.items()}
    context, _ = context_for(Configuration.load([], overrides=values))
    assert warc_command.run(list(map(str, words)), context) == 0


def make_segment(
    path: Path, pages: dict[str, Content], status: int = STATUS_FETCH_SUCCESS
) -> Segment:
    with (
        part_writer(path, CONTENT, 0) as page,
        part_writer(path, CRAWL_FETCH, 0) as datum,
    ):
        for url in sorted(pages):
            page(url, pages[url])
            datum(url, CrawlDatum(status, fetch_time=1_700_000_000_999))
    return Segment(path)


@needs_golden("commands/warc", "crawl-small/run-rich-r2/crawl/segments")
@pytest.mark.parametrize("case", ["rich-dir", "rich-parse", "rich-plain"])
def test_records_are_nutchs(case: str, tmp_path: Path) -> None:
    """Types, targets, dates, blocks; Nutch has no digests, no address, no types of resources."""
    nutch = NutchRun(f"warc/{case}")
    run(*(str(tmp_path / "out") if word == "out" else word for word in nutch.words))
    ours, theirs = checked(tmp_path / "out" / FILE), read_records(nutch.folder / "out" / FILE)
    assert sorted(map(_common, ours)) == sorted(map(_common, theirs))
    addresses = {
        fields["WARC-IP-Address"]
        for kind, _, _, fields, _ in ours
        if kind in ("response", "resource")
    }
    assert {"127.0.0.1", "127.0.0.2"} <= addresses <= {f"127.0.0.{n}" for n in range(1, 8)}
    verify_file(tmp_path / "out" / FILE)


def _common(record: Record) -> tuple[str | None, ...]:
    kind, target, date, fields, block = record
    return (
        target,
        kind,
        date,
        fields.get("Content-Type") if kind != "resource" else "",
        block.decode("latin-1"),
    )


@needs_golden("commands/warc", "crawl-small/run-rich-r2/crawl/segments")
def test_related_records_name_each_other(tmp_path: Path) -> None:
    nutch = NutchRun("warc/rich-parse")
    run(*(str(tmp_path / "out") if word == "out" else word for word in nutch.words))
    page = ""
    for kind, _, _, fields, _ in checked(tmp_path / "out" / FILE):
        if kind in ("response", "resource"):
            page = fields["WARC-Record-ID"]
        else:
            assert fields["WARC-Refers-To"] == page


def test_compressed_files_of_a_size(tmp_path: Path) -> None:
    pages = {f"http://a.example/{n}": Content(content=bytes([65 + n]) * 5000) for n in range(6)}
    segment = make_segment(tmp_path / "20260101000000", pages)
    run(
        tmp_path / "out",
        segment.path,
        mapreduce__output__fileoutputformat__compress="true",
        warc__output__segment__size="300",
        warc__output__level="2",
    )
    found = sorted(path for path in (tmp_path / "out").iterdir() if path.suffix == ".gz")
    assert len(found) == 3
    assert [record[1] for path in found for record in checked(path)] == sorted(pages)
    assert found[0].read_bytes().count(b"\x1f\x8b\x08") == len(checked(found[0])) == 2
    assert gzip.decompress(found[0].read_bytes()).startswith(b"WARC/1.0\r\nWARC-Type: resource\r\n")


def test_the_same_twice(tmp_path: Path) -> None:
    segment = make_segment(
        tmp_path / "20260101000000", {"http://a.example/": Content(content=b"x")}
    )
    for name in ("one", "two"):
        run(tmp_path / name, segment.path)
    assert (tmp_path / "one" / FILE).read_bytes() == (tmp_path / "two" / FILE).read_bytes()


def test_hostile_pages_make_valid_records(tmp_path: Path) -> None:
    evil = "1.2.3.4\r\nWARC-Type: warcinfo"
    pages = {
        "http://a.example/é \x01[x]": Content(content=b"x", content_type="text/html\r\n\r\nevil"),
        "http://a.example/crlf": Content(content=b"x" * 9, metadata=Metadata.of({"_ip_": evil})),
        "http://a.example/head": Content(
            content=b"body",
            metadata=Metadata.of(
                {
                    "_response.headers_": (
                        "HTTP/1.1 200 OK\r\nContent-Length: 99\r\nX\r\nTransfer-Encoding:"
                        " chunked\r\n"
                    )
                }
            ),
        ),
        "no uri": Content(content=b"x"),
        "http://a.example/cut": Content(
            content=b"x", metadata=Metadata.of({"http.content.truncated": "true"})
        ),
        "http://a.example/empty": Content(),
    }
    segment = make_segment(tmp_path / "20260101000000", pages)
    run(tmp_path / "out", segment.path)
    records = {
        target: (fields, block) for _, target, _, fields, block in checked(tmp_path / "out" / FILE)
    }
    assert len(records) == len(pages) - 1
    assert (
        records["http://a.example/head"][1]
        == b"HTTP/1.1 200 OK\r\nX-Crawler-Content-Length: 99\r\nContent-Length: 4\r\n"
        b"X-Crawler-Transfer-Encoding: chunked\r\n\r\nbody"
    )
    assert records["http://a.example/crlf"][0]["WARC-IP-Address"] == "1.2.3.4 WARC-Type: warcinfo"
    assert records["http://a.example/cut"][0]["WARC-Truncated"] == "unspecified"
    assert "http://a.example/%C3%A9%20%01%5Bx%5D" in records


def test_counts(tmp_path: Path) -> None:
    """Every page leaves through one counter; what was not fetched well is left out if that is
    wished.
    """
    good = make_segment(tmp_path / "20260101000000", {"http://a.example/1": Content(content=b"x")})
    gone = make_segment(
        tmp_path / "20260102000000",
        {"http://a.example/2": Content(content=b"x"), "x": Content()},
        STATUS_FETCH_GONE,
    )
    with part_writer(good.path, CRAWL_FETCH, 1) as append:
        append("http://a.example/3", CrawlDatum(STATUS_FETCH_GONE))
    with part_writer(good.path, CONTENT, 1) as append_page:
        append_page("http://a.example/4", Content())
    context, _ = context_for(Configuration.load([]))
    found = warc.export_nutch_warc([good.path, gone.path], tmp_path / "all", context=context)
    lost = {warc.NO_CONTENT: 1, warc.NO_DATUM: 1, warc.NO_URI: 1, warc.NO_SUCCESS: 0}
    assert found == {warc.WRITTEN: 2, **lost, warc.RECORDS: 2}
    run(tmp_path / "good", good.path, gone.path, "-onlySuccessfulResponses")
    assert [record[1] for record in checked(tmp_path / "good" / FILE)] == ["http://a.example/1"]
    run(tmp_path / "same", good.path, gone.path, warc__exporter__only__successful__responses="true")
    assert (tmp_path / "same" / FILE).read_bytes() == (tmp_path / "good" / FILE).read_bytes()


def test_heads_fit_their_bodies() -> None:
    assert fitted_head("", 4) == fitted_head(" \r\n", 4) == ""
    assert (
        fitted_head("HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n", 4)
        == "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\n"
    )
    assert (
        fitted_head("HTTP/1.1 200 OK\r\ncontent-encoding: gzip", 4)
        == "HTTP/1.1 200 OK\r\nX-Crawler-content-encoding: gzip\r\n\r\n"
    )
    assert fitted_head("HTTP/1.1 200\r\nContent-Length: " + "9" * 5000, 1).endswith(
        "\r\nContent-Length: 1\r\n\r\n"
    )


def test_dates_and_uris() -> None:
    assert warc_date(1_700_000_000_999) == "2023-11-14T22:13:20Z"
    assert warc_date(1_700_000_000_999, V1_1) == "2023-11-14T22:13:20.999Z"
    assert warc_date(-5) == "1970-01-01T00:00:00Z"
    assert warc_date(1 << 62) == "9999-12-31T23:59:59Z"
    assert target_uri("http://[::1]:80/a b") == "http://[::1]:80/a%20b"
    assert target_uri("http://a.example/é|%zz") == "http://a.example/%C3%A9%7C%25zz"
    with pytest.raises(UrlError):
        target_uri("/path")


def test_bad_input_leaves_nothing(tmp_path: Path) -> None:
    segment = make_segment(
        tmp_path / "20260101000000", {"http://a.example/": Content(content=b"x")}
    )
    out = tmp_path / "out"
    with pytest.raises(UsageError):
        run(out)
    with pytest.raises(StoreError, match="folder of segments"):
        run(out, tmp_path)
    with pytest.raises(StoreError, match=PARSE_TEXT):
        run(out, segment.path, "-includeParseText")
    with pytest.raises(ConfigError, match=r"warc\.output\.segment\.size"):
        run(out, segment.path, warc__output__segment__size="-1")
    (tmp_path / "there").mkdir()
    with pytest.raises(StoreError, match="already exists"):
        run(tmp_path / "there", segment.path)
    data = segment.data_files(CONTENT)[0]
    data.write_bytes(data.read_bytes()[:-5])
    with pytest.raises(FormatError):
        run(out, segment.path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["20260101000000", "there"]
