"""Scoring filters in a crawl of two rounds: what they put into the CrawlDb, and what comes out of
it again.
"""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from minutch import CrawlDatum, CrawlDb, FakeClock, JobContext, Segment
from minutch.hadoop.formats.writables import IntWritable, Text
from minutch.records.crawldatum_columns import records
from tests.support.commands import generate, inject, parse, updatedb
from tests.support.segments import conf_for, fetch_segment

NOW = 1_800_000_000_000
PAGES = {
    "seed.html": '<meta name=keywords content="web">crawlers crawl <a href=next.html>next</a>',
    "next.html": 'something else <a href="last.html">last</a>',
    "last.html": "the end",
}


class Crawl:
    """Pages in files, fetched in rounds a day apart."""

    def __init__(self, folder: Path, plugins: str, **values: str) -> None:
        self.folder = folder
        self.clock = FakeClock(NOW)
        self.conf = conf_for(**values).with_values(
            {
                "plugin.includes": (
                    f"protocol-file|parse-html|parse-metatags|urlnormalizer-pass|{plugins}"
                ),
                "file.crawl.parent": "false",
                "cosine.goldstandard.file": str(folder / "standard.txt"),
            }
        )
        (folder / "standard.txt").write_text("crawlers crawl the web\n")
        (folder / "site").mkdir()
        for name, text in PAGES.items():
            (folder / "site" / name).write_text(f"<html>{text}")

    def url(self, name: str) -> str:
        return f"file:{self.folder}/site/{name}"

    def context(self) -> JobContext:
        return JobContext(self.conf, clock=self.clock, out=io.StringIO(), err=io.StringIO())

    def inject(self, *lines: str) -> None:
        seeds = self.folder / "urls.txt"
        seeds.write_text("".join(f"{line}\n" for line in lines))
        assert inject.run([str(self.folder / "db"), str(seeds)], self.context()) == 0

    def round(self) -> None:
        db, segments = str(self.folder / "db"), self.folder / "segments"
        assert generate.run([db, str(segments)], self.context()) == 0
        segment = max(segments.iterdir())
        fetch_segment(Segment(segment), self.conf, clock=self.clock)
        assert parse.run([str(segment)], self.context()) == 0
        assert updatedb.run([db, str(segment)], self.context()) == 0
        self.clock.advance(86400)

    def entries(self) -> dict[str, CrawlDatum]:
        """The CrawlDb by file name."""
        db = CrawlDb(self.folder / "db")
        frames = [db.read_part(part) for part in range(len(db.parts()))]
        return {url.rpartition("/")[2]: datum for frame in frames for url, datum in records(frame)}


@pytest.mark.parametrize(
    ("plugins", "values"),
    [
        ("urlmeta", {"urlmeta.tags": "topic, depth"}),
        (
            "scoring-metadata",
            {f"scoring.{part}.md": "topic" for part in ("db", "content", "parse")},
        ),
    ],
)
def test_tags_of_a_seed_reach_pages_two_links_away(
    tmp_path: Path, plugins: str, values: dict[str, str]
) -> None:
    crawl = Crawl(tmp_path, f"scoring-opic|{plugins}", **values)
    crawl.inject(f"{crawl.url('seed.html')}\ttopic=web\tother=no")
    crawl.round()
    crawl.round()
    found = crawl.entries()
    assert found.keys() == PAGES.keys()
    assert {
        name: datum.metadata.get(Text("topic")) for name, datum in found.items()
    } == dict.fromkeys(PAGES, Text("web"))
    assert Text("other") not in found["next.html"].metadata


def test_links_of_like_pages_score(tmp_path: Path) -> None:
    crawl = Crawl(tmp_path, "scoring-similarity")
    crawl.inject(crawl.url("seed.html"))
    crawl.round()
    crawl.round()
    found = crawl.entries()
    assert found["next.html"].score == pytest.approx(3 / 12**0.5)  # crawler, crawl, web and `next`
    assert found["last.html"].score == 0.0


def test_pages_that_lose_their_link_become_orphans(tmp_path: Path) -> None:
    values = {
        "scoring.orphan.mark.gone.after": "100000",
        "scoring.orphan.mark.orphan.after": "200000",
    }
    crawl = Crawl(tmp_path, "scoring-opic|scoring-orphan", **values)
    crawl.inject(f"{crawl.url('seed.html')}\tnutch.fetchInterval=1")
    statuses = []
    for _ in range(4):
        crawl.round()
        found = crawl.entries()
        statuses.append({name: datum.status for name, datum in found.items()}["next.html"])
        (tmp_path / "site" / "seed.html").write_text("<html>no link any more")
    assert Text("_orphan_") not in found["seed.html"].metadata
    assert found["next.html"].metadata[Text("_orphan_")] == IntWritable(NOW // 1000)
    assert statuses == [1, 2, 3, 8]
