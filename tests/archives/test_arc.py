"""export arc: ARC files as the data set of 2012 has them, which warcio and fastwarc read."""

from __future__ import annotations

import gzip
import io
import re
from pathlib import Path
from shutil import copytree

import pytest
from warcio.archiveiterator import ArchiveIterator

from minutch.conf import Configuration
from minutch.cycle.segment.places import segment_name
from minutch.cycle.segment.store import CONTENT, CRAWL_FETCH, Segment, part_writer
from minutch.errors import StoreError, UsageError
from minutch.hadoop.formats.writables import Text
from minutch.job import Counters, JobContext
from minutch.records.crawldatum import (
    STATUS_FETCH_GONE,
    STATUS_FETCH_REDIR_PERM,
    STATUS_FETCH_SUCCESS,
    CrawlDatum,
)
from minutch.records.metadata import (
    CONTENT_FETCH_TIME_KEY,
    IP_ADDRESS_KEY,
    RESPONSE_HEADERS_KEY,
    Metadata,
)
from minutch.records.protocol import Content
from minutch.warc.reading.archivefiles import ArchiveFile, find_archives
from minutch.warc.reading.visits import Visit
from minutch.warc.warcfile import arc_date
from tests.support.commands import command, export_arc

export_run = command("export").run

TIME = 1_341_826_131_693
HEAD = (
    "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Encoding:"
    " gzip\r\nContent-Length: 9\r\n\r\n"
)


def exported(*words: object) -> Counters:
    context = JobContext(Configuration.load([]))
    assert export_run(["arc", *map(str, words)], context) == 0
    return context.reports["export arc"]


@pytest.fixture
def segment(tmp_path: Path) -> Segment:
    """Pages with and without a stored head, a redirect, a robots.txt, a page that is gone."""
    segment = Segment(tmp_path / "segments" / segment_name(1_341_690_169_000))
    page = Metadata.of(
        {
            RESPONSE_HEADERS_KEY: HEAD,
            IP_ADDRESS_KEY: "10.0.0.1",
            "Content-Type": "text/html; charset=utf-8",
        }
    )
    bare = Metadata.of({"Content-Type": "text/plain"})
    moved = Metadata.of({"Location": "http://h.example/\r\nX-Evil: 1", "Content-Type": "text/html"})
    robots = Metadata.of({CONTENT_FETCH_TIME_KEY: str(TIME + 9000), "Content-Type": "text/plain"})
    pages = {
        "http://h.example/": Content(
            "http://h.example/", "http://h.example/", b"<html>page</html>", "text/html", page
        ),
        "http://h.example/bare ä": Content(
            "http://h.example/bare ä", "", b"\x00\xff\r\n\r\n", "text/plain", bare
        ),
        "http://h.example/moved": Content("http://h.example/moved", "", b"", "text/html", moved),
        "http://h.example/robots.txt": Content(
            "http://h.example/robots.txt", "", b"User-agent: *", "text/plain", robots
        ),
        "no URL": Content("no URL", "", b"x", "text/plain", Metadata()),
    }
    fetched = {
        "http://h.example/": CrawlDatum(STATUS_FETCH_SUCCESS, fetch_time=TIME),
        "http://h.example/bare ä": CrawlDatum(STATUS_FETCH_SUCCESS, fetch_time=TIME + 1000),
        "http://h.example/gone": CrawlDatum(STATUS_FETCH_GONE, fetch_time=TIME),
        "http://h.example/moved": CrawlDatum(STATUS_FETCH_REDIR_PERM, fetch_time=TIME),
        "no URL": CrawlDatum(STATUS_FETCH_SUCCESS, fetch_time=TIME),
    }
    fetched["http://h.example/moved"].metadata[Text("nutch.protocol.code")] = Text("308")
    with part_writer(segment.path, CONTENT, 0) as append:
        for url, content in sorted(pages.items()):
            append(url, content)
    with part_writer(segment.path, CRAWL_FETCH, 0) as append:
        for url, datum in sorted(fetched.items()):
            append(url, datum)
    return segment


