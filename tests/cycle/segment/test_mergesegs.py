"""mergesegs against what Nutch made of the same segments, and what it must never do."""

from __future__ import annotations

import re
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from minutch.clock import FakeClock
from minutch.conf import Configuration
from minutch.cycle.segment import mergesegs
from minutch.cycle.segment.store import (
    CONTENT,
    CRAWL_FETCH,
    CRAWL_GENERATE,
    CRAWL_PARSE,
    LAYOUTS,
    PARSE_DATA,
    PARSE_TEXT,
    Segment,
    part_writer,
    segments_in,
)
from minutch.errors import FormatError, StoreError, UsageError
from minutch.hadoop.formats.javahash import partition
from minutch.hadoop.formats.javaio import DataInput
from minutch.hadoop.formats.sequencefile import SequenceFileReader
from minutch.hadoop.formats.sequencewriter import COMPRESSIONS
from minutch.hadoop.formats.writables import Writable
from minutch.job import Counters as JobCounters
from minutch.plugin.urlrules import UrlRules
from minutch.records.crawldatum import (
    STATUS_FETCH_NOTMODIFIED,
    STATUS_FETCH_SUCCESS,
    STATUS_LINKED,
    STATUS_SIGNATURE,
    CrawlDatum,
)
from minutch.records.metadata import SEGMENT_NAME_KEY, Metadata
from minutch.records.parsedata import ParseData, ParseText
from minutch.records.protocol import Content
from tests.plugin.places import configuration, write_plugin
from tests.support.commands import mergesegs as mergesegs_command
from tests.support.examples import few
from tests.support.golden import GOLDEN, needs_golden
from tests.support.nutchruns import COMMANDS, NutchRun, context_for

RUNS = [
    NutchRun(f"mergesegs/{path.name}")
    for path in sorted(COMMANDS.glob("mergesegs/*"))
    if path.name != "missing"
]
CRAWL = GOLDEN / "crawl-small/run-rich-r2/crawl/segments"

Records = dict[tuple[str, str], list[tuple[bytes, bytes]]]
"""(folder, part) → keys and values as they lie."""


def records(segment: Path) -> Records:
    found: Records = {}
    for folder in LAYOUTS:
        for path in sorted((segment / folder).glob("part-*")):
            with SequenceFileReader(path / "data" if path.is_dir() else path) as reader:
                if entries := list(reader):
                    found[folder, path.name] = sorted(entries) if folder == CRAWL_PARSE else entries
    return found


def compressions(segment: Path) -> dict[str, str]:
    found = {}
    for path in segment.glob("*/part-*"):
        with SequenceFileReader(path / "data" if path.is_dir() else path) as reader:
            found[path.parent.name] = reader.compression
    return found


def expected_time(run: NutchRun) -> float:
    """Seconds since the epoch at which the run made its segments, by their names."""
    name = min(path.name for path in (run.folder / "out").iterdir())
    return datetime.strptime(name[:14], "%Y%m%d%H%M%S").timestamp()


class Candidates:
    """The records that could win: those of the newest segment that has one, under their normalized
    URLs.
    """

    def __init__(self, segments: list[Segment], conf: Configuration, normalize: bool) -> None:
        rules = UrlRules(
            conf, normalize=normalize, filtering=False, scope="default", keep_on_error=False
        )
        self.values: dict[tuple[str, bytes], tuple[str, list[bytes]]] = {}
        for segment in segments:
            for folder in filter(segment.has, LAYOUTS):
                for url, value in segment.raw(folder):
                    passed = rules.apply(pl.Series([url.decode()]), JobCounters())[0]
                    key = url if passed is None else passed.encode()  # rules that do nothing
                    name, found = self.values.get((kind(folder, value), key), ("", []))
                    if segment.name > name:
                        name, found = segment.name, []
                    self.values[kind(folder, value), key] = name, [*found, plain(folder, value)]

    def allow(self, folder: str, ours: tuple[bytes, bytes], theirs: tuple[bytes, bytes]) -> bool:
        """Tells whether chance decides between two records: both are of the newest segment."""
        found = self.values[kind(folder, ours[1]), url_of(ours[0])][1]
        return (
            ours[0] == theirs[0]
            and len(found) > 1
            and {plain(folder, r[1]) for r in (ours, theirs)} <= {*found}
        )


