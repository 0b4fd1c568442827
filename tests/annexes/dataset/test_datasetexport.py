"""export commoncrawl: every line as the schema says, texts beside metadata, redirects, failures,
what is left out.
"""

from __future__ import annotations

import gzip
import json
import os
import pickle
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from minutch.annexes.dataset.datasetexport import DatasetOptions, export_commoncrawl
from minutch.annexes.dataset.datasettables import scan_metadata, scan_texts
from minutch.annexes.dataset.metadatadoc import MetadataTask, UrlRecords
from minutch.cycle.parse.simhash import simhash
from minutch.cycle.segment.store import (
    CONTENT,
    CRAWL_FETCH,
    PARSE_DATA,
    PARSE_TEXT,
    Segment,
    part_writer,
)
from minutch.errors import FormatError, StoreError, UsageError
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.hadoop.formats.sequencewriter import SequenceFileWriter
from minutch.hadoop.formats.text import as_text
from minutch.hadoop.formats.writables import MapWritable, Text
from minutch.records import crawldatum as codes
from minutch.records import parsedata, protocol
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import Metadata
from minutch.records.parsedata import ParseData, ParseStatus, ParseText
from minutch.records.protocol import Content, ProtocolStatus
from tests.annexes.dataset.schema import check
from tests.support.commands import command
from tests.support.crawldbs import context
from tests.support.golden import GOLDEN, needs_golden

export_command = command("export").run
run = command("export commoncrawl").run

NAME = "20120203192405"
TIME = 1_328_296_964_112
Json = dict[str, Any]


def fetch(status: int, outcome: ProtocolStatus, code: int | None = None, **more: str) -> CrawlDatum:
    metadata = MapWritable(
        {Text("_pst_"): outcome, **{Text(name): Text(value) for name, value in more.items()}}
    )
    if code is not None:
        metadata[Text("nutch.protocol.code")] = Text(str(code))
    return CrawlDatum(status, 60, 1.0, TIME, metadata=metadata)


def ok(**more: str) -> CrawlDatum:
    return fetch(codes.STATUS_FETCH_SUCCESS, ProtocolStatus(protocol.SUCCESS), 200, **more)


def redirect(target: str, code: int = 301) -> CrawlDatum:
    return fetch(
        codes.STATUS_FETCH_REDIR_PERM,
        ProtocolStatus.of(protocol.MOVED, target),
        code,
        _ip_="10.0.0.9",
    )


def page(url: str, body: str | bytes, kind: str = "text/html", **headers: str) -> Content:
    metadata = Metadata.of(
        {"Content-Type": f"{kind}; charset=UTF-8", "nutch.segment.name": NAME, "_fst_": "33"}
    )
    for name, value in headers.items():
        metadata.add(name.replace("_", "-") if not name.startswith("_") else name, value)
    return Content(url, url, body.encode() if isinstance(body, str) else body, kind, metadata)


def write(segment: Segment, folder: str, records: Iterable[tuple[str, Any]]) -> None:
    with part_writer(segment.path, folder, 0) as append:
        for url, value in sorted(records, key=lambda record: record[0].encode()):
            append(url, value)


