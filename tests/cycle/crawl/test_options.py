"""The command line of bin/crawl."""

from __future__ import annotations

from pathlib import Path

import pytest

from minutch.commands.crawl import parse_options, parse_wait
from minutch.cycle.crawl.options import CrawlOptions
from minutch.errors import UsageError


def test_both_forms() -> None:
    expected = (Path("crawl"), CrawlOptions(3, Path("seeds"), shown_as="crawl"), None)
    assert parse_options(["seeds/", "crawl", "3"]) == expected
    assert parse_options(["-s", "seeds/", "crawl", "3"]) == expected
    assert parse_options(["crawl", "3"]) == (
        Path("crawl"),
        CrawlOptions(3, shown_as="crawl"),
        None,
    )


def test_every_option() -> None:
    line = (
        "-i -w 15m -s seeds -sm maps --hostdbupdate --hostdbgenerate --num-fetchers 2 --num-tasks 3"
        " --size-fetchlist 100 --time-limit-fetch 20 --num-threads 8 --sitemaps-from-hostdb once"
        " --dedup-group host --dedup-near 3 --status 8090"
    )
    expected = CrawlOptions(
        -1,
        Path("seeds"),
        900,
        index=True,
        sitemaps=Path("maps"),
        hostdb_update=True,
        hostdb_generate=True,
        sitemaps_from_hostdb="once",
        fetchers=2,
        tasks=3,
        size=100,
        time_limit=20,
        threads=8,
        dedup_group="host",
        dedup_near=3,
        shown_as="crawl",
    )
    assert parse_options([*line.split(), "crawl", "-1"]) == (Path("crawl"), expected, 8090)
    assert parse_options(["--index", "--wait", "15m", "--num-slaves", "4", "c", "1"])[1].index


def test_nutchs_defaults() -> None:
    _, options, _ = parse_options(["crawl", "1"])
    assert (options.tasks, options.size, options.time_limit) == (2, 50000, 180)
    assert options.threads is None
    assert (options.wait, options.dedup_group, options.sitemaps_from_hostdb) == (
        None,
        "none",
        "never",
    )
    assert options.dedup_near is None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90", 90),
        ("90s", 90),
        ("2m", 120),
        ("1h", 3600),
        ("1H", 3600),
        ("2d", 172800),
        ("-1", None),
    ],
)
def test_wait(text: str, seconds: int | None) -> None:
    assert parse_wait(text) == seconds


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "^Usage: crawl"),
        ("crawl", "too few arguments"),
        ("a b c 3", "too many arguments"),
        ("-s a b c 3", "the seeds are given twice"),
        ("crawl many", "<num_rounds>: expected a number, found 'many'"),
        ("crawl -2", "<num_rounds>"),
        ("crawl 3 --dedup-near 11", "--dedup-near: expected 0 to 10 bits, found 11"),
        ("crawl 3 --dedup-group page", "expected one of none, host, domain, found 'page'"),
        ("crawl 3 --sitemaps-from-hostdb often", "expected one of never, always, once"),
        ("crawl 3 -w soon", r"--wait: expected <number\[s\|m\|h\|d\]>, found 'soon'"),
        ("crawl 3 -w 1y", "--wait"),
        ("crawl 3 --sitemaps-from-hostdb", "--sitemaps-from-hostdb needs a value"),
        ("crawl 3 --num-threads x", "--num-threads: expected <n>"),
        ("crawl 3 --hostdb", "unknown option --hostdb"),
    ],
)
def test_wrong_lines(line: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        parse_options(line.split())
