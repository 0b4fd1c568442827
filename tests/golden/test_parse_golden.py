"""The parse step of every golden crawl, from Nutch's own content: parse_data, parse_text,
crawl_parse record by record.

Times taken from the clock are set to 0 on both sides. Texts are compared after folding of blanks,
and as they are.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Set
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from minutch.clock import FakeClock
from minutch.conf import Configuration
from minutch.cycle.parse.pageparser import CUT, EXTERNAL, KEPT_OUT
from minutch.cycle.parse.parsesegment import REPEATED, parse
from minutch.cycle.segment.store import CONTENT, CRAWL_PARSE, PARSE_DATA, PARSE_TEXT, Segment
from minutch.job import JobContext
from minutch.records.crawldatum import CrawlDatum
from minutch.records.parsedata import ParseData
from tests.support.golden import GOLDEN, in_set, lacks_host, needs_golden

pytestmark = needs_golden

# Nutch's default plugins, as far as the build that made the files had them.
DEFAULT_PLUGINS = (
    "protocol-http|urlfilter-regex|parse-html|index-(basic|anchor)|scoring-opic"
    "|urlnormalizer-(pass|regex|basic)"
)


@dataclass(frozen=True)
class Run:
    """One golden crawl: where it lies, its configuration folder, what else it was started with."""

    name: str
    conf: str
    reduces: int
    plugins: str | None = DEFAULT_PLUGINS

    def segments(self) -> list[Path]:
        return sorted((GOLDEN / self.name / "crawl" / "segments").iterdir())

    def configuration(self, **extra: str) -> Configuration:
        overrides = {"mapreduce.job.reduces": str(self.reduces), "http.store.etag": "false"} | extra
        if self.plugins:
            overrides["plugin.includes"] = self.plugins
        return Configuration.load([GOLDEN / self.conf], overrides=overrides)


RUNS = (
    Run("crawl-small/run-default-r2", "crawl-small/conf-default", 2),
    Run("crawl-small/run-default-r1", "crawl-small/conf-default", 1),
    Run("crawl-small/run-rich-r2", "crawl-small/conf-rich", 2, None),
    Run("crawl-small-adaptive/run-r2", "crawl-small-adaptive/conf", 2),
    Run("nutch-1.20", "nutch-1.20/conf", 2),
)
STEPS = [
    pytest.param(run, number, id=f"{run.name}-{number}")
    for run in RUNS
    if in_set(GOLDEN / run.name / "crawl" / "segments")
    for number in range(len(run.segments()))
]

# Pages whose texts differ by design: path of the URL → why.
OTHER_TEXT = {
    "/wrongtype.html": (
        "binary data sent as HTML: browsers drop NULs from text, NekoHTML keeps them"
    ),
}

UNQUOTED = "/metatarget5.html"
"""Where a refresh with quotes leads (`0;URL='/q'`), by the HTML standard; to Nutch the quotes are
part of the URL.
"""


def unquoted(url: str) -> str:
    """The target of Nutch's that has quotes, as the standard reads it."""
    wrong = f"/'{UNQUOTED[1:]}'"
    return url.removesuffix(wrong) + UNQUOTED if url.endswith(wrong) else url


def parsed(
    run: Run, number: int, folder: Path, **extra: str
) -> tuple[Segment, Segment, Counter[str]]:
    """Nutch's segment, ours made from its content, and our counters."""
    golden = Segment(run.segments()[number])
    ours = Segment(folder / golden.name)
    shutil.copytree(golden.path / CONTENT, ours.path / CONTENT)
    counters = parse(
        ours.path, context=JobContext(run.configuration(**extra).freeze(), FakeClock(0))
    )
    return golden, ours, Counter(counters)


def by_url(segment: Segment, folder: str) -> dict[str, list[Any]]:
    result: dict[str, list[Any]] = {}
    for url, value in segment.records(folder):
        result.setdefault(url, []).append(value)
    return result