RSS = "<rss><channel><title>News</title><item><title>One</title></item></channel></rss>"
HTML = "<title>A</title><meta name=description content=about><a href=/b>b</a><p>words of a page"
URL = "http://a.org/"
PAGES: list[tuple[str, CrawlDatum, Content | None, str | None]] = [
    (URL, ok(_ip_="10.0.0.1"), page(URL, HTML, Server="s"), "A\nwords of a page b"),
    ("http://a.org/feed", ok(), page("http://a.org/feed", RSS, "application/rss+xml"), ""),
    ("http://a.org/feed.xml", ok(), page("http://a.org/feed.xml", RSS, "text/xml"), ""),
    (
        "http://a.org/gz",
        ok(),
        page("http://a.org/gz", HTML, Content_Encoding="gzip", Content_Length="50"),
        "A",
    ),
    (
        "http://a.org/cut",
        ok(),
        page("http://a.org/cut", "<p>half a", Content_Length="999"),
        "half a",
    ),
    ("http://a.org/pdf", ok(), page("http://a.org/pdf", b"%PDF", "application/pdf"), "text of it"),
    (
        "http://a.org/t.txt",
        ok(),
        page("http://a.org/t.txt", "plain text here", "text/plain"),
        "plain text here",
    ),
    (
        "http://a.org/gone",
        fetch(codes.STATUS_FETCH_GONE, ProtocolStatus(protocol.NOTFOUND), 404),
        None,
        None,
    ),
    (
        "http://a.org/same",
        fetch(codes.STATUS_FETCH_NOTMODIFIED, ProtocolStatus(protocol.NOTMODIFIED)),
        None,
        None,
    ),
    (
        "http://a.org/503",
        fetch(codes.STATUS_FETCH_RETRY, ProtocolStatus.of(protocol.EXCEPTION, "x"), 503),
        None,
        None,
    ),
    (
        "http://a.org/dns",
        fetch(codes.STATUS_FETCH_RETRY, ProtocolStatus.of(protocol.EXCEPTION, "no host")),
        None,
        None,
    ),
    (
        "http://a.org/no",
        fetch(codes.STATUS_FETCH_GONE, ProtocolStatus(protocol.ROBOTS_DENIED)),
        None,
        None,
    ),
    ("http://a.org/old", redirect(URL), None, None),
    ("http://a.org/older", redirect(URL, 302), None, None),
    ("http://a.org/away", redirect("http://b.org/"), None, None),
    (
        "http://a.org/later",
        fetch(codes.STATUS_LINKED, ProtocolStatus(protocol.NOTFETCHING)),
        None,
        None,
    ),
]
PAGES[4][2].metadata.set("http.content.truncated", "true")  # type: ignore[union-attr]


@pytest.fixture
def segment(tmp_path: Path) -> Segment:
    made = Segment(tmp_path / NAME)
    write(made, CRAWL_FETCH, [(url, datum) for url, datum, _, _ in PAGES])
    write(made, CONTENT, [(url, content) for url, _, content, _ in PAGES if content is not None])
    write_parsed(made, {url: text for url, _, _, text in PAGES if text is not None})
    return made


def write_parsed(segment: Segment, texts: dict[str, str], status: int = parsedata.SUCCESS) -> None:
    write(segment, PARSE_TEXT, [(url, ParseText(text)) for url, text in texts.items()])
    write(segment, PARSE_DATA, [(url, ParseData(ParseStatus(status))) for url in texts])


def lines(path: Path) -> dict[str, Json]:
    """URL → metadata of a file, each checked."""
    found = {}
    for line in "".join(as_text(path)).splitlines():
        url, _, value = line.partition("\t")
        found[url] = json.loads(value)
        check(found[url])
    return found


def exported(segment: Segment, out: Path, **options: int) -> Path:
    export_commoncrawl([segment.path], out, DatasetOptions(**options), context=context())
    (folder,) = (out / "segment").iterdir()
    return folder


def test_the_files(segment: Segment, tmp_path: Path) -> None:
    folder = exported(segment, tmp_path / "out")
    assert folder.name.endswith("5000") and len(folder.name) == 13
    assert sorted(path.name for path in folder.iterdir() if path.name[0] != ".") == [
        "metadata-00000",
        "textData-00000",
    ]
    with SequenceFileReader(folder / "metadata-00000") as reader:
        assert (reader.key_class, reader.value_class) == ("org.apache.hadoop.io.Text",) * 2
        assert reader.codec == "org.apache.hadoop.io.compress.GzipCodec"
    texts = dict(
        row for table in scan_texts(folder / "textData-00000") for row in table.iter_rows()
    )
    assert texts == {
        URL: "A\nabout\nwords of a page b",
        "http://a.org/cut": "half a",
        "http://a.org/feed": "News\nOne",
        "http://a.org/feed.xml": "News\nOne",
        "http://a.org/gz": "A\nabout",
    }