def test_a_file_is_named_and_laid_out_as_those_of_2012(segment: Segment, tmp_path: Path) -> None:
    counters = exported(segment.path, tmp_path / "out")
    assert counters == {
        "pages written": 4, "pages without content": 1, "pages without a fetch time": 0,
        "pages without a URI": 1,
        "ARC files": 1,
    }  # fmt: skip
    (path,) = (tmp_path / "out").rglob("*.arc.gz")
    assert str(path.relative_to(tmp_path / "out")) == f"segment/1341690169000/{TIME}_0.arc.gz"
    data = gzip.decompress(path.read_bytes())
    description = b"1 0 CommonCrawl\nURL IP-address Archive-date Content-type Archive-length\n"
    head = b"filedesc://%d_0.arc.gz 0.0.0.0 20120709092851 text/plain %d\n" % (
        TIME,
        len(description),
    )
    assert data.startswith(
        head + description + b"\nhttp://h.example/ 10.0.0.1 20120709092851 text/html "
    )
    members = path.read_bytes().count(b"\x1f\x8b\x08\x00")
    assert members == 5


def test_records_hold_answers(segment: Segment, tmp_path: Path) -> None:
    exported(segment.path, tmp_path / "out")
    (archive,) = find_archives([tmp_path / "out"])
    assert isinstance(archive, ArchiveFile)
    visits = {visit.url: visit for visit in archive.open().visits() if isinstance(visit, Visit)}
    page = visits["http://h.example/"]
    assert page.body == b"<html>page</html>"
    assert page.answer is not None
    assert "\r\n".join(line.decode() for line in page.answer.head) + "\r\n\r\n" == HEAD
    bare = visits["http://h.example/bare%20%C3%A4"]
    assert (bare.body, bare.address, bare.media_type) == (b"\x00\xff\r\n\r\n", "", "text/plain")
    assert bare.answer is not None
    assert bare.answer.is_made
    moved = visits["http://h.example/moved"]
    assert moved.status == 308
    assert moved.answer is not None
    assert b"Location: http://h.example/ X-Evil: 1" in moved.answer.head
    assert visits["http://h.example/robots.txt"].time == (TIME + 9000) // 1000 * 1000


def test_other_libraries_read_it(segment: Segment, tmp_path: Path) -> None:
    exported(segment.path, tmp_path / "out")
    (path,) = (tmp_path / "out").rglob("*.arc.gz")
    found = []
    for record in ArchiveIterator(io.BytesIO(path.read_bytes()), arc2warc=True):
        body = record.content_stream().read()
        if record.rec_type == "response":
            found.append(
                (record.rec_headers["WARC-Target-URI"], record.http_headers.get_statuscode(), body)
            )
    assert found == [
        ("http://h.example/", "200", b"<html>page</html>"),
        ("http://h.example/bare%20%C3%A4", "200", b"\x00\xff\r\n\r\n"),
        ("http://h.example/moved", "308", b""),
        ("http://h.example/robots.txt", "200", b"User-agent: *"),
    ]


def test_files_are_of_a_size_and_lie_by_day_in_the_older_layout(
    segment: Segment, tmp_path: Path
) -> None:
    counters = exported(
        "-layout", "crawl-001", "-size", "10", "-dir", segment.path.parent, tmp_path / "out"
    )
    paths = sorted(
        str(path.relative_to(tmp_path / "out")) for path in (tmp_path / "out").rglob("*.arc.gz")
    )
    assert counters["ARC files"] == len(paths) == 4
    assert all(re.fullmatch(r"2012/07/09/(\d)/\d{13}_\1\.arc\.gz", path) for path in paths)
    archives = list(find_archives([tmp_path / "out"]))
    assert len(archives) == 4


def test_slices_of_a_segment_share_a_folder(segment: Segment, tmp_path: Path) -> None:
    for number in range(2):
        copytree(segment.path, tmp_path / "slices" / f"{segment.name}-{number}")
    assert exported(tmp_path / "slices", tmp_path / "out")["ARC files"] == 2
    names = sorted(path.name for path in (tmp_path / "out/segment/1341690169000").iterdir())
    assert names == [f"{TIME}_0.arc.gz", f"{TIME}_1.arc.gz"]


def test_dates_stay_within_four_digits() -> None:
    assert [arc_date(ms) for ms in (-5, 1_341_826_131_693, 1 << 62)] == [
        "19700101000000",
        "20120709092851",
        "99991231235959",
    ]


def test_what_can_not_be_done_is_said(segment: Segment, tmp_path: Path) -> None:
    (tmp_path / "there").mkdir()
    with pytest.raises(StoreError, match="there"):
        exported(segment.path, tmp_path / "there")
    with pytest.raises(StoreError, match="No segment directories"):
        exported(tmp_path / "there", tmp_path / "out")
    for words in (["x"], ["-layout", "other", "x", "y"], ["-size", "x", "x", "y"]):
        with pytest.raises(UsageError, match="export arc <segment>"):
            export_arc.run(words, JobContext(Configuration.load([])))
