"""The command line of bin/crawl."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from minutch.commands.crawl import parse_options
from minutch.commands.declared.cycle import wait
from minutch.conf import Configuration
from minutch.cycle.crawl.preflight import Wishes
from minutch.cycle.crawl.steps import CrawlOptions
from minutch.errors import UsageError
from minutch.plugin.chains import URLFilters
from tests.support.commands import parsed
from tests.support.examples import tabled


def options_of(*words: str) -> tuple[Path, CrawlOptions, Wishes | None, int | None]:
    return parse_options(parsed("crawl", *words))


def test_both_forms() -> None:
    expected = (Path("crawl"), CrawlOptions(3, Path("seeds"), shown_as="crawl"), None, None)
    assert options_of("seeds/", "crawl", "3") == expected
    assert options_of("-s", "seeds/", "crawl", "3") == expected
    assert options_of("crawl", "3") == (
        Path("crawl"),
        CrawlOptions(3, shown_as="crawl"),
        None,
        None,
    )


URL = "https://www.example.org/start"


@pytest.mark.parametrize(
    ("line", "folder", "rounds"),
    [
        (URL, "www.example.org", -1),
        (f"{URL} http://b.example/ 4", "www.example.org", 4),
        (f"{URL} crawl", "crawl", -1),
        (f"{URL} hdfs://nn/crawl 2", "hdfs://nn/crawl", 2),
        ("HTTP://[::1]:80/ ", "--1", -1),
        ("http://b\u00fccher.example", "xn--bcher-kva.example", -1),
    ],
)
def test_urls_in_place_of_seeds(line: str, folder: str, rounds: int) -> None:
    crawl_dir, options, wishes, _ = parse_options(
        parsed("crawl", *line.split(), "--max-pages", "9")
    )
    assert wishes is not None and list(wishes.urls) == [
        word for word in line.split() if word.lower().startswith("http")
    ]
    assert (str(crawl_dir), options.rounds, options.most) == (folder, rounds, 9)
    assert options.seeds is None and shlex.split(options.again) == [
        *line.split(),
        "--max-pages",
        "9",
    ]


def test_a_file_of_urls(tmp_path: Path) -> None:
    file = tmp_path / "urls.txt"
    file.write_text(f"# mine\n{URL}\n")
    for words, folder in (([], "www.example.org"), (["crawl"], "crawl")):
        crawl_dir, options, wishes, _ = options_of(str(file), *words)
        assert wishes is not None and list(wishes.urls) == [URL]
        assert (crawl_dir, options.seeds, options.rounds) == (Path(folder), file, -1)
    assert options_of(str(file), "crawl", "2")[2] is None


def test_wishes_are_properties(tmp_path: Path) -> None:
    conf = Configuration.load([])
    line = [URL, "--depth", "2", "--delay", "0.5", "--agent", "me", "--include", "/a/", "--include"]
    _, _, wishes, _ = options_of(*line, "/b/", "--exclude", "[.]pdf$")
    assert wishes is not None
    found = wishes.properties(conf)
    assert found["plugin.includes"] == f"{conf.get('plugin.includes')}|scoring-depth"
    assert {name: found[name] for name in found.keys() - {"plugin.includes"}} == {
        "scoring.depth.max": "3",
        "crawl.sitemaps": "false",
        "fetcher.server.delay": "0.5",
        "http.agent.name": "me",
        "urlfilter.regex.rules": found["urlfilter.regex.rules"],
    }
    filters = URLFilters(conf.with_values(found))
    site = "https://www.example.org"
    urls = [URL, f"{site}/a/1", f"{site}/b/1", f"{site}/c/1", f"{site}/a/1.pdf", f"{site}/a/1.gif"]
    assert [url for url in urls if filters.filter(url)] == urls[:3]


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
    assert options_of(*line.split(), "crawl", "-1") == (
        Path("crawl"),
        expected,
        None,
        8090,
    )
    assert parse_options(
        parsed("crawl", "--index", "--wait", "15m", "--num-slaves", "4", "c", "1")
    )[1].index


def test_nutchs_defaults() -> None:
    _, options, _, _ = options_of("crawl", "1")
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
    assert wait(text) == seconds


@tabled(
    ("line", "message"),
    [
        ("", "^Usage: crawl"),
        ("crawl", "too few arguments"),
        ("a b c 3", "too many arguments"),
        ("-s a b c 3", "the seeds are given twice"),
        ("crawl many", "<num_rounds>: expected a number, found 'many'"),
        ("crawl -2", "<num_rounds>"),
        ("crawl 3 --dedup-near 11", "--dedup-near: expected 0 to 10, found 11"),
        ("crawl 3 --dedup-group page", "expected none, host or domain, found 'page'"),
        ("crawl 3 --sitemaps-from-hostdb often", "expected never, always or once"),
        ("crawl 3 -w soon", r"--wait: expected <number\[s\|m\|h\|d\]>, found 'soon'"),
        ("crawl 3 -w 1y", "--wait"),
        ("crawl 3 --sitemaps-from-hostdb", "--sitemaps-from-hostdb needs a value"),
        ("crawl 3 --num-threads x", "--num-threads: expected <n>"),
        ("crawl 3 --hostdb", "unknown option --hostdb"),
        ("crawl 3 --depth 2", "--depth is for a crawl of URLs"),
        ("http://a/ b c", "expected one folder after the URLs, found b c"),
        ("http:///x", "no host"),
    ],
)
def test_wrong_lines(line: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        options_of(*line.split())


@tabled(
    ("line", "rounds", "forever"),
    [
        ("crawl 3", 3, False),
        ("crawl -1", -1, True),
        ("seeds crawl -1", -1, True),
        ("-w -1 crawl -1", -1, False),
        ("--forever crawl", -1, True),
        ("--forever seeds crawl", -1, True),
        ("http://example.org/", -1, False),
        ("http://example.org/ crawl 2", 2, False),
        ("http://example.org/ --forever", -1, True),
    ],
)
def test_a_crawl_without_a_number_of_rounds(line: str, rounds: int, forever: bool) -> None:
    _, options, _, _ = options_of(*line.split())
    assert (options.rounds, options.forever) == (rounds, forever)