def test_pages(segment: Segment, tmp_path: Path) -> None:
    found = lines(exported(segment, tmp_path / "out") / "metadata-00000")
    first = found[URL]
    assert list(first) == [
        "attempt_time", "disposition", "redirect_from", "server_ip", "http_result", "http_headers",
        "content_len",
        "mime_type", "download_size", "md5", "charset_detected", "charset_detector",
        "text_simhash", "parsed_as",
        "content",
    ]  # fmt: skip
    assert first["attempt_time"] == TIME
    assert first["redirect_from"] == {
        "source_url": "http://a.org/old",
        "http_result": 301,
        "server_ip": "10.0.0.9",
        "http_headers": {"response": "HTTP/1.1 301 Moved Permanently", "location": URL},
    }
    assert first["http_headers"] == {
        "response": "HTTP/1.1 200 OK",
        "content-type": "text/html; charset=UTF-8",
        "server": "s",
    }
    assert (first["content_len"], first["server_ip"], first["charset_detector"]) == (
        len(HTML),
        "10.0.0.1",
        0,
    )
    number = simhash("A\nabout\nwords of a page b")
    assert number is not None and first["text_simhash"] % 2**64 == number
    assert first["content"]["links"] == [{"type": "a", "text": "b", "href": "http://a.org/b"}]
    for url in ("http://a.org/feed", "http://a.org/feed.xml"):
        assert (found[url]["parsed_as"], found[url]["content"]["type"]) == ("feed", "rss-feed")
    gzipped = found["http://a.org/gz"]
    assert (gzipped["content_is_gzip"], gzipped["content_len"], gzipped["gunzip_content_len"]) == (
        True,
        50,
        len(HTML),
    )
    cut = found["http://a.org/cut"]
    assert (cut["download_truncated"], cut["download_size"]) == (True, len("<p>half a"))
    assert (
        "charset_detected" not in found["http://a.org/pdf"] and "md5" in found["http://a.org/pdf"]
    )
    plain = found["http://a.org/t.txt"]
    assert "text_simhash" in plain and "parsed_as" not in plain


def test_answers_without_a_page_and_failures(segment: Segment, tmp_path: Path) -> None:
    found = lines(exported(segment, tmp_path / "out") / "metadata-00000")
    assert found["http://a.org/gone"] == {
        "attempt_time": TIME,
        "disposition": "SUCCESS",
        "server_ip": "0.0.0.0",
        "http_result": 404,
        "http_headers": {"response": "HTTP/1.1 404 Not Found"},
        "content_len": 0,
    }
    assert found["http://a.org/same"]["http_result"] == 304
    failures = {
        url.rpartition("/")[2]: (record["failure_reason"], record["failure_detail"])
        for url, record in found.items()
        if record["disposition"] == "FAILURE"
    }
    assert failures == {
        "503": ("InvalidResponseCode", "URL:http://a.org/503 returned invalid responseCode:503"),
        "dns": ("IOException", "no host"),
        "no": ("RobotsDenied", ""),
        "older": ("RedirectFailed", "Not Followed Redirect Location:http://a.org/"),
        "away": ("RedirectFailed", "Not Followed Redirect Location:http://b.org/"),
    }


def test_every_url_leaves_through_one_counter(segment: Segment, tmp_path: Path) -> None:
    write_extra = [("http://a.org/inner", ParseText("an entry of a feed"))]
    with part_writer(segment.path, PARSE_TEXT, 1) as append:
        for url, text in write_extra:
            append(url, text)
    counters = export_commoncrawl([segment.path], tmp_path / "out", context=context())
    assert {name: count for name, count in counters.items() if count} == {
        "texts": 5,
        "HTML pages": 3,
        "feeds": 2,
        "other pages": 4,
        "failures": 5,
        "redirects merged into the records of their targets": 1,
        "URLs omitted: never requested": 1,
        "URLs omitted: not fetched, found inside another page": 1,
    }
    assert sum(counters.values()) - counters["texts"] == len(PAGES) + len(write_extra)


def test_files_have_the_same_numbers_and_order(segment: Segment, tmp_path: Path) -> None:
    folder = exported(segment, tmp_path / "out", urls=4)
    urls, before = [], -1
    for number in range(4):
        texts = [
            url for table in scan_texts(folder / f"textData-{number:05}") for url in table["url"]
        ]
        metadata = list(lines(folder / f"metadata-{number:05}"))
        assert [url for url in metadata if url in texts] == texts
        urls += metadata
        before += len(texts)
    assert urls == sorted(urls) and len(urls) == 14
    assert not (folder / "metadata-00004").exists()