def kind(folder: str, value: bytes) -> str:
    """The folder; signatures apart from the links."""
    is_signature = folder == CRAWL_PARSE and CrawlDatum.from_bytes(value).status == STATUS_SIGNATURE
    return "signatures" if is_signature else folder


def plain(folder: str, value: bytes) -> bytes:
    """A value but for the segment's name, which merging changes."""
    if folder != PARSE_DATA:
        return value
    data = ParseData.from_bytes(value)
    data.content_meta.set(SEGMENT_NAME_KEY, "")
    return data.to_bytes()


def url_of(key: bytes) -> bytes:
    return DataInput(key).read_text_bytes()


@needs_golden("commands/mergesegs")
@pytest.mark.parametrize("run", RUNS, ids=str)
def test_segments_are_those_of_nutch(run: NutchRun, tmp_path: Path) -> None:
    """Record for record. Hadoop leaves the order of equal keys open: there the links of a page
    compare as a bag, and of several records of one page in one segment either may stay."""
    wanted = {path.name: path for path in (run.folder / "out").iterdir()}
    conf = run.conf().with_values(dict(re.findall(r"-D(\S+)=(\S+)", run.console[0])))
    context, _ = context_for(conf, clock=FakeClock(int(expected_time(run) * 1000)))
    words = [str(run.folder / "segs") if word == "segs" else word for word in run.words]
    words = [
        str(tmp_path / "out") if word == "out" else word
        for word in words
        if not word.startswith("-D")
    ]

    assert mergesegs_command.run(words, context) == run.exit

    given = [Path(word) for word in words[1:] if "/" in word]
    segments = segments_in(given[0]) if "-dir" in words else [Segment(path) for path in given]
    candidates = Candidates(segments, conf, "-normalize" in words)
    made = {path.name: path for path in (tmp_path / "out").iterdir()}
    newest = max(segment.name for segment in segments).partition("-")[0]
    if newest.isdigit():  # Nutch calls it after the time of merging
        assert {name[:14] for name in made} == {newest}
    assert [name[14:] for name in sorted(made)] == [name[14:] for name in sorted(wanted)]
    for name, theirs_of in zip(sorted(made), sorted(wanted), strict=True):
        path = wanted[theirs_of]
        ours, theirs = records(made[name]), records(path)
        assert ours.keys() == theirs.keys()
        for (folder, part), entries in ours.items():
            pairs = zip(entries, theirs[folder, part], strict=True)
            assert not [
                (mine, its)
                for mine, its in pairs
                if (mine[0], plain(folder, mine[1])) != (its[0], plain(folder, its[1]))
                and not candidates.allow(folder, mine, its)
            ]
        assert compressions(path).items() <= compressions(made[name]).items()


# Which records stay


def datum(status: int, score: float = 0.0) -> CrawlDatum:
    return CrawlDatum(status, score=score)


def page(text: str, segment: str = "") -> tuple[Content, ParseData, ParseText]:
    meta = Metadata.of({SEGMENT_NAME_KEY: segment} if segment else {})
    return (
        Content("http://a/", "http://a/", text.encode(), "text/plain", meta),
        ParseData(title=text),
        ParseText(text),
    )


def write(
    path: Path, pages: dict[str, list[Writable]], links: dict[str, list[CrawlDatum]] | None = None
) -> Segment:
    """A segment with a part of each folder: crawl_generate, crawl_fetch, content, ... of each URL,
    and crawl_parse.
    """
    folders: dict[str, list[tuple[str, Writable]]] = {name: [] for name in LAYOUTS}
    for url, values in sorted(pages.items()):
        for folder, value in zip(
            (CRAWL_GENERATE, CRAWL_FETCH, CONTENT, PARSE_DATA, PARSE_TEXT), values, strict=False
        ):
            folders[folder].append((url, value))
    for url, data in (links or {}).items():
        folders[CRAWL_PARSE] += [(url, value) for value in data]
    for folder, entries in folders.items():
        with part_writer(path, folder, 0) as append:
            for url, value in entries:
                append(url, value)
    return Segment(path)


