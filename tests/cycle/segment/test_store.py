"""Segments on disk: names, layouts, order, look-ups, whole or not at all."""

from __future__ import annotations

import logging
import os
import re
import subprocess
import sys
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from minutch.clock import FakeClock
from minutch.conf import Configuration
from minutch.cycle.segment.places import segment_name
from minutch.cycle.segment.store import (
    COMPLETE,
    CONTENT,
    CRAWL_FETCH,
    CRAWL_GENERATE,
    CRAWL_PARSE,
    LAYOUTS,
    PARSE_DATA,
    PARSE_TEXT,
    PARSED,
    Segment,
    compression_of,
    new_segment,
    part_writer,
    segments_in,
)
from minutch.cycle.segment.storedrecords import text_key
from minutch.errors import ConfigError, FormatError, StoreError
from minutch.hadoop.formats.compress import DEFAULT_CODEC
from minutch.hadoop.formats.mapfile import MapFileWriter
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.hadoop.formats.sequencewriter import TEXT, SequenceFileWriter
from minutch.hadoop.formats.writables import UTF8, Text
from minutch.job import JobContext
from minutch.records.crawldatum import CrawlDatum
from minutch.records.parsedata import ParseText
from tests.support.commands import parse
from tests.support.examples import few
from tests.support.golden import GOLDEN, PROJECT, needs_golden
from tests.support.segments import conf_for, fetch_segment

EMPTY = Configuration()
SEGMENTS = sorted(GOLDEN.glob("crawl-small*/run-*/crawl/segments/*")) + sorted(
    GOLDEN.glob("nutch-1.20/crawl/segments/*")
)
OLD_SEGMENTS = sorted(GOLDEN.glob("nutch-testresources/test-segments/*"))


@pytest.fixture
def segment(tmp_path: Path) -> Segment:
    path = tmp_path / "20260101000000"
    path.mkdir()
    return Segment(path)


def _write(segment: Segment, folder: str, urls: list[str], index: int = 0) -> None:
    with (
        segment.writing([folder]) as fresh,
        part_writer(fresh, folder, index) as append,
    ):
        for number, url in enumerate(urls):
            append(url, CrawlDatum(status=number))


# Golden segments


@needs_golden
@pytest.mark.parametrize(
    "path", SEGMENTS + OLD_SEGMENTS, ids=lambda path: "-".join(path.parts[-4:])
)
def test_layout_of_golden_segments(path: Path) -> None:
    segment = Segment(path)
    assert segment.is_complete() or not segment.has(CRAWL_PARSE)
    for name, layout in LAYOUTS.items():
        if not segment.has(name):
            continue
        assert all(part.is_dir() == layout.map_file for part in segment.parts(name))
        for file in segment.data_files(name):
            with SequenceFileReader(file) as reader:
                assert reader.value_class == layout.value_class
                if path in SEGMENTS:
                    assert reader.compression == compression_of(name, EMPTY)
                    assert reader.codec == (None if reader.compression == "NONE" else DEFAULT_CODEC)


