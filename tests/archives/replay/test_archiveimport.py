"""import: archives of every kind become segments with which parse, updatedb and index go on."""

from __future__ import annotations

import gzip
import json
import socket
import zipfile
from collections.abc import Iterator
from datetime import datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from minutch import jobs
from minutch.archives.replay import replayer
from minutch.clock import FakeClock
from minutch.conf import Configuration
from minutch.cycle.segment import places
from minutch.cycle.segment.store import CRAWL_FETCH, Segment, segments_in
from minutch.errors import FormatError, MinutchError, StoreError, UsageError
from minutch.hadoop.formats.writables import IntWritable, Text
from minutch.job import Counters, JobContext
from minutch.records import crawldatum as status
from minutch.records.metadata import (
    CONTENT_FETCH_TIME_KEY,
    IP_ADDRESS_KEY,
    REQUEST_KEY,
    RESPONSE_CODE_KEY,
    RESPONSE_HEADERS_KEY,
    RESPONSE_TIME_KEY,
    SEGMENT_NAME_KEY,
    TRUNCATED_KEY,
)
from minutch.records.protocol import Content
from tests.support.archives import DATE, HTML, WarcMaker, digest_of
from tests.support.commands import command, export_arc
from tests.support.commands import warc as warc_command
from tests.support.crawldbs import read_db
from tests.support.segments import conf_for, contents, fetch_segment, fetched, make_segment
from tests.warc.reading.files import zstd_shared

export_run = command("export").run
import_run = command("import").run

HOME = b'<html><title>Home</title><a href="/a">a</a></html>'
TIME = 1_767_323_045_000
"""DATE in ms."""
LATER, LATEST = "2026-01-03T00:00:00Z", "2026-01-04T00:00:00Z"


def imported(*words: object, **conf: str) -> tuple[list[Segment], Counters]:
    """Run `import warc`; the new segments and the counters."""
    context = JobContext(conf_for(**conf))
    assert import_run(["warc", *map(str, words)], context) == 0
    return segments_in(Path(str(words[-1]))), context.reports["import"]