@pytest.fixture
def two(tmp_path: Path) -> list[Segment]:
    """Two segments with a page in both, pages in one, and links of which each has some."""
    old = write(
        tmp_path / "segments/20260101000000",
        {
            "http://a/": [datum(1, 1.0), datum(STATUS_FETCH_SUCCESS, 1.0), *page("old")],
            "http://b/": [datum(1, 1.0), datum(STATUS_FETCH_SUCCESS, 1.0), *page("b")],
        },
        {
            "http://a/": [
                datum(STATUS_LINKED, 1.0),
                datum(STATUS_SIGNATURE, 1.0),
                datum(STATUS_LINKED, 1.5),
            ],
            "http://c/": [datum(STATUS_LINKED, 1.0)],
        },
    )
    new = write(
        tmp_path / "segments/20260202000000",
        {
            "http://a/": [
                datum(1, 2.0),
                datum(STATUS_FETCH_NOTMODIFIED, 2.0),
                *page("new", "20260202000000"),
            ],
            "http://d/": [datum(1, 2.0), datum(STATUS_FETCH_SUCCESS, 2.0), *page("d")],
        },
        {"http://a/": [datum(STATUS_SIGNATURE, 2.0)], "http://c/": [datum(STATUS_LINKED, 2.0)] * 2},
    )
    return [new, old]


def merge(
    segments: list[Segment], out: Path, conf: Configuration | None = None, **options: Any
) -> list[Segment]:
    context, _ = context_for(conf or Configuration.load([]), clock=FakeClock(1_770_000_000_000))
    counters = mergesegs.mergesegs(
        out, [s.path for s in segments], mergesegs.MergesegsOptions(**options), context=context
    )
    kept = [counters[name] for name in (mergesegs.OLDER, mergesegs.DROPPED, mergesegs.WRITTEN)]
    rejected = counters.get("URLs rejected by filters", 0) + counters.get(
        "malformed URLs removed", 0
    )
    assert counters["records read"] == sum(kept) + rejected
    made = segments_in(out)
    assert counters[mergesegs.SEGMENTS] == len(made)
    assert counters[mergesegs.WRITTEN] == sum(
        len(list(s.raw(folder))) for s in made for folder in filter(s.has, LAYOUTS)
    )
    return made


def texts(segment: Segment) -> dict[str, str]:
    return {
        url: str(value.text)
        for url, value in segment.records(PARSE_TEXT)
        if isinstance(value, ParseText)
    }


def data_of(segment: Segment, folder: str) -> list[tuple[str, int, float]]:
    return [
        (url, v.status, v.score) for url, v in segment.records(folder) if isinstance(v, CrawlDatum)
    ]


def test_the_newest_record_stays(two: list[Segment], tmp_path: Path) -> None:
    [merged] = merge(two, tmp_path / "out")

    assert texts(merged) == {"http://a/": "new", "http://b/": "b", "http://d/": "d"}
    assert {url: score for url, _, score in data_of(merged, CRAWL_GENERATE)} == {
        "http://a/": 2.0,
        "http://b/": 1.0,
        "http://d/": 2.0,
    }
    fetched = data_of(merged, CRAWL_FETCH)
    assert [(url, score) for url, _, score in fetched] == [
        ("http://a/", 1.0),
        ("http://b/", 1.0),
        ("http://d/", 2.0),
    ]
    assert data_of(merged, CRAWL_PARSE) == [
        ("http://a/", STATUS_SIGNATURE, 2.0),
        ("http://a/", STATUS_LINKED, 1.0),
        ("http://a/", STATUS_LINKED, 1.5),
        ("http://c/", STATUS_LINKED, 2.0),
        ("http://c/", STATUS_LINKED, 2.0),
    ]


def test_parse_data_names_its_new_segment(two: list[Segment], tmp_path: Path) -> None:
    for options in ({}, {"slice_size": 2}):
        for segment in merge(two, tmp_path / f"out{len(options)}", **options):
            for _, data in segment.records(PARSE_DATA):
                assert isinstance(data, ParseData)
                assert data.content_meta[SEGMENT_NAME_KEY] == [segment.name]


def test_slices_begin_at_multiples_of_their_size(two: list[Segment], tmp_path: Path) -> None:
    made = merge(two, tmp_path / "out", slice_size=2)
    assert [segment.name[14:] for segment in made] == ["-0", "-1", "-2"]
    urls = [{url for folder in LAYOUTS for url, _ in segment.records(folder)} for segment in made]
    assert urls == [{"http://a/"}, {"http://b/", "http://c/"}, {"http://d/"}]
    assert all(segment.is_complete() for segment in made)


