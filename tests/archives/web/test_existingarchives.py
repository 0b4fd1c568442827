"""export cdxj and wacz of archives that lie there: entries lead to their records, whoever wrote
them, and however.
"""

from __future__ import annotations

import gzip
import json
import zipfile
from pathlib import Path

import pytest

from minutch import jobs
from minutch.cycle.segment.store import WARC, segments_in
from minutch.errors import FormatError, StoreError
from minutch.job import Counters, JobContext
from tests.support.archived import archived_crawl, configuration
from tests.support.archives import HTML, WarcMaker
from tests.support.commands import command
from tests.support.segments import conf_for, contents, fetched
from tests.warc.reading.files import (
    Container,
    gzip_blocks,
    gzip_each,
    gzip_whole,
    plain,
    zstd_each,
    zstd_shared,
)

export_run = command("export").run
import_run = command("import").run

DATA = Path(__file__).parent.parent / "data"
FIRST = {
    "warcio/example.warc.gz": {
        "url": "http://example.com/", "mime": "text/html", "status": "200",
        "digest": "sha1:G7HRM7BGOKSKMSXZAHMUQTTV53QOFSMK", "length": "1228", "offset": "784",
        "filename": "example.warc.gz",
    },
    "warcio/example.warc": {
        "url": "http://example.com/", "mime": "text/html", "status": "200",
        "digest": "sha1:G7HRM7BGOKSKMSXZAHMUQTTV53QOFSMK", "length": "1365", "offset": "1197",
        "filename": "example.warc",
    },
    "warcio/example.arc.gz": {
        "url": "http://example.com/", "mime": "text/html", "status": "200",
        "digest": "sha1:B2LTWWPUOYAH7UIPQ7ZUPQ4VMBSVC36A", "length": "856", "offset": "171",
        "filename": "example.arc.gz",
    },
    "warcio/example-resource.warc.gz": {
        "url": "http://example.com/", "mime": "text/html",
        "digest": "sha1:YXLHEZO6YIEPLHABGCQ2TM24WROPX6ZG",
        "length": "977", "offset": "802", "filename": "example-resource.warc.gz",
    },
}  # fmt: skip
"""What cdxj-indexer says of the first page."""


def exported(*words: object) -> Counters:
    context = JobContext(conf_for())
    assert export_run([*map(str, words)], context) == 0
    return context.reports[f"export {words[0]}"]


def imported(*words: object) -> list[tuple[dict[str, str], dict[str, bytes]]]:
    """The statuses and contents of the segments that come of it."""
    assert import_run(["cdxj", *map(str, words)], JobContext(conf_for())) == 0
    segments = segments_in(Path(str(words[-1])))
    return [
        (
            {url: found[0].status_name for url, found in fetched(each).items()},
            {url: content.content for url, content in contents(each).items()},
        )
        for each in segments
    ]


def pages(segments: list[tuple[dict[str, str], dict[str, bytes]]]) -> list[tuple[str, bytes]]:
    """All pages; an index knows seconds only, so it may change which of two is in the first
    segment.
    """
    return sorted(page for _, contents in segments for page in contents.items())


def entries(path: Path) -> list[dict[str, str]]:
    return [json.loads(line.split(" ", 2)[2]) for line in path.read_text().splitlines()]


