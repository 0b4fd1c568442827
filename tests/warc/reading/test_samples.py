"""The test files of warcio and of jwarc: what is in them is read, whole or damaged
(tests/archives/data/README.md).
"""

from __future__ import annotations

from pathlib import Path

from minutch.warc.reading.archivefiles import ArchiveFile, find_archives
from minutch.warc.reading.visits import Visit, VisitKind
from tests.support.examples import tabled

DATA = Path(__file__).parents[2] / "archives" / "data"
EXAMPLE = ("http://example.com/", 200, 606)
"""URL, status, bytes of the body (as it came, compressed)."""
SAME = ("http://example.com/", 200, 0)

BLANKS = "Examples From The Live Web"

VISITS: dict[str, tuple[int, int, list[tuple[str, int, int]]]] = {
    "warcio/example.warc": (2, 0, [EXAMPLE, SAME]),
    "warcio/example.warc.gz": (2, 0, [EXAMPLE, SAME]),
    "warcio/example-bad-non-chunked.warc.gz": (2, 0, [EXAMPLE, SAME]),
    "warcio/example-bad.warc.gz.bad": (
        1, 0,
        [
            ("http://example.com?example=1", 200, 1270),
            ("http://example.com?example=1", 200, 0),
            ("http://www.iana.org/domains/example", 302, 201),
        ],
    ),
    "warcio/example-digest.warc": (4, 0, []),
    "warcio/example-iana.org-chunked.warc": (1, 0, [("http://www.iana.org/", 200, 7223)]),
    "warcio/example-resource.warc.gz": (2, 0, [("http://example.com/", 200, 1303)]),
    "warcio/example-space-in-target-uri.warc.gz": (
        1, 0, [("file:///example with spaces.png", 200, 70)],
    ),
    "warcio/example-trunc.warc": (2, 1, [EXAMPLE]),
    "warcio/example-wget-bad-target-uri.warc.gz": (4, 0, [("http://example.com/", 200, 1270)]),
    "warcio/example-wrong-chunks.warc.gz": (0, 0, [("http://example.com/", 200, 1270)]),
    "warcio/post-test.warc.gz": (
        0, 0,
        [("http://httpbin.org/post", 200, 545), ("http://httpbin.org/post", 200, 552),
         ("http://httpbin.org/post?foo=bar", 200, 551)],
    ),
    "warcio/example.arc": (1, 0, [("http://example.com/", 200, 1270)]),
    "warcio/example.arc.gz": (1, 0, [("http://example.com/", 200, 1270)]),
    "warcio/example-space-in-url.arc": (
        1, 1,
        [
            (f"http://example.com/index.cfm?FuseAction=Email&EmailTitle={BLANKS}&IsPopUp=False",
             200, 1270),
        ],
    ),
    "warcio/bad.arc": (0, 2, [("http://example.com/", 200, 1)]),
    "jwarc/cc.warc.gz": (0, 0, [("http://commoncrawl.org/", 200, 20289)]),
    "jwarc/gzip_extra_sl.warc.gz": (1, 0, []),
}  # fmt: skip
"""Records of no visit, damaged places, visits. Those called bad are gzip files of one member, which
warcio refuses.
"""


def opened(name: str) -> tuple[list[Visit], int, int]:
    (archive,) = find_archives([DATA / name])
    assert isinstance(archive, ArchiveFile)
    opened = archive.open()
    found = list(opened.visits())
    opened.close()
    visits = [each for each in found if isinstance(each, Visit)]
    return visits, len(found) - len(visits), opened.reader.damages


@tabled("name", VISITS)
def test_a_sample_is_read(name: str) -> None:
    others, damages, wanted = VISITS[name]
    visits, no_visit, damaged = opened(name)
    assert [(visit.url, visit.status, len(visit.body)) for visit in visits] == wanted
    assert no_visit == others
    assert damaged == damages


def test_all_samples_are_named() -> None:
    files = {str(path.relative_to(DATA)) for path in DATA.glob("*/*") if "arc" in path.name}
    assert files == set(VISITS)


def test_what_a_visit_has() -> None:
    first, second = opened("warcio/example.warc.gz")[0]
    assert first.kind is VisitKind.ANSWER
    assert first.time == 1_488_772_926_000
    assert first.address == "93.184.216.34"
    assert first.request.startswith(b"GET / HTTP/1.0\r\n")
    assert first.answer is not None
    assert first.answer.head[:2] == [b"HTTP/1.1 200 OK", b"Content-Encoding: gzip"]
    assert second.kind is VisitKind.SAME
    assert set(second.refers_to) & set(first.names)


def test_chunks_are_undone_and_codings_that_are_undone_already_are_known() -> None:
    (chunked,), _, _ = opened("warcio/example-iana.org-chunked.warc")
    assert chunked.body.startswith(b"<!doctype html>")
    assert chunked.body.rstrip().endswith(b"</html>")
    (page,), _, _ = opened("jwarc/cc.warc.gz")
    assert page.answer is not None
    assert page.answer.is_decoded
    assert b"Content-Encoding: gzip" in page.answer.head
    assert not [line for line in page.answer.head if line.startswith(b"X-Crawler")]


def test_answers_to_other_methods_are_told() -> None:
    assert [visit.method for visit in opened("warcio/post-test.warc.gz")[0]] == ["POST"] * 3
