"""Measures archives: WARC files written by minutch and by the libraries that are maintained, from
the same pages.

    python -m tests.benchmarks.archives [--pages 2000]

Prints a Markdown table of records per second of CPU time, the best of three, each written with
digests, as a gzip member of its own; then what whole exports of a segment of the same pages do. The
pages are those of `corpus`.
"""

from __future__ import annotations

import argparse
import io
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from fastwarc.stream_io import GzipWriter
from fastwarc.warc import WarcRecord, WarcRecordType
from warcio.statusandheaders import StatusAndHeaders
from warcio.warcwriter import WARCWriter

from minutch import jobs
from minutch.conf import Configuration
from minutch.cycle.segment.store import CONTENT, CRAWL_FETCH, part_writer
from minutch.records.crawldatum import STATUS_FETCH_SUCCESS, CrawlDatum
from minutch.records.metadata import Metadata
from minutch.records.protocol import Content
from minutch.warc.warcfile import RESPONSE, WarcFiles
from tests.benchmarks.htmlpages import corpus

_NOW = 1_700_000_000_000
_FIELDS = [
    ("Server", "nginx"),
    ("Content-Type", "text/html; charset=utf-8"),
    ("Date", "Sun, 22 Nov 2026 10:00:00 GMT"),
]
HEAD = "HTTP/1.1 200 OK\r\n" + "".join(f"{name}: {value}\r\n" for name, value in _FIELDS) + "\r\n"


def url(number: int) -> str:
    """The URL of a page."""
    return f"https://www.a.example/folder/{number:06}.html"


def by_minutch(pages: Sequence[bytes]) -> int:
    """Bytes written."""
    out = io.BytesIO()
    head = HEAD.encode()
    with WarcFiles(lambda number: ("x", out), compress=True) as files:
        for number, page in enumerate(pages):
            files.write("response", _NOW, url(number), page, RESPONSE, head=head)
        return files.size


def by_warcio(pages: Sequence[bytes]) -> int:
    """Bytes written."""
    out = io.BytesIO()
    writer = WARCWriter(out, gzip=True)
    for number, page in enumerate(pages):
        head = StatusAndHeaders("200 OK", list(_FIELDS), protocol="HTTP/1.1")
        record = writer.create_warc_record(
            url(number), "response", payload=io.BytesIO(page), length=len(page), http_headers=head
        )
        writer.write_record(record)
    return out.tell()


def by_fastwarc(pages: Sequence[bytes]) -> int:
    """Bytes written."""
    out = io.BytesIO()
    head = HEAD.encode()
    writer = GzipWriter(out)
    for number, page in enumerate(pages):
        record = WarcRecord()
        record.init_headers(record_type=WarcRecordType.response)
        record.headers["WARC-Target-URI"] = url(number)
        record.set_bytes_content(head + page)
        record.write(writer, checksum_data=True)
        writer.finish()
    return out.tell()


def best(count: int, work: Callable[[], int]) -> tuple[float, int]:
    """Items per second of CPU time, and what `work` returns."""
    seconds, result = float("inf"), 0
    for _ in range(3):
        start = time.process_time()
        result = work()
        seconds = min(seconds, time.process_time() - start)
    return count / seconds, result


def make_segment(folder: Path, pages: Sequence[bytes]) -> Path:
    """A segment of the pages."""
    path = folder / "20260101000000"
    metadata = Metadata.of({"_response.headers_": HEAD, "Content-Type": "text/html"})
    with (
        part_writer(path, CONTENT, 0) as page_to,
        part_writer(path, CRAWL_FETCH, 0) as datum_to,
    ):
        for number, page in enumerate(pages):
            page_to(url(number), Content(url(number), url(number), page, "text/html", metadata))
            datum_to(url(number), CrawlDatum(STATUS_FETCH_SUCCESS, fetch_time=_NOW + number))
    return path


def exports(pages: Sequence[bytes], folder: Path) -> dict[str, float]:
    """Pages per second of CPU time, by format."""
    segment = make_segment(folder, pages)
    rates = {}
    for form in ("warc", "wacz", "wat"):
        start = time.process_time()
        jobs.export(form, segment, folder / form, conf=Configuration.load([]))
        rates[form] = len(pages) / (time.process_time() - start)
    return rates


def writing(pages: Sequence[bytes]) -> None:
    """Print the part about writing."""
    print("| records written | per CPU second | × warcio | bytes a record |\n|---|--:|--:|--:|")
    slow = pages[: max(1, len(pages) // 4)]
    base, size = best(len(slow), lambda: by_warcio(slow))
    print(f"| warcio | {base:,.0f} | 1.0 | {size // len(slow):,} |")
    base_of_all = base
    for name, write in (("fastwarc", by_fastwarc), ("minutch", by_minutch)):
        rate, size = best(len(slow), lambda write=write: write(slow))  # type: ignore[misc]
        print(f"| {name} | {rate:,.0f} | {rate / base_of_all:.1f} | {size // len(slow):,} |")
    with tempfile.TemporaryDirectory() as folder:
        for form, rate in exports(pages, Path(folder)).items():
            print(f"| minutch export {form} | {rate:,.0f} | | |")


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--pages", type=int, default=2000)
    pages = corpus(parser.parse_args().pages)
    print(f"{pages}\n")
    writing(pages.pages)


if __name__ == "__main__":
    main()