def test_parts_are_hash_partitions_and_all_slices_have_them(
    two: list[Segment], tmp_path: Path
) -> None:
    conf = Configuration.load([]).with_values({"mapreduce.job.reduces": "2"})
    [merged] = merge(two, tmp_path / "out", conf)
    for folder in LAYOUTS:
        assert [path.name for path in merged.parts(folder)] == ["part-r-00000", "part-r-00001"]
        for number, file in enumerate(merged.data_files(folder)):
            with SequenceFileReader(file) as reader:
                assert {partition(url_of(key), 2) for key, _ in reader} <= {number}
    sliced = merge(two, tmp_path / "sliced", conf, slice_size=3)
    assert all(len(segment.parts(folder)) == 2 for segment in sliced for folder in LAYOUTS)
    both = sorted(entry for segment in sliced for entry in data_of(segment, CRAWL_PARSE))
    assert both == sorted(data_of(merged, CRAWL_PARSE))


@pytest.mark.parametrize("memory", ["1", "100m"])
@pytest.mark.parametrize("compression", few(COMPRESSIONS))
def test_memory_and_compression_change_no_record(
    two: list[Segment], tmp_path: Path, memory: str, compression: str
) -> None:
    [plain] = merge(two, tmp_path / "plain")
    values = {
        "minutch.memory": memory,
        "mapreduce.output.fileoutputformat.compress.type": compression,
    }
    conf = Configuration.load([]).with_values(values)
    [merged] = merge(two, tmp_path / "out", conf)
    assert records(merged.path) == records(plain.path)
    assert compressions(merged.path)[CONTENT] == compression
    [again] = merge([merged], tmp_path / "again")  # from these files to others
    assert {**records(again.path), (PARSE_DATA, ""): []} == {
        **records(plain.path),
        (PARSE_DATA, ""): [],
    }


MERGE_FILTER = """
from minutch.plugin.points import SegmentMergeFilter

class Picky(SegmentMergeFilter):
    def filter(self, url, generate, fetch, signature, content, parse_data, parse_text, linked):
        if url == "http://a/":
            scores = generate.score, fetch.score, signature.score
            seen = *scores, content.content, parse_data.title, parse_text.text
            assert seen == (2.0, 1.0, 2.0, b"new", "new", "new"), seen
            assert [datum.score for datum in linked] == [1.0, 1.5]
        if url == "http://c/":
            assert (generate, fetch, signature, content, parse_data, parse_text) == (None,) * 6
        return bool(linked)
"""


def test_merge_filters_are_asked_with_filter(two: list[Segment], tmp_path: Path) -> None:
    classes = {"Picky": "code:Picky"}
    point = "org.apache.nutch.segment.SegmentMergeFilter"
    write_plugin(tmp_path / "plugins", "picky", MERGE_FILTER, point=point, classes=classes)
    conf = configuration(tmp_path / "plugins", "picky")
    [all_of_it] = merge(two, tmp_path / "all", conf)
    [merged] = merge(two, tmp_path / "out", conf, filtering=True)
    assert set(texts(all_of_it)) == {"http://a/", "http://b/", "http://d/"}
    assert set(texts(merged)) == {"http://a/"}
    assert {url for url, _, _ in data_of(merged, CRAWL_PARSE)} == {"http://a/", "http://c/"}


# What can go wrong