def test_as_a_table(segment: Segment, tmp_path: Path) -> None:
    folder = exported(segment, tmp_path / "out")
    (table,) = scan_metadata(folder / "metadata-00000")
    row = next(table.iter_rows(named=True))
    assert (row["url"], row["http_result"], row["redirect_from"]["source_url"]) == (
        URL,
        200,
        "http://a.org/old",
    )
    assert json.loads(row["json"])["content"]["type"] == "html-doc"
    assert table["disposition"].value_counts(sort=True).rows() == [("SUCCESS", 9), ("FAILURE", 5)]
    assert table["failure_reason"].null_count() == 9
    with SequenceFileWriter(tmp_path / "x", Text.class_name, Text.class_name) as writer:
        writer.append(Text("u"), Text("{"))
    with pytest.raises(FormatError, match="not JSON"):
        list(scan_metadata(tmp_path / "x"))


def arc(path: Path, *urls: str, tail: bytes = b"") -> dict[str, tuple[int, int]]:
    """An ARC file; where the record of each URL lies, and how long it is."""
    places, data = {}, b""
    for url in ("filedesc://x", *urls):
        member = gzip.compress(
            f"{url} 10.0.0.1 20120203192405 text/html 5\n".encode() + os.urandom(200_000) + b"\n"
        )
        places[url] = (len(data), len(member))
        data += member
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data + tail)
    return places


def test_where_pages_lie_in_arc_files(segment: Segment, tmp_path: Path) -> None:
    folder = tmp_path / "1341690169105"
    first = arc(folder / "1341826131693_45.arc.gz", "http://a.org/503", URL, "http://nobody.org/")
    arc(folder / "1341826131694_46.arc.gz", URL, "http://a.org/pdf")
    (folder / "other.txt").touch()
    words = [str(segment.path), str(tmp_path / "out"), "-arcs", str(folder)]
    assert run(words, context()) == 0
    (target,) = (tmp_path / "out/segment").iterdir()
    found = lines(target / "metadata-00000")
    assert list(found[URL])[-1] == "archiveInfo"
    assert found[URL]["archiveInfo"] == {
        "arcSourceSegmentId": 1341690169105,
        "arcFileDate": 1341826131693,
        "arcFileParition": 45,
        "arcFileOffset": first[URL][0],
        "compressedSize": first[URL][1],
    }
    assert found["http://a.org/pdf"]["archiveInfo"]["arcFileParition"] == 46
    assert sum("archiveInfo" in record for record in found.values()) == 2


def test_damaged_arc_files(segment: Segment, tmp_path: Path) -> None:
    path = tmp_path / "arcs/1_2.arc.gz"
    places = arc(path, URL)
    for damaged in (path.read_bytes()[:-3], path.read_bytes() + b"rest"):
        path.write_bytes(damaged)
        with pytest.raises(FormatError, match=r"1_2\.arc\.gz"):
            export_commoncrawl(
                [segment.path],
                tmp_path / "out",
                DatasetOptions(arcs=[path.parent]),
                context=context(),
            )
        path.write_bytes(path.read_bytes()[: sum(places[URL])])
    with pytest.raises(StoreError, match="no folder with ARC files"):
        export_commoncrawl(
            [segment.path],
            tmp_path / "out",
            DatasetOptions(arcs=[tmp_path / "none"]),
            context=context(),
        )
    with pytest.raises(StoreError, match="expected one for each of 1 segments"):
        run([str(segment.path), "out", "-arcs", "a", "-arcs", "b"], context())


def test_verbatim_headers_and_repeated_ones(tmp_path: Path) -> None:
    segment = Segment(tmp_path / NAME)
    verbatim = "HTTP/1.0 200 Fine\r\nX-A: 1\r\nSet-Cookie: a\r\nset-cookie: b\r\nbroken\r\n\r\n"
    kept = page(URL, "<p>x", **{"_response.headers_": verbatim})
    parted = page("http://b.org/", "<p>x", Set_Cookie="a")
    parted.metadata.add("Set-Cookie", "b")
    write(segment, CRAWL_FETCH, [(URL, ok()), ("http://b.org/", ok())])
    write(segment, CONTENT, [(URL, kept), ("http://b.org/", parted)])
    write_parsed(segment, {URL: "x"})
    found = lines(exported(segment, tmp_path / "out") / "metadata-00000")
    assert found[URL]["http_headers"] == {
        "response": "HTTP/1.0 200 Fine",
        "x-a": "1",
        "set-cookie": "a, b",
    }
    assert found["http://b.org/"]["http_headers"]["set-cookie"] == "a, b"