def data_fields(data: ParseData) -> dict[str, Any]:
    return {
        "status": (
            data.status.major,
            data.status.minor,
            [unquoted(text) for text in data.status.args or ()],
        ),
        "title": data.title,
        "outlinks": [
            (link.to_url, link.anchor, link.metadata)
            for link in data.outlinks
            if not lacks_host(link.to_url)
        ],
        "content metadata": dict(data.content_meta),
        "parse metadata": dict(data.parse_meta),
    }


def beside_hostless(segment: Segment) -> set[str]:
    """The links of pages with a link without a host, which has a share of the page's score only in
    Nutch.
    """
    pages = [[x.to_url for x in data.outlinks] for _, data in segment.records(PARSE_DATA)]
    return {url for urls in pages if any(map(lacks_host, urls)) for url in urls}


def crawl_fields(segment: Segment, shared: Set[str] = frozenset()) -> Counter[tuple[str, bytes]]:
    found: Counter[tuple[str, bytes]] = Counter()
    for url, datum in segment.records(CRAWL_PARSE):
        assert isinstance(datum, CrawlDatum)
        if lacks_host(url):
            continue
        datum.fetch_time = 0
        if url in shared:
            datum.score = 0.0
        found[unquoted(url), datum.to_bytes()] += 1
    return found


@pytest.mark.parametrize(("run", "number"), STEPS)
def test_parse_step(run: Run, number: int, tmp_path: Path) -> None:
    golden, ours, counters = parsed(
        run, number, tmp_path, **{"parser.character.encoding.detect": "false"}
    )

    expected, found = by_url(golden, PARSE_DATA), by_url(ours, PARSE_DATA)
    assert found.keys() == expected.keys()
    different = {}
    for url, values in expected.items():
        want, have = data_fields(values[0]), data_fields(found[url][0])
        different |= {
            (url, name): (have[name], want[name]) for name in want if have[name] != want[name]
        }
    assert different == {}

    texts, our_texts = by_url(golden, PARSE_TEXT), by_url(ours, PARSE_TEXT)
    pairs = {url: (our_texts[url][0].text, texts[url][0].text) for url in texts}
    folded = {url: pair for url, pair in pairs.items() if urlsplit(url).path not in OTHER_TEXT}
    assert {url: pair for url, pair in folded.items() if pair[0].split() != pair[1].split()} == {}
    assert {url: pair for url, pair in folded.items() if pair[0] != pair[1]} == {}

    shared = beside_hostless(golden)
    assert crawl_fields(ours, shared) == crawl_fields(golden, shared)
    assert counters["pages"] == sum(1 for _ in golden.records(CONTENT))
    others = ("pages", REPEATED, CUT, EXTERNAL, KEPT_OUT)
    outcomes = sum(count for name, count in counters.items() if name not in others)
    assert outcomes == counters["pages"]
    assert counters["success"] == len(found) + counters[REPEATED]


@pytest.mark.parametrize(("run", "number"), STEPS)
def test_part_files_are_nutchs(run: Run, number: int, tmp_path: Path) -> None:
    golden, ours, _ = parsed(run, number, tmp_path)
    for folder in (PARSE_DATA, PARSE_TEXT, CRAWL_PARSE):
        names = sorted(
            path.relative_to(ours.path).as_posix() for path in (ours.path / folder).rglob("*")
        )
        expected = sorted(
            path.relative_to(golden.path).as_posix() for path in (golden.path / folder).rglob("*")
        )
        assert names == expected
        assert urls_in_order(ours, folder) == urls_in_order(golden, folder)


def urls_in_order(segment: Segment, folder: str) -> list[str]:
    """The keys of a folder, but for the target that lies elsewhere when it is spelled otherwise."""
    return [
        url
        for url, _ in segment.records(folder)
        if not (unquoted(url).endswith(UNQUOTED) or lacks_host(url))
    ]
