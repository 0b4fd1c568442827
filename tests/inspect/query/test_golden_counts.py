"""Counts by SQL, Polars and pandas against what real Nutch says of the same crawls: readdb -stats
and its dumps.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

import minutch
from minutch.inspect.query.crawl import CrawlFolder
from minutch.inspect.query.session import Session
from tests.support.examples import few
from tests.support.golden import GOLDEN, needs_golden

CRAWLS = (
    "crawl-small/run-default-r1",
    "crawl-small/run-default-r2",
    "crawl-small/run-rich-r2",
    "crawl-small-adaptive/run-r2",
    "nutch-1.20",
)
needs = needs_golden(*(f"{name}/{part}" for name in CRAWLS for part in ("crawl", "dumps")))


def counts(crawl: CrawlFolder, statement: str) -> dict[str, int]:
    """The rows of a statement that gives names and numbers."""
    return dict(Session(crawl, 0).query(statement).collect().rows())


def same_everywhere(crawl: CrawlFolder, table: str, column: str) -> dict[str, int]:
    """The rows of a table by a column's values: what SQL, Polars and pandas say, which must be the
    same.
    """
    found = counts(crawl, f"select {column}, count(*) from {table} group by {column}")
    lazy = crawl.tables[table].scan().group_by(column).agg(pl.len()).collect()
    assert dict(lazy.select(pl.col(column).cast(pl.String), "len").rows()) == found
    pandas = crawl.tables[table].to_pandas()[column].value_counts(dropna=False)
    assert {name: count for name, count in pandas.items() if count} == found
    return found


def text(folder: Path) -> str:
    """Returns Nutch's dump: all part files, or the file `dump`."""
    files = [
        path
        for path in sorted(folder.iterdir())
        if path.is_file() and not path.name.startswith((".", "_"))
    ]
    return "".join(path.read_bytes().decode("utf-8", "replace") for path in files)


@needs
@pytest.mark.parametrize("name", CRAWLS)
def test_the_crawldb_has_what_stats_and_dump_say(name: str) -> None:
    pytest.importorskip("pandas")
    crawl = minutch.open(GOLDEN / name / "crawl")
    found = same_everywhere(crawl, "crawldb", "status")
    dumped = Counter(
        re.findall(
            r"^Status: \d+ \((\w+)\)", text(GOLDEN / name / "dumps/crawldb-normal"), re.MULTILINE
        )
    )
    assert found == dumped
    assert sum(found.values()) == len(crawl.crawldb)
    stats = GOLDEN / name / "console/dumps/readdb-stats.txt"
    if stats.exists():
        said = dict(
            re.findall(
                r"\] (?:status \d+ \()?([^\t\n]+?)\)?:\t(\S+)$", stats.read_text(), re.MULTILINE
            )
        )
        assert {status: str(count) for status, count in found.items()}.items() <= said.items()
        assert said["TOTAL urls"] == str(len(crawl.crawldb))
        retries = counts(crawl, "select 'retry ' || retries, count(*) from crawldb group by 1")
        assert {
            key: int(count) for key, count in said.items() if key.startswith("retry")
        } == retries
        scores = (
            crawl.crawldb.scan()
            .select(low=pl.col("score").min(), high=pl.col("score").max())
            .collect()
            .row(0)
        )
        assert scores == pytest.approx((float(said["min score"]), float(said["max score"])))


@needs
@pytest.mark.parametrize("name", CRAWLS)
def test_the_linkdb_has_what_its_dump_has(name: str, tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    (tmp_path / "linkdb").symlink_to(GOLDEN / name / "crawl/linkdb")
    crawl = minutch.open(tmp_path)  # alone: without links in hosts, `links` has those of segments
    dump = text(GOLDEN / name / "dumps/linkdb")
    found = same_everywhere(crawl, "links", "from_url")
    assert found == Counter(re.findall(r"^ fromUrl: (\S+) anchor: ", dump, re.MULTILINE))
    urls = re.findall(r"^(.+)\tInlinks:$", dump, re.MULTILINE)
    assert sorted(urls) == sorted(row["url"] for row in crawl.linkdb)
    lists = counts(crawl, "select 'links', sum(array_length(inlinks)) from linkdb")
    assert lists == {"links": sum(found.values())}


@needs
@pytest.mark.parametrize("name", few(CRAWLS, 2))
def test_pages_and_parses_are_those_of_the_dumped_segments(name: str) -> None:
    pytest.importorskip("pandas")
    crawl = minutch.open(GOLDEN / name / "crawl")
    fetches = "".join(_dumped(name, segment.name, "fetch") for segment in crawl.segments)
    found = same_everywhere(crawl, "pages", "status")
    dumped = Counter(re.findall(r"^Status: \d+ \((fetch_\w+)\)", fetches, re.MULTILINE))
    assert {
        status: count for status, count in found.items() if status.startswith("fetch_")
    } == dumped
    parses = {segment.name: _dumped(name, segment.name, "parsedata") for segment in crawl.segments}
    parsed = {segment: dump.count("\nParseData::\n") for segment, dump in parses.items()}
    assert same_everywhere(crawl, "parses", "segment") == {
        segment: count for segment, count in parsed.items() if count
    }
    numbers = re.findall(r"^Outlinks: (\d+)$", "\n".join(parses.values()), re.MULTILINE)
    links = sum(map(int, numbers))
    assert counts(crawl, "select 'outlinks', sum(outlinks) from parses") == {"outlinks": links}
    if name != "nutch-1.20":  # its dumps have the other folders, too
        known = counts(
            crawl,
            "select cast(code as varchar), count(*) from pages where code is not null group by 1",
        )
        assert known == Counter(_codes(fetches))


def _codes(dump: str) -> Iterator[str]:
    """The status codes of fetches; not of redirects' targets, nor where an exception came after an
    older answer.
    """
    for entry in dump.split("\nCrawlDatum::\n"):
        code = re.search(r"^\s*nutch\.protocol\.code=(\d+)", entry, re.MULTILINE)
        is_failure = "_pst_=exception(16)" in entry and "Http code=" not in entry
        if code and "(linked)" not in entry and not is_failure:
            yield code[1]


def _dumped(crawl: str, segment: str, folder: str) -> str:
    """The dump of a folder of a segment, or that of all of them."""
    alone = GOLDEN / crawl / f"dumps/seg-{segment}-{folder}"
    return text(alone if alone.is_dir() else GOLDEN / crawl / f"dumps/seg-{segment}")
