"""readseg: Nutch's own dumps and listings of the golden segments, and what is different on
purpose.
"""

from __future__ import annotations

import gzip
import io
import re
from pathlib import Path

import pytest

from minutch.clock import FakeClock
from minutch.conf import Configuration
from minutch.cycle.segment import readseg
from minutch.cycle.segment.store import CONTENT, PARSE_DATA, Segment, part_writer
from minutch.errors import ChecksumError, StoreError, UsageError
from minutch.hadoop.formats.checksum import verify_file, write_file
from minutch.job import JobContext
from minutch.records.metadata import Metadata
from minutch.records.parsedata import ParseData
from minutch.records.protocol import Content
from tests.support.commands import readseg as readseg_command
from tests.support.golden import GOLDEN, needs_golden
from tests.support.nutchruns import NutchRun, context_for, nutch_runs
from tests.support.sequencefiles import copy_writable

CRAWLS = [
    *(
        GOLDEN / "crawl-small" / name
        for name in ("run-default-r1", "run-default-r2", "run-rich-r2")
    ),
    GOLDEN / "crawl-small-adaptive" / "run-r2",
    GOLDEN / "nutch-1.20",
]
DUMPS = [
    pytest.param(crawl, dump, id=f"{crawl.parent.name}/{crawl.name}/{dump.name}")
    for crawl in CRAWLS
    for dump in sorted((crawl / "dumps").glob("seg-*"))
]
LISTS = [
    pytest.param(crawl, text, id=f"{crawl.parent.name}/{crawl.name}/{text.name}")
    for crawl in CRAWLS
    for text in sorted((crawl / "console" / "dumps").glob("readseg-[lg][ie][st]*.txt"))
]
_ONLY = {
    "content": "-nofetch -nogenerate -noparse -noparsedata -noparsetext",
    "fetch": "-nocontent -nogenerate -noparse -noparsedata -noparsetext",
    "generate": "-nocontent -nofetch -noparse -noparsedata -noparsetext",
    "parse": "-nocontent -nofetch -nogenerate -noparsedata -noparsetext",
    "parsedata": "-nocontent -nofetch -nogenerate -noparse -noparsetext",
    "parsetext": "-nocontent -nofetch -nogenerate -noparse -noparsedata",
}


def _run(*args: str, conf: dict[str, str] | None = None) -> str:
    out = io.StringIO()
    context = JobContext(
        Configuration().with_values(conf or {}), FakeClock(), out=out, err=io.StringIO()
    )
    assert readseg_command.run(list(args), context) == 0
    return out.getvalue()


def _golden_dump(directory: Path) -> str:
    path = directory / "dump"
    data = (
        path.read_bytes()
        if path.exists()
        else gzip.decompress((directory / "dump.gz").read_bytes())
    )
    return data.decode()


def _by_url(dump: str) -> list[tuple[str, list[str]]]:
    """The URLs of a dump in order, each with its sections sorted."""
    records = re.split(r"^\nRecno:: \d+\nURL:: ", dump, flags=re.MULTILINE)[1:]
    result = []
    for record in records:
        url, _, rest = record.partition("\n")
        sections = re.split(
            r"^(?=(?:CrawlDatum|Content|ParseData|ParseText)::\n)", rest, flags=re.MULTILINE
        )
        result.append((url, sorted(section.strip("\n") for section in sections)))
    return result


@needs_golden
@pytest.mark.parametrize(("crawl", "dump"), DUMPS)
def test_golden_dumps(crawl: Path, dump: Path, tmp_path: Path) -> None:
    _, name, *only = dump.name.split("-")
    _run(
        "-dump",
        str(crawl / "crawl/segments" / name),
        str(tmp_path / "out"),
        *_ONLY[only[0]].split() if only else (),
    )
    found = (tmp_path / "out" / "dump").read_bytes().decode()
    expected = _golden_dump(dump)
    assert verify_file(tmp_path / "out" / "dump") > 0
    if only and only[0] not in ("parse", "fetch"):
        assert found == expected
    else:  # Nutch leaves open in which order the records of one URL come
        assert _by_url(found) == _by_url(expected)
        assert len(found) == len(expected)
        assert re.findall(r"^Recno.*\nURL.*", found, re.MULTILINE) == re.findall(
            r"^Recno.*\nURL.*", expected, re.MULTILINE
        )