def test_what_is_missing_is_said(
    two: list[Segment], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    shutil.rmtree(two[0].path / CRAWL_PARSE)
    [merged] = merge([*two, Segment(tmp_path / "nosuch")], tmp_path / "out")
    assert not merged.has(CRAWL_PARSE) and merged.has(CONTENT)
    assert f"Input dir {tmp_path / 'nosuch'} doesn't exist, skipping." in caplog.text
    assert f"not merged, since {two[0].path} has none: crawl_parse" in caplog.text


def test_what_is_being_fetched_is_left_out(
    two: list[Segment], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A running crawl has such segments, and Nutch merges what all have: their lists alone."""
    [alone] = merge(two, tmp_path / "alone")
    listed = tmp_path / "segments/20260303000000"
    shutil.copytree(two[0].path / CRAWL_GENERATE, listed / CRAWL_GENERATE)
    halfway = tmp_path / "segments/20260404000000"
    shutil.copytree(two[0].path, halfway)
    (halfway / "_fetch").mkdir()

    [merged] = merge(segments_in(tmp_path / "segments"), tmp_path / "out")

    assert merged.name == two[0].name and records(merged.path) == records(alone.path)
    for path in (listed, halfway):
        assert f"{path} is left out: it is being fetched, or is yet to be" in caplog.text


def test_newest_goes_by_the_fetch(tmp_path: Path) -> None:
    """A merged segment of Nutch's is called after its merging, later than what was fetched since
    its own pages were.
    """

    def fetched(name: str, time: int, text: str) -> Segment:
        fetch = CrawlDatum(STATUS_FETCH_SUCCESS, fetch_time=time, score=time / 1000)
        return write(
            tmp_path / "segments" / name,
            {"http://a/": [datum(1, time / 1000), fetch, *page(text)]},
            {
                "http://a/": [CrawlDatum(STATUS_SIGNATURE, score=time / 1000)],
                "http://b/": [datum(STATUS_LINKED, time / 1000)],
            },
        )

    merged_by_nutch = fetched("20260303000000", 1000, "old")
    later = fetched("20260202000000", 2000, "new")

    [merged] = merge([merged_by_nutch, later], tmp_path / "out")

    assert texts(merged) == {"http://a/": "new"}
    for folder in (CRAWL_GENERATE, CRAWL_FETCH, CRAWL_PARSE):
        assert {score for _, _, score in data_of(merged, folder)} == {2.0}


def test_merging_around_an_open_segment_is_older_than_that(tmp_path: Path) -> None:
    names = ["20260101000000", "20260202000000", "20260303000000"]
    segments = [write(tmp_path / "segments" / name, {}) for name in names]
    (segments[1].path / "_fetch").mkdir()
    [merged] = merge(segments, tmp_path / "out")
    assert merged.name == names[0]
    [merged] = merge(segments[1:], tmp_path / "late")
    assert merged.name == "20260201235959"


def test_nothing_to_merge(two: list[Segment], tmp_path: Path) -> None:
    empty = tmp_path / "20260303000000"
    empty.mkdir()
    out = tmp_path / "out"
    with pytest.raises(StoreError, match="nothing to merge"):
        merge([*two, Segment(empty)], out)
    with pytest.raises(StoreError, match="nosuch do not exist"):
        merge([Segment(tmp_path / "nosuch")], out)
    with pytest.raises(StoreError, match="a folder of segments"):
        merge([Segment(tmp_path / "segments")], out)
    context, _ = context_for(Configuration.load([]))
    (tmp_path / "none").mkdir()
    for words in ([str(out), "-dir", str(tmp_path / "none")], [str(out)], []):
        with pytest.raises(UsageError):
            mergesegs_command.run(words, context)
    assert not out.exists()


def test_an_output_that_is_there_stays(two: list[Segment], tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    with pytest.raises(StoreError, match="already exists"):
        merge(two, tmp_path / "out")
    assert not list((tmp_path / "out").iterdir())


@pytest.mark.parametrize("folder", LAYOUTS)
@pytest.mark.parametrize("summed", [True, False])
def test_damage_leaves_nothing(
    two: list[Segment], tmp_path: Path, folder: str, summed: bool
) -> None:
    [file] = two[0].data_files(folder)
    damaged = bytearray(file.read_bytes())
    damaged[-5] ^= 0xFF
    file.write_bytes(damaged)
    if not summed:
        (file.parent / f".{file.name}.crc").unlink()
    if (
        summed or LAYOUTS[folder].map_file
    ):  # without checksums a plain record that is damaged may still be one
        with pytest.raises(FormatError) as error:
            merge(two, tmp_path / "out")
        assert str(file) in str(error.value)
        assert [path.name for path in tmp_path.iterdir()] == ["segments"]


def test_records_of_another_class_are_an_error(two: list[Segment], tmp_path: Path) -> None:
    shutil.rmtree(two[0].path / CONTENT)
    shutil.copytree(two[0].path / PARSE_TEXT, two[0].path / CONTENT)
    with pytest.raises(FormatError, match="unexpected classes"):
        merge(two, tmp_path / "out")