def test_a_page_that_ends_its_worker_is_told_without_content() -> None:
    url, datum, content, text = PAGES[0]
    assert content is not None
    item = UrlRecords(
        url, True, datum.to_bytes(), content.to_bytes(), ParseText(text or "").to_bytes(), None
    )
    line = MetadataTask(context().conf).fail(pickle.dumps(tuple(item)), "the parser crashed")
    record = json.loads(line.metadata)
    check(record)
    assert "md5" in record and "content" not in record
    assert (line.text, line.counter) == (None, "unreadable pages, written without content")


def test_a_page_that_the_parse_refused_is_not_read(tmp_path: Path) -> None:
    segment = Segment(tmp_path / NAME)
    write(segment, CRAWL_FETCH, [(URL, ok())])
    write(segment, CONTENT, [(URL, page(URL, "<div>" * 200_000))])
    write_parsed(segment, {URL: ""}, parsedata.FAILED)
    record = lines(exported(segment, tmp_path / "out") / "metadata-00000")[URL]
    assert "md5" in record and "charset_detected" in record and "content" not in record


def test_wrong_inputs(segment: Segment, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="expected a positive number"):
        run([str(segment.path), str(tmp_path / "out"), "-urls", "0"], context())
    with pytest.raises(UsageError, match="no <out>"):
        export_command(["commoncrawl", str(segment.path)], context())
    with pytest.raises(StoreError, match="expected one for each of 1 segments, found 2"):
        export_command(
            ["commoncrawl", "-dir", str(segment.path.parent), "out", "-arcs", "a", "-arcs", "b"],
            context(),
        )
    with pytest.raises(StoreError, match="has no parse_data"):
        bare = Segment(tmp_path / "20120203192406")
        write(bare, CRAWL_FETCH, [])
        write(bare, CONTENT, [])
        export_commoncrawl([bare.path], tmp_path / "out", context=context())
    with pytest.raises(StoreError, match="named after a date"):
        segment.path.rename(tmp_path / "other")
        export_commoncrawl([tmp_path / "other"], tmp_path / "out", context=context())
    assert not (tmp_path / "out").exists()


def test_damage_leaves_nothing(segment: Segment, tmp_path: Path) -> None:
    data = segment.data_files(CONTENT)[0]
    data.write_bytes(data.read_bytes()[:-9])
    data.with_name(".data.crc").unlink()
    with pytest.raises(FormatError, match="content"):
        export_commoncrawl([segment.path], tmp_path / "out", context=context())
    assert not list((tmp_path / "out/segment").iterdir())


@needs_golden("crawl-small/run-rich-r2")
def test_crawled_segments(tmp_path: Path) -> None:
    segments = [
        Segment(path)
        for path in sorted((GOLDEN / "crawl-small/run-rich-r2/crawl/segments").iterdir())
    ]
    job = context()
    assert run([*(str(segment.path) for segment in segments), str(tmp_path / "out")], job) == 0
    folders = sorted((tmp_path / "out/segment").iterdir())
    assert len(folders) == len(segments)
    found = [lines(folder / "metadata-00000") for folder in folders]
    for number, segment in enumerate(segments):
        fetched = {
            url for url, datum in segment.records(CRAWL_FETCH) if isinstance(datum, CrawlDatum)
        }
        told = {
            record["redirect_from"]["source_url"]
            for record in found[number].values()
            if "redirect_from" in record
        }
        assert found[number].keys() | told <= fetched
        assert all(first.encode() < second.encode() for first, second in pairwise(found[number]))
    home = found[0]["http://127.0.0.1:8810/"]
    assert (home["parsed_as"], home["content"]["title"]) == ("html", "Index — small site")
    assert sum(len(records) for records in found) > 90