def statuses(segment: Segment) -> dict[str, list[str]]:
    return {url: [datum.status_name for datum in found] for url, found in fetched(segment).items()}


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Visits of every kind."""
    path = tmp_path_factory.mktemp("archive") / "x.warc.gz"
    with WarcMaker(path) as warc:
        warc.other("warcinfo", "", b"software: x\r\n", "application/warc-fields")
        warc.page("http://h.example/", HOME)
        warc.other(
            "metadata",
            "http://h.example/",
            b"via: http://x/\r\nfetchTimeMs: 12\r\n",
            "application/warc-fields",
        )
        warc.page(
            "http://h.example/a", gzip.compress(b"packed"), HTML, ("Content-Encoding", "gzip")
        )
        warc.page(
            "http://h.example/c",
            b"3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n",
            HTML,
            ("Transfer-Encoding", "chunked"),
        )
        warc.page("http://h.example/r", b"", ("Location", "/target"), status="302 Found")
        warc.page("http://h.example/gone", b"no", status="404 Not Found")
        warc.page("http://h.example/err", b"no", status="503 Busy")
        warc.page("http://h.example/cut", b"half", HTML, WARC_Truncated="length")
        warc.page("http://h.example/robots.txt", b"User-agent: *\n", ("Content-Type", "text/plain"))
        warc.page("http://h.example/post", b"posted", request="POST")
        warc.revisit("http://h.example/", digest_of(HOME), "http://h.example/", DATE, date=LATER)
        warc.not_modified("http://h.example/", date=LATEST)
        warc.revisit(
            "http://h.example/lost", digest_of(b"-"), "http://h.example/nowhere", DATE, date=LATER
        )
        warc.other("resource", "http://h.example/file.txt", b"plain text")
        warc.other("resource", "dns:h.example", b"h.example. 60 IN A 10.1.2.3")
        warc.other(
            "metadata", "http://h.example/", b"fetchTimeMs: 13\r\n", "application/warc-fields"
        )
    return path


@pytest.fixture(scope="module")
def replayed(
    archive: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[list[Segment], Counters]:
    return imported(archive, tmp_path_factory.mktemp("replayed") / "segments")


def test_every_visit_is_counted_once(replayed: tuple[list[Segment], Counters]) -> None:
    segments, counters = replayed
    assert counters == {
        "visits": 13, "fetched": 6, "redirected": 1, "gone": 1, "retry": 1, "not modified": 1,
        "robots.txt": 1,
        "responses to other requests than GET": 1, "revisits of missing visits": 1,
        "records that are no pages (warcinfo, metadata)": 3, "segments": 3,
    }  # fmt: skip
    others = ("visits", "records that are no pages (warcinfo, metadata)", "segments")
    assert counters["visits"] == sum(
        count for name, count in counters.items() if name not in others
    )
    assert len(segments) == 3


def test_zstd_and_its_dictionary_change_nothing(
    archive: Path, replayed: tuple[list[Segment], Counters], tmp_path: Path
) -> None:
    first, *rest = gzip.decompress(archive.read_bytes()).split(b"WARC/1.1\r\n")
    assert not first
    (tmp_path / "x.warc.zst").write_bytes(zstd_shared(b"WARC/1.1\r\n" + record for record in rest))
    segments, counters = imported(tmp_path, tmp_path / "segments")
    assert counters == replayed[1]
    assert [statuses(segment) for segment in segments] == [
        statuses(segment) for segment in replayed[0]
    ]
    bodies = [
        {url: page.content for url, page in contents(segment).items()} for segment in segments
    ]
    assert bodies == [
        {url: page.content for url, page in contents(segment).items()} for segment in replayed[0]
    ]


def test_statuses_are_those_of_a_fetch(replayed: tuple[list[Segment], Counters]) -> None:
    """The first visits to each URL in the first segment, the second in the second, …; redirects
    lead on.
    """
    first, second, third = replayed[0]
    at = "http://h.example/"
    assert statuses(first) == {
        at: ["fetch_success"], f"{at}a": ["fetch_success"], f"{at}c": ["fetch_success"],
        f"{at}cut": ["fetch_success"],
        f"{at}err": ["fetch_retry"], f"{at}file.txt": ["fetch_success"],
        f"{at}gone": ["fetch_gone"],
        f"{at}lost": ["fetch_notmodified"], f"{at}r": ["fetch_redir_temp"],
        f"{at}target": ["linked"],
    }  # fmt: skip
    assert statuses(second) == {at: ["fetch_success"]}
    assert statuses(third) == {at: ["fetch_notmodified"]}
    assert [fetched(segment)[at][0].fetch_time for segment in replayed[0]] == [
        TIME,
        1_767_398_400_000,
        1_767_484_800_000,
    ]


def test_pages_are_as_the_fetcher_keeps_them(replayed: tuple[list[Segment], Counters]) -> None:
    first, second, _ = replayed[0]
    pages = contents(first)
    home = pages["http://h.example/"]
    assert fetched(first)["http://h.example/"][0].metadata[Text(RESPONSE_TIME_KEY)] == IntWritable(
        12
    )
    assert home.content == HOME
    assert home.content_type == "text/html"
    assert home.metadata.get(CONTENT_FETCH_TIME_KEY) == str(TIME - 12)  # when it was asked for
    assert home.metadata.get(IP_ADDRESS_KEY) == "10.1.2.3"
    assert home.metadata.get(SEGMENT_NAME_KEY) == first.name
    assert (home.metadata.get(REQUEST_KEY) or "").startswith("GET / HTTP/1.1\r\nUser-Agent: test")
    assert (
        home.metadata.get(RESPONSE_HEADERS_KEY)
        == "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"
    )
    assert pages["http://h.example/a"].content == b"packed"
    assert pages["http://h.example/c"].content == b"abcde"
    assert pages["http://h.example/cut"].metadata.get(TRUNCATED_KEY) == "true"
    assert pages["http://h.example/file.txt"].metadata.get(RESPONSE_HEADERS_KEY) is None
    assert pages["http://h.example/robots.txt"].content == b"User-agent: *\n"
    assert "http://h.example/gone" not in pages
    again = contents(second)["http://h.example/"]
    assert again.content == HOME
    assert again.metadata.get("X-Visit") == "again"
    assert (
        second.name > first.name == again.metadata.get(SEGMENT_NAME_KEY)
        or second.name != first.name
    )


def test_a_crawl_goes_on_with_the_segments(
    replayed: tuple[list[Segment], Counters], tmp_path: Path
) -> None:
    """parse, updatedb into a CrawlDb that is not there, mergesegs."""
    conf = conf_for(plugin__includes="parse-(html|text)|urlnormalizer-pass|scoring-opic")
    for segment in replayed[0]:
        jobs.parse(segment.path, conf=conf)
    db = tmp_path / "crawldb"
    jobs.updatedb(db, *(segment.path for segment in replayed[0]), conf=conf)
    known = {url: datum.status_name for url, datum in read_db(db).items()}
    assert known == {
        "http://h.example/": "db_notmodified", "http://h.example/a": "db_fetched",
        "http://h.example/c": "db_fetched",
        "http://h.example/cut": "db_fetched", "http://h.example/err": "db_unfetched",
        "http://h.example/file.txt": "db_fetched", "http://h.example/gone": "db_gone",
        "http://h.example/lost": "db_notmodified", "http://h.example/r": "db_redir_temp",
        "http://h.example/target": "db_unfetched",
    }  # fmt: skip
    jobs.mergesegs(tmp_path / "merged", *(segment.path for segment in replayed[0]), conf=conf)
    (merged,) = segments_in(tmp_path / "merged")
    assert (
        fetched(merged)["http://h.example/"][0].fetch_time == 1_767_398_400_000
    )  # a 304 does not replace it


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        (["-status", "302"], {"r", "target"}),
        (["--status", "4xx", "--status", "503"], {"gone", "err"}),
        (["-mime", "text/plain"], {"file.txt"}),
        (["-from", "2026-01-03", "-to", "20260103"], {"", "lost"}),
        (["-from", "2026-01-04"], {""}),
        (["-to", "2025"], set()),
        (["-host", "other.example"], set()),
        (["-host", "*.example", "-status", "304"], {""}),
    ],
)
def test_a_filter_chooses(
    archive: Path, tmp_path: Path, options: list[str], wanted: set[str]
) -> None:
    segments, counters = imported(*options, archive, tmp_path / "segments")
    found = {url.rpartition("/")[2] for segment in segments for url in fetched(segment)}
    assert found == wanted
    assert counters["visits"] == 13
    assert counters["not selected"] > 5


def test_rules_for_urls_count_if_asked_for(tmp_path: Path) -> None:
    with WarcMaker(tmp_path / "x.warc.gz") as made:
        made.page("http://H.example:80/b/../a", HOME)
        made.page("http://h.example/x.gif", b"GIF")
    rules = {"plugin__includes": "urlnormalizer-basic|urlfilter-regex"}
    segments, _ = imported(tmp_path / "x.warc.gz", tmp_path / "plain", **rules)
    assert set(fetched(segments[0])) == {"http://H.example:80/b/../a", "http://h.example/x.gif"}
    segments, counters = imported(
        "-normalize", "-filter", tmp_path / "x.warc.gz", tmp_path / "ruled", **rules
    )
    assert set(fetched(segments[0])) == {"http://h.example/a"}
    assert counters["filtered"] == 1


def test_content_has_a_limit(tmp_path: Path) -> None:
    with WarcMaker(tmp_path / "x.warc.gz") as made:
        made.page("http://h.example/", b"x" * 5000)
        made.page(
            "http://h.example/z", gzip.compress(b"y" * 5000), HTML, ("Content-Encoding", "gzip")
        )
    for limit, kept in (("100", 100), ("-1", 5000)):
        segments, _ = imported(
            tmp_path / "x.warc.gz", tmp_path / limit, archive__content__limit=limit
        )
        pages = contents(segments[0])
        assert {len(page.content) for page in pages.values()} == {kept}
        assert {page.metadata.get(TRUNCATED_KEY) for page in pages.values()} == (
            {"true"} if kept == 100 else {None}
        )


def test_visits_beyond_the_most_segments_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replayer, "MOST", 2)
    with WarcMaker(tmp_path / "x.warc.gz") as made:
        for day in range(1, 5):
            made.page("http://h.example/", b"%d" % day, date=f"2026-01-0{day}T00:00:00Z")
    segments, counters = imported(tmp_path / "x.warc.gz", tmp_path / "segments")
    assert [contents(segment)["http://h.example/"].content for segment in segments] == [b"1", b"2"]
    assert counters["more visits to a URL than segments"] == 2


def test_an_original_may_come_later_and_in_another_file(tmp_path: Path) -> None:
    """This holds in files of one gzip member, too, where records have no offsets of their own."""
    with WarcMaker(tmp_path / "a.warc", gzip=False) as made:
        for number in range(5):
            made.revisit(
                f"http://h.example/{number}",
                digest_of(b"page %d" % number),
                "http://h.example/-",
                LATER,
            )
    with WarcMaker(tmp_path / "b.warc", gzip=False) as made:
        for number in reversed(range(5)):
            made.page(f"http://o.example/{number}", b"page %d" % number)
    for name in ("a.warc", "b.warc"):
        data = (tmp_path / name).read_bytes()
        (tmp_path / f"{name}.gz").write_bytes(gzip.compress(data))
        (tmp_path / name).unlink()
    segments, counters = imported(
        tmp_path / "a.warc.gz", tmp_path / "b.warc.gz", tmp_path / "segments"
    )
    pages = contents(segments[0])
    assert [pages[f"http://h.example/{number}"].content for number in range(5)] == [
        b"page %d" % n for n in range(5)
    ]
    assert counters["fetched"] == 10


# -- CDXJ and WACZ ---------------------------------------------------------------------------------


def cdxj_of(path: Path) -> str:
    """Lines for the responses of a WARC file, by warcio's offsets; one for each visit, revisits
    too.
    """
    from warcio.archiveiterator import ArchiveIterator

    lines = []
    with path.open("rb") as file:
        records = ArchiveIterator(file)
        for record in records:
            record.raw_stream.read()
            offset, length = records.get_record_offset(), records.get_record_length()
            url = record.rec_headers["WARC-Target-URI"] or ""
            if record.rec_type not in ("response", "revisit") or not url.startswith("http"):
                continue
            time = "".join(c for c in record.rec_headers["WARC-Date"] if c.isdigit())
            mime = (
                "warc/revisit"
                if record.rec_type == "revisit"
                else record.http_headers.get_header("Content-Type")
            )
            found = {
                "url": url, "mime": (mime or "-").partition(";")[0],
                "status": record.http_headers.statusline[:3],
                "digest": (record.rec_headers["WARC-Payload-Digest"] or "-").removeprefix("sha1:"),
                "length": str(length), "offset": str(offset), "filename": path.name,
            }  # fmt: skip
            lines.append(f"example,h)/ {time} {json.dumps(found)}\n")
    return "".join(lines)


def test_a_cdxj_file_leads_to_what_is_wanted_alone(archive: Path, tmp_path: Path) -> None:
    """The rest of the archive, which may be damaged, is not read."""
    lines = cdxj_of(archive)
    (tmp_path / "x.cdxj").write_text(
        f'!meta {{}}\n{lines}no line\nx 20260101000000 {{"url": "http://x/", "offset": "0"}}\n'
    )
    data = bytearray(archive.read_bytes())
    (tmp_path / archive.name).write_bytes(data)
    segments, counters = imported(tmp_path / "x.cdxj", tmp_path / "all")
    assert len(segments) == 3
    assert counters["index lines without a record"] == 2
    assert contents(segments[1])["http://h.example/"].content == HOME
    offset = next(
        json.loads(line.partition("{")[1] + line.partition("{")[2])["offset"]
        for line in lines.splitlines()
    )
    data[int(offset) + 100 : int(offset) + 140] = bytes(40)
    (tmp_path / archive.name).write_bytes(data)
    segments, counters = imported("-status", "404", tmp_path / "x.cdxj", tmp_path / "gone")
    assert statuses(segments[0]) == {"http://h.example/gone": ["fetch_gone"]}
    assert counters["visits"] == counters["not selected"] + 3


@pytest.mark.parametrize(
    "name", ["../secret.warc.gz", "/etc/passwd", "absent.warc.gz", "..\\secret.warc.gz"]
)
def test_a_line_leads_to_no_other_folder(archive: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "secret.warc.gz").write_bytes(archive.read_bytes())
    (tmp_path / "index").mkdir()
    line = json.dumps({"url": "http://h.example/", "offset": "0", "filename": name})
    (tmp_path / "index/x.cdxj").write_text(f"h 20260101000000 {line}\n")
    segments, counters = imported(tmp_path / "index/x.cdxj", tmp_path / "segments")
    assert (segments, counters["index lines without a record"]) == ([], 1)


def test_a_cdx_file_of_eleven_fields(archive: Path, tmp_path: Path) -> None:
    (tmp_path / archive.name).write_bytes(archive.read_bytes())
    entries = [json.loads(line[line.index("{") :]) for line in cdxj_of(archive).splitlines()]
    lines = [
        " ".join(
            (
                "k 20260102030405",
                *(e[name] for name in ("url", "mime", "status", "digest")),
                "- -",
                *(e[name] for name in ("length", "offset", "filename")),
            )
        )
        for e in entries
    ]
    (tmp_path / "x.cdx.gz").write_bytes(
        gzip.compress("\n".join([" CDX N b a m s k r M S V g", *lines, ""]).encode())
    )
    segments, _ = imported(
        "-status", "200", "-mime", "text/html", tmp_path / "x.cdx.gz", tmp_path / "segments"
    )
    names = ("", "a", "c", "cut", "lost", "post")  # of requests an index says nothing
    assert set(fetched(segments[0])) == {f"http://h.example/{name}" for name in names}


def test_files_of_a_host_are_no_pages(tmp_path: Path) -> None:
    path, well_known = tmp_path / "x.warc.gz", "http://h.example/.well-known/tdmrep.json"
    with WarcMaker(path) as warc:
        warc.page(well_known, b"[]")
        warc.page("http://h.example/robots.txt", b"no", status="404 Not Found")
    [segment], counters = imported(path, tmp_path / "segments")
    assert (counters["robots.txt"], counters["tdmrep.json"]) == (1, 1)
    found = contents(segment)
    assert found[well_known].content == b"[]" and statuses(segment) == {}
    codes = {url: page.metadata.get(RESPONSE_CODE_KEY) for url, page in found.items()}
    assert codes == {well_known: "200", "http://h.example/robots.txt": "404"}


def test_a_wacz_holds_warc_files(archive: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.wacz"
    with zipfile.ZipFile(path, "w") as wacz:
        wacz.writestr("datapackage.json", "{}")
        wacz.write(archive, "archive/data.warc.gz")
        wacz.writestr("indexes/index.cdx", cdxj_of(archive), zipfile.ZIP_DEFLATED)
    segments, counters = imported(path, tmp_path / "segments")
    assert (len(segments), counters["visits"]) == (3, 13)
    with zipfile.ZipFile(path, "w") as wacz:
        wacz.write(archive, "archive/data.warc.gz", zipfile.ZIP_DEFLATED)
    with pytest.raises(StoreError, match="compressed in the ZIP"):
        imported(path, tmp_path / "none")
    with zipfile.ZipFile(path, "w") as wacz:
        wacz.writestr("datapackage.json", "{}")
    with pytest.raises(StoreError, match="no WARC file in this ZIP"):
        imported(path, tmp_path / "none")


# -- round trips -----------------------------------------------------------------------------------


class Pages(BaseHTTPRequestHandler):
    """A site: plain, packed, in chunks, redirects, gone, with controls in its headers."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        if self.path == "/r":
            self._send(301, b"moved", Location="/plain")
        elif self.path == "/packed":
            self._send(200, gzip.compress(b"<html>packed</html>"), Content_Encoding="gzip")
        elif self.path == "/chunks":
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            self.wfile.write(b"6\r\n<html>\r\n7\r\n</html>\r\n0\r\n\r\n")
        elif self.path == "/gone":
            self._send(404, b"gone")
        elif self.path == "/robots.txt":
            self._send(404, b"")
        elif self.path == "/bytes":
            self._send(200, bytes(range(256)) * 20, "application/octet-stream")
        elif self.path == "/empty":
            self._send(200, b"")
        else:
            self._send(
                200,
                f"<html>{self.path}</html>".encode(),
                Last_Modified="Sun, 06 Nov 1994 08:49:37 GMT",
            )

    def _send(self, code: int, body: bytes, media_type: str = "text/html", **headers: str) -> None:
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Type", media_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def crawled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Segment]:
    """A fetched segment with all that may be kept of answers."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    Thread(target=server.serve_forever, daemon=True).start()
    at = f"http://127.0.0.1:{server.server_port}"
    urls = [
        f"{at}/{name}"
        for name in ("plain", "packed", "chunks", "r", "gone", "bytes", "empty", "b%20c?d=1&e")
    ]
    segment = make_segment(tmp_path_factory.mktemp("crawled"), sorted(urls))
    kept = {
        "store__http__headers": "true",
        "store__http__request": "true",
        "store__ip__address": "true",
    }
    fetch_segment(segment, conf_for(**kept))
    yield segment
    server.shutdown()
    server.server_close()


@pytest.mark.parametrize(
    "form", ["warc", "warc compressed", "arc", "arc crawl-001", "export warc", "export wacz"]
)
def test_a_segment_comes_back_from_an_archive(crawled: Segment, tmp_path: Path, form: str) -> None:
    """URLs, statuses, contents, headers and times; what the formats have no place for is named
    here.
    """
    out = tmp_path / "out"
    context = JobContext(
        conf_for(
            mapreduce__output__fileoutputformat__compress=str(form.endswith("compressed")).lower()
        )
    )
    if form.startswith("export"):
        out = tmp_path / "out.wacz" if form.endswith("wacz") else out
        export_run([form.removeprefix("export "), str(crawled.path), str(out)], context)
    elif form.startswith("warc"):
        warc_command.run([str(out), str(crawled.path)], context)
    else:
        export_arc.run(
            [
                str(crawled.path),
                str(out),
                "-layout",
                "crawl-001" if form.endswith("1") else "parse-output",
            ],
            context,
        )
    (back,), counters = imported(out, tmp_path / "segments")
    before, after = fetched(crawled), fetched(back)
    gone = {
        url for url in before if url.endswith("/gone")
    }  # Nutch keeps no content of it, so no archive has it
    assert set(before) - gone == set(after)
    assert counters["visits"] == len(before) - 1
    is_exact = form.startswith(
        "export"
    )  # WARC 1.1: milliseconds, requests, and how long answers took
    unit = 1 if is_exact else 1000
    untold = () if is_exact else (RESPONSE_TIME_KEY,)
    for url, records in after.items():
        for datum, old in zip(records, before[url], strict=True):
            assert (datum.status, datum.fetch_time) == (old.status, old.fetch_time // unit * unit)
            assert datum.metadata == {
                key: value for key, value in old.metadata.items() if str(key) not in untold
            }
    old_pages, new_pages = contents(crawled), contents(back)
    assert set(old_pages) == set(new_pages)
    for url, page in new_pages.items():
        old_page = old_pages[url]
        assert (page.content, page.content_type, page.url, page.base) == (
            old_page.content, old_page.content_type, old_page.url, old_page.base,
        )  # fmt: skip
        other = {SEGMENT_NAME_KEY, CONTENT_FETCH_TIME_KEY}
        other |= (
            set() if is_exact else {REQUEST_KEY}
        )  # neither ARC nor WARCExporter writes requests
        assert {k: v for k, v in page.metadata.items() if k not in other} == {
            k: v for k, v in old_page.metadata.items() if k not in other
        }


# -- what can't be done ----------------------------------------------------------------------------


def test_what_is_no_archive_is_named(tmp_path: Path, archive: Path) -> None:
    (tmp_path / "text").write_text("no archive")
    (tmp_path / "bad.wacz").write_bytes(b"PK\x03\x04 no ZIP")
    (tmp_path / "folder").mkdir()
    wrong: list[tuple[str, type[MinutchError], str]] = [
        ("absent.warc.gz", StoreError, "absent.warc.gz: can't be read: No such file"),
        ("text", FormatError, "not an archive"),
        ("bad.wacz", FormatError, "not a WACZ"),
        ("folder", StoreError, "no archive in this folder"),
    ]
    for name, error, text in wrong:
        with pytest.raises(error, match=text):
            imported(archive, tmp_path / name, tmp_path / "segments")
    assert not list((tmp_path / "segments").glob("*")) if (tmp_path / "segments").exists() else True


@pytest.mark.parametrize(
    "words",
    [["x"], ["-status", "20", "x", "y"], ["-from", "1", "x", "y"], ["-to", "202613", "x", "y"]],
)
def test_wrong_command_lines(words: list[str]) -> None:
    with pytest.raises(UsageError, match="Usage: import warc <file>"):
        import_run(["warc", *words], JobContext(Configuration.load([])))


def test_nothing_is_left_of_an_import_that_fails(
    archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(replayer, "close_segment", fail)
    with pytest.raises(OSError, match="No space"):
        imported(archive, tmp_path / "segments")
    assert list((tmp_path / "segments").iterdir()) == []


def test_an_import_that_was_stopped_between_two_segments_is_done_by_the_same_command(
    archive: Path,
    tmp_path: Path,
    replayed: tuple[list[Segment], Counters],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    segments = stopped_after_a_segment(archive, tmp_path, monkeypatch)
    assert [statuses(each) for each in segments_in(segments)] == [
        statuses(each) for each in replayed[0]
    ]
    assert sum(not path.name.startswith(".") for path in segments.iterdir()) == 1
    found, counters = imported(archive, segments)
    assert counters == replayed[1] and list(counters) == list(replayed[1])
    assert [statuses(each) for each in found] == [statuses(each) for each in replayed[0]]
    assert sorted(segments.iterdir()) == [each.path for each in found]
    assert len(imported(archive, segments)[0]) == 6  # once more is once more


@pytest.mark.parametrize("other", [("-host", "nobody.example"), ("-D",)])
def test_another_import_leaves_it_whole(
    archive: Path, tmp_path: Path, other: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Options and properties decide what an import makes."""
    segments = stopped_after_a_segment(archive, tmp_path, monkeypatch)
    by_properties = other == ("-D",)
    options, conf = ((), {"archive.content.limit": "5"}) if by_properties else (other, {})
    found, counters = imported(*options, archive, segments, **conf)
    assert counters["segments"] == (3 if by_properties else 0)
    assert len(found) == 3 + counters["segments"]
    assert sorted(segments.iterdir()) == [each.path for each in found]


