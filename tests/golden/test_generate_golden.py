"""generate gives Nutch's fetch lists, record for record, on the job table and in every golden
crawl.

Where the last places go to some of several pages with the same score, those may be others
(`tied_selection`).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from minutch.hadoop.formats.writables import LongWritable, MapWritable, Text
from minutch.records.crawldatum import CrawlDatum
from minutch.records.metadata import GENERATE_TIME_KEY
from minutch.urls.parts import host_of
from tests.support.commands import command
from tests.support.golden import needs_golden
from tests.support.replay import (
    Job,
    Step,
    context,
    copied,
    database_records,
    jobs,
    raw_records,
    steps,
)
from tests.support.ties import score, tied_selection

run = command("generate").run

pytestmark = needs_golden

_NOW = 1_795_244_400_000  # about when the tables were made, for the job that selects nothing

Records = list[tuple[str, bytes]]
Criterion = Callable[[str, CrawlDatum], object]

_SEGMENT = re.compile(r"Generator: segment: \S*?(\d{14})")
_REJECTED = re.compile(r"Generator: +(\d+)  (\w+)")


def fetch_lists(segments: Path) -> list[Records]:
    """The records of every fetch list below `segments`, in the order of the segments' names."""
    return [raw_records(path) for path in sorted(segments.glob("*/crawl_generate/part-r-*"))]


def times_of(lists: list[Records], before: dict[str, int]) -> dict[str, str]:
    """The properties that fix the clock: what `_ngt_` says, and the fetch time of entries that were
    brought forward.
    """
    generated = current = None
    for url, value in (record for records in lists for record in records):
        datum = CrawlDatum.from_bytes(value)
        mark = datum.metadata[Text(GENERATE_TIME_KEY)]
        assert isinstance(mark, LongWritable)
        generated = mark.value
        if datum.fetch_time != before[url]:
            current = datum.fetch_time
    if generated is None:
        return {}
    return {"_ngt_": str(generated), "generate.curTime": str(current or generated)}


def fetch_times(crawldb: Path) -> dict[str, int]:
    parts = database_records(crawldb / "current").values()
    return {url: CrawlDatum.from_bytes(value).fetch_time for part in parts for url, value in part}


def counters_of(console: str) -> dict[str, int]:
    return {name: int(count) for count, name in _REJECTED.findall(console)}


def without_days(arguments: list[str], times: dict[str, str]) -> dict[str, str]:
    """`times` with the current time moved back by -adddays, which moves it forward again."""
    if "-adddays" in arguments and times:
        days = int(arguments[arguments.index("-adddays") + 1])
        if times["generate.curTime"] != times["_ngt_"]:
            times = {
                **times,
                "generate.curTime": str(int(times["generate.curTime"]) - days * 86_400_000),
            }
    return times


def score_and_host(url: str, page: CrawlDatum) -> object:
    return page.score, host_of(url)


def assert_same_lists(
    found: list[Records], expected: list[Records], crawldb: Path, criterion: Criterion = score
) -> set[str]:
    """The lists are the same, in the same order, but for pages that are tied; returns the URLs of
    those.
    """
    every_tied: set[str] = set()
    entries = {
        url: value for part in database_records(crawldb / "current").values() for url, value in part
    }
    for ours, theirs in zip(found, expected, strict=True):
        tied = tied_selection(decoded(ours), decoded(theirs), criterion)
        assert [record for record in ours if record[0] not in tied] == [
            rec for rec in theirs if rec[0] not in tied
        ]
        assert all(unmarked(value) == unmarked(entries[url]) for url, value in ours if url in tied)
        every_tied |= tied
    return every_tied


def decoded(records: Records) -> list[tuple[str, CrawlDatum]]:
    return [(url, CrawlDatum.from_bytes(value)) for url, value in records]


def unmarked(value: bytes) -> CrawlDatum:
    """A record without the mark of generate, and without times, which change where a page is
    brought forward.
    """
    datum = replace(CrawlDatum.from_bytes(value), fetch_time=0, fetch_interval=0)
    kept = {key: value for key, value in datum.metadata.items() if str(key) != GENERATE_TIME_KEY}
    datum.metadata = MapWritable(kept)
    return datum


@pytest.mark.parametrize("job", jobs("generate"), ids=str)
def test_job_table(job: Job, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    crawldb = copied(job.table / "in/crawldb", tmp_path / "crawldb")
    expected = fetch_lists(job.output / "segments")
    [words] = job.arguments(db=crawldb, segs=tmp_path / "segments")
    times = without_days(words, times_of(expected, fetch_times(crawldb)))
    conf = job.configuration(**{"mapreduce.job.reduces": "1"} | job.properties | times)
    console = (job.output / "console.txt").read_text(encoding="utf-8")
    with caplog.at_level("INFO"):
        code = run(words[1:], context(conf, _NOW))

    assert f"[exit {code}]" in console
    found = fetch_lists(tmp_path / "segments")
    # the order in which Nutch makes its segments is that of the file system
    criterion = (
        score_and_host if "generate.max.count" in job.properties and "-topN" not in words else score
    )
    tied = assert_same_lists(sorted(found), sorted(expected), job.table / "in/crawldb", criterion)
    for name, count in counters_of(console).items():
        assert re.search(rf"{name} +{count}\b", caplog.text), name
    if (job.output / "crawldb").exists():
        ours, theirs = (
            database_records(db / "current") for db in (crawldb, job.output / "crawldb")
        )
        assert untied(ours, tied) == untied(theirs, tied)
        marks = [record for part in ours.values() for record in part if record[0] in tied]
        assert sorted(record for record in marks if b"_ngt_" in record[1]) == sorted(
            record for part in found for record in part if record[0] in tied
        )


def untied(database: dict[str, Records], tied: set[str]) -> dict[str, Records]:
    return {
        name: [record for record in records if record[0] not in tied]
        for name, records in database.items()
    }


@pytest.mark.parametrize("step", steps("generate"), ids=str)
def test_crawl(step: Step, tmp_path: Path) -> None:
    source = step.before("crawldb")
    assert source is not None
    crawldb = copied(source, tmp_path / "crawldb")
    names = _SEGMENT.findall(step.console)
    expected = [
        raw_records(step.run.folder / "crawl/segments" / name / "crawl_generate/part-r-00000")
        for name in names
    ]
    times = without_days(step.arguments, times_of(expected, fetch_times(crawldb)))
    code = run(
        [str(crawldb), str(tmp_path / "segments"), *step.arguments[2:]],
        context(step.configuration(**times)),
    )
    assert f"[exit {code}]" in step.console
    assert_same_lists(fetch_lists(tmp_path / "segments"), expected, source)