@needs_golden
@pytest.mark.parametrize(
    "path", few(SEGMENTS + OLD_SEGMENTS, 6), ids=lambda path: "-".join(path.parts[-4:])
)
def test_golden_segments_in_order_and_by_url(path: Path) -> None:
    segment = Segment(path)
    for name in LAYOUTS:
        if not segment.has(name):
            continue
        records = list(segment.records(name))
        in_order = list(segment.raw_sorted(name, run_bytes=2000))
        assert in_order == sorted(segment.raw(name), key=lambda record: record[0])
        assert len(records) == len(in_order)
        for url, value in records[:: max(1, len(records) // 10)]:
            assert value in segment.get(name, url)
        assert segment.get(name, "http://no.such.host/") == []


# Names


def test_a_name_has_fourteen_digits() -> None:
    assert re.fullmatch(r"\d{14}", segment_name(1_700_000_000_000))


def test_no_two_segments_of_one_second_have_one_name(tmp_path: Path) -> None:
    clock = FakeClock(1_700_000_000_000)
    names = [_made(clock, tmp_path / "segments") for _ in range(5)]
    assert names == [segment_name(1_700_000_000_000 + 1000 * i) for i in range(5)]
    assert [segment.name for segment in segments_in(tmp_path / "segments")] == names


def test_no_two_segments_made_at_once_have_one_name(tmp_path: Path) -> None:
    clock = FakeClock(1_700_000_000_000)
    with ThreadPoolExecutor(8) as pool:
        names = list(pool.map(lambda _: _made(clock, tmp_path), range(40)))
    assert len(set(names)) == 40
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(names)


def _made(clock: FakeClock, parent: Path) -> str:
    with new_segment(parent, clock) as segment:
        (segment.path / CRAWL_GENERATE / "part-r-00000").write_bytes(b"a list")
        inside = segment.path
    assert not inside.exists()
    return segment.name


def test_a_segment_that_fails_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), new_segment(tmp_path, FakeClock()):
        _ = 1 / 0
    assert list(tmp_path.iterdir()) == []


def test_listing_of_segments(tmp_path: Path) -> None:
    for name in ("2", "1", ".hidden", "_temporary"):
        (tmp_path / name).mkdir()
    (tmp_path / "file").touch()
    assert [segment.name for segment in segments_in(tmp_path)] == ["1", "2"]
    with pytest.raises(StoreError, match="does not exist"):
        segments_in(tmp_path / "nowhere")


# Checks


def test_what_a_complete_segment_is(
    tmp_path: Path, segment: Segment, caplog: pytest.LogCaptureFixture
) -> None:
    assert segment.missing() == list(COMPLETE)
    assert not segment.is_complete()
    assert "it has no parse_data, parse_text, crawl_parse, crawl_fetch" in caplog.text
    for folder in COMPLETE:
        (segment.path / folder).mkdir()
    assert segment.is_complete()
    other = segment.path.rename(tmp_path / "other")
    assert not Segment(other).is_complete()
    assert "not a segment" in caplog.text
    assert Segment(other.rename(tmp_path / "20260101000000-12")).is_complete()


def test_missing_folder_is_a_store_error(segment: Segment) -> None:
    for call in (segment.parts, segment.data_files, lambda name: list(segment.raw(name))):
        with pytest.raises(StoreError, match="crawl_fetch"):
            call(CRAWL_FETCH)


# Writing


def test_compression_by_configuration(segment: Segment) -> None:
    name = "mapreduce.output.fileoutputformat.compress.type"
    for value in ("NONE", "RECORD", "BLOCK"):
        conf = EMPTY.with_values({name: value})
        assert compression_of(CRAWL_FETCH, conf) == value
        assert (compression_of(CRAWL_GENERATE, conf), compression_of(PARSE_TEXT, conf)) == (
            "NONE",
            "RECORD",
        )
    with pytest.raises(ConfigError, match="expected NONE, RECORD or BLOCK"):
        compression_of(CONTENT, EMPTY.with_values({name: "ZIP"}))


def test_what_is_written_is_read(segment: Segment) -> None:
    urls = ["http://a/", "http://b/", "http://é/"]
    for folder in (CRAWL_GENERATE, CRAWL_FETCH, CRAWL_PARSE):
        _write(segment, folder, urls if folder == CRAWL_FETCH else urls[::-1])
        assert [url for url, _ in segment.raw_sorted(folder)] == [url.encode() for url in urls]
        assert segment.get(folder, "http://b/") == [CrawlDatum(status=1)]
    assert [path.name for path in segment.parts(CRAWL_FETCH)] == ["part-r-00000"]


def test_parts_are_merged_in_order(segment: Segment) -> None:
    with segment.writing([CRAWL_FETCH]) as fresh:
        for index, urls in enumerate((["a", "c", "e"], ["b", "c", "d"], [])):
            with part_writer(fresh, CRAWL_FETCH, index) as append:
                for url in urls:
                    append(url, CrawlDatum(status=index))
    assert [url for url, _ in segment.raw_sorted(CRAWL_FETCH)] == [
        b"a",
        b"b",
        b"c",
        b"c",
        b"d",
        b"e",
    ]
    assert segment.get(CRAWL_FETCH, "c") == [CrawlDatum(status=0), CrawlDatum(status=1)]
    assert [url for url, _ in segment.records(CRAWL_FETCH)] == ["a", "c", "e", "b", "c", "d"]


def test_unsorted_urls_and_other_values_are_refused(segment: Segment) -> None:
    with pytest.raises(FormatError, match="out of order"):
        _write(segment, CRAWL_FETCH, ["b", "a"])
    with (
        pytest.raises(FormatError, match="wrong class"),
        segment.writing([CRAWL_FETCH]) as fresh,
        part_writer(fresh, CRAWL_FETCH, 0) as append,
    ):
        append("a", ParseText("text"))
    assert list(segment.path.iterdir()) == []


def test_error_while_writing_leaves_the_segment_as_it_was(segment: Segment) -> None:
    _write(segment, CRAWL_GENERATE, ["http://a/"])
    with pytest.raises(RuntimeError), segment.writing(PARSED) as fresh:
        with part_writer(fresh, CRAWL_PARSE, 0) as append:
            append("http://a/", CrawlDatum())
        raise RuntimeError
    assert [path.name for path in segment.path.iterdir()] == [CRAWL_GENERATE]


def test_a_step_that_is_done_is_not_done_again(segment: Segment) -> None:
    _write(segment, CRAWL_FETCH, ["http://a/"])
    with pytest.raises(StoreError, match="already has crawl_fetch"):
        _write(segment, CRAWL_FETCH, ["http://b/"])
    assert segment.get(CRAWL_FETCH, "http://a/")
    with (
        segment.writing([CRAWL_FETCH], replace=True) as fresh,
        part_writer(fresh, CRAWL_FETCH, 0) as append,
    ):
        append("http://b/", CrawlDatum())
    assert [url for url, _ in segment.raw(CRAWL_FETCH)] == [b"http://b/"]


def test_left_overs_of_a_broken_attempt_are_replaced(segment: Segment) -> None:
    (segment.path / PARSE_DATA).mkdir()
    (segment.path / PARSE_DATA / "part-r-00009").touch()
    with segment.writing(PARSED) as fresh:
        for folder in PARSED:
            with part_writer(fresh, folder, 0):
                pass
    assert [path.name for path in segment.parts(PARSE_DATA)] == ["part-r-00000"]
    assert sorted(path.name for path in segment.path.iterdir()) == sorted(PARSED)


def test_what_a_killed_writer_left_is_cleared_away(segment: Segment) -> None:
    process = subprocess.run(
        [sys.executable, "-c", "import os; print(os.getpid())"], capture_output=True, check=True
    )
    dead = segment.path / f".new-{int(process.stdout)}"
    alive = segment.path / f".new-{os.getppid()}"
    for path in (dead, alive):
        (path / CRAWL_FETCH).mkdir(parents=True)
    _write(segment, CRAWL_FETCH, ["http://a/"])
    assert sorted(path.name for path in segment.path.iterdir()) == [alive.name, CRAWL_FETCH]


def test_two_writers_of_one_step_do_not_both_win(segment: Segment) -> None:
    with pytest.raises(StoreError, match="already has crawl_fetch"), segment.writing([CRAWL_FETCH]):
        (segment.path / CRAWL_FETCH).mkdir()
    assert [path.name for path in segment.path.iterdir()] == [CRAWL_FETCH]


def test_a_folder_of_segments_is_no_segment(segment: Segment) -> None:
    _write(segment, CRAWL_FETCH, ["http://a/"])
    segment.check()
    segment.parts(CRAWL_FETCH)
    folder = Segment(segment.path.parent)
    with pytest.raises(StoreError, match=rf"folder of segments \({segment.name}, .* -dir"):
        folder.check()
    with pytest.raises(StoreError, match="-dir"):
        folder.parts(CRAWL_FETCH)
    with pytest.raises(StoreError, match="Input path does not exist"):
        segment.parts(CONTENT)
    (segment.path / "empty").mkdir()
    for nothing in (segment.path / "empty", segment.path / "nowhere"):
        Segment(nothing).check()


def test_fetch_and_parse_want_a_segment(segment: Segment) -> None:
    _write(segment, CRAWL_GENERATE, ["http://a/"])
    folder = segment.path.parent
    with pytest.raises(StoreError, match="folder of segments"):
        fetch_segment(Segment(folder), conf_for())
    with pytest.raises(StoreError, match="folder of segments"):
        parse.run([str(folder)], JobContext(conf_for()))
    assert list(folder.iterdir()) == [segment.path]


def test_a_bad_record_is_named(segment: Segment) -> None:
    directory = segment.path / CRAWL_FETCH
    directory.mkdir()
    with SequenceFileWriter(
        directory / "part-00000", Text.class_name, CrawlDatum.class_name
    ) as writer:
        writer.append_raw(text_key(b"http://a/"), b"\x09")
    with pytest.raises(FormatError, match=r"bad CrawlDatum of http://a/") as caught:
        list(segment.records(CRAWL_FETCH))
    assert caught.value.path == str(directory / "part-00000")


def test_utf8_keys_of_the_oldest_segments(segment: Segment) -> None:
    directory = segment.path / CRAWL_GENERATE
    directory.mkdir()
    with SequenceFileWriter(
        directory / "part-00000", UTF8.class_name, CrawlDatum.class_name
    ) as writer:
        writer.append(UTF8("http://é/"), CrawlDatum(status=1))
    assert list(segment.records(CRAWL_GENERATE)) == [("http://é/", CrawlDatum(status=1))]
    assert segment.get(CRAWL_GENERATE, "http://é/") == [CrawlDatum(status=1)]
    assert [url for url, _ in segment.raw_sorted(CRAWL_GENERATE)] == ["http://é/".encode()]


def test_other_key_classes_are_refused(segment: Segment, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    directory = segment.path / CRAWL_GENERATE
    directory.mkdir()
    with SequenceFileWriter(directory / "part-00000", "long", CrawlDatum.class_name):
        pass
    with pytest.raises(FormatError, match="wrong key class"):
        list(segment.raw(CRAWL_GENERATE))


def test_values_as_they_are_stored_where_all_parts_agree(tmp_path: Path) -> None:
    segment = Segment(tmp_path / "s")
    for part, compression in enumerate(("RECORD", "NONE")):
        path = segment.path / CONTENT / f"part-r-0000{part}"
        with MapFileWriter(
            path, TEXT, "org.apache.nutch.protocol.Content", compression=compression
        ) as writer:
            writer.append_raw(text_key(b"http://%d/" % part), b"value")
        codec, records = segment.stored_sorted(CONTENT, range(1), 1)
        if part == 0:
            assert codec == DEFAULT_CODEC
            assert [zlib.decompress(value) for _, value in records] == [b"value"]
    assert codec is None
    assert list(records) == [(b"http://0/", b"value"), (b"http://1/", b"value")]


def test_a_segment_finds_the_classes_of_its_values_by_itself(segment: Segment) -> None:
    """Whoever reads a segment need not have imported Nutch's records."""
    code = (
        "from pathlib import Path; from minutch import Segment; from"
        f" minutch.hadoop.formats.writables import lookup;Segment(Path({str(segment.path)!r}));"
        " lookup('org.apache.nutch.protocol.Content')"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=PROJECT)