def stopped_after_a_segment(archive: Path, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of segments in which an import was killed when the first of three was in its
    place.
    """
    segments = folder / "segments"
    with monkeypatch.context() as patched:
        place = places._place

        def fail_later(directory: Path, parent: Path, time: datetime) -> Path:
            if any(path.is_dir() and not path.name.startswith(".") for path in parent.iterdir()):
                raise OSError(5, "Input/output error")
            return place(directory, parent, time)

        patched.setattr(places, "_place", fail_later)
        with pytest.raises(OSError, match="Input/output"):
            imported(archive, segments)
    (ours,) = segments.glob(".import-*")
    ours.rename(
        segments / f".import-{2**22 + 1}-1-{socket.gethostname()}.0"
    )  # no process has this number
    return segments


def test_an_empty_archive_makes_no_segment(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "x.warc.gz").write_bytes(b"")
    segments, counters = imported(tmp_path / "x.warc.gz", tmp_path / "segments")
    assert (segments, counters) == ([], {"visits": 0, "segments": 0})
    assert any(message.startswith("no visits in") for message in caplog.messages)


def test_names_that_are_taken_are_passed_over(archive: Path, tmp_path: Path) -> None:
    clock = FakeClock(TIME)
    for _ in range(2):
        context = JobContext(conf_for(), clock=clock)
        assert import_run(["arc", str(archive), str(tmp_path)], context) == 0
    names = [segment.name for segment in segments_in(tmp_path)]
    assert len(names) == 6
    for segment in segments_in(tmp_path):
        for page in contents(segment).values():
            assert isinstance(page, Content)
            assert page.metadata.get(SEGMENT_NAME_KEY) in (segment.name, None)
    assert status.STATUS_FETCH_SUCCESS in {
        datum.status for _, (datum, *_) in fetched(segments_in(tmp_path)[0]).items()
    }
    assert all(segment.has(CRAWL_FETCH) for segment in segments_in(tmp_path))


def test_records_without_a_date_are_as_of_their_answers_and_counted(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """WARC-Date is mandatory (ISO 28500:2017, 5.4); the answer's Date says when it was made (RFC
    9110, 6.6.1). Without either it is 1970, which nobody should find out later.
    """
    date = ("Date", "Fri, 02 Jan 2026 03:04:05 GMT")
    with WarcMaker(tmp_path / "x.warc.gz") as warc:
        warc.page("http://h.example/dated", HOME)
        warc.page("http://h.example/answer", HOME, date, date="yesterday")
        warc.page("http://h.example/none", HOME, date="")
    segments, counters = imported(tmp_path / "x.warc.gz", tmp_path / "segments")
    times = {url: found[0].fetch_time for url, found in fetched(segments[0]).items()}
    assert times == {
        "http://h.example/dated": TIME,
        "http://h.example/answer": TIME,
        "http://h.example/none": 0,
    }
    assert counters["records without a date"] == 2 and counters["fetched"] == 3
    said = [record.getMessage() for record in caplog.records if "no date" in record.getMessage()]
    assert len(said) == 2 and str(tmp_path / "x.warc.gz: the record at offset ") in said[0]
    assert said[0].endswith("answer is imported as of its answer's Date, 2026-01-02 03:04:05")
    assert said[1].endswith("none is imported as of 1970")
