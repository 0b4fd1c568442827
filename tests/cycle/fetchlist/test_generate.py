"""generate and freegen as commands: segments, exit codes, what they say."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from random import Random

import polars as pl
import pytest

from minutch.clock import FakeClock
from minutch.conf import Configuration
from minutch.cycle.crawldb.store import CrawlDb
from minutch.cycle.fetchlist import generate as generatejob
from minutch.cycle.fetchlist import lists as fetchlists
from minutch.cycle.fetchlist import selector
from minutch.errors import ExpressionError, LockedError, StoreError, UsageError
from minutch.hadoop.formats.writables import LongWritable, Text
from minutch.inspect.fsck.problems import in_database
from minutch.job import Counters, JobContext
from minutch.kernels import clibrary
from minutch.records.crawldatum import STATUS_DB_FETCHED, STATUS_DB_UNFETCHED, CrawlDatum
from minutch.records.crawldatum_columns import to_frame
from minutch.records.metadata import GENERATE_TIME_KEY
from minutch.work.engine import engine_of, selection
from minutch.work.tables import parallel, spans
from minutch.work.tables.recordfiles import read, scan
from tests.cycle.fetchlist.test_select import java_hash
from tests.support.commands import freegen, generate
from tests.support.crawldbs import write_db
from tests.support.examples import few
from tests.support.tables import read_records

NOW = 1_700_000_000_000
PLUGINS = "scoring-opic|urlfilter-regex|urlnormalizer-(pass|regex|basic)"


def context(**properties: str) -> JobContext:
    named = {name.replace("_", "."): value for name, value in properties.items()}
    return JobContext(
        Configuration.load([], overrides={"plugin.includes": PLUGINS, **named}), FakeClock(NOW)
    )


def database(path: Path, pages: dict[str, CrawlDatum] | list[str]) -> Path:
    """A CrawlDb of one part."""
    if not isinstance(pages, dict):
        pages = {url: page() for url in pages}
    db = CrawlDb(path)
    with db.replacement(keep_old=False) as directory, db.part_writer(directory, 0) as writer:
        writer.write(to_frame(sorted(pages.items(), key=lambda item: item[0].encode())))
    return path


def page(score: float = 1.0, fetch_time: int = NOW) -> CrawlDatum:
    return CrawlDatum(STATUS_DB_UNFETCHED, 86_400, score, fetch_time)


def lists(segments: Path) -> list[list[str]]:
    """The URLs of each part of each fetch list, sorted."""
    parts = sorted(segments.glob("*/crawl_generate/part-r-*"))
    return [sorted(key.decode() for key in read(part)["key"]) for part in parts]


def run(tmp_path: Path, *arguments: str, **properties: str) -> int:
    return generate.run(
        [str(tmp_path / "db"), str(tmp_path / "segments"), *arguments], context(**properties)
    )


def test_a_segment(tmp_path: Path) -> None:
    database(tmp_path / "db", ["http://a/1", "http://b/2"])
    assert run(tmp_path) == 0
    [segment] = (tmp_path / "segments").iterdir()
    assert re.fullmatch(r"\d{14}", segment.name)
    assert lists(tmp_path / "segments") == [["http://a/1", "http://b/2"]]
    assert not (tmp_path / "db/.locked").exists()


def test_two_runs_in_one_second_make_two_segments(tmp_path: Path) -> None:
    database(tmp_path / "db", ["http://a/1"])
    assert (run(tmp_path), run(tmp_path)) == (0, 0)
    assert len(list((tmp_path / "segments").iterdir())) == 2


@pytest.mark.parametrize(
    ("properties", "arguments", "reason"),
    [
        ({}, ["-expr", "score > 3"], "2 URLs for which the expression is not true"),
        ({"generate_min_score": "5"}, [], "2 URLs with a score below generate.min.score"),
        (
            {"generate_restrict_status": "db_gone"},
            [],
            "2 URLs with another status than generate.restrict.status",
        ),
        (
            {"generate_min_interval": "60"},
            [],
            "2 URLs with a fetch interval above generate.min.interval",
        ),
        ({"urlfilter_regex_rules": "-."}, [], "2 URLs rejected by the URL filters"),
        ({}, ["-topN", "0"], "2 URLs beyond topN"),
        ({"generate_curTime": str(NOW - 1000)}, [], "2 URLs not due yet"),
    ],
)
def test_nothing_to_do_and_why(
    properties: dict[str, str],
    arguments: list[str],
    reason: str,
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:
    database(tmp_path / "db", ["http://a/1", "http://b/2"])
    assert run(tmp_path, *arguments, **properties) == 1
    assert "0 records selected" in caplog.text
    assert reason in caplog.text
    assert not (tmp_path / "segments").exists()
    assert not (tmp_path / "db/.locked").exists()


def test_says_when_the_next_page_is_due(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    database(
        tmp_path / "db",
        {"http://a/": page(fetch_time=NOW + 1000), "http://b/": page(fetch_time=NOW + 5000)},
    )
    assert run(tmp_path) == 1
    assert "the next page is due at 2023-11-14 22:13:21 UTC" in caplog.text
    assert run(tmp_path, "-adddays", "1") == 0


def test_an_empty_database(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    database(tmp_path / "db", [])
    assert run(tmp_path) == 1
    assert "the CrawlDb has no entries" in caplog.text


def test_best_first(tmp_path: Path) -> None:
    database(tmp_path / "db", {f"http://h{i}/": page(score=float(i)) for i in range(10)})
    assert run(tmp_path, "-topN", "3") == 0
    assert lists(tmp_path / "segments") == [["http://h7/", "http://h8/", "http://h9/"]]


def test_segments_of_hosts(tmp_path: Path) -> None:
    database(tmp_path / "db", [f"http://a/{i}" for i in range(5)] + ["http://b/"])
    assert run(tmp_path, "-maxNumSegments", "2", generate_max_count="2") == 0
    first, second = lists(tmp_path / "segments")
    assert (len(first), len(second)) == (3, 2)
    assert "http://b/" in first


def test_freed_memory_goes_back_where_entries_are_read_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[bool] = []
    monkeypatch.setattr(clibrary, "give_back_large", lambda: asked.append(True))
    database(tmp_path / "db", ["http://a/1", "http://a/2"])
    assert run(tmp_path) == 0
    assert not asked
    assert run(tmp_path, generate_max_count="1") == 0
    assert asked


def test_counting_by_domain(tmp_path: Path) -> None:
    database(tmp_path / "db", ["http://x.a.com/", "http://y.a.com/", "http://b.org/"])
    assert run(tmp_path, generate_max_count="1", generate_count_mode="domain") == 0
    [found] = lists(tmp_path / "segments")
    assert len(found) == 2


def test_marked_entries_are_left_out_next_time(tmp_path: Path) -> None:
    database(
        tmp_path / "db", {"http://a/": page(3.0), "http://b/": page(2.0), "http://c/": page(1.0)}
    )
    update = {"generate_update_crawldb": "true", "mapreduce_job_reduces": "2"}
    assert run(tmp_path, "-topN", "2", **update) == 0
    assert len(CrawlDb(tmp_path / "db").parts()) == 2
    assert CrawlDb(tmp_path / "db").get("http://a/").metadata  # type: ignore[union-attr]
    assert (tmp_path / "db/old").is_dir()
    assert run(tmp_path, **update) == 0
    assert run(tmp_path, **update) == 1
    assert sorted(chain.from_iterable(lists(tmp_path / "segments"))) == [
        "http://a/",
        "http://b/",
        "http://c/",
    ]


def test_marks_that_a_run_which_was_stopped_did_not_make(tmp_path: Path) -> None:
    """Segments are there, the CrawlDb is as it was: the next run marks their pages before it
    selects.
    """
    database(
        tmp_path / "db", {"http://a/": page(3.0), "http://b/": page(2.0), "http://c/": page(1.0)}
    )
    update = {"generate_update_crawldb": "true"}
    before = tmp_path / "before"
    shutil.copytree(tmp_path / "db", before)
    assert run(tmp_path, "-topN", "2", **update) == 0
    entry = CrawlDb(tmp_path / "db").get("http://a/")
    assert entry is not None
    shutil.rmtree(tmp_path / "db")
    before.rename(tmp_path / "db")
    time = entry.metadata[Text(GENERATE_TIME_KEY)]
    assert isinstance(time, LongWritable)
    fetchlists.plan(CrawlDb(tmp_path / "db"), tmp_path / "segments", time.value)
    assert [problem.what for problem in in_database(tmp_path / "db")] == [
        "generate was stopped before its marks: the next one makes them"
    ]
    assert run(tmp_path, **update) == 0
    assert lists(tmp_path / "segments") == [["http://a/", "http://b/"], ["http://c/"]]
    assert CrawlDb(tmp_path / "db").get("http://a/") == entry
    assert not list(in_database(tmp_path / "db"))


def test_a_run_that_fails_before_its_segments_are_there_leaves_nothing(tmp_path: Path) -> None:
    database(tmp_path / "db", {"http://a/": page(3.0)})
    (tmp_path / "segments").write_text("no folder")
    with pytest.raises(OSError):
        run(tmp_path, generate_update_crawldb="true")
    assert [path.name for path in (tmp_path / "db").iterdir()] == ["current"]


def test_parts_of_a_list_outside_local_mode(tmp_path: Path) -> None:
    pages = [f"http://h{i}/{j}" for i in range(8) for j in range(3)]
    database(tmp_path / "db", pages)
    assert run(tmp_path, "-numFetchers", "3", mapreduce_framework_name="yarn") == 0
    parts = lists(tmp_path / "segments")
    assert len(parts) == 3
    assert sorted(chain.from_iterable(parts)) == sorted(pages)
    for part in parts:  # a host's pages stay together
        assert all(
            sum(url.startswith(f"{page.rpartition('/')[0]}/") for url in part) == 3 for page in part
        )


@pytest.mark.parametrize(
    "seed", few([0, 4, 6, 1, 2, 3, 5, 7], 3)
)  # from 4 on without topN, 4 and 5 without limits
def test_the_lists_depend_on_the_entries_alone(seed: int, tmp_path: Path) -> None:
    """Neither on the parts of the CrawlDb nor on spans, cores and memory."""
    random = Random(seed)
    pages = {
        f"http://h{random.randrange(9)}/{n}": page(score=random.choice((0.0, 0.5, 1.0)))
        for n in range(150)
    }
    arguments = ["-maxNumSegments", "2", "-numFetchers", "2"]
    limit = "-1" if seed in (4, 5) else "5"
    if seed < 4:
        limit = random.choice(("-1", "5", "40"))
        arguments += ["-topN", str(random.choice((30, 90, 200)))]
    properties = {
        "mapreduce_job_reduces": random.choice(("1", "3")),
        "mapreduce_framework_name": "yarn",
        "generate_max_count": limit,
        "generate_update_crawldb": "true",
    }
    results = []
    for parts, span_size, cores, memory in (
        (1, 1 << 25, 2, "0"),
        (4, 500, 1, "1k"),
        (3, 3000, 3, "1k"),
    ):
        folder = tmp_path / str(parts)
        write_db(folder / "db", pages.items(), parts=parts)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(selector, "scan", partial(scan, span_size=span_size))
            patch.setattr(parallel, "workers", lambda cores=cores: cores)
            if memory != "0":  # fewer entries compete at a time than get a place
                patch.setattr(selection, "_ROOM", 0)
                patch.setattr(selection, "_MORE_ROOM", parts * 7)
            assert run(folder, *arguments, **properties, minutch_memory=memory) == 0
        paths = [
            *folder.glob("segments/*/crawl_generate/part-r-*"),
            *folder.glob("db/current/part-r-*/data"),
        ]
        results.append(
            {str(path.relative_to(folder)): read_records(path) for path in sorted(paths)}
        )
    assert sum(name.startswith("segments") for name in results[0]) > 1
    if seed in (4, 5):  # no limits: all of them are in one segment
        lists = [found for name, found in results[0].items() if name.startswith("segments")]
        assert sum(map(len, lists)) == len(pages)
    assert results[0] == results[1] == results[2]


def test_without_limits_entries_are_taken_as_they_are_read(tmp_path: Path) -> None:
    """What is due is not collected before it is sorted to the lists, which `minutch.memory` bounds:
    a CrawlDb of any size has its lists made in that memory.
    """
    write_db(tmp_path / "db", {f"http://h/{n}": page() for n in range(400)}.items(), parts=4)
    db, job, tables = CrawlDb(tmp_path / "db"), context(), []

    def watched(piece: Path) -> Iterator[pl.DataFrame]:
        for table in scan(piece):
            tables.append(table)
            yield table

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(selector, "scan", watched)
        patch.setattr(spans, "_TOGETHER", 1)  # small parts would be one table
        chooser = selector.Selector.from_conf(job.conf, selector.GenerateOptions(), NOW)
        counters, progress = Counters(), job.progress("generate")
        found = iter(chooser.choose(db, engine_of(job.conf), counters, progress).tables)
        assert len(next(found)) == len(tables[0])
        assert len(tables) == 1
        assert sum(map(len, found)) == 400 - len(tables[0])
    assert len(tables) == 4
    assert counters["selected_total"] == 400


@pytest.mark.parametrize("reducers", ["1", "3"])
def test_a_list_is_in_the_order_of_hashes(reducers: str, tmp_path: Path) -> None:
    database(
        tmp_path / "db", {f"http://h{i % 7}/{i}": page(score=float(i % 5)) for i in range(100)}
    )
    assert run(tmp_path, "-topN", "60", mapreduce_job_reduces=reducers) == 0
    [part] = (tmp_path / "segments").glob("*/crawl_generate/part-r-*")
    urls = [key for key, _ in read_records(part)]
    assert len(urls) == 60
    assert urls == sorted(urls, key=lambda url: (java_hash(url), url))


def test_a_lock_is_respected_and_forced(tmp_path: Path) -> None:
    database(tmp_path / "db", ["http://a/"])
    (tmp_path / "db/.locked").touch()
    with pytest.raises(LockedError):
        run(tmp_path)
    assert run(tmp_path, "-force") == 0


def test_errors_leave_no_segment(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="does not exist"):
        run(tmp_path)
    database(tmp_path / "db", ["http://a/"])
    with pytest.raises(ExpressionError):
        run(tmp_path, "-expr", "score >")
    with pytest.raises(UsageError, match="topN"):
        run(tmp_path, "-topN", "many")
    with pytest.raises(StoreError, match="hosts/current"):
        run(tmp_path, "-hostdb", "hosts")
    with pytest.raises(UsageError, match="Usage: Generator"):
        generate.run([], context())
    assert not (tmp_path / "segments").exists()


def free(tmp_path: Path, *arguments: str, **properties: str) -> int:
    return freegen.run(
        [str(tmp_path / "urls"), str(tmp_path / "segments"), *arguments], context(**properties)
    )


@pytest.fixture
def url_list(tmp_path: Path) -> Path:
    (tmp_path / "urls").mkdir()
    text = "http://a/1\n\n# comment\nhttp://b/x.gif\nhttp://a/1\nHTTP://C:80/../d\n"
    (tmp_path / "urls/seeds.txt").write_text(text, encoding="utf-8")
    return tmp_path


def test_free_segment(url_list: Path) -> None:
    assert free(url_list) == 0
    assert lists(url_list / "segments") == [["HTTP://C:80/../d", "http://a/1", "http://b/x.gif"]]
    [part] = (url_list / "segments").glob("*/crawl_generate/part-r-00000")
    entries = read(part)
    assert entries["fetch_interval"].to_list() == [2_592_000] * 3
    assert entries["fetch_time"].to_list() == [NOW] * 3
    assert entries["metadata"].null_count() == 3


def test_free_segment_filtered_and_normalized(url_list: Path) -> None:
    assert free(url_list, "-filter", "-normalize") == 0
    assert lists(url_list / "segments") == [["http://a/1", "http://c/d"]]


def test_free_segment_in_parts(url_list: Path) -> None:
    assert free(url_list, "-numFetchers", "2", mapreduce_framework_name="yarn") == 0
    assert len(lists(url_list / "segments")) == 2


def test_free_segment_of_nothing(tmp_path: Path) -> None:
    with pytest.raises(StoreError):
        free(tmp_path)
    with pytest.raises(UsageError, match="unknown option -all"):
        free(tmp_path, "-all")


def test_few_pages_make_no_list_until_it_pays(tmp_path: Path) -> None:
    """Nothing is written; the counters say why, and the result when to look again."""
    again = CrawlDatum(STATUS_DB_FETCHED, 86_400, 1.0, NOW - 1000)
    pages = {f"http://h{n}.org/": again for n in range(3)}
    db, segments = database(tmp_path / "db", pages), tmp_path / "segments"

    def made(at: int, least: int) -> generatejob.Generated:
        with_clock = replace(context(), clock=FakeClock(at))
        options = selector.GenerateOptions(least=least, late=0.1)
        return generatejob.generate(db, segments, options, context=with_clock)

    found = made(NOW, 4)
    assert found.segments == [] and not segments.exists()
    assert found.next_due == NOW - 1000 + 8_640_000
    assert found.counters["list_too_short_total"] == 3
    assert list(found.reasons) == ["3 URLs due, and too few to be worth a list (crawl.list.min)"]
    assert len(lists(segments)) == 0
    assert len(made(NOW - 1000 + 8_640_000, 4).segments) == 1
    assert len(made(NOW, 3).segments) == 1