@pytest.fixture(scope="module")
def records(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    """Records of all kinds."""
    path = tmp_path_factory.mktemp("made") / "x.warc"
    page = b"<html><title>A &amp; B</title>"
    with WarcMaker(path, gzip=False) as warc:
        warc.other("warcinfo", "", b"software: x\r\n", "application/warc-fields")
        warc.page("http://h.example/", page)
        warc.other("conversion", "http://h.example/", b"A text", "text/plain")
        warc.page(
            "http://h.example/packed", gzip.compress(page), HTML, ("Content-Encoding", "gzip")
        )
        warc.page("http://h.example/gone", page, status="404 Not Found")
        warc.page("http://h.example/form", page, request="POST")
        warc.page("http://h.example/a b", b"text", ("Content-Type", "text/plain"))
        warc.other("resource", "http://h.example/file.html", page, "text/html")
        warc.not_modified("http://h.example/later")
        warc.other(
            "metadata", "http://h.example/", b"fetchTimeMs: 13\r\n", "application/warc-fields"
        )
    first, *rest = path.read_bytes().split(b"WARC/1.1\r\n")
    assert not first
    return [b"WARC/1.1\r\n" + record for record in rest]


@pytest.mark.parametrize("name", FIRST)
def test_entries_are_those_of_cdxj_indexer(name: str, tmp_path: Path) -> None:
    exported("cdxj", DATA / name, tmp_path / "x.cdxj")
    assert entries(tmp_path / "x.cdxj")[0] == FIRST[name]


@pytest.mark.parametrize(
    ("container", "name"),
    [
        (plain, "x.warc"),
        (gzip_each, "x.warc.gz"),
        (zstd_each, "x.warc.zst"),
        (zstd_shared, "y.warc.zst"),
    ],
)
def test_what_is_read_by_the_index_is_what_is_in_the_archive(
    records: list[bytes], container: Container, name: str, tmp_path: Path
) -> None:
    (tmp_path / "web").mkdir()
    (tmp_path / "web" / name).write_bytes(container(records))
    counters = exported("cdxj", tmp_path / "web", tmp_path / "x.cdxj")
    assert counters["records in the index"] == 7
    assert {entry["filename"] for entry in entries(tmp_path / "x.cdxj")} == {f"web/{name}"}
    assert [
        entry["url"] for entry in entries(tmp_path / "x.cdxj") if entry.get("method") == "POST"
    ] == ["http://h.example/form"]
    (revisit,) = (
        entry for entry in entries(tmp_path / "x.cdxj") if entry.get("mime") == "warc/revisit"
    )
    assert "digest" not in revisit  # that of its empty body would be of no page
    by_index = imported(tmp_path / "x.cdxj", tmp_path / "by-index")
    assert by_index == imported(tmp_path / "web", tmp_path / "by-archive")
    assert len(by_index[0][1]) == 4


def test_arc_files_too(tmp_path: Path) -> None:
    jobs.export("arc", archived_crawl().folder, tmp_path / "arcs", conf=configuration())
    exported("cdxj", tmp_path / "arcs", tmp_path / "x.cdxj")
    by_index = imported(tmp_path / "x.cdxj", tmp_path / "by-index")
    assert by_index == imported(tmp_path / "arcs", tmp_path / "by-archive")
    assert len(by_index[0][1]) > 5


def test_the_files_that_the_fetcher_wrote(tmp_path: Path) -> None:
    """One index covers those of all segments, and resolves their revisits."""
    folders = [segment / WARC for segment in archived_crawl().segments]
    counters = exported("cdxj", *folders, archived_crawl().folder / "x.cdxj")
    found = entries(archived_crawl().folder / "x.cdxj")
    assert counters["records in the index"] == len(found)
    assert {entry["filename"] for entry in found} == {
        file.relative_to(archived_crawl().folder).as_posix()
        for folder in folders
        for file in folder.iterdir()
    }
    assert "warc/revisit" in {entry.get("mime") for entry in found}
    by_index = imported(archived_crawl().folder / "x.cdxj", tmp_path / "by-index")
    (archived_crawl().folder / "x.cdxj").unlink()
    by_archive = imported(*folders, tmp_path / "by-archive")
    assert pages(by_index) == pages(by_archive)


def test_an_index_may_lie_elsewhere(records: list[bytes], tmp_path: Path) -> None:
    (tmp_path / "web").mkdir()
    (tmp_path / "web/x.warc.gz").write_bytes(gzip_each(records))
    exported("cdxj", tmp_path / "web/x.warc.gz", tmp_path / "index/x.cdxj")
    assert imported(tmp_path / "index/x.cdxj", tmp_path / "none") == []
    assert (
        len(
            imported(
                "-archives", tmp_path / "web", tmp_path / "index/x.cdxj", tmp_path / "segments"
            )
        )
        == 1
    )


@pytest.mark.parametrize("container", [gzip_whole, gzip_blocks])
def test_records_that_share_a_member_are_counted(
    records: list[bytes], container: Container, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "x.warc.gz").write_bytes(container(records * 9))
    counters = exported("cdxj", tmp_path / "x.warc.gz", tmp_path / "x.cdxj")
    assert counters["records that share a gzip member or zstd frame"] == len(records) * 9
    assert entries(tmp_path / "x.cdxj") == []
    assert "no index can lead to them" in caplog.text


def test_damage_costs_its_own_records(records: list[bytes], tmp_path: Path) -> None:
    data = bytearray(gzip_each(records))
    at = len(gzip_each(records[:1])) + 60
    data[at : at + 50] = bytes(50)
    (tmp_path / "x.warc.gz").write_bytes(data)
    counters = exported("cdxj", tmp_path / "x.warc.gz", tmp_path / "x.cdxj")
    assert counters["damaged places"] >= 1
    assert counters["records in the index"] == 6
    assert len(imported(tmp_path / "x.cdxj", tmp_path / "segments")[0][1]) == 3


def test_a_package_of_archives(records: list[bytes], tmp_path: Path) -> None:
    (tmp_path / "x.warc.gz").write_bytes(gzip_each(records))
    (tmp_path / "y.warc").write_bytes(plain(records[:2]))
    both = tmp_path / "x.warc.gz", tmp_path / "y.warc"
    counters = exported("wacz", *both, tmp_path / "x.wacz", "-text")
    exported("cdxj", *both, tmp_path / "x.cdxj")
    with zipfile.ZipFile(tmp_path / "x.wacz") as package:
        for path in both:
            assert package.read(f"archive/{path.name}") == path.read_bytes()
        assert (
            gzip.decompress(package.read("indexes/index.cdx.gz"))
            == (tmp_path / "x.cdxj").read_bytes()
        )
        described = json.loads(package.read("datapackage.json"))
        _, *pages = map(json.loads, package.read("pages/pages.jsonl").decode().splitlines())
    assert (described["title"], described["mainPageUrl"]) == ("x", "http://h.example/")
    assert counters["HTML pages"] == len(pages) == 4
    assert {page["title"] for page in pages} == {"A & B"}
    assert [(page["url"], page.get("text")) for page in pages] == [
        ("http://h.example/", "A text"),
        ("http://h.example/packed", None),
        ("http://h.example/file.html", None),
        ("http://h.example/", None),
    ]
    assert imported(tmp_path / "x.wacz", tmp_path / "wacz") == imported(*both, tmp_path / "both")


def test_wrong_inputs(records: list[bytes], tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for path in (tmp_path / "x.warc.gz", tmp_path / "a/x.warc.gz"):
        path.write_bytes(gzip_each(records))
    (tmp_path / "x.warc.zst").write_bytes(zstd_each(records))
    exported("wacz", tmp_path / "x.warc.gz", tmp_path / "x.wacz")
    exported("cdxj", tmp_path / "x.warc.gz", tmp_path / "x.cdxj")
    with pytest.raises(StoreError, match="nothing: no such folder of archives"):
        imported("-archives", tmp_path / "nothing", tmp_path / "x.cdxj", tmp_path / "segments")
    out, segments = tmp_path / "out/x", archived_crawl().folder
    with pytest.raises(StoreError, match="archives and segments at once"):
        exported("cdxj", segments, tmp_path / "x.warc.gz", out)
    for words, text in (
        ([tmp_path / "x.warc.gz", tmp_path / "a"], r"two files of the name x\.warc\.gz"),
        ([tmp_path / "x.wacz"], "has its own index"),
        ([tmp_path / "x.cdxj"], "no WARC or ARC file in"),
        ([tmp_path / "nothing"], "Input path does not exist"),
    ):
        with pytest.raises(StoreError, match=text):
            exported("cdxj", *words, out)
    for name in ("x.warc.zst", DATA / "warcio/example.arc.gz"):
        with pytest.raises(StoreError, match="a WACZ holds WARC files"):
            exported("wacz", tmp_path / name, out)
    (tmp_path / "text").write_text("no archive")
    with pytest.raises(FormatError, match="not an archive"):
        exported("cdxj", tmp_path / "text", out)
    assert not out.exists()