@needs_golden
@pytest.mark.parametrize(("crawl", "console"), LISTS)
def test_golden_lists_and_gets(crawl: Path, console: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    command, *lines = console.read_bytes().decode().split("\n")
    assert lines.pop() == "" or lines[-1].startswith("[exit")
    expected = "\n".join(
        line for line in lines if not re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,|\[exit 0\]$", line)
    )
    monkeypatch.chdir(crawl)
    found = _run(*command.split()[3:]).rstrip("\n").replace("\r\n", "\n")
    expected = expected.rstrip("\n").replace("\r\n", "\n")  # the listing was cut at its end, too
    if "-list" in command:
        assert sorted(found.split("\n")[1:]) == sorted(expected.split("\n")[1:])
        assert found.split("\n")[0] == expected.split("\n")[0]
        assert found.split("\n")[1:] == sorted(found.split("\n")[1:])
    else:
        assert found == expected


@needs_golden("crawl-small/run-default-r2/crawl/segments")
def test_dump_of_several_partitions_keeps_all_urls(tmp_path: Path) -> None:
    segment = str(next(iter(sorted((CRAWLS[1] / "crawl/segments").iterdir()))))
    _run("-dump", segment, str(tmp_path / "1"))
    _run(
        "-dump",
        segment,
        str(tmp_path / "3"),
        conf={"mapreduce.job.reduces": "3", "segment.dump.dir": "text"},
    )
    one = _by_url((tmp_path / "1" / "dump").read_text(encoding="utf-8"))
    three = _by_url((tmp_path / "3" / "text").read_text(encoding="utf-8"))
    assert sorted(one) == sorted(three)
    assert one != three


@needs_golden
@pytest.mark.parametrize(
    "words", [["-list", "{}"], ["-dump", "{}", "{}/out"], ["-get", "{}", "http://a/"]], ids=str
)
def test_a_folder_of_segments_needs_dir(words: list[str]) -> None:
    segments = GOLDEN / "nutch-testresources" / "test-segments"
    with pytest.raises(StoreError, match=r"folder of segments .* -dir"):
        _run(*(word.format(segments) for word in words))


@needs_golden
def test_segments_of_older_nutch(tmp_path: Path) -> None:
    segments = GOLDEN / "nutch-testresources" / "test-segments"
    lines = _run("-list", "-dir", str(segments)).splitlines()
    names = sorted(path.name for path in segments.iterdir())
    assert [line.split("\t")[0] for line in lines[1:]] == names
    for name in names:
        _run("-dump", str(segments / name), str(tmp_path / name))
        urls = [url for url, _ in _by_url((tmp_path / name / "dump").read_text(encoding="utf-8"))]
        assert urls == sorted(set(urls), key=str.encode)
        assert urls
        assert f"url: {urls[0]}" in _run("-get", str(segments / name), urls[0]) or "Crawl" in _run(
            "-get", str(segments / name), urls[0]
        )


def _write_page(segment: Segment, charset: str, body: bytes) -> None:
    url = "http://example.org/"
    with segment.writing([CONTENT]) as fresh, part_writer(fresh, CONTENT, 0) as append:
        append(url, Content(url, url, body, "text/html"))
    data = ParseData(
        parse_meta=Metadata.of({"CharEncodingForConversion": charset} if charset else {})
    )
    with segment.writing([PARSE_DATA]) as fresh, part_writer(fresh, PARSE_DATA, 0) as append:
        append(url, data)


@pytest.fixture
def segment(tmp_path: Path) -> Segment:
    path = tmp_path / "20260101000000"
    path.mkdir()
    return Segment(path)


@pytest.mark.parametrize(
    ("charset", "recoded"),
    [("windows-1251", "страница"), ("", "\ufffd" * 8), ("no-such-charset", "\ufffd" * 8)],
)
def test_recoding(charset: str, recoded: str, segment: Segment, tmp_path: Path) -> None:
    _write_page(segment, charset, "страница".encode("windows-1251"))
    url = "http://example.org/"
    assert recoded in _run("-get", str(segment.path), url, "-recode")
    assert recoded in _run("-get", str(segment.path), url, conf={readseg.RECODE_PROPERTY: "true"})
    assert "\ufffd" * 8 in _run("-get", str(segment.path), url)
    _run("-dump", str(segment.path), str(tmp_path / "out"), "-recode")
    text = (tmp_path / "out" / "dump").read_text(encoding="utf-8")
    assert text.index("ParseData::") < text.index("Content::\nVersion") < text.index(recoded)


def test_line_breaks_become_newlines_in_a_dump(segment: Segment, tmp_path: Path) -> None:
    _write_page(segment, "utf-8", b"one\r\ntwo\rthree\nfour")
    _run("-dump", str(segment.path), str(tmp_path / "out"))
    assert b"one\ntwo\nthree\nfour\n" in (tmp_path / "out" / "dump").read_bytes()


def test_missing_folders(
    segment: Segment, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert _run("-list", str(segment.path)).splitlines()[1] == "20260101000000\t?\t\t?\t\t?\t?\t?"
    for args in (
        ["-dump", str(segment.path), str(tmp_path / "out")],
        ["-get", str(segment.path), "http://x/"],
    ):
        with pytest.raises(StoreError, match="No segment subdirectories"):
            _run(*args)
    assert "crawl_parse does not exist" in caplog.text
    with pytest.raises(StoreError, match="does not exist"):
        _run("-list", str(tmp_path / "nowhere"))
    assert not (tmp_path / "out").exists()


def test_a_dump_that_takes_the_place_of_another_is_never_beside_the_other_ones_checksums(
    segment: Segment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _write_page(segment, "", b"body")
    dump = tmp_path / "out/dump"
    dump.parent.mkdir()
    write_file(dump, b"an older one")
    replace = Path.replace

    def stop(path: Path, target: Path) -> Path:
        if target == dump:
            raise KeyboardInterrupt
        return replace(path, target)

    monkeypatch.setattr(Path, "replace", stop)
    with pytest.raises(KeyboardInterrupt):
        _run("-dump", str(segment.path), str(dump.parent))
    assert dump.read_bytes() == b"an older one" and verify_file(dump)


def test_dump_of_a_damaged_segment_leaves_no_dump(segment: Segment, tmp_path: Path) -> None:
    _write_page(segment, "", b"body")
    path = segment.data_files(CONTENT)[0]
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with pytest.raises(ChecksumError) as caught:
        _run("-dump", str(segment.path), str(tmp_path / "out"))
    assert caught.value.path == str(path)
    assert list((tmp_path / "out").iterdir()) == []


@needs_golden
def test_every_damaged_file_of_a_segment_is_named(tmp_path: Path) -> None:
    golden = next(iter(sorted((CRAWLS[0] / "crawl/segments").iterdir())))
    copy = copy_writable(golden, tmp_path / golden.name)
    for path in sorted(copy.rglob("*")):
        if path.is_dir() or path.name.startswith(".") or path.name == "index":
            continue
        whole = path.read_bytes()
        for damaged in (
            whole[:-1],
            whole[: len(whole) // 2],
            bytes((*whole[:-9], whole[-9] ^ 4, *whole[-8:])),
        ):
            path.write_bytes(damaged)
            with pytest.raises(ChecksumError) as caught:
                _run("-dump", str(copy), str(tmp_path / "out"))
            assert path.name in caught.value.path
            assert str(path.parent) in caught.value.path
        path.write_bytes(whole)
    _run("-dump", str(copy), str(tmp_path / "out"))


@pytest.mark.parametrize(
    "args",
    [
        [],
        ["-dump"],
        ["-dump", "segment"],
        ["-get", "segment"],
        ["-show", "segment"],
        ["-list", "-dir"],
        ["-dump", "a", "b", "-nothing"],
    ],
)
def test_wrong_command_lines(args: list[str]) -> None:
    with pytest.raises(UsageError, match="Usage: SegmentReader") as caught:
        _run(*args)
    assert caught.value.exit_code == 255


@needs_golden("commands/readseg")
@pytest.mark.parametrize("run", nutch_runs("readseg"), ids=str)
def test_more_runs_of_nutch(run: NutchRun, tmp_path: Path) -> None:
    """readseg prints Nutch's lines; in a dump Nutch leaves the order of a URL's records open."""
    context, printed = context_for(run.conf())
    assert (
        readseg_command.run(
            [str(tmp_path / "out") if word == "out" else word for word in run.words], context
        )
        == run.exit
    )
    expected = "\n".join(run.printed).rstrip("\n").replace("\r\n", "\n")
    assert printed.getvalue().rstrip("\n").replace("\r\n", "\n") == expected
    if "-dump" in run.words:
        ours, theirs = (
            (folder / "out/dump").read_bytes().decode() for folder in (tmp_path, run.folder)
        )
        assert _by_url(ours) == _by_url(theirs)
        assert len(ours) == len(theirs)
